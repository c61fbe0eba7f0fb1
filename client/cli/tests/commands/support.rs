//! A fake HTTP API that answers from a table, and the program that calls it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const EVAL: &str = "11111111-2222-4333-8444-555555555555";
pub const ALLOC: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";
pub const NODE: &str = "0badcafe-1111-4222-8333-444444444444";

/// Answers by method and path. A body that begins with a number is an error with that code; one that begins with
/// `sse ` is a stream; parts divided by `|` are given one after the other.
pub struct Cluster {
    pub address: String,
    routes: BTreeMap<String, String>,
    listener: TcpListener,
}

#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// The requests: `GET /v1/jobs?prefix=web`, and the body after a blank if there is one.
    pub requests: Vec<String>,
}

impl Cluster {
    pub fn answering(routes: &[(&str, &str)]) -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let routes = routes.iter().map(|(route, body)| (route.to_string(), body.to_string())).collect();
        Cluster { address, routes, listener }
    }

    pub fn with(mut self, route: &str, body: &str) -> Cluster {
        self.routes.insert(route.to_string(), body.to_string());
        self
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with(&[], arguments)
    }

    /// Answers while `caller` runs.
    pub fn serving<T>(&self, caller: impl FnOnce() -> T) -> T {
        let (listener, mut routes) = (self.listener.try_clone().unwrap(), self.routes.clone());
        let end = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if answer(&stream.unwrap(), &mut routes).is_none() {
                    break;
                }
            }
        });
        let done = caller();
        // A connection without a request ends the server.
        drop(TcpStream::connect(end).unwrap());
        server.join().unwrap();
        done
    }

    pub fn run_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
        let (listener, mut routes) = (self.listener.try_clone().unwrap(), self.routes.clone());
        let address = self.address.clone();
        let end = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for stream in listener.incoming() {
                match answer(&stream.unwrap(), &mut routes) {
                    Some(request) => requests.push(request),
                    None => break,
                }
            }
            requests
        });
        let output = sojourn()
            .env("NOMAD_ADDR", address)
            .envs(environment.iter().copied())
            .args(arguments)
            .output()
            .unwrap();
        // A connection without a request ends the server.
        drop(TcpStream::connect(end).unwrap());
        CommandOutput { requests: server.join().unwrap(), ..ran(output) }
    }
}

pub fn sojourn() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn"));
    command.env_clear().env("TZ", "UTC").stdin(Stdio::null());
    command
}

pub fn run(flags: &[&str], command: &str) -> CommandOutput {
    ran(sojourn().arg(command).args(flags).output().unwrap())
}

pub fn ran(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        requests: Vec::new(),
    }
}

/// The request; `None` when the connection was closed without one.
fn answer(stream: &TcpStream, routes: &mut BTreeMap<String, String>) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap() == 0 {
        return None;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut sent = vec![0; length];
    reader.read_exact(&mut sent).unwrap();
    let mut route = first.split(['?', ' ']).take(2).collect::<Vec<_>>().join(" ");
    // Another region may answer otherwise.
    let region = first.split(['?', '&', ' ']).find(|part| part.starts_with("region="));
    if let Some(in_region) = region.map(|region| format!("{route}?{region}"))
        && routes.contains_key(&in_region)
    {
        route = in_region;
    }
    let body = routes.get(&route).cloned().unwrap_or_else(|| "404 no such route".to_string());
    let (now, later) = body.split_once('|').map_or((body.as_str(), None), |(now, later)| (now, Some(later)));
    if let Some(later) = later {
        routes.insert(route, later.to_string());
    }
    let (status, kind, body) =
        match (now.strip_prefix("sse "), now.get(..3).and_then(|code| code.parse::<u16>().ok())) {
            (Some(stream), _) => (200, "text/event-stream", stream),
            (None, Some(code)) => (code, "text/plain", &now[4..]),
            (None, None) => (200, "application/json", now),
        };
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nX-Nomad-Index: 7\r\nConnection: close");
    let mut stream = stream;
    if let Err(error) = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()) {
        // A command whose time is over has not waited for the answer.
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    }
    let request = format!("{} {}", first.trim_end_matches(" HTTP/1.1\r\n"), String::from_utf8(sent).unwrap());
    Some(request.trim_end().to_string())
}

/// A cluster that runs the job `web`.
pub fn web_cluster() -> Cluster {
    let stub = format!(
        r#"{{"ID": "{ALLOC}", "EvalID": "{EVAL}", "NodeID": "{NODE}", "TaskGroup": "api", "DesiredStatus": "run",
            "ClientStatus": "running", "CreateIndex": 8, "CreateTime": 1767323045000000000}}"#
    );
    let allocs = format!("[{stub}]");
    let eval = format!(
        r#"{{"ID": "{EVAL}", "Status": "complete", "JobID": "web", "TriggeredBy": "job-register", "CreateIndex": 7}}"#
    );
    Cluster::answering(&[
        (
            "GET /v1/jobs",
            r#"[{"ID": "web", "Namespace": "default", "Type": "service", "Priority": 50, "Status": "running",
                "SubmitTime": 1767323045000000000}]"#,
        ),
        ("GET /v1/job/web", r#"{"ID": "web", "Name": "web", "Type": "service", "Datacenters": ["dc1"]}"#),
        ("GET /v1/job/web/summary", r#"{"JobID": "web", "Summary": {"api": {"Running": 1}}}"#),
        ("GET /v1/job/web/allocations", &allocs),
        ("GET /v1/job/web/deployment", "null"),
        ("GET /v1/job/web/evaluations", &format!("[{eval}]")),
        ("GET /v1/allocations", &allocs),
        ("PUT /v1/jobs", &format!(r#"{{"EvalID": "{EVAL}", "JobModifyIndex": 7}}"#)),
        (&format!("GET /v1/evaluation/{EVAL}"), &eval),
        (&format!("GET /v1/evaluation/{EVAL}/allocations"), &allocs),
    ])
}

pub fn job_file() -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".nomad.hcl").tempfile().unwrap();
    let text = r#"
job "web" {
  group "api" {
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
"#;
    std::fs::write(Path::new(file.path()), text).unwrap();
    file
}

/// Each RFC 3339 time as `T`.
pub fn without_times(text: &str) -> String {
    let line = |line: &str| {
        line.split_once("Z: ").map_or(line.to_string(), |(before, after)| {
            let indent = if before.starts_with("==>") { "==>" } else { "   " };
            format!("{indent} T: {after}")
        })
    };
    text.lines().map(|text| line(text) + "\n").collect()
}
