//! Clients: each asks one thing at a time, repeats it under the same id until it knows what became of it, and asks now
//! and then what a reader must have seen.

use std::rc::Rc;
use std::time::Duration as Span;

use base::Rng;
use control::sequencer::Submission;
use control::{Receipt, SubmitError};
use journal::{Freshness, Journal};
use model::{Actor, Request, RequestId};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::world::World;
use crate::fact::Fact;
use crate::planted::Bug;

/// How long a client waits for one server.
const PATIENCE: Span = Span::from_secs(5);

/// Attempts of one command before its fate is left open.
const ATTEMPTS_MAX: u32 = 12;

/// Before something is asked again.
const PAUSE_MAX: u64 = 500;

pub struct Client {
    world: Rc<World>,
    rng: Rng,
}

impl Client {
    pub fn new(world: Rc<World>, number: usize) -> Client {
        let rng = Rng::stream(world.seed ^ number as u64, "client");
        Client { world, rng }
    }

    /// Until the storm is over.
    pub async fn run(mut self) {
        let pause = self.world.options.pause_max.0 as u64;
        while !self.world.calm.get() {
            sleep(Span::from_nanos(self.rng.below(pause))).await;
            match self.rng.below(4) {
                0 => self.read().await,
                _ => _ = self.write().await,
            }
        }
    }

    /// A write to one of the registers, as somebody might make it who looked at some server. Whether it was acknowledged.
    pub async fn write(&mut self) -> bool {
        let place = self.somebody();
        let seen = {
            let process = self.world.servers[place].process.borrow();
            process.as_ref().map(|process| process.shown.state()).unwrap_or_default()
        };
        let command = self.world.workload.borrow_mut().write(&seen, &mut self.rng);
        let request = Request::named(RequestId(self.rng.uuid()), Actor::ANONYMOUS, command);
        let op = self.world.next_question();
        self.world.see(&Fact::Asked { op, request: &request });
        let (outcome, open) = self.ask(request).await;
        match &outcome {
            Ok(receipt) => self.world.tell(format_args!("write {op} is acknowledged at {}", receipt.index)),
            Err(error) => self.world.tell(format_args!("write {op} fails: {error}")),
        }
        self.world.see(&Fact::Answered { op, outcome: &outcome, open });
        outcome.is_ok()
    }

    /// What became of it, and whether an attempt may still take effect.
    async fn ask(&mut self, mut request: Request) -> (Result<Receipt, SubmitError>, bool) {
        let (mut open, mut unknown) = (false, false);
        let mut outcome = Err(SubmitError::NotLeading);
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 && self.world.bug == Some(Bug::ForgetfulRetry) {
                request.id = RequestId(self.rng.uuid());
            }
            outcome = self.attempt(&request).await.unwrap_or_else(|| {
                open = true;
                Err(SubmitError::Unknown)
            });
            unknown |= outcome == Err(SubmitError::Unknown);
            if matches!(outcome, Ok(_) | Err(SubmitError::Rejected(_))) {
                return (outcome, open);
            }
            sleep(Span::from_millis(self.rng.below(PAUSE_MAX))).await;
        }
        (outcome, open || unknown)
    }

    /// `None` when no answer comes.
    async fn attempt(&mut self, request: &Request) -> Option<Result<Receipt, SubmitError>> {
        let place = self.leader().unwrap_or_else(|| self.somebody());
        let (there, back) = (self.way(), self.way());
        sleep(there?).await;
        let (tell, told) = oneshot::channel();
        {
            let process = self.world.servers[place].process.borrow();
            // The connection is refused.
            let Some(process) = process.as_ref() else { return Some(Err(SubmitError::NotLeading)) };
            let answer = Box::new(move |outcome| drop(tell.send(outcome)));
            process.submit(Submission { request: request.clone(), answer });
        }
        // If it dies with the command, its fate is open.
        let outcome = timeout(PATIENCE, told).await.ok()?.ok()?;
        sleep(back?).await;
        Some(outcome)
    }

    /// How long a message is on its way; `None` if it is lost.
    fn way(&mut self) -> Option<Span> {
        let network = &self.world.options.network;
        let span = Span::from_nanos(self.rng.below(network.delay_max.0 as u64));
        let lost = self.rng.below(1_000) < network.lost;
        (!lost || self.world.calm.get()).then_some(span)
    }

    /// What a reader must have seen covers everything that was acknowledged before it asked.
    async fn read(&mut self) {
        let (place, read) = (self.somebody(), self.world.next_question());
        let freshness = if self.rng.below(2) == 0 { Freshness::Lease } else { Freshness::Confirmed };
        self.world.see(&Fact::ReadAsked { read });
        let (tell, told) = oneshot::channel();
        {
            let process = self.world.servers[place].process.borrow();
            let Some(process) = process.as_ref() else { return };
            if self.world.bug == Some(Bug::StaleReads) {
                tell.send(Ok(process.journal.committed())).unwrap_or_default();
            } else {
                let tell = Box::new(move |index| tell.send(index).unwrap_or_default());
                process.journal.read_index(freshness, tell);
            }
        }
        if let Ok(Ok(Ok(index))) = timeout(PATIENCE, told).await {
            self.world.tell(format_args!("server {place} says {index} is what to see ({freshness:?})"));
            self.world.see(&Fact::ReadAnswered { read, server: place, index });
        }
    }

    fn somebody(&mut self) -> usize {
        self.rng.below(self.world.servers.len() as u64) as usize
    }

    /// One of those who believe that they lead.
    fn leader(&mut self) -> Option<usize> {
        let servers = &self.world.servers;
        let leaders: Vec<usize> = (0..servers.len()).filter(|place| servers[*place].leads()).collect();
        leaders.get(self.rng.below(leaders.len().max(1) as u64) as usize).copied()
    }
}
