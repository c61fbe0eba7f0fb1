//! The child: one request, one answer.

use std::fs::{DirBuilder, File};
use std::io::{BufRead, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::Url;
use reqwest::header::HeaderMap;
use rustix::fs::Mode as FileMode;
use rustix::process::{Resource, Rlimit, Signal};

use crate::FetchError;
use crate::below::{Below, Links};
use crate::checksum::{Digest, Wanted};
use crate::http::{self, Call};
use crate::request::{Answer, Confinement, Mode, Request};
use crate::source::{Kind, Source};
use crate::{git, hg, place, s3, sandbox, unpack};

/// Most memory of a child that unpacks: a format may ask for gigabytes to begin with.
const UNPACK_MEMORY_BYTES: u64 = 4 << 30;

/// Shorter ones are found in ordinary words, which would be hidden too.
const SECRET_MIN: usize = 4;

pub fn main() -> ExitCode {
    let mut line = String::new();
    if let Err(error) = std::io::stdin().lock().read_line(&mut line) {
        eprintln!("artifact: {error}");
        return ExitCode::from(2);
    }
    let request: Request = match serde_json::from_str(&line) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("artifact expects a request of the agent on its input: {error}");
            return ExitCode::from(2);
        }
    };
    let answer = serve(&request);
    let mut text = serde_json::to_string(&answer).expect("an answer is plain data");
    text.push('\n');
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The agent is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(request: &Request) -> Answer {
    let mut confinement = Confinement::Disabled;
    let result = Source::parse(&request.source, &request.options).and_then(|source| {
        confinement = sandbox::confine(request, source.kind)?;
        // Only now, so that it is confined too.
        std::thread::spawn(end_with_agent);
        fetch(request, &source).map_err(|error| without_secrets(error, request, &source))
    });
    let (error, recoverable) = match result {
        Ok(()) => (None, true),
        Err(FetchError::Invalid(why)) => (Some(why), false),
        Err(FetchError::Failed(why)) => (Some(why), true),
    };
    Answer { error, recoverable, confinement }
}

/// Programs and servers may repeat what they were given, and messages of tasks are read by many.
fn without_secrets(error: FetchError, request: &Request, source: &Source) -> FetchError {
    let options = ["sshkey", "aws_access_key_secret", "aws_access_token"];
    let given = options.iter().filter_map(|name| source.option(name)).chain(source.url.password());
    let secrets = given.chain(request.headers.values().map(String::as_str));
    let hide = |text: String| {
        secrets
            .filter(|secret| secret.len() >= SECRET_MIN)
            .fold(text, |text, secret| text.replace(secret, "***"))
    };
    match error {
        FetchError::Invalid(why) => FetchError::Invalid(hide(why)),
        FetchError::Failed(why) => FetchError::Failed(hide(why)),
    }
}

/// The agent keeps our input open as long as it wants an answer. When it is gone, so are we, and git with us.
fn end_with_agent() {
    let mut rest = [0; 64];
    while let Ok(1..) = std::io::stdin().read(&mut rest) {}
    if rustix::process::getpgrp() == rustix::process::getpid() {
        rustix::process::kill_current_process_group(Signal::KILL).ok();
    }
    std::process::exit(1);
}

/// Fetches into a tree in the scratch directory. Only what is complete, checked and inspected leaves it.
fn fetch(request: &Request, source: &Source) -> Result<(), FetchError> {
    rustix::process::umask(FileMode::from_raw_mode(0o022));
    DirBuilder::new().mode(0o700).create(&request.scratch)?;
    let limits = &request.limits;
    match source.kind {
        Kind::Git | Kind::Hg => {
            for option in ["checksum", "archive"] {
                if source.option(option).is_some() {
                    return Err(FetchError::invalid(format!("{option}: a repository has none")));
                }
            }
            if source.kind == Kind::Git {
                let deadline = Instant::now() + limits.git_timeout;
                git::fetch(source, request.insecure, &request.scratch, deadline)?;
            } else {
                let deadline = Instant::now() + limits.hg_timeout;
                hg::fetch(source, request.insecure, &request.scratch, deadline)?;
            }
        }
        Kind::Http => {
            let headers = http::headers(&request.headers)?;
            over_http(request, source, source.url.clone(), headers, limits.http_read_timeout)?;
        }
        Kind::S3 => {
            let (url, headers) = s3::object(source, Timestamp::now())?;
            over_http(request, source, url, http::headers(&headers)?, limits.s3_timeout)?;
        }
        Kind::Gcs => {
            let (url, headers) = s3::gcs_object(source)?;
            over_http(request, source, url, http::headers(&headers)?, limits.gcs_timeout)?;
        }
    }
    install(request, source)
}

fn over_http(
    request: &Request,
    source: &Source,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
) -> Result<(), FetchError> {
    let file_name = source.file_name();
    let format = unpack::format(source.option("archive"), file_name.as_deref().unwrap_or_default())?;
    if format.is_none() {
        if request.mode == Mode::Dir {
            return Err(FetchError::invalid("mode = \"dir\": expected an archive or a repository"));
        }
        if let Some(subdir) = &source.subdir {
            let text =
                format!("source: \"//{}\" is a part of an archive, and this is none", subdir.display());
            return Err(FetchError::invalid(text));
        }
    }
    // The destination is the name of a single file.
    let name = match (file_name, format, request.mode) {
        (Ok(name), _, _) => name,
        (Err(_), Some(_), _) | (Err(_), None, Mode::File) => "download".to_string(),
        (Err(error), None, Mode::Any | Mode::Dir) => return Err(error),
    };
    let bytes_max = request.limits.http_max_size;
    let call = Call { url, headers, insecure: request.insecure, timeout, bytes_max };
    let digest = source.option("checksum").map(|text| digest(text, &call, &name)).transpose()?;
    let mut checker = digest.as_ref().map(Digest::checker);
    let path = request.scratch.join("download");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    http::download(&call, &mut file, checker.as_mut())?;
    if let Some(checker) = checker {
        checker.finish()?;
    }
    let tree = request.scratch.join("tree");
    DirBuilder::new().mode(0o755).create(&tree)?;
    match format {
        None => Ok(std::fs::rename(&path, tree.join(&name))?),
        Some(format) => {
            file.rewind()?;
            let memory = Some(UNPACK_MEMORY_BYTES);
            rustix::process::setrlimit(Resource::As, Rlimit { current: memory, maximum: memory })
                .map_err(std::io::Error::from)?;
            unpack::unpack(format, file, &name, &Below::new(&tree, Links::Refused)?, &request.limits)
        }
    }
}

fn digest(text: &str, call: &Call, name: &str) -> Result<Digest, FetchError> {
    match Wanted::parse(text)? {
        Wanted::Digest(digest) => Ok(digest),
        Wanted::Listed(address) => {
            let url = Url::parse(&address).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
            let url = url.ok_or_else(|| {
                FetchError::invalid(format!("checksum: file:{address}: expected the address of a list"))
            })?;
            // The list may be anywhere; the headers are for the server of the source.
            let is_same = url.origin() == call.url.origin();
            let headers = if is_same { call.headers.clone() } else { HeaderMap::new() };
            Digest::listed(&http::text(&Call { url, headers, ..call.clone() })?, name)
        }
    }
}

/// Moves what was fetched to its destination.
fn install(request: &Request, source: &Source) -> Result<(), FetchError> {
    let mut tree = request.scratch.join("tree");
    if !request.limits.disable_artifact_inspection {
        place::inspect(&tree)?;
    }
    let mut file = None;
    if let Some(subdir) = &source.subdir {
        let none = || FetchError::failed(format!("\"//{}\": there is no such part", subdir.display()));
        // What the names lead through was fetched, so it is not followed blindly.
        let below = Below::new(&tree, Links::Refused)?;
        let opened = below.open(subdir, rustix::fs::OFlags::PATH).map_err(|_| none())?;
        if File::from(opened).metadata()?.is_file() {
            file = subdir.file_name().map(|name| Path::new(name).to_path_buf());
            tree = tree.join(subdir.parent().unwrap_or(Path::new("")));
        } else {
            tree = tree.join(subdir);
        }
    }
    let from = Below::new(&tree, Links::Refused)?;
    let root = Below::new(&request.root, Links::Inside)?;
    let named = |error: std::io::Error| {
        FetchError::failed(format!("destination \"{}\": {error}", request.destination.display()))
    };
    if request.mode == Mode::File {
        let repository = matches!(source.kind, Kind::Git | Kind::Hg);
        let file = match file {
            Some(file) => file,
            None if repository => {
                return Err(FetchError::invalid("mode = \"file\": name the file of the repository after //"));
            }
            None => place::only_file(&from)?,
        };
        return place::move_file(&from, &file, &root, &request.destination, request.owner).map_err(named);
    }
    root.make_dirs(&request.destination, 0o755, request.owner).map_err(named)?;
    let to = root.at(&request.destination, Links::Refused).map_err(named)?;
    match file {
        Some(file) => place::move_file(&from, &file, &to, &file, request.owner).map_err(named),
        None => place::merge(&from, &to, request.owner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Limits;

    #[test]
    fn messages_hide_what_is_secret() {
        let source = "git::https://me:password1@h/r.git?sshkey=c2VjcmV0".to_string();
        let request = Request {
            source: source.clone(),
            options: Default::default(),
            headers: [("X-Token".to_string(), "token-of-mine".to_string())].into(),
            mode: Mode::Any,
            insecure: false,
            root: Default::default(),
            destination: Default::default(),
            scratch: Default::default(),
            writable: Vec::new(),
            owner: None,
            limits: Limits::usual(),
        };
        let parsed = Source::parse(&source, &request.options).unwrap();
        let said = FetchError::failed("cannot access https://me:password1@h/r.git: token-of-mine, c2VjcmV0");
        let shown = without_secrets(said, &request, &parsed).to_string();
        assert_eq!(shown, "cannot access https://me:***@h/r.git: ***, ***");
    }
}
