//! Messages: who reaches whom, how late, how often.

use base::{Duration, Time};

use super::call::{Ask, Call, Party, Place, Reply};
use super::node::{Loop, NodeOut, Step};
use super::server::Server;
use super::worker::{View, WorkerOut};
use super::world::{Event, World};
use crate::fact::{Fact, Violation};

#[derive(Clone)]
pub enum Letter {
    Call(Call),
    Reply { to: Party, number: u64, reply: Reply },
}

impl World {
    /// Sends a letter from one end of a wire to the other.
    fn post(&mut self, from: Place, to: Place, letter: Letter) {
        let near = from == to;
        let network = self.options.network.clone();
        let cut =
            [from, to].iter().any(|place| matches!(place, Place::Node(node) if self.cut.contains(node)));
        let (lost, late) = (self.wires.below(1_000) < network.lost, self.wires.below(1_000) < network.late);
        if cut || lost && !near && !self.calm {
            return;
        }
        let mut delay = World::up_to(&mut self.wires, network.delay_max);
        if near {
            delay = Duration(delay.0 / 50);
        } else if late && !self.calm {
            delay = World::up_to(&mut self.wires, Duration::from_secs(30));
        }
        let answer = matches!(letter, Letter::Reply { .. });
        if answer && !self.calm && self.wires.below(1_000) < network.twice {
            let again = World::up_to(&mut self.wires, Duration::from_secs(5));
            self.agenda.after(again, Event::Arrive(to, Box::new(letter.clone())));
        }
        self.agenda.after(delay, Event::Arrive(to, Box::new(letter)));
    }

    pub fn arrive(&mut self, place: Place, letter: Letter) -> Result<(), Violation> {
        match letter {
            Letter::Call(call) => {
                let Place::Server(server) = place else { unreachable!("only servers are asked") };
                if self.servers[server].up {
                    let now = self.agenda.now();
                    self.servers[server].call(call, now);
                    self.flush(server)?;
                }
                Ok(())
            }
            // The server that was asked first passes an answer on.
            Letter::Reply { to, number, reply } if place != to.place() => {
                let Place::Server(server) = place else { unreachable!("only servers pass answers on") };
                if self.servers[server].up {
                    self.post(place, to.place(), Letter::Reply { to, number, reply });
                }
                Ok(())
            }
            Letter::Reply { to, number, reply } => self.hear(to, number, reply),
        }
    }

    /// Sends a request, and returns its number.
    pub fn call(&mut self, from: Party, entry: usize, ask: Ask) -> u64 {
        self.calls += 1;
        let number = self.calls;
        let call = Call { number, from, entry, forwarded: false, ask };
        self.post(from.place(), Place::Server(entry), Letter::Call(call));
        number
    }

    /// Passes a question on to the leader, once.
    pub fn forward(&mut self, server: usize, mut call: Call) {
        match self.log.leader().filter(|leader| *leader != server && !call.forwarded) {
            Some(leader) => {
                call.forwarded = true;
                self.post(Place::Server(server), Place::Server(leader), Letter::Call(call));
            }
            None => self.reply(server, call, Reply::NoLeader),
        }
    }

    pub fn reply(&mut self, server: usize, call: Call, reply: Reply) {
        let letter = Letter::Reply { to: call.from, number: call.number, reply };
        let next = if call.entry == server { call.from.place() } else { Place::Server(call.entry) };
        self.post(Place::Server(server), next, letter);
    }

    fn hear(&mut self, to: Party, number: u64, reply: Reply) -> Result<(), Violation> {
        match to {
            Party::Client(client) if self.clients[client].pending == Some(number) => {
                self.client_hears(client, Some(reply))
            }
            Party::Worker { server, worker } if self.workers[server][worker].pending == Some(number) => {
                self.worker_hears(server, worker, Some(reply))
            }
            Party::Node(node) => {
                let pending = self.nodes[node].pending.iter();
                let of = pending.clone().find(|(_, pending)| **pending == number).map(|(of, _)| *of);
                let Some(of) = of else { return Ok(()) };
                self.tell(format_args!("node {node} hears on {of:?}: {}", reply.name()));
                let now = self.agenda.now();
                let World { nodes, options, .. } = self;
                nodes[node].hear(of, Some(reply), now, &options.tasks);
                self.flush_node(node);
                Ok(())
            }
            Party::Federation { server } => {
                if self.servers[server].up {
                    self.heard.push((number, reply));
                }
                Ok(())
            }
            // Late, or twice: nobody waits for it any more.
            Party::Client(_) | Party::Worker { .. } => Ok(()),
        }
    }

    pub fn node_step(&mut self, node: usize, life: u64, step: Step) -> Result<(), Violation> {
        if !self.nodes[node].up || self.nodes[node].life != life {
            return Ok(());
        }
        if let Step::Task { alloc, .. } = &step {
            self.tell(format_args!("node {node}: a step of {alloc}"));
        }
        let now = self.agenda.now();
        let World { nodes, options, .. } = self;
        nodes[node].step(step, now, &options.tasks);
        self.flush_node(node);
        Ok(())
    }

    /// Sends what a node asks, and notes when it is to be called.
    pub fn flush_node(&mut self, node: usize) {
        while !self.nodes[node].out.is_empty() {
            for out in std::mem::take(&mut self.nodes[node].out) {
                let (life, server) = (self.nodes[node].life, self.nodes[node].server);
                match out {
                    NodeOut::After { span, step } => {
                        let span = self.nodes[node].clock.takes(span);
                        self.agenda.after(span, Event::Node(node, life, step));
                    }
                    NodeOut::Ask { of, ask, within } => {
                        if of != Loop::Beat {
                            self.tell(format_args!("node {node} asks server {server}: {}", ask.in_words()));
                        }
                        let number = self.call(Party::Node(node), server, ask);
                        self.nodes[node].pending.insert(of, number);
                        let timeout = Step::TimedOut(of, number);
                        let within = self.nodes[node].clock.takes(within);
                        self.agenda.after(within, Event::Node(node, life, timeout));
                    }
                }
            }
        }
    }

    pub fn start_workers(&mut self, server: usize) {
        for worker in 0..self.workers[server].len() {
            self.workers[server][worker].die();
            // Nobody has anything to check about a worker that has only begun.
            self.flush_worker(server, worker).expect("a worker begins with a pause");
        }
    }

    pub fn wake_workers(&mut self, server: usize) -> Result<(), Violation> {
        for worker in 0..self.workers[server].len() {
            let view = view(&self.servers[server], self.agenda.now());
            self.workers[server][worker].published(view);
            self.flush_worker(server, worker)?;
        }
        Ok(())
    }

    pub fn work(
        &mut self,
        server: usize,
        worker: usize,
        life: u64,
        generation: u64,
    ) -> Result<(), Violation> {
        let one = &self.servers[server];
        if !one.up || one.life != life || self.workers[server][worker].generation != generation {
            return Ok(());
        }
        let view = view(one, self.agenda.now());
        self.workers[server][worker].go_on(view);
        self.flush_worker(server, worker)
    }

    pub fn worker_timed_out(&mut self, server: usize, worker: usize, call: u64) -> Result<(), Violation> {
        if self.servers[server].up && self.workers[server][worker].pending == Some(call) {
            return self.worker_hears(server, worker, None);
        }
        Ok(())
    }

    fn worker_hears(&mut self, server: usize, worker: usize, reply: Option<Reply>) -> Result<(), Violation> {
        let view = view(&self.servers[server], self.agenda.now());
        self.workers[server][worker].answered(reply, view);
        self.flush_worker(server, worker)
    }

    pub fn flush_worker(&mut self, server: usize, worker: usize) -> Result<(), Violation> {
        while !self.workers[server][worker].out.is_empty() {
            for out in std::mem::take(&mut self.workers[server][worker].out) {
                match out {
                    WorkerOut::After(span) => {
                        let generation = self.workers[server][worker].generation;
                        let life = self.servers[server].life;
                        let event = Event::Work { server, worker, life, generation };
                        self.agenda.after(self.servers[server].clock.takes(span), event);
                    }
                    WorkerOut::Ask { ask, within } => {
                        // Workers know who leads as their server does.
                        let number = self.call(Party::Worker { server, worker }, server, ask);
                        if within > Duration::ZERO {
                            self.workers[server][worker].pending = Some(number);
                            let event = Event::WorkerTimedOut { server, worker, call: number };
                            let within = self.servers[server].clock.takes(within);
                            self.agenda.after(within, event);
                        }
                    }
                    WorkerOut::Scheduled { delivery, state, plan } => {
                        self.tell(format_args!(
                            "worker {worker} of server {server} plans {} on {}",
                            delivery.eval, state.index
                        ));
                        let fact = Fact::Scheduled { delivery: &delivery, state: &state, plan: &plan };
                        self.checks.see(&fact)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn view(server: &Server, now: Time) -> View<'_> {
    View { published: &server.published, running: server.clock.running(now), clock: server.clock(now) }
}
