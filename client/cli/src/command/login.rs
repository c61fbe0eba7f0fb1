//! Logging in: a token for a JWT, or for what a provider says of who logs in there.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{ACLLoginRequest, ACLOIDCAuthURLRequest, ACLOIDCCompleteAuthRequest};
use axum::Router;
use axum::extract::{Query, State};
use axum::response::Html;
use axum::routing::get;
use model::document::{ACLAuthMethod, ACLToken};
use sdk::Client;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::hint;
use crate::layout;
use crate::output::{write_err, write_out};

const METHOD: Flag<String> =
    Flag::value("method", "NAME", "The auth method. Default: the cluster's default one.");
const KIND: Flag<String> = Flag::value("type", "TYPE", "JWT or OIDC: what the auth method has to be.");
const LOGIN_TOKEN: Flag<String> =
    Flag::value("login-token", "JWT", "The token to log in with, for a JWT method.");
const CALLBACK: Flag<String> = Flag::value(
    "oidc-callback-addr",
    "ADDR",
    "Where the provider sends the browser back to: HOST:PORT on this machine. Default: localhost:4649.",
);

const CALLBACK_DEFAULT: &str = "localhost:4649";
const CALLBACK_PATH: &str = "/oidc/callback";

/// How long somebody may take at the provider: servers do not wait longer either.
const PATIENCE: Duration = Duration::from_secs(360);

pub(super) static COMMAND: Command = Command {
    name: "login",
    aliases: &[],
    arguments: "",
    summary: "Log in, and print the token that this gives.",
    details: "With an OIDC method it opens the provider's page in a browser, if there is one, and prints its address.\n\
              The address HOST:PORT/oidc/callback must be among those that the method allows.",
    flags: &[&[&METHOD, &KIND, &LOGIN_TOKEN, &CALLBACK], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let (format, client) = (call.object_format()?, call.client()?);
    let (method, kind) = chosen(&call, &client).await?;
    let token = match kind.as_str() {
        ACLAuthMethod::JWT => with_jwt(&call, &client, &method).await?,
        _ => at_provider(&call, &client, &method).await?,
    };
    if let Some(format) = format {
        return format.print(&token);
    }
    write_out(format!("Successfully logged in via {kind} and {method}\n\n"));
    write_out(layout::acl::token(&call.style(), &token));
    Ok(0)
}

/// The auth method that is named, or the default one, and its type.
async fn chosen(call: &Call, client: &Client) -> Result<(String, String), Failure> {
    let methods = client.auth_methods(sdk::Query::new()).await.doing("listing ACL auth methods")?.value;
    let named = call.args.value(&METHOD).filter(|name| !name.is_empty());
    let kind = call.args.value(&KIND).unwrap_or_default().to_uppercase();
    let found = match named {
        Some(name) => methods.into_iter().find(|method| method.name == name),
        None => methods.into_iter().find(|method| method.default),
    };
    let Some(found) = found else {
        return Err(match named {
            Some(name) => anyhow::anyhow!("Error: ACL auth method \"{name}\" not found").into(),
            None => call.usage("-method is required: the cluster has no default auth method"),
        });
    };
    if !kind.is_empty() && kind != found.kind {
        return Err(
            call.usage(&format!("-type {kind}: auth method {} is of type {}", found.name, found.kind))
        );
    }
    Ok((found.name, found.kind))
}

async fn with_jwt(call: &Call, client: &Client, method: &str) -> Result<ACLToken, Failure> {
    let given = call.args.value(&LOGIN_TOKEN).map(str::trim).filter(|token| !token.is_empty());
    let token = given.ok_or_else(|| call.usage("-login-token is required for a JWT method"))?;
    let request = ACLLoginRequest { auth_method_name: method.to_string(), login_token: token.to_string() };
    client.login(&request).await.doing("logging in")
}

async fn at_provider(call: &Call, client: &Client, method: &str) -> Result<ACLToken, Failure> {
    if call.args.value(&LOGIN_TOKEN).is_some() {
        return Err(call.usage("-login-token is for JWT methods"));
    }
    let address = call.args.value(&CALLBACK).unwrap_or(CALLBACK_DEFAULT);
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| anyhow::anyhow!("Error listening at {address}: {error}"))?;
    let redirect_uri = format!("http://{address}{CALLBACK_PATH}");
    let client_nonce = nonce()?;
    let request = ACLOIDCAuthURLRequest {
        auth_method_name: method.to_string(),
        redirect_uri: redirect_uri.clone(),
        client_nonce: client_nonce.clone(),
    };
    let url = client.oidc_auth_url(&request).await.doing("requesting the address of the provider")?;
    // Beside the output, which may be read by a program.
    write_err(format!("Log in at your identity provider:\n\n    {url}\n"));
    if let Err(error) = hint::open(&url) {
        write_err(format!("No browser was opened ({error}): open the address yourself"));
    }
    let mut back = returned(listener).await?;
    if let Some(error) = back.get("error") {
        let why = back.get("error_description").map(String::as_str).unwrap_or_default();
        return Err(anyhow::anyhow!("Error from the identity provider: {error} {why}").into());
    }
    let mut field = |name: &str| back.remove(name).unwrap_or_default();
    let request = ACLOIDCCompleteAuthRequest {
        auth_method_name: method.to_string(),
        client_nonce,
        state: field("state"),
        code: field("code"),
        iss: field("iss"),
        redirect_uri,
    };
    client.complete_oidc_auth(&request).await.doing("logging in")
}

fn nonce() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system has no entropy"))?;
    Ok(base::Uuid::from_random(bytes).to_string())
}

type Returned = BTreeMap<String, String>;

/// What the browser is sent back with: the first that comes to the right place.
async fn returned(listener: TcpListener) -> Result<Returned, Failure> {
    let (sender, mut receiver) = mpsc::channel(1);
    let routes = Router::new().route(CALLBACK_PATH, get(callback)).with_state(sender);
    let (closed, close) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, routes).with_graceful_shutdown(async move { drop(close.await) });
    let serving = tokio::spawn(serving.into_future());
    let got = tokio::time::timeout(PATIENCE, receiver.recv()).await;
    // The page is shown before the listener is gone, but a browser that keeps its connection does not hold this up.
    drop(closed);
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    match got {
        Ok(Some(back)) => Ok(back),
        _ => {
            Err(anyhow::anyhow!("Error: nobody logged in within {} minutes", PATIENCE.as_secs() / 60).into())
        }
    }
}

async fn callback(
    State(sender): State<mpsc::Sender<Returned>>,
    Query(back): Query<Returned>,
) -> Html<&'static str> {
    let _ = sender.try_send(back);
    Html("<!doctype html><title>Sojourn</title><p>Back to the terminal: this page can be closed.</p>\n")
}
