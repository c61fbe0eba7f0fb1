//! An agent is killed under load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::end_to_end::support::http::{self, Event, Events};
use crate::end_to_end::support::{AgentConfig, eventually, job, staying, until};

const WRITERS: usize = 4;

/// Enough that the kill falls between writes.
const ACKNOWLEDGED_BEFORE_THE_KILL: usize = 60;

#[test]
fn tasks_of_a_killed_development_agent_go_on_if_it_keeps_its_data() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::lasting_development(directory.path(), "dev");
    let agent = config.start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("stays"));
    let alloc = agent.running("stays");
    let process = agent.process_of(&alloc);
    let agent = agent.kill().start();
    agent.wait_for_a_ready_node();
    assert_eq!(agent.process_of(&alloc), process);
    assert!(process.is_alive());
}

#[test]
fn a_killed_agent_keeps_all_acknowledged_writes() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server_and_client(directory.path(), "one");
    let agent = config.start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("stays"));
    let alloc = agent.running("stays");
    let process = agent.process_of(&alloc);

    let reader = Reader::start(config.http);
    let writing = Writing::start(config.http);
    until("jobs are registered", || writing.count() >= ACKNOWLEDGED_BEFORE_THE_KILL);
    until("the reader is under way", || reader.count() >= ACKNOWLEDGED_BEFORE_THE_KILL);
    agent.kill();
    let acknowledged = writing.end();
    assert!(process.is_alive(), "a task outlives its agent");

    let agent = config.start();
    for (id, index) in &acknowledged {
        let answer = http::get(config.http, &format!("/v1/job/{id}")).unwrap();
        assert_eq!(answer.status, 200, "{id}, registered at {index}, is lost");
        assert_eq!(answer.json()["JobModifyIndex"], json!(index), "{id}");
    }

    let last = agent.register(&nowhere("last"));
    let seen = reader.end_at(last);
    let ids: Vec<_> = seen.iter().map(|event| event.id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "ids rise: {ids:?}");
    let again = read_to(config.http, last);
    assert_eq!(seen.len(), again.len(), "as many events as a reader from the start sees");
    for (seen, again) in seen.iter().zip(&again) {
        assert_eq!(seen, again);
    }

    agent.wait_for_a_ready_node();
    assert_eq!(agent.running("stays"), alloc);
    assert!(process.is_alive(), "the task was left alone");
    // The answer comes through the client, which has found the task again.
    assert_eq!(agent.process_of(&alloc), process);
    agent.run(&["alloc", "stop", "-detach", &alloc]).expect_success();
    until("the task ends", || !process.is_alive());
    until("its end is known", || agent.get(&format!("/v1/allocation/{alloc}"))["ClientStatus"] == "complete");
    let next =
        eventually("another takes its place", || Some(agent.running("stays")).filter(|id| *id != alloc));
    assert!(agent.process_of(&next).is_alive());
    agent.run(&["job", "stop", "-purge", "-detach", "stays"]).expect_success();
}

/// A job that cannot be placed, so that registering it starts nothing.
fn nowhere(id: &str) -> Value {
    let mut job = job(id, json!({"command": "/bin/true"}));
    job["Datacenters"] = json!(["nowhere"]);
    job
}

/// Threads that register jobs until no server answers.
struct Writing {
    acknowledged: Arc<Mutex<Vec<(String, u64)>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Writing {
    fn start(address: SocketAddr) -> Writing {
        let acknowledged = Arc::default();
        let writer = |number| {
            let acknowledged = Arc::clone(&acknowledged);
            std::thread::spawn(move || write(address, number, &acknowledged))
        };
        let threads = (0..WRITERS).map(writer).collect();
        Writing { acknowledged, threads }
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Jobs by id, with the index they were acknowledged at.
    fn end(self) -> Vec<(String, u64)> {
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.acknowledged.lock().unwrap().clone()
    }
}

fn write(address: SocketAddr, writer: usize, acknowledged: &Mutex<Vec<(String, u64)>>) {
    for number in 0.. {
        let id = format!("job-{writer}-{number}");
        let Ok(answer) = http::put(address, "/v1/jobs", &json!({"Job": nowhere(&id)})) else { return };
        assert_eq!(answer.status, 200, "{}", answer.body);
        let index = answer.json()["JobModifyIndex"].as_u64().unwrap();
        acknowledged.lock().unwrap().push((id, index));
    }
}

/// A thread that reads events, and resumes after each break.
struct Reader {
    seen: Arc<Mutex<Vec<Event>>>,
    end: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(address: SocketAddr) -> Reader {
        let (seen, end) = (Arc::default(), Arc::default());
        let thread = std::thread::spawn({
            let (seen, end) = (Arc::clone(&seen), Arc::clone(&end));
            move || read(address, &seen, &end)
        });
        Reader { seen, end, thread }
    }

    fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Waits until events of this index were seen, and returns all before it.
    fn end_at(self, index: u64) -> Vec<Event> {
        let reached = || self.seen.lock().unwrap().last().is_some_and(|event| event.id.0 >= index);
        until("the reader arrives", reached);
        self.end.store(true, Ordering::Relaxed);
        let mut seen = self.seen.lock().unwrap().clone();
        seen.retain(|event| event.id.0 < index);
        drop(self.thread);
        seen
    }
}

fn read(address: SocketAddr, seen: &Mutex<Vec<Event>>, end: &AtomicBool) {
    let mut after = None;
    while !end.load(Ordering::Relaxed) {
        let Ok(mut events) = Events::open(address, after) else {
            std::thread::yield_now();
            continue;
        };
        while let Ok(event) = events.next() {
            after = Some(event.id);
            seen.lock().unwrap().push(event);
        }
    }
}

/// Every event before this index, read in one go.
fn read_to(address: SocketAddr, index: u64) -> Vec<Event> {
    let mut events = Events::open(address, None).unwrap();
    let all = std::iter::from_fn(|| Some(events.next().unwrap()));
    all.take_while(|event| event.id.0 < index).collect()
}
