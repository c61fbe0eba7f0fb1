//! The cluster and what happens to it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration as Span;

use base::{Index, Rng, Time};
use fake_network::{Conditions, FakeNetwork, Gone};
use raft::RaftJournal;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use super::client::Client;
use super::options::Options;
use super::reader::SimReader;
use super::scene::{START, Scene};
use super::server::Server;
use crate::clock::draw_speed;
use crate::fact::{Fact, Violation};
use crate::layer::{Run, Verdict};
use crate::options::Network;
use crate::panics::{self, Listening};
use crate::planted::Bug;
use crate::workload::operations::Workload;

/// How often it is looked whether a task has panicked.
const LISTEN_EVERY: Span = Span::from_secs(1);

/// How often the first server is asked to found the cluster.
const FOUND_EVERY: Span = Span::from_millis(500);

pub struct World {
    pub seed: u64,
    pub bug: Option<Bug>,
    pub options: Options,
    pub network: Arc<FakeNetwork>,
    pub scene: RefCell<Scene>,
    pub servers: Vec<Server>,
    pub workload: RefCell<Workload>,
    /// Of each reader: it has received all batches below.
    pub told: Vec<Cell<Index>>,
    /// The farthest that a clock has run away from the true time.
    pub astray: Cell<base::Duration>,
    /// Faults are over.
    pub calm: Cell<bool>,
    /// A server has lost its log and nobody has taken its place yet, or the members are being changed.
    pub changing: Cell<bool>,
    /// What is asked is numbered.
    asked: Cell<u64>,
    /// The last number that was given to a server.
    number: Cell<u64>,
    chance: RefCell<Rng>,
}

/// Runs one seed to its end or to the first sentence that does not hold.
pub fn run(run: Run) -> Verdict {
    let listening = panics::listen();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime without I/O");
    let tasks = LocalSet::new();
    let verdict = tasks.block_on(&runtime, async {
        let world = Rc::new(World::new(run));
        let stop = world.scene.borrow().stop.clone();
        tokio::select! {
            biased;
            () = stop.notified() => {}
            () = listen(&listening) => {}
            // A panic in it is recorded.
            _ = spawn_local(world.clone().live()) => {}
        }
        world.verdict(&listening)
    });
    // What is left of the servers may need the runtime to end.
    let _inside = runtime.enter();
    drop(tasks);
    verdict
}

/// Until something panics, whoever catches it.
async fn listen(listening: &Listening) {
    while listening.first().is_none() {
        sleep(LISTEN_EVERY).await;
    }
}

impl World {
    fn new(run: Run) -> World {
        let Run { seed, bug, story, steps_max } = run;
        let options = Options::draw(seed);
        World {
            seed,
            bug,
            network: network(seed, &options),
            scene: RefCell::new(Scene::new(story, steps_max)),
            servers: (1..=options.servers as u64).map(|number| Server::new(number, seed, START)).collect(),
            workload: RefCell::new(Workload::new(seed, options.jobs, 1, false)),
            told: vec![Cell::new(Index(1)); options.readers],
            astray: Cell::default(),
            calm: Cell::new(false),
            changing: Cell::new(false),
            asked: Cell::new(0),
            number: Cell::new(options.servers as u64),
            chance: RefCell::new(Rng::stream(seed, "starts")),
            options,
        }
    }

    async fn live(self: Rc<Self>) {
        let mut speeds = Rng::stream(self.seed, "speeds of clocks");
        for place in 0..self.servers.len() {
            self.drift_clock(place, draw_speed(&mut speeds, self.options.drift_max));
            spawn_local(self.clone().keep_up(place));
        }
        if self.servers.len() > 1 {
            spawn_local(self.clone().found());
        }
        let clients = (0..self.options.clients).map(|number| Client::new(self.clone(), number));
        let clients: Vec<_> = clients.map(|client| spawn_local(client.run())).collect();
        for number in 0..self.options.readers {
            spawn_local(SimReader::new(self.clone(), number).run());
        }
        for (fault, every) in self.options.faults.clone() {
            spawn_local(self.clone().keep_breaking(fault, every));
        }
        if let Some(every) = self.options.image {
            spawn_local(self.clone().keep_images(every));
        }
        sleep(self.options.storm.to_std()).await;
        self.settle(clients).await;
    }

    /// One server is asked to found the cluster, and the others hear of it. It is asked again, since it may die over it,
    /// until something is committed: then a majority knows.
    async fn found(self: Rc<Self>) {
        while self.scene.borrow().head() == Index::ZERO {
            if let Some((journal, gone)) = self.servers[0].journal() {
                let members = self.members();
                let founded = gone.unless(async move { journal.bootstrap(&members).await }).await;
                if let Some(Err(why)) = founded {
                    self.tell(format_args!("server 0 founds nothing: {why}"));
                }
            }
            sleep(FOUND_EVERY).await;
        }
    }

    /// Servers keep images, at any time.
    async fn keep_images(self: Rc<Self>, every: base::Duration) {
        let mut rng = Rng::stream(self.seed, "images");
        loop {
            sleep(Span::from_nanos(rng.below(2 * every.0 as u64 / self.servers.len() as u64))).await;
            let place = rng.below(self.servers.len() as u64) as usize;
            self.servers[place].process.borrow().iter().for_each(|process| process.keep_image());
        }
    }

    /// The leader, if it is sure that it is, and a flag that is set when it stops.
    pub fn leading(&self) -> Option<(Arc<RaftJournal>, Arc<Gone>)> {
        // One that is cut off, or no member any more, may not know yet that another leads.
        let leading = self.servers.iter().filter(|server| server.leads()).filter_map(Server::journal);
        leading.max_by_key(|(journal, _)| journal.status().term)
    }

    pub fn next_number(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    pub fn next_question(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.asked.get()
    }

    pub fn next_seed(&self) -> u64 {
        self.chance.borrow_mut().next()
    }

    /// The true time.
    pub fn now(&self) -> Time {
        self.scene.borrow().now()
    }

    pub fn tell(&self, what: fmt::Arguments<'_>) {
        self.scene.borrow_mut().tell(what);
    }

    pub fn see(&self, fact: &Fact<'_>) {
        self.scene.borrow_mut().see(fact);
    }

    pub fn violated(&self, sentence: &str, how: String) {
        self.scene.borrow_mut().violated(sentence, how);
    }

    fn verdict(&self, listening: &Listening) -> Verdict {
        let mut scene = self.scene.borrow_mut();
        if let Some(how) = listening.first() {
            // It comes first: what was seen after a panic may follow from it.
            let sentence = "what the code asserts holds".to_string();
            scene.violation = Some(Violation { sentence, how });
        }
        scene.story.witness(self.network.hash().expect("it is traced").as_bytes());
        Verdict {
            options: self.options.to_string(),
            hash: scene.story.hash(),
            steps: scene.story.steps(),
            batches: scene.checks.witness.batches.len(),
            astray: self.astray.get(),
            violation: scene.violation.clone(),
            story: scene.story.lines().map(str::to_string).collect(),
        }
    }
}

/// The links, as the seed has them.
fn network(seed: u64, options: &Options) -> Arc<FakeNetwork> {
    let Network { delay_max, lost, twice, late } = options.network;
    let conditions = Conditions { delay_max: delay_max.to_std(), lost, twice, late };
    let network = FakeNetwork::new(seed, conditions);
    network.trace();
    network
}
