//! The past for programs that know nothing of it: an address that answers as the agent would have answered then.

use anyhow::Context;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base::Index;
use sdk::Client;
use tokio::net::{TcpListener, UnixListener};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_err;

const SERVE: Flag<String> =
    Flag::value("serve", "HOST:PORT", "Listen there until interrupted, instead of running a program.");

pub(super) static COMMAND: Command = Command {
    name: "at",
    aliases: &[],
    arguments: "<moment> -- <program> [<argument>...]",
    summary: "Run a program that sees the cluster as it was at a moment, or as it would be.",
    details: "The moment is an index, a time like 2026-01-02T15:04:05Z, or a span like -15m; all that the program reads is\n\
              of the one index that was the newest then. It gets an address of its own in NOMAD_ADDR, which only reads.\n\
              With -fork there is no moment: it sees that fork. Examples: at -15m -- nomad job status web;\n\
              at 48213 -serve 127.0.0.1:4747; at -fork ID -- nomad job status web.",
    flags: &[&[&SERVE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// Largest body of a call that is passed on: searches and lists of names.
const BODY_MAX: usize = 1024 * 1024;

/// Calls that read although they are no GET.
const READS: [&str; 3] = ["/v1/search", "/v1/search/fuzzy", "/v1/jobs/statuses"];

/// Headers that are of one connection, or that the proxy gives itself.
const NOT_PASSED: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "te",
    "transfer-encoding",
    "x-sojourn-as-of",
    "x-sojourn-fork",
    "upgrade",
];

async fn run(call: Call) -> Outcome {
    let usage = "This command takes a moment (or -fork), and a program after -- (or -serve)";
    let (then, index, rest) = if call.fork().is_empty() {
        let (moment, rest) = call.args.words.split_first().ok_or_else(|| call.usage(usage))?;
        let client = call.client_at("", moment)?;
        let index = client.moment().await.doing(&format!("finding the moment {moment}"))?;
        (call.client_at("", &index.to_string())?, index, rest)
    } else {
        let client = call.client_in("")?;
        let index = client.moment().await.doing("finding the fork")?;
        (client, index, call.args.words.as_slice())
    };
    match rest {
        [flag, address] if flag.trim_start_matches('-') == SERVE.name() => serve(then, index, address).await,
        [] => match call.args.value(&SERVE) {
            Some(address) => serve(then, index, address).await,
            None => Err(call.usage(usage)),
        },
        [dashes, program, arguments @ ..] if dashes == "--" => beside(then, program, arguments).await,
        [program, arguments @ ..] if !program.starts_with('-') => beside(then, program, arguments).await,
        _ => Err(call.usage(usage)),
    }
}

async fn serve(then: Client, index: Index, address: &str) -> Outcome {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("Error listening on {address}"))?;
    let bound = listener.local_addr().context("Error listening")?;
    write_err(format!("index {index} is served, for reading, at http://{bound}; ctrl-c ends it\n"));
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    let serving = axum::serve(listener, routes(then)).with_graceful_shutdown(interrupted);
    serving.await.context("Error serving")?;
    Ok(0)
}

/// Runs a program that is given the address of the past. Its exit code is this command's.
async fn beside(then: Client, program: &str, arguments: &[String]) -> Outcome {
    // Only this user reaches the socket: who does asks in the name of this command's token.
    let dir = tempfile::Builder::new().prefix("sojourn-at-").tempdir().context("Error making a directory")?;
    let socket = dir.path().join("api.sock");
    let listener = UnixListener::bind(&socket).context("Error making a socket")?;
    let serving = tokio::spawn(axum::serve(listener, routes(then)).into_future());
    let mut command = tokio::process::Command::new(program);
    let address = format!("unix://{}", socket.display());
    // The socket has the token of this command.
    command.args(arguments).env("NOMAD_ADDR", address).env_remove("NOMAD_TOKEN").kill_on_drop(true);
    let ended = command.status().await;
    serving.abort();
    let status = ended.map_err(|error| Failure::Code(127, format!("Error running {program}: {error}")))?;
    Ok(executor::shell_code(status))
}

fn routes(then: Client) -> Router {
    Router::new().fallback(pass_on).with_state(then)
}

async fn pass_on(State(then): State<Client>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let reads = matches!(parts.method, Method::GET | Method::HEAD)
        || (parts.method == Method::POST && READS.contains(&parts.uri.path()));
    if !reads {
        let text = "this address shows the past: it only reads";
        return (StatusCode::METHOD_NOT_ALLOWED, text).into_response();
    }
    let Ok(body) = to_bytes(body, BODY_MAX).await else {
        let text = format!("the request body is larger than {BODY_MAX} bytes");
        return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    match then.pass_on(parts.method, path, passed(parts.headers), body.into()).await {
        Ok(answer) => {
            let (status, headers) = (answer.status(), passed(answer.headers().clone()));
            (status, headers, Body::from_stream(answer.bytes_stream())).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

fn passed(mut headers: HeaderMap) -> HeaderMap {
    NOT_PASSED.iter().for_each(|name| drop(headers.remove(*name)));
    // An empty one would hide this command's own.
    if headers.get("x-nomad-token").is_some_and(|token| token.is_empty()) {
        headers.remove("x-nomad-token");
    }
    headers
}
