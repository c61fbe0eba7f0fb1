//! A log that grows when a test says so, and readers over it.

use std::sync::Arc;

use api::EventId;
use base::{Duration, Index, Term};
use journal::{EncodedBatch, Journal, MemoryJournal, Sink, encode};
use model::{Batch, Command, NodeStatus};
use parking_lot::Mutex;
use state::State;
use tokio::sync::watch;

use feed::{Cursor, EventFilter, Everybody, Feed, Source, StreamEvent};
use test_world::{World, key, node_id, stop};

/// What tests wait at most before they fail.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// A journal with the state that was published of it.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    journal: Arc<MemoryJournal>,
    port: Arc<dyn Journal>,
    state: Mutex<Arc<State>>,
    published: watch::Sender<Index>,
    origin: Arc<State>,
}

impl Log {
    pub fn new() -> Log {
        let journal = Arc::new(MemoryJournal::new(Deaf));
        let (published, _) = watch::channel(Index::ZERO);
        let port = journal.clone();
        Log(Arc::new(Inner { journal, port, state: Mutex::default(), published, origin: Arc::default() }))
    }

    pub fn of(batches: &[Batch]) -> Log {
        let log = Log::new();
        log.extend(batches);
        log
    }

    /// Commits and publishes.
    pub fn extend(&self, batches: &[Batch]) {
        let mut state = State::clone(&self.0.state.lock());
        for batch in batches {
            self.0.journal.propose(Term(1), encode(batch)).unwrap();
            state.apply(batch).unwrap();
        }
        let index = state.index;
        *self.0.state.lock() = Arc::new(state);
        self.0.published.send_replace(index);
    }

    pub fn forget_before(&self, index: u64) {
        self.0.journal.forget_before(Index(index));
    }

    pub fn last(&self) -> Index {
        self.0.state.lock().index
    }
}

impl Source for Log {
    fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.port
    }

    fn state(&self) -> Arc<State> {
        self.0.state.lock().clone()
    }

    /// Of several that are published at once the last is at hand, as on a server that follows.
    fn state_at(&self, index: Index) -> Option<Arc<State>> {
        Some(self.state()).filter(|state| state.index == index)
    }

    fn origin(&self) -> Arc<State> {
        self.0.origin.clone()
    }

    fn watch(&self) -> watch::Receiver<Index> {
        self.0.published.subscribe()
    }
}

/// A log in which everything happens that can.
pub fn busy() -> World {
    let mut world = World::new();
    world.submit(Command::FoundCluster { scheduler: Default::default() }).unwrap();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.register_job("web", "service", Duration::from_secs(3_600)).unwrap();
    let placed = [world.placement("web", 0, 1, None), world.placement("web", 1, 1, None)];
    settle(&mut world, |plan| plan.placed.extend(placed));
    world.report(1, &[("web[0]", "running"), ("web[1]", "running")]).unwrap();
    let alloc = world.alloc("web[0]");
    world.submit(Command::StopAlloc { alloc, no_shutdown_delay: false, reschedule: false }).unwrap();
    let replacement = world.placement("web", 0, 1, Some(alloc));
    settle(&mut world, |plan| {
        plan.stopped.push(stop(vec![alloc], None));
        plan.placed.push(replacement);
    });
    let ineligible = model::Eligibility::Ineligible;
    world.submit(Command::SetNodeEligibility { node: node_id(1), to: ineligible }).unwrap();
    world.submit(purge("web")).unwrap();
    world.submit(Command::DeregisterNode { node: node_id(1) }).unwrap();
    world.check_replay();
    world
}

pub fn purge(job: &str) -> Command {
    Command::DeregisterJob { key: key(job), purge: true, eval_priority: None, no_shutdown_delay: false }
}

pub fn settle(world: &mut World, fill: impl FnOnce(&mut model::command::Plan)) {
    let mut plan = world.plan();
    fill(&mut plan);
    world.settle("web", plan).unwrap();
}

/// A log of `batches` batches about `nodes` nodes, one event each.
pub fn long(nodes: u128, batches: usize) -> World {
    let mut world = World::new();
    for number in 1..=nodes {
        world.register_node(number, "a").unwrap();
    }
    for at in 0..batches - nodes as usize {
        toggle(&mut world, 1 + at as u128 % nodes);
    }
    assert_eq!(world.log.len(), batches);
    world
}

/// One event about a node.
pub fn toggle(world: &mut World, node: u128) {
    let row = world.state.nodes.find(node_id(node)).unwrap();
    let claimed = match world.state.nodes.hot(row).status {
        NodeStatus::Ready => NodeStatus::Initializing,
        _ => NodeStatus::Ready,
    };
    world.submit(Command::UpdateNodeStatus { node: node_id(node), claimed }).unwrap();
}

pub fn everything() -> Arc<EventFilter> {
    Arc::new(EventFilter::of_topics(vec![], Arc::new(Everybody)))
}

/// All events from a cursor to the end of the log, page by page.
pub async fn read(feed: &Feed, from: Cursor, last: Index, filter: &Arc<EventFilter>) -> Vec<StreamEvent> {
    let (mut cursor, mut events) = (from, Vec::new());
    while cursor.index <= last {
        let page = feed.page(cursor, filter).await.unwrap();
        assert!(page.next > cursor, "a page moves its reader on");
        cursor = page.next;
        events.extend(page.events);
    }
    events
}

pub fn ids(events: &[StreamEvent]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

pub struct Deaf;

impl Sink for Deaf {
    fn committed(&mut self, _batch: EncodedBatch) {}
    fn restored(&mut self, _image: model::Image) {}
    fn leading(&mut self, _term: Term) {}
    fn following(&mut self, _leader: Option<u64>) {}
    fn halted(&mut self, _why: String) {}
}
