//! Writers that record what was acknowledged, and readers of the event stream.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base::{Rng, Uuid};
use serde_json::{Value, json};

use crate::end_to_end::support::http::{self, Event, Events};
use crate::end_to_end::support::{job, until};

pub const WRITERS: u64 = 4;

/// How long a writer waits for one server before it tries another: longer than servers wait for a leader.
const TIMEOUT: Duration = Duration::from_secs(8);

/// What was acknowledged to one job's writer.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// Writes that were acknowledged: each a new version.
    pub writes: u64,
    /// `JobModifyIndex` of the last one.
    pub index: u64,
}

/// Threads that change one job each, over and over, through any server.
pub struct Writers {
    servers: Vec<SocketAddr>,
    acknowledged: Arc<Mutex<BTreeMap<String, Acknowledged>>>,
    count: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    pub fn start(servers: &[SocketAddr], seed: u64) -> Writers {
        let mut writers = Writers {
            servers: servers.to_vec(),
            acknowledged: Arc::default(),
            count: Arc::default(),
            end: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..WRITERS {
            let writer = Writer {
                id: format!("job-{number}"),
                servers: writers.servers.clone(),
                rng: Rng::new(seed + number),
                acknowledged: writers.acknowledged.clone(),
                count: writers.count.clone(),
                end: writers.end.clone(),
            };
            writers.threads.push(std::thread::spawn(move || writer.run()));
        }
        writers
    }

    /// Writes acknowledged so far.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits for that many more.
    pub fn until_more(&self, more: usize) {
        let wanted = self.count() + more;
        until("more writes are acknowledged", || self.count() >= wanted);
    }

    /// What was acknowledged to each job's writer, by the job's id.
    pub fn end(self) -> BTreeMap<String, Acknowledged> {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.acknowledged.lock().unwrap().clone()
    }
}

struct Writer {
    id: String,
    servers: Vec<SocketAddr>,
    rng: Rng,
    acknowledged: Arc<Mutex<BTreeMap<String, Acknowledged>>>,
    count: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
}

impl Writer {
    fn run(mut self) {
        let mut at = 0;
        for number in 1.. {
            if self.end.load(Ordering::Relaxed) {
                return;
            }
            let name =
                Uuid::from(u128::from(self.rng.next()) << 64 | u128::from(self.rng.next())).to_string();
            let body = json!({ "Job": numbered(&self.id, number) });
            // The same write with the same idempotency token, until a server acknowledges it: it must be applied once.
            let index = loop {
                match http::put_named(self.servers[at], "/v1/jobs", &body, &name, TIMEOUT) {
                    Ok(answer) if answer.status == 200 => {
                        break answer.json()["JobModifyIndex"].as_u64().unwrap();
                    }
                    Ok(answer) => assert!(answer.status >= 429, "{}: {}", answer.status, answer.body),
                    Err(_) => {}
                }
                at = (at + 1) % self.servers.len();
            };
            self.acknowledged.lock().unwrap().insert(self.id.clone(), Acknowledged { writes: number, index });
            self.count.fetch_add(1, Ordering::Relaxed);
            if self.rng.below(8) == 0 {
                at = self.rng.below(self.servers.len() as u64) as usize;
            }
        }
    }
}

/// A job that cannot be placed, in the version with this number.
pub fn numbered(id: &str, number: u64) -> Value {
    let mut job = job(id, json!({"command": "/bin/true"}));
    job["Datacenters"] = json!(["nowhere"]);
    job["Meta"] = json!({ "number": number.to_string() });
    job
}

/// A thread that reads events, and resumes after each break at the next server.
pub struct Reader {
    seen: Arc<Mutex<Vec<Event>>>,
    end: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Reader {
    pub fn start(servers: &[SocketAddr], first: usize) -> Reader {
        let (seen, end) = (Arc::default(), Arc::default());
        let servers = servers.to_vec();
        let thread = std::thread::spawn({
            let (seen, end) = (Arc::clone(&seen), Arc::clone(&end));
            move || read(&servers, first, &seen, &end)
        });
        Reader { seen, end, thread }
    }

    /// Waits until events of this index were seen, and returns all before it.
    pub fn end_at(self, index: u64) -> Vec<Event> {
        let reached = || self.seen.lock().unwrap().last().is_some_and(|event| event.id.0 >= index);
        until("the reader arrives", reached);
        self.end.store(true, Ordering::Relaxed);
        let mut seen = self.seen.lock().unwrap().clone();
        seen.retain(|event| event.id.0 < index);
        drop(self.thread);
        seen
    }
}

fn read(servers: &[SocketAddr], first: usize, seen: &Mutex<Vec<Event>>, end: &AtomicBool) {
    let (mut after, mut at) = (None, first);
    while !end.load(Ordering::Relaxed) {
        at = (at + 1) % servers.len();
        let Ok(mut events) = Events::open(servers[at], after) else { continue };
        while let Ok(event) = events.next() {
            after = Some(event.id);
            seen.lock().unwrap().push(event);
        }
    }
}
