//! A registry of images with one image of one layer, for one user. Plain HTTP: engines accept that from this host.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use base64::Engine as _;
use serde_json::json;
use sha2::{Digest, Sha256};

pub const USER: &str = "me";
pub const PASSWORD: &str = "secret";

#[derive(Default)]
struct State {
    /// What was asked for, with the method.
    requests: Vec<String>,
    is_open: bool,
}

pub struct Registry {
    pub address: String,
    /// Of the manifest.
    pub digest: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

struct Content {
    manifest: Vec<u8>,
    blobs: Vec<Vec<u8>>,
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Serves an image `NAME:1` for each name, with this layer.
pub fn start(layer: Vec<u8>) -> Registry {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // No two registries have the same image: an engine would have that once.
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"], "Labels": {"from": &address}},
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]}
    });
    let config = serde_json::to_vec(&config).unwrap();
    let part = |bytes: &[u8], kind: &str| {
        let kind = format!("application/vnd.docker.{kind}");
        json!({"mediaType": kind, "size": bytes.len(), "digest": digest(bytes)})
    };
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": part(&config, "container.image.v1+json"),
        "layers": [part(&layer, "image.rootfs.diff.tar.gzip")]
    });
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let digest = digest(&manifest);
    let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
    let (content, shared) = (Arc::new(Content { manifest, blobs: vec![config, layer] }), state.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (content, state) = (content.clone(), shared.clone());
            // A caller that leaves is none of our business.
            std::thread::spawn(move || serve(stream, &content, &state).ok());
        }
    });
    Registry { address, digest, state }
}

impl Registry {
    /// From now on the contents of images are given.
    pub fn open(&self) {
        self.state.0.lock().unwrap().is_open = true;
        self.state.1.notify_all();
    }

    /// How often this was asked for.
    pub fn asked_for(&self, part: &str) -> usize {
        self.state.0.lock().unwrap().requests.iter().filter(|request| request.contains(part)).count()
    }
}

fn serve(stream: TcpStream, content: &Content, state: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    // Engines that accept plain HTTP may try TLS first.
    if reader.fill_buf()?.first() == Some(&0x16) {
        return Ok(());
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split(' ').map(str::to_string);
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(()) };
        let mut authorization = String::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) =
                header.to_lowercase().starts_with("authorization:").then(|| header.trim()[14..].trim())
            {
                authorization = value.to_string();
            }
        }
        let (status, kind, body) = answer(&method, &path, &authorization, content, state);
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n")?;
        write!(stream, "Docker-Content-Digest: {}\r\n", digest(&body))?;
        write!(stream, "WWW-Authenticate: Basic realm=\"test\"\r\n\r\n")?;
        if method != "HEAD" {
            stream.write_all(&body)?;
        }
    }
}

fn answer(
    method: &str,
    path: &str,
    authorization: &str,
    content: &Content,
    (state, opened): &(Mutex<State>, Condvar),
) -> (&'static str, &'static str, Vec<u8>) {
    const JSON: &str = "application/json";
    let expected = base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{PASSWORD}"));
    if authorization != format!("Basic {expected}") {
        return ("401 Unauthorized", JSON, br#"{"errors":[{"code":"UNAUTHORIZED"}]}"#.to_vec());
    }
    let mut state = state.lock().unwrap();
    state.requests.push(format!("{method} {path}"));
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains("/manifests/") && (name == "1" || name == digest(&content.manifest)) {
        let kind = "application/vnd.docker.distribution.manifest.v2+json";
        return ("200 OK", kind, content.manifest.clone());
    }
    if path.contains("/blobs/") {
        drop(opened.wait_while(state, |state| !state.is_open).unwrap());
        if let Some(blob) = content.blobs.iter().find(|blob| digest(blob) == name) {
            return ("200 OK", "application/octet-stream", blob.clone());
        }
    }
    match path {
        "/v2/" => ("200 OK", JSON, b"{}".to_vec()),
        _ => (
            "404 Not Found",
            JSON,
            br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#.to_vec(),
        ),
    }
}
