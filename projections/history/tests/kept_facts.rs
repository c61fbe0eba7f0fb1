//! What is kept of a log is read below it; what is gone is passed over.

use std::sync::Arc;
use std::time::Duration;

use base::{Duration as Span, Index, Term, Time};
use history::{Direction, History, HistoryError, Object, Position, Root, Start};
use journal::store::KeptSpan;
use journal::{
    EncodedBatch, Freshness, IndexCallback, Journal, KeepError, MemoryJournal, ProposeError, ReadError,
    encode,
};
use model::command::RegisterJob;
use model::event::{ObjectKind, ObjectKinds};
use model::{Actor, Caller, Command, Event, Image, NodeStatus};
use test_world::{World, job_document, key, node_id};

use crate::life::{Nothing, journal};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_story_goes_on_below_the_log_with_what_is_kept() {
    let world = registered_twice();
    let log = Keeping::of(&world);
    let history = open(&log);
    let story = |history: &History| {
        history.story(&Object::Job(key("web")), world.state.index, PATIENCE).unwrap().lines
    };
    let whole = story(&history);
    log.drop_all_but_the_last();
    let kept = story(&history);
    let of_job = |line: &&history::Line| line.event.starts_with("Job");
    assert_eq!(kept, whole.iter().filter(of_job).cloned().collect::<Vec<_>>());
    assert_eq!(
        kept.iter().map(|line| line.event).collect::<Vec<_>>(),
        ["JobRegistered", "JobRegistered", "JobStopped"]
    );
    assert_eq!(kept[0].requester().unwrap().accessor, "a1");
    let node = history.story(&Object::Node(node_id(1)), world.state.index, PATIENCE).unwrap();
    assert!(node.lines.is_empty());
    // An index that is made anew has it too.
    assert_eq!(story(&open(&log)), kept);
    assert_eq!(history.kept(), (log.horizon(), log.kept_spans()));
    // The state of then is not made of it.
    assert!(history.state_at(kept[1].index).is_err());
    world.check_replay();
}

#[test]
fn the_log_in_words_has_what_is_kept_in_any_page() {
    let world = registered_twice();
    let log = Keeping::of(&world);
    let history = open(&log);
    let last = world.state.index;
    let whole = history.log(Index::ZERO, last, usize::MAX).unwrap().lines;
    log.drop_all_but_the_last();
    let page = history.log(Index::ZERO, last, usize::MAX).unwrap();
    let horizon = log.horizon();
    let stays = |line: &&history::Line| line.index >= horizon || line.event.starts_with("Job");
    assert_eq!(page.lines, whole.iter().filter(stays).cloned().collect::<Vec<_>>());
    assert!(page.cut_short && page.next.is_none());
    let (mut at, mut paged) = (Some(Index::ZERO), Vec::new());
    while let Some(from) = at {
        let page = history.log(from, last, 1).unwrap();
        paged.extend(page.lines);
        at = page.next;
    }
    assert_eq!(paged, page.lines);
    let until = history.log(Index::ZERO, page.lines[0].index, usize::MAX).unwrap();
    assert!(!until.lines.is_empty() && until.lines.iter().all(|line| line.index == page.lines[0].index));
    // Times below the log are found by what is kept.
    assert_eq!(history.kept_after(Time(i64::MIN)).unwrap(), Index(1));
    assert_eq!(history.kept_after(Time(i64::MAX)).unwrap(), horizon);
    let second = page.lines[1].index;
    let after = history.kept_after(page.lines[0].time).unwrap();
    let next = history.log(after, last, 1).unwrap().lines[0].index;
    assert!(page.lines[0].time == page.lines[1].time || next == second, "{after} {next} {second}");
}

#[test]
fn a_job_is_what_its_own_facts_say() {
    let world = registered_twice();
    let log = Keeping::of(&world);
    let history = open(&log);
    let lines = history.story(&Object::Job(key("web")), world.state.index, PATIENCE).unwrap().lines;
    assert!(history.job_documents(&key("web")).unwrap().is_empty(), "all of it is in the log");
    log.drop_all_but_the_last();
    let found = history.job_documents(&key("web")).unwrap();
    let facts = lines.iter().filter(|line| line.event.starts_with("Job")).map(|line| line.index);
    assert_eq!(found.iter().map(|(index, _)| *index).collect::<Vec<_>>(), facts.collect::<Vec<_>>());
    let jobs: Vec<_> = found.into_iter().map(|(_, job)| job.unwrap()).collect();
    assert_eq!(jobs.iter().map(|job| job.version).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert_eq!(jobs.iter().map(|job| job.stop).collect::<Vec<_>>(), [Some(false), Some(false), Some(true)]);
    assert_eq!((jobs[1].priority, jobs[2].priority), (Some(70), Some(70)));
    assert_eq!(history.job_documents(&key("other")).unwrap(), []);
}

#[test]
fn a_chain_begins_at_a_kept_fact_and_says_what_is_gone() {
    let world = registered_twice();
    let log = Keeping::of(&world);
    let history = open(&log);
    let story = history.story(&Object::Job(key("web")), world.state.index, PATIENCE).unwrap();
    let first = &story.lines[0];
    log.drop_all_but_the_last();
    let (at, all) = (world.state.index, |_: &history::Scope| true);
    let start = Start::Fact(Position { index: first.index, ordinal: first.ordinal });
    let causes = history.chain(start, Direction::Causes, at, PATIENCE, all).unwrap();
    assert_eq!((causes.facts.len(), causes.facts[0].root), (1, Some(Root::Request)));
    assert_eq!(causes.facts[0].line, *first);
    let effects = history.chain(start, Direction::Effects, at, PATIENCE, all).unwrap();
    assert!(effects.gone, "the evaluation is gone");
    // A fact that is gone out of a batch that is not.
    let beside = Start::Fact(Position { index: first.index, ordinal: first.ordinal + 1 });
    let gone = history.chain(beside, Direction::Causes, at, PATIENCE, all).unwrap_err();
    assert!(matches!(gone, HistoryError::Gone { oldest } if oldest == log.horizon()), "{gone}");
}

/// Somebody registers a job twice and stops it.
fn registered_twice() -> World {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    let ada = || Actor::Caller(Caller { accessor: "a1".into(), ..Caller::default() });
    for priority in [50, 70] {
        world.now.0 += 1_000_000_000;
        let mut document = job_document("web", "service", Span(0));
        document.priority = Some(priority);
        let register = Command::RegisterJob(Box::new(RegisterJob::new(document)));
        world.submit_as(ada(), register).unwrap();
    }
    let stop = Command::DeregisterJob {
        key: key("web"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    world.submit_as(ada(), stop).unwrap();
    world.register_node(2, "a").unwrap();
    world.check_replay();
    world
}

fn open(log: &Arc<Keeping>) -> Arc<History> {
    History::open(None, log.clone(), Nothing, history::MEMORY).unwrap()
}

/// A log in memory that keeps facts about jobs of what it drops.
struct Keeping {
    log: Arc<MemoryJournal>,
    kinds: ObjectKinds,
}

impl Keeping {
    fn of(world: &World) -> Arc<Keeping> {
        let log = journal(world.log.iter().map(encode).collect());
        assert!(world.log.iter().any(|batch| {
            batch.events.len() > 1 && matches!(batch.events[0].event, Event::JobRegistered(_))
        }));
        Arc::new(Keeping { log, kinds: [ObjectKind::Job].into_iter().collect() })
    }

    fn drop_all_but_the_last(&self) {
        self.log.forget_before(self.log.committed());
    }
}

impl Journal for Keeping {
    fn propose(&self, term: Term, batch: EncodedBatch) -> Result<(), ProposeError> {
        self.log.propose(term, batch)
    }

    fn read(&self, from: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        self.log.read(from, max_bytes)
    }

    fn committed(&self) -> Index {
        self.log.committed()
    }

    fn horizon(&self) -> Index {
        self.log.horizon()
    }

    fn kept(&self, from: Index, until: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        let below = until.0.min(self.horizon().0.saturating_sub(1));
        let all = self.log.batches();
        let some = all.iter().filter(|batch| (from.0..=below).contains(&batch.index().0));
        let parts = some.filter_map(|batch| batch.part(|event| self.kinds.has_event(event)));
        let mut bytes = 0;
        let fits = |part: &EncodedBatch| {
            let first = bytes == 0;
            bytes += part.bytes().len();
            first || bytes <= max_bytes
        };
        Ok(parts.take_while(fits).collect())
    }

    fn kept_spans(&self) -> Vec<KeptSpan> {
        let last = Index(self.horizon().0.saturating_sub(1));
        let (first, kinds, time) = (Index(1), self.kinds, Time::ZERO);
        let span = KeptSpan { first, last, kinds, first_time: time, last_time: time, facts: 0 };
        if last < Index(1) { Vec::new() } else { vec![span] }
    }

    fn keep(&self, image: Image) -> Result<(), KeepError> {
        self.log.keep(image)
    }

    fn unkept_bytes(&self) -> u64 {
        self.log.unkept_bytes()
    }

    fn read_index(&self, freshness: Freshness, callback: IndexCallback) {
        self.log.read_index(freshness, callback);
    }
}
