use std::io::{self, Read};

use anyhow::Context;
use sdk::{ApiRequest, TlsOptions};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::output::{write_err, write_out};

const METHOD: Flag<String> = Flag::value("X", "METHOD", "The method.");
const HEADERS: Flag<Vec<String>> = Flag::values("H", "NAME: VALUE", "A header; may be repeated.");
const FILTER: Flag<String> = Flag::value("filter", "EXPR", "Request only what matches this expression.");
const DRYRUN: Flag<bool> = Flag::switch("dryrun", "Print the request as a curl command instead.");
const VERBOSE: Flag<bool> =
    Flag::switch("verbose", "Print status and headers of the response to standard error.");

pub(super) static COMMAND: Command = Command {
    name: "operator api",
    aliases: &[],
    arguments: "<path> [-|@FILE|BODY]",
    summary: "Send a request to any path of the API and print the response.",
    details: "The path may leave out /v1/. The body is the second argument, the content of @FILE, or what is\n\
              piped in. Without -X the method is GET, or PUT when there is a body.",
    flags: &[&[&METHOD, &HEADERS, &FILTER, &DRYRUN, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let client = call.client()?;
    let request = request(&call)?;
    if call.args.switch(&DRYRUN) {
        write_out(curl(client.address(), &call.tls()?, &request));
        return Ok(0);
    }
    let mut response = client.call_raw(request).await.doing("making request")?;
    let status = response.status();
    if call.args.switch(&VERBOSE) {
        write_err(format!("< {:?} {status}", response.version()));
        for (name, value) in response.headers() {
            write_err(format!("< {name}: {}", value.to_str().unwrap_or("(not text)")));
        }
    }
    while let Some(chunk) = response.chunk().await.context("reading the answer")? {
        write_out(chunk);
    }
    if status.is_success() || status.is_redirection() {
        return Ok(0);
    }
    Err(anyhow::anyhow!("\nUnexpected response code: {}", status.as_u16()).into())
}

fn request(call: &Call) -> Result<ApiRequest, Failure> {
    let (path, body) = match call.args.words.as_slice() {
        [path] => (path, piped()?),
        [path, body] => (path, Some(read_body(body)?)),
        _ => return Err(call.usage("This command takes one or two arguments: <path> [body]")),
    };
    let method = call.args.value(&METHOD).unwrap_or(if body.is_some() { "PUT" } else { "GET" });
    let headers = call.args.values(&HEADERS).iter().map(|header| {
        let (name, value) = header.split_once(':').with_context(|| format!("\"{header}\" is no header"))?;
        Ok((name.trim().to_string(), value.trim().to_string()))
    });
    Ok(ApiRequest {
        method: method.to_string(),
        path: absolute(path),
        filter: call.args.value(&FILTER).unwrap_or_default().to_string(),
        headers: headers.collect::<anyhow::Result<_>>()?,
        body: body.unwrap_or_default().into(),
    })
}

/// `jobs`, `/jobs` and `/v1/jobs` mean the same.
fn absolute(path: &str) -> String {
    let path = path.trim_start_matches('/');
    if path.starts_with("v1/") { format!("/{path}") } else { format!("/v1/{path}") }
}

fn read_body(body: &str) -> anyhow::Result<Vec<u8>> {
    match (body, body.strip_prefix('@')) {
        ("-", _) => read_stdin(),
        (_, Some(file)) => std::fs::read(file).with_context(|| format!("cannot read {file}")),
        (_, None) => Ok(body.as_bytes().to_vec()),
    }
}

fn read_stdin() -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    io::stdin().lock().read_to_end(&mut body).context("cannot read standard input")?;
    Ok(body)
}

/// The content of a piped or redirected standard input. Terminals and devices are not read: they may never end.
fn piped() -> anyhow::Result<Option<Vec<u8>>> {
    let stat = rustix::fs::fstat(io::stdin()).context("cannot look at standard input")?;
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind != rustix::fs::FileType::Fifo && kind != rustix::fs::FileType::RegularFile {
        return Ok(None);
    }
    Ok(Some(read_stdin()?).filter(|body| !body.is_empty()))
}

/// The request as a curl command. The ACL token is a secret and is left as a variable.
fn curl(address: &str, tls: &TlsOptions, request: &ApiRequest) -> String {
    let mut words = vec!["curl".to_string(), format!("-X {}", request.method)];
    words.extend(
        request.headers.iter().map(|(name, value)| format!("-H {}", quoted(&format!("{name}: {value}")))),
    );
    let files = [
        ("--cacert", &tls.ca_cert),
        ("--capath", &tls.ca_path),
        ("--cert", &tls.client_cert),
        ("--key", &tls.client_key),
    ];
    let given = files.iter().filter(|(_, path)| !path.as_os_str().is_empty());
    words.extend(given.map(|(flag, path)| format!("{flag} {}", quoted(&path.to_string_lossy()))));
    words.extend(tls.skip_verify.then(|| "--insecure".to_string()));
    words.push("-H \"X-Nomad-Token: ${NOMAD_TOKEN}\"".to_string());
    if !request.filter.is_empty() {
        words.push(format!("-G --data-urlencode {}", quoted(&format!("filter={}", request.filter))));
    }
    if !request.body.is_empty() {
        words.push(format!("--data-binary {}", quoted(&String::from_utf8_lossy(&request.body))));
    }
    words.push(quoted(&format!("{address}{}", request.path)));
    words.join(" ") + "\n"
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_paths_are_completed() {
        for path in ["jobs", "/jobs", "v1/jobs", "/v1/jobs"] {
            assert_eq!(absolute(path), "/v1/jobs", "{path}");
        }
    }

    #[test]
    fn a_dry_run_can_be_pasted_and_shows_no_token() {
        let request = ApiRequest {
            method: "PUT".into(),
            path: "/v1/system/gc".into(),
            filter: String::new(),
            headers: vec![("X-A".into(), "it's".into())],
            body: "{}".into(),
        };
        assert_eq!(
            curl("http://x:1", &TlsOptions::default(), &request),
            "curl -X PUT -H 'X-A: it'\\''s' -H \"X-Nomad-Token: ${NOMAD_TOKEN}\" --data-binary '{}' 'http://x:1/v1/system/gc'\n"
        );
    }
}
