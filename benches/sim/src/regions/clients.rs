//! Callers who sit in one region and ask another one: their requests are passed on over a link, and so are the answers.

use base::{Duration, Rng};
use control::{Receipt, SubmitError};
use model::{Command, Request};

use super::link::Letter;
use super::objects;
use super::options::NAMES;
use super::tasks::AUTHORITATIVE;
use super::world::{Caller, Event, Federation};
use crate::fact::{Fact, Violation};
use crate::model::call::{Ask, Party, Reply};
use crate::model::client::{Client, Next};
use crate::model::world::World;

/// Told apart from the clients of regions, in streams of chance.
const FIRST: usize = 100;

pub(super) struct Traveller {
    home: usize,
    /// Where what it asks is decided.
    to: usize,
    client: Client,
    pending: Option<u64>,
}

impl Traveller {
    /// One for each region, and one who registers jobs in several.
    pub fn all(seed: u64, regions: usize) -> Vec<Traveller> {
        let of = |at: usize| {
            let client = Client::new(FIRST + at, seed, None);
            Traveller { home: at % regions, to: AUTHORITATIVE, client, pending: None }
        };
        (0..=regions).map(of).collect()
    }

    pub fn is_free(&self) -> bool {
        self.client.op.is_none()
    }
}

impl Federation {
    /// Who registers jobs in several regions.
    pub fn operator(&self) -> usize {
        self.travellers.len() - 1
    }

    pub fn plan_work(&mut self) {
        let work = self.options.work.clone();
        let mut plan = |every: Duration, event: Event| {
            let span = World::up_to(&mut self.work, Duration(2 * every.0));
            self.agenda.after(span, event);
        };
        plan(work.shared, Event::Shared);
        plan(work.local, Event::Local);
        work.stray.into_iter().for_each(|every| plan(every, Event::Stray));
        work.spread.into_iter().for_each(|every| plan(every, Event::Spread));
    }

    /// The next of these is planned, and this one happens if somebody has nothing else to do.
    pub fn somebody_writes(&mut self, event: &Event) -> Result<(), Violation> {
        if self.calm {
            return Ok(());
        }
        let work = &self.options.work;
        let (again, every) = match event {
            Event::Shared => (Event::Shared, Some(work.shared)),
            Event::Local => (Event::Local, Some(work.local)),
            _ => (Event::Stray, work.stray),
        };
        if let Some(every) = every {
            let span = World::up_to(&mut self.work, Duration(2 * every.0));
            self.after(span, again);
        }
        let by = self.work.below(self.regions.len() as u64) as usize;
        if !self.travellers[by].is_free() {
            return Ok(());
        }
        let server = |rng: &mut Rng, count: usize| rng.below(count as u64) as usize;
        let others = self.regions.len() as u64 - 1;
        let to = match event {
            Event::Shared => AUTHORITATIVE,
            Event::Local => by,
            _ => 1 + self.work.below(others) as usize,
        };
        let servers = &self.regions[to].world.servers;
        let seen = servers[server(&mut self.work, servers.len())].published.clone();
        let command = match event {
            Event::Shared => objects::shared(&seen, &mut self.work),
            Event::Local => objects::local(to, &seen, &mut self.work),
            _ => objects::stray(&mut self.work),
        };
        self.ask(by, to, command)
    }

    pub fn ask(&mut self, by: usize, to: usize, command: Command) -> Result<(), Violation> {
        let world = &mut self.regions[to].world;
        world.ops += 1;
        let op = world.ops;
        let traveller = &mut self.travellers[by];
        traveller.to = to;
        let request = traveller.client.begin(op, command);
        world.checks.see(&Fact::Asked { op, request: &request })?;
        let (home, what) = (NAMES[traveller.home], objects::in_words(&request.command));
        self.tell(format_args!("caller {by} in {home} wants of {}: {what}", NAMES[to]));
        self.client_attempts(by)
    }

    pub fn client_attempts(&mut self, by: usize) -> Result<(), Violation> {
        if self.travellers[by].pending.is_some() {
            return Ok(());
        }
        let attempt = self.next_turn();
        let traveller = &mut self.travellers[by];
        let Some(request) = traveller.client.attempt() else { return Ok(()) };
        traveller.pending = Some(attempt);
        let patience = World::up_to(&mut traveller.client.chance, Duration::from_secs(8));
        let (home, to) = (traveller.home, traveller.to);
        self.after(Duration(patience.0 + Duration::from_secs(4).0), Event::ClientTimedOut { by, attempt });
        if home == to {
            self.is_written(to, by, attempt, request);
        } else {
            self.post(home, to, Letter::Write { by, attempt, request: Box::new(request) });
        }
        Ok(())
    }

    /// A request arrives at some server of the region, which has the leader decide.
    pub fn is_written(&mut self, to: usize, by: usize, attempt: u64, request: Request) {
        let Some(server) = self.any_server(to) else { return };
        let from = self.travellers[by].home;
        let region = &mut self.regions[to];
        let number = region.world.call(Party::Federation { server }, server, Ask::submit(request));
        region.calls.insert(number, Caller::Traveller { from, by, attempt });
    }

    pub fn client_hears(&mut self, by: usize, attempt: u64, reply: Option<Reply>) -> Result<(), Violation> {
        if self.travellers[by].pending != Some(attempt) {
            return Ok(());
        }
        let answer = reply.as_ref().map_or("nothing".to_string(), Reply::name);
        self.tell(format_args!("caller {by} is answered: {answer}"));
        let traveller = &mut self.travellers[by];
        traveller.pending = None;
        let to = traveller.to;
        match traveller.client.hear(reply) {
            Some(Next::Known { op, outcome, open }) => {
                self.regions[to].world.checks.see(&Fact::Answered { op, outcome: &outcome, open })?;
                self.knows(by, &outcome)
            }
            Some(Next::Again) => {
                let span = World::up_to(&mut self.travellers[by].client.chance, Duration::from_secs(2));
                self.after(span, Event::Attempt(by));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn knows(&mut self, by: usize, outcome: &Result<Receipt, SubmitError>) -> Result<(), Violation> {
        if by == self.operator() { self.spread_goes_on(outcome) } else { Ok(()) }
    }
}
