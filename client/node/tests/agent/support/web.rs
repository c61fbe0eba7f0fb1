//! A web server that says what a test wants it to, to one request a connection.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub enum Reply {
    File(Vec<u8>),
    Redirect(String),
    Missing,
    /// Part of a file, and nothing more until the caller leaves.
    Stuck,
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub headers: BTreeMap<String, String>,
}

#[derive(Default, Debug)]
pub struct Seen {
    pub asked: Vec<Asked>,
    /// Callers that left without an answer.
    pub left: usize,
}

pub struct Web {
    /// `http://…`, without a path.
    pub url: String,
    pub seen: Arc<Mutex<Seen>>,
}

impl Web {
    pub fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answer, seen) = (Arc::new(answer), Arc::new(Mutex::new(Seen::default())));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&shared));
                // A caller that leaves is none of our business.
                std::thread::spawn(move || serve(stream, &*answer, &seen).ok());
            }
        });
        Web { url, seen }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().asked.clone()
    }
}

fn serve(stream: TcpStream, answer: &dyn Fn(&str) -> Reply, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_string();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_string());
    }
    seen.lock().unwrap().asked.push(Asked { path: path.clone(), headers });
    let mut stream = stream;
    match answer(&path) {
        Reply::File(bytes) => {
            let length = bytes.len();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
            stream.write_all(&bytes)
        }
        Reply::Redirect(to) => {
            write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        }
        Reply::Missing => {
            write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        Reply::Stuck => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")?;
            let left = reader.read(&mut [0; 1]);
            seen.lock().unwrap().left += 1;
            left.map(drop)
        }
    }
}
