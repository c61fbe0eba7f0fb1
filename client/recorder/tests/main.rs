//! A recorder against a cluster whose truth is known.

mod cluster;
mod nomad;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Rng;
use cluster::{change, difference};
use model::{Command, Event, JobKey, Rejection};
use nomad::Nomad;
use recorder::{Log, LogError, Recorder, Report, Settings};
use state::State;
use test_world::World;

/// How long a recorder may take to have everything: more than any takes, unless it never has it.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
struct TestLog(Arc<Mutex<World>>);

impl Log for TestLog {
    fn state(&self) -> Arc<State> {
        Arc::new(self.0.lock().unwrap().state.clone())
    }

    async fn submit(&mut self, command: Command) -> Result<(), LogError> {
        let mut world = self.0.lock().unwrap();
        world.now = world.now.plus(base::Duration::from_secs(1));
        world.submit(command).map(drop).map_err(|rejection| LogError(rejection.to_string()))
    }
}

impl TestLog {
    fn events(&self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let world = self.0.lock().unwrap();
        let events = world.log.iter().flat_map(|batch| &batch.events).map(|logged| logged.event.clone());
        events.filter(wanted).collect()
    }

    fn gaps(&self) -> Vec<Event> {
        self.events(|event| matches!(event, Event::ObservationGap(_)))
    }

    fn check_replay(&self) {
        self.0.lock().unwrap().check_replay();
    }
}

fn recorder(nomad: &Nomad, log: &TestLog) -> Recorder<TestLog> {
    let client = sdk::Builder { address: nomad.address.clone(), ..sdk::Builder::default() }.build().unwrap();
    let settings = Settings { source: nomad.address.clone(), list_every: Duration::from_millis(200) };
    Recorder::new(client, log.clone(), settings, |_: Report| ())
}

/// Follows until dropped.
struct Running(tokio::task::JoinHandle<()>);

impl Running {
    fn start(nomad: &Nomad, log: &TestLog) -> Running {
        let recorder = recorder(nomad, log);
        Running(tokio::spawn(async move {
            let Err(error) = recorder.run().await;
            panic!("the recorder gave up: {error}");
        }))
    }

    /// Until the recording is as the cluster is.
    async fn caught_up(&mut self, nomad: &Nomad, log: &TestLog) {
        let began = std::time::Instant::now();
        loop {
            let difference = difference(&nomad.tables(), &log.state());
            if difference.is_empty() {
                return;
            }
            assert!(!self.0.is_finished(), "the recorder ended; {difference}");
            assert!(
                began.elapsed() < PATIENCE,
                "the recording never became what the cluster is: {difference}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_ends_as_the_cluster_whatever_its_stream_drops_repeats_and_reorders() {
    for (seed, faults) in [(1, 0), (2, 6), (3, 10)] {
        let (nomad, log, mut rng) = (Nomad::start(faults).await, TestLog::default(), Rng::new(seed));
        (0..60).for_each(|_| change(&nomad, &mut rng));
        let mut running = Running::start(&nomad, &log);
        for round in 0..12 {
            (0..40).for_each(|_| change(&nomad, &mut rng));
            if round % 3 == 2 {
                nomad.cut();
            }
            tokio::task::yield_now().await;
            if round % 4 == 3 {
                running.caught_up(&nomad, &log).await;
            }
        }
        running.caught_up(&nomad, &log).await;
        log.check_replay();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorder_that_starts_again_has_a_gap_only_where_the_stream_forgot() {
    let (nomad, log, mut rng) = (Nomad::start(0).await, TestLog::default(), Rng::new(4));
    (0..80).for_each(|_| change(&nomad, &mut rng));
    let mut running = Running::start(&nomad, &log);
    running.caught_up(&nomad, &log).await;
    assert_eq!(log.gaps(), [], "what was before the recording is no gap in it");
    drop(running);
    (0..30).for_each(|_| change(&nomad, &mut rng));
    let mut running = Running::start(&nomad, &log);
    running.caught_up(&nomad, &log).await;
    assert_eq!(log.gaps(), [], "the stream still had all of it");
    drop(running);
    (0..300).for_each(|_| change(&nomad, &mut rng));
    let mut running = Running::start(&nomad, &log);
    running.caught_up(&nomad, &log).await;
    let gaps = log.gaps();
    let [Event::ObservationGap(gap)] = &gaps[..] else { panic!("{gaps:?}") };
    assert!(gap.from < gap.to && gap.to <= nomad.tables().index, "{gap:?}");
    log.check_replay();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_records_nothing_twice() {
    let (nomad, log, mut rng) = (Nomad::start(0).await, TestLog::default(), Rng::new(5));
    (0..200).for_each(|_| change(&nomad, &mut rng));
    let mut first = recorder(&nomad, &log);
    first.begin().await.unwrap();
    first.catch_up().await.unwrap();
    assert_eq!(difference(&nomad.tables(), &log.state()), "");
    let before = log.state().index;
    let mut second = recorder(&nomad, &log);
    second.begin().await.unwrap();
    second.catch_up().await.unwrap();
    assert_eq!(log.state().index, before);
    log.check_replay();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_restored_is_a_gap_and_everything_is_read_anew() {
    let (nomad, log, mut rng) = (Nomad::start(0).await, TestLog::default(), Rng::new(6));
    (0..150).for_each(|_| change(&nomad, &mut rng));
    let older = nomad.tables();
    (0..150).for_each(|_| change(&nomad, &mut rng));
    let newer = nomad.tables().index;
    let mut running = Running::start(&nomad, &log);
    running.caught_up(&nomad, &log).await;
    nomad.restore(older);
    (0..20).for_each(|_| change(&nomad, &mut rng));
    running.caught_up(&nomad, &log).await;
    let gaps = log.gaps();
    let [Event::ObservationGap(gap), ..] = &gaps[..] else { panic!("{gaps:?}") };
    assert!(gap.from > gap.to && gap.from <= newer && gap.reason.contains("went back"), "{gap:?}");
    log.check_replay();
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_allocations_that_change_at_once_are_all_recorded() {
    let (nomad, log) = (Nomad::start(10).await, TestLog::default());
    cluster::many(&nomad, 2000);
    let mut running = Running::start(&nomad, &log);
    running.caught_up(&nomad, &log).await;
    cluster::all_fail(&nomad);
    running.caught_up(&nomad, &log).await;
    assert_eq!(log.state().allocs.len(), 2000);
    log.check_replay();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_is_not_read_again_one_by_one_after_a_restart() {
    let (nomad, log) = (Nomad::start(0).await, TestLog::default());
    cluster::many(&nomad, 300);
    cluster::all_fail(&nomad);
    let mut first = recorder(&nomad, &log);
    first.begin().await.unwrap();
    first.catch_up().await.unwrap();
    let before = nomad.reads();
    let mut second = recorder(&nomad, &log);
    second.begin().await.unwrap();
    second.catch_up().await.unwrap();
    assert!(nomad.reads() - before < 10, "{} reads", nomad.reads() - before);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_says_when_it_was_seen_and_when_it_happened() {
    let (nomad, log) = (Nomad::start(0).await, TestLog::default());
    cluster::many(&nomad, 1);
    let mut recorder = recorder(&nomad, &log);
    recorder.begin().await.unwrap();
    recorder.catch_up().await.unwrap();
    let (_, alloc) = nomad.tables().allocs.into_iter().next().unwrap();
    let object = format!("alloc/{}", alloc.id);
    let marks = log.events(|event| matches!(event, Event::Observed(mark) if mark.objects.contains(&object)));
    let [Event::Observed(mark)] = &marks[..] else { panic!("{marks:?}") };
    let at = mark.objects.iter().position(|named| *named == object).unwrap();
    assert_eq!((mark.indexes[at], mark.happened[at].0), (alloc.modify_index, alloc.modify_time));
    assert!(mark.seen.0 > alloc.modify_time && mark.source == nomad.address);
}

#[test]
fn a_recording_is_changed_by_its_recorder_only() {
    let log = TestLog::default();
    let mut world = log.0.lock().unwrap();
    let source = "http://nomad:4646".to_string();
    let observe = model::Observe { source, ..model::Observe::default() };
    world.submit(Command::Observe(Box::new(observe.clone()))).unwrap();
    let rejected = world.register_job("web", "service", base::Duration::ZERO).unwrap_err();
    assert_eq!(rejected.to_string(), "this is a recording of http://nomad:4646: nothing can be changed here");
    let rejected = world.register_node(1, "r1").unwrap_err();
    assert!(matches!(rejected, Rejection::RecordingOf(_)));
    let purge = Command::DeregisterJob {
        key: JobKey::new("default", "web"),
        purge: true,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    assert!(matches!(world.submit(purge), Err(Rejection::RecordingOf(_))));
    world.check_replay();
    let mut other = World::new();
    other.register_node(1, "r1").unwrap();
    let rejected = other.submit(Command::Observe(Box::new(observe))).unwrap_err();
    assert!(matches!(rejected, Rejection::RecordingRefused(_)), "{rejected}");
}
