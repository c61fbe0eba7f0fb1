//! `cargo bench -p plan-bench --bench restart`: images of a large state, and the state out of them.
//!
//! The cluster: 10,000 ready nodes; 10,000 service jobs of one version with 100 allocations each, placed by one plan
//! a job and spread over all nodes, one port each, with the metrics and resources that placement writes. Of the
//! 1,000,000 allocations 70 % run, 20 % completed, 5 % failed, and 5 % were unknown once and run again; each has the
//! report of its node with the events of its task in the words of our own agent (three, four when it ended).
//! Evaluations are complete and acknowledged.
//!
//! Images are made in memory. `restart` is the way back as a server goes it: the log opened, the image read from its
//! files (which the machine still has in memory) and held to its checksums, and the state made of it; `restore` is the
//! last part alone.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use base::{Rng, Time};
use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use journal::store::{Chain, Directory, Driving, ImageMeta, LogId, RETENTION, Settings, Store};
use model::document::{Map, PortMapping, TaskEvent, TaskState};
use model::event::{
    AllocReported, AllocsMarkedUnknown, AllocsPlaced, AllocsReconnected, AllocsStopped, EvalAcked,
    EvalOutcome, EvalUpdated, JobPurged,
};
use model::{
    AllocId, ClientStatus, Desired, Doc, EvalId, EvalStatus, Event, Image, JobKey, Report, Template,
};
use plan_bench::{batch, fleet, is_trial, node_id, with_job, with_placed_job};
use state::State;
use state::image::{Imager, restore};

/// Nodes, and as many jobs.
const JOBS: usize = 10_000;
const PER_JOB: usize = 100;

/// Allocations that report between two images.
const CHANGED: usize = 1_000;

criterion_group!(benches, restart);
criterion_main!(benches);

fn restart(c: &mut Criterion) {
    let jobs = if is_trial() { 100 } else { JOBS };
    let state = cluster(jobs);
    assert_eq!((state.nodes.len(), state.allocs.len()), (jobs, jobs * PER_JOB));
    let image = Imager::default().image(&state);
    let size = |image: &Image| -> usize {
        image.chunks.iter().flat_map(|chunk| &chunk.bytes).map(|b| b.len()).sum()
    };
    println!("image: {} chunks, {} MB", image.chunks.len(), size(&image) / 1_000_000);

    let mut group = c.benchmark_group("restart");
    group.sample_size(10);
    group.bench_function("image, complete", |b| {
        b.iter_with_large_drop(|| Imager::default().image(black_box(&state)))
    });
    for (what, apart) in
        [("in the jobs of one minute", 1), ("all over the cluster", jobs * PER_JOB / CHANGED)]
    {
        let next = changed(&state, apart);
        let mut imager = Imager::default();
        imager.image(&state);
        println!("{CHANGED} changes {what}: {} kB", size(&imager.image(&next)) / 1_000);
        group.bench_function(format!("image, {CHANGED} changes {what}"), |b| {
            b.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    imager.image(&state);
                    let start = Instant::now();
                    black_box(imager.image(&next));
                    spent += start.elapsed();
                }
                spent
            });
        });
    }
    assert!(restore(&image).unwrap() == state);
    drop(state);
    group.bench_function("restore", |b| b.iter_with_large_drop(|| restore(black_box(&image)).unwrap()));
    let dir = tempfile::tempdir().unwrap();
    install(&open(dir.path()), image);
    group.bench_function("restart", |b| b.iter_with_large_drop(|| restarted(dir.path())));
    group.finish();
}

fn restarted(dir: &Path) -> (Store, State) {
    let store = open(dir);
    let (_, image) = store.read_image().unwrap().expect("an image is there");
    let state = restore(&image).unwrap();
    (store, state)
}

fn open(dir: &Path) -> Store {
    let settings = Settings {
        segment_bytes: 1 << 20,
        retention: RETENTION,
        archive: None,
        keep: None,
        driving: Driving::Threads,
    };
    let files = Arc::new(Directory::open(dir).unwrap());
    Store::open(files, settings, Arc::new(|why| panic!("{why}"))).unwrap()
}

fn install(store: &Store, image: Image) {
    let meta = ImageMeta {
        last: LogId { index: image.index.0, term: 1 },
        index: image.index,
        members: Bytes::new(),
        chain: Some(Chain([0; 16])),
    };
    let (tell, told) = mpsc::channel();
    store.install(meta, image.chunks, Box::new(move || tell.send(()).unwrap())).unwrap();
    told.recv().unwrap();
}

fn cluster(jobs: usize) -> State {
    let mut state = fleet(jobs);
    // One job is placed for real: what its rows have in common is what the others get.
    let samples = with_placed_job(&mut state, "sample", PER_JOB);
    let alloc = state.allocs.lookup(samples[0]).unwrap();
    let port = PortMapping { label: "http".into(), ..PortMapping::default() };
    let template = Template { ports: vec![port].into(), ..Template::clone(&alloc.template) };
    let shared = (Doc::of(&template), Doc(alloc.metrics.bytes().to_vec()));
    let ended = AllocsStopped {
        allocs: samples,
        desired: Desired::Stop,
        description: String::new(),
        client: Some(ClientStatus::Complete),
        follow_up: None,
    };
    let purged = JobPurged { key: JobKey::new("default", "sample") };
    fold(&mut state, vec![ended.into(), purged.into()]);

    let mut rng = Rng::new(1);
    for number in 0..jobs {
        let eval = with_job(&mut state, &format!("job-{number}"), PER_JOB);
        let (ids, events) = placed((number, jobs), eval, &shared, &mut rng);
        fold(&mut state, events);
        let events = ids.iter().enumerate().map(|(nth, id)| ran(&state, *id, nth)).collect();
        fold(&mut state, events);
        let unknown: Vec<AllocId> = ids.into_iter().skip(95).collect();
        fold(&mut state, vec![AllocsMarkedUnknown { allocs: unknown.clone(), follow_up: None }.into()]);
        let back = unknown.iter().map(|id| report(&state, *id, ClientStatus::Running)).collect();
        fold(&mut state, back);
        fold(&mut state, vec![AllocsReconnected { allocs: unknown }.into()]);
    }
    state
}

fn fold(state: &mut State, events: Vec<Event>) {
    let time = Time(1_700_000_000_000_000_000 + state.index.0 as i64 * 1_000_003);
    let batch = batch(state, time, 0, events);
    state.apply(&batch).unwrap();
}

/// What places the job of that number out of so many.
fn placed(
    (number, jobs): (usize, usize),
    eval: EvalId,
    shared: &(Doc, Doc),
    rng: &mut Rng,
) -> (Vec<AllocId>, Vec<Event>) {
    let ids: Vec<AllocId> = (0..PER_JOB).map(|_| AllocId(rng.uuid())).collect();
    let placed = AllocsPlaced {
        eval,
        key: JobKey::new("default", &format!("job-{number}")),
        version: 0,
        group: "group".into(),
        template: shared.0.clone(),
        metrics: shared.1.clone(),
        ids: ids.clone(),
        nodes: (0..PER_JOB).map(|nth| node_id((number * PER_JOB + nth) % jobs)).collect(),
        names: (0..PER_JOB as u32).collect(),
        previous: Vec::new(),
        deployment: None,
        canary: false,
        ports: (0..PER_JOB).map(|nth| 20_000 + ((number * PER_JOB + nth) / jobs) as u16).collect(),
        given: Vec::new(),
    };
    let (status, description) = (EvalStatus::Complete, String::new());
    let done =
        EvalUpdated { eval, status, description, outcome: EvalOutcome::default(), desired: Doc::default() };
    (ids, vec![placed.into(), done.into(), EvalAcked { eval }.into()])
}

fn ran(state: &State, alloc: AllocId, nth: usize) -> Event {
    let to = match nth {
        0..20 => ClientStatus::Complete,
        20..25 => ClientStatus::Failed,
        _ => ClientStatus::Running,
    };
    report(state, alloc, to)
}

fn report(state: &State, id: AllocId, to: ClientStatus) -> Event {
    let alloc = state.allocs.lookup(id).unwrap();
    let now = state.time;
    let description = match to {
        ClientStatus::Complete => "All tasks have completed",
        ClientStatus::Failed => "Failed tasks",
        _ => "Tasks are running",
    };
    let report = Report {
        task_states: [("task".to_string(), task(now, to))].into_iter().collect(),
        ..Report::default()
    };
    AllocReported {
        alloc: id,
        node: alloc.node_id,
        from: alloc.client,
        to,
        description: description.into(),
        report: Doc::of(&report),
        health: None,
    }
    .into()
}

fn task(now: Time, status: ClientStatus) -> TaskState {
    let event = |kind: &str, text: &str, details: &[(&str, &str)]| TaskEvent {
        kind: kind.into(),
        time: now.0,
        display_message: text.into(),
        details: details
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect::<Map<_, _>>(),
        ..TaskEvent::default()
    };
    let building = "Building Task Directory";
    let mut events = vec![
        event("Received", "Task received by client", &[]),
        TaskEvent { message: building.into(), ..event("Task Setup", building, &[("message", building)]) },
        event("Started", "Task started by client", &[]),
    ];
    if status.is_terminal() {
        let details = [("exit_code", "0"), ("exit_message", ""), ("signal", "0"), ("oom_killed", "false")];
        events.push(event("Terminated", "Exit Code: 0", &details));
    }
    TaskState {
        state: if status.is_terminal() { "dead" } else { "running" }.into(),
        failed: status == ClientStatus::Failed,
        started_at: now.into(),
        finished_at: if status.is_terminal() { now } else { Time::ZERO }.into(),
        events: events.into(),
        ..TaskState::default()
    }
}

/// So many allocations reported, each so many rows `apart` from the one before.
fn changed(state: &State, apart: usize) -> State {
    let mut next = state.clone();
    let mut known: Vec<_> = state.allocs.iter().map(|(row, alloc)| (row, alloc.id)).collect();
    known.sort_unstable();
    let ids = known.iter().step_by(apart).take(CHANGED).map(|(_, id)| *id);
    let events = ids.map(|id| report(state, id, ClientStatus::Running)).collect();
    fold(&mut next, events);
    next
}
