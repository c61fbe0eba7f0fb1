//! The cluster and what happens to it, one step after another.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::{Duration, Rng, Time};
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;

use super::call::{Place, Reply};
use super::client::Client;
use super::faults::Fault;
use super::log::ModelLog;
use super::network::Letter;
use super::node::{SimNode, Step};
use super::operations::Operation;
use super::readers::SimReader;
use super::server::{Out, Server, ServerSettings};
use super::worker::SimWorker;
use crate::agenda::Agenda;
use crate::checks::Checks;
use crate::fact::{Fact, Violation};
use crate::layer::{Run, Verdict};
use crate::options::Options;
use crate::panics::{self, Listening};
use crate::planted::Bug;
use crate::story::Story;
use crate::workload::operations::Workload;

/// The true time at the first step.
const START: Time = Time::from_secs(1_000_000);

/// How often a server may be woken at one moment.
const WAKES_MAX: u32 = 1_000;

/// Everything that can be due.
pub(crate) enum Event {
    /// Some of what is in flight is committed.
    Commit,
    /// A server is notified of commits.
    Learn(usize),
    /// A server is notified that it leads no more.
    HearDeposed(usize, u64),
    Elect,
    Turn(usize, u64),
    Timer(usize, u64),
    StartServer(usize, u64),
    Resume(usize, u64),
    Arrive(Place, Box<Letter>),
    Work {
        server: usize,
        worker: usize,
        life: u64,
        generation: u64,
    },
    WorkerTimedOut {
        server: usize,
        worker: usize,
        call: u64,
    },
    Node(usize, u64, Step),
    StartNode(usize, u64),
    Mend(usize),
    Client(usize),
    Retry(usize),
    ClientTimedOut(usize, u64),
    Read(usize),
    Operate(Operation),
    Break(Fault),
    Calm,
    LookWhetherAtRest,
}

pub(crate) struct World {
    pub bug: Option<Bug>,
    pub options: Options,
    pub agenda: Agenda<Event>,
    pub story: Story,
    pub checks: Checks,
    pub log: ModelLog,
    pub servers: Vec<Server>,
    pub workers: Vec<Vec<SimWorker>>,
    pub nodes: Vec<SimNode>,
    pub clients: Vec<Client>,
    pub readers: Vec<SimReader>,
    pub workload: Workload,
    /// Nodes that reach no server and no server reaches.
    pub cut: BTreeSet<usize>,
    pub calm: bool,
    pub rest: super::rest::Settling,
    pub wires: Rng,
    pub log_chance: Rng,
    pub fault_chance: Rng,
    pub drift_chance: Rng,
    pub work_chance: Rng,
    pub calls: u64,
    /// Answers to what servers asked in the name of other regions, by the number of the call.
    pub heard: Vec<(u64, Reply)>,
    pub ops: u64,
    /// Nothing is committed before this.
    pub stalled_until: Time,
    pub commit_due: bool,
    pub elect_due: bool,
    pub learn_due: Vec<bool>,
    pub turn_due: Vec<bool>,
    pub timer_due: Vec<Option<Time>>,
    /// When each server was woken last, and how often at that moment.
    pub woken: Vec<(Time, u32)>,
    /// What is due at servers that are paused.
    pub held: Vec<Vec<Event>>,
    pub over: bool,
    /// The farthest that a clock has run away from the true time.
    pub astray: Duration,
}

/// Runs one seed to its end or to the first sentence that does not hold.
pub fn run(run: Run) -> Verdict {
    let listening = panics::listen();
    let mut world = World::new(run, Options::draw(run.seed));
    world.begin();
    let mut violation = None;
    while violation.is_none() && !world.over {
        violation = world.step(&listening).err();
        if world.story.steps() > run.steps_max {
            break;
        }
    }
    Verdict {
        hash: world.story.hash(),
        steps: world.story.steps(),
        batches: world.checks.witness.batches.len(),
        astray: world.astray,
        violation,
        story: world.story.lines().map(str::to_string).collect(),
        options: world.options.to_string(),
    }
}

impl World {
    pub fn new(run: Run, options: Options) -> World {
        let Run { seed, bug, .. } = run;
        let mut log = ModelLog::default();
        log.fenceless = bug == Some(Bug::NoTermFence);
        let settings = settings(&options, bug);
        let count = options.servers;
        let server = |number| Server::new(number, seed, START, &log.committed, settings.clone());
        let servers: Vec<Server> = (0..count).map(server).collect();
        let worker = |server| move |worker| SimWorker::new(seed, server, worker, bug);
        let workers = (0..count).map(|at| (0..options.workers_per_server).map(worker(at)).collect());
        World {
            workers: workers.collect(),
            nodes: (0..options.nodes).map(|at| SimNode::new(at, seed, START, count)).collect(),
            clients: (0..options.clients).map(|at| Client::new(at, seed, bug)).collect(),
            readers: (0..options.readers).map(|at| SimReader::new(at, seed, bug)).collect(),
            workload: Workload::new(seed, options.jobs, options.nodes, options.operations.volume.is_some()),
            agenda: Agenda::new(START),
            story: Story::new(START, run.story),
            checks: Checks::default(),
            cut: BTreeSet::new(),
            calm: false,
            rest: super::rest::Settling::default(),
            wires: Rng::stream(seed, "wires"),
            log_chance: Rng::stream(seed, "log"),
            fault_chance: Rng::stream(seed, "faults"),
            drift_chance: Rng::stream(seed, "speeds of clocks"),
            work_chance: Rng::stream(seed, "workload"),
            calls: 0,
            heard: Vec::new(),
            ops: 0,
            stalled_until: START,
            commit_due: false,
            elect_due: false,
            learn_due: vec![false; count],
            turn_due: vec![false; count],
            timer_due: vec![None; count],
            woken: vec![(START, 0); count],
            held: (0..count).map(|_| Vec::new()).collect(),
            over: false,
            astray: Duration::ZERO,
            bug,
            log,
            servers,
            options,
        }
    }

    pub fn begin(&mut self) {
        self.call_election(Duration::from_millis(500));
        // Nobody has anything to check about servers that have not begun.
        self.draw_speeds().expect("clocks begin to run");
        for node in 0..self.nodes.len() {
            self.nodes[node].start();
            self.flush_node(node);
        }
        for server in 0..self.servers.len() {
            self.start_workers(server);
        }
        (0..self.clients.len()).for_each(|client| self.agenda.after(Duration::ZERO, Event::Client(client)));
        (0..self.readers.len()).for_each(|reader| self.agenda.after(Duration::ZERO, Event::Read(reader)));
        self.plan_operations();
        self.plan_faults();
        self.agenda.after(self.options.storm, Event::Calm);
    }

    /// The next thing happens. A panic in what is real is a violation too: there a fact was contradicted.
    pub fn step(&mut self, listening: &Listening) -> Result<(), Violation> {
        let Some(event) = self.agenda.take_next() else {
            self.over = true;
            return Ok(());
        };
        let happened = catch_unwind(AssertUnwindSafe(|| self.happen(event)));
        happened.unwrap_or_else(|_| {
            let sentence = "what the code asserts holds".to_string();
            Err(Violation { sentence, how: listening.first().unwrap_or_default() })
        })
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        if let Some(server) = self.paused_server(&event) {
            self.held[server].push(event);
            return Ok(());
        }
        match event {
            Event::Commit => self.commit(),
            Event::Learn(server) => self.learn(server),
            Event::HearDeposed(server, term) => self.hear_deposed(server, term),
            Event::Elect => self.elect(),
            Event::Turn(server, life) => self.turn(server, life),
            Event::Timer(server, life) => self.timer(server, life),
            Event::StartServer(server, life) => self.start_server(server, life),
            Event::Resume(server, life) => self.resume(server, life),
            Event::Arrive(place, letter) => self.arrive(place, *letter),
            Event::Work { server, worker, life, generation } => self.work(server, worker, life, generation),
            Event::WorkerTimedOut { server, worker, call } => self.worker_timed_out(server, worker, call),
            Event::Node(node, life, step) => self.node_step(node, life, step),
            Event::StartNode(node, life) => self.start_node(node, life),
            Event::Mend(node) => self.mend(node),
            Event::Client(client) => self.client_asks(client),
            Event::Retry(client) => self.client_attempts(client),
            Event::ClientTimedOut(client, call) => self.client_timed_out(client, call),
            Event::Read(reader) => self.read(reader),
            Event::Operate(operation) => self.operate(operation),
            Event::Break(fault) => self.break_something(fault),
            Event::Calm => self.calm_down(),
            Event::LookWhetherAtRest => self.look_whether_at_rest(),
        }
    }

    fn paused_server(&self, event: &Event) -> Option<usize> {
        let server = match event {
            Event::Learn(server) | Event::HearDeposed(server, _) | Event::Turn(server, _) => *server,
            Event::Timer(server, _) | Event::Arrive(Place::Server(server), _) => *server,
            Event::Work { server, .. } | Event::WorkerTimedOut { server, .. } => *server,
            _ => return None,
        };
        self.servers[server].paused.then_some(server)
    }

    fn turn(&mut self, server: usize, life: u64) -> Result<(), Violation> {
        self.turn_due[server] = false;
        let now = self.agenda.now();
        let one = &mut self.servers[server];
        if !one.up || one.life != life {
            return Ok(());
        }
        one.turn(now, &mut self.log).map_err(|how| Violation {
            sentence: "every server can go on with what its log says".to_string(),
            how: format!("server {server}: {how}"),
        })?;
        self.flush(server)
    }

    fn timer(&mut self, server: usize, life: u64) -> Result<(), Violation> {
        let now = self.agenda.now();
        let one = &mut self.servers[server];
        if !one.up || one.life != life || self.timer_due[server].is_none_or(|due| due > now) {
            return Ok(());
        }
        self.timer_due[server] = None;
        one.wake(now);
        self.flush(server)?;
        self.comes_to_rest(server, now)
    }

    /// What is due is over once it was looked at: the thread that waits for it would never rest.
    fn comes_to_rest(&mut self, server: usize, now: Time) -> Result<(), Violation> {
        let woken = &mut self.woken[server];
        *woken = if woken.0 == now { (now, woken.1 + 1) } else { (now, 1) };
        if woken.1 <= WAKES_MAX {
            return Ok(());
        }
        let sentence = "what is due is over once it was looked at".to_string();
        let how = format!("server {server} is woken again and again: {:?}", self.servers[server].deadline());
        Err(Violation { sentence, how })
    }

    /// Does what follows from what a server did.
    pub fn flush(&mut self, server: usize) -> Result<(), Violation> {
        while !self.servers[server].out.is_empty() {
            for out in std::mem::take(&mut self.servers[server].out) {
                self.follow_up(server, out)?;
            }
        }
        let now = self.agenda.now();
        let one = &self.servers[server];
        let life = one.life;
        if one.has_work() && !std::mem::replace(&mut self.turn_due[server], true) {
            let soon = Duration(self.wires.below(2_000_000) as i64);
            self.agenda.after(soon, Event::Turn(server, life));
        }
        if let Some(due) = one.next_deadline().map(|due| due.max(now))
            && self.timer_due[server].is_none_or(|earlier| due < earlier)
        {
            self.timer_due[server] = Some(due);
            self.agenda.after(due.since(now), Event::Timer(server, life));
        }
        if self.log.in_flight() > 0 {
            self.plan_commit();
        }
        Ok(())
    }

    fn follow_up(&mut self, server: usize, out: Out) -> Result<(), Violation> {
        match out {
            Out::Published { state, decided } => {
                self.tell(format_args!("server {server} publishes {}", state.index));
                self.checks.see(&Fact::Published { server, state: &state, decided })?;
                self.wake_workers(server)?;
            }
            Out::Restored(state) => {
                self.tell(format_args!("server {server} begins with its image of {}", state.index));
                self.checks.see(&Fact::Restored { server, state: &state })?;
            }
            Out::Reply { call, reply } => self.reply(server, call, reply),
            Out::Forward(call) => self.forward(server, call),
            Out::Heartbeat { node, at, ttl } => self.checks.see(&Fact::Heard { server, node, at, ttl })?,
            Out::GivenUp { node, at } => {
                self.tell(format_args!("server {server} has not heard from {node}"));
                self.checks.see(&Fact::GivenUp { server, node, at })?;
            }
            Out::CountsAnew { at } => self.checks.see(&Fact::CountsAnew { server, at })?,
            Out::Delivered(delivery) => {
                self.tell(format_args!("server {server} hands out {}", delivery.eval));
                self.checks.see(&Fact::Delivered { delivery: &delivery })?;
            }
            Out::Proposed { index, term } => {
                self.tell(format_args!("server {server} proposes {index} in term {}", term.0));
            }
            Out::Leads(term) => {
                self.tell(format_args!("server {server} leads in term {}", term.0));
                self.checks.see(&Fact::Leads { server, term })?;
            }
            Out::Follows => self.tell(format_args!("server {server} leads no more")),
        }
        Ok(())
    }

    pub fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        self.story.tell(self.agenda.now(), what);
    }

    /// A span up to a bound, from a stream of chance.
    pub fn up_to(chance: &mut Rng, bound: Duration) -> Duration {
        Duration(chance.below(bound.0.max(0) as u64 + 1) as i64)
    }
}

fn settings(options: &Options, bug: Option<Bug>) -> ServerSettings {
    ServerSettings {
        heartbeats: HeartbeatSettings {
            min_ttl: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            failover_ttl: Duration::from_secs(30),
        },
        broker: BrokerSettings::default(),
        batch_max: options.log.batch_max,
        image_every: options.log.image_every,
        bug,
    }
}
