//! Commits, elections, crashes: who gets what from the log, and when.

use base::{Duration, Time};

use control::replica::Notice;

use super::world::{Event, World};
use crate::fact::{Fact, Violation};
use crate::planted::Bug;
use crate::words;

impl World {
    /// A quorum is up and not paused.
    fn has_quorum(&self) -> bool {
        let well = self.servers.iter().filter(|server| server.up && !server.paused).count();
        well * 2 > self.servers.len()
    }

    pub fn plan_commit(&mut self) {
        if !std::mem::replace(&mut self.commit_due, true) {
            let span = World::up_to(&mut self.log_chance, self.options.log.commit_max);
            self.agenda.after(span, Event::Commit);
        }
    }

    pub fn commit(&mut self) -> Result<(), Violation> {
        self.commit_due = false;
        let now = self.agenda.now();
        if self.log.in_flight() == 0 || self.log.leader().is_none() {
            return Ok(());
        }
        if !self.has_quorum() || now < self.stalled_until {
            self.commit_due = true;
            self.agenda.after(Duration::from_millis(500), Event::Commit);
            return Ok(());
        }
        let count = 1 + self.log_chance.below(self.log.in_flight() as u64) as usize;
        for batch in self.log.commit(count) {
            self.story.witness(batch.bytes());
            if let Ok(read) = batch.decode() {
                let events = read.events.iter().map(|logged| words::of(&logged.event));
                let events: Vec<String> = events.collect();
                self.tell(format_args!("the log has {}: {}", read.index, events.join("; ")));
            }
            self.checks.commit(&batch)?;
        }
        (0..self.servers.len()).for_each(|server| self.plan_learn(server));
        if self.log.in_flight() > 0 {
            self.plan_commit();
        }
        Ok(())
    }

    fn plan_learn(&mut self, server: usize) {
        if self.servers[server].up && !std::mem::replace(&mut self.learn_due[server], true) {
            let span = World::up_to(&mut self.log_chance, self.options.log.learn_max);
            self.agenda.after(span, Event::Learn(server));
        }
    }

    /// A server is notified of what was committed, in order; and that it leads, once it knows all that came before.
    pub fn learn(&mut self, server: usize) -> Result<(), Violation> {
        self.learn_due[server] = false;
        if !self.servers[server].up {
            return Ok(());
        }
        let deposed = self.servers[server].notified.is_some_and(|term| term != self.log.term());
        if deposed || self.log.leader() != Some(server) {
            self.depose(server);
        }
        let one = &mut self.servers[server];
        let rest: Vec<_> = self.log.committed.lock()[one.learned..].to_vec();
        let count = rest.len().min(1 + self.log_chance.below(2 * rest.len() as u64 + 1) as usize);
        let mut notices: Vec<_> = rest.iter().take(count).cloned().map(Notice::Committed).collect();
        if self.bug == Some(Bug::OutOfOrder) && one.notified.is_none() && notices.len() > 1 {
            notices.swap(0, 1);
        }
        one.learned += count;
        one.notices.extend(notices);
        let (learned, notified) = (one.learned, one.notified);
        if learned < self.log.len() {
            self.plan_learn(server);
        }
        if notified.is_none() && self.log.may_lead(server, learned) {
            let term = self.log.term();
            self.servers[server].notified = Some(term);
            self.servers[server].notices.push_back(Notice::Leading(term));
        }
        self.flush(server)
    }

    /// A server that was notified that it leads is notified that it does not.
    fn depose(&mut self, server: usize) {
        if self.servers[server].notified.take().is_some() {
            self.servers[server].notices.push_back(Notice::Following(None));
        }
    }

    pub fn hear_deposed(&mut self, server: usize, term: u64) -> Result<(), Violation> {
        if self.servers[server].notified.is_some_and(|notified| notified.0 <= term) {
            self.depose(server);
            return self.flush(server);
        }
        Ok(())
    }

    /// The leader loses leadership, and is notified some time later. Somebody else is elected, or the same.
    pub fn lose_leader(&mut self, hears_within: Duration) {
        if let Some(server) = self.log.leader() {
            let span = World::up_to(&mut self.log_chance, hears_within);
            self.agenda.after(span, Event::HearDeposed(server, self.log.term().0));
        }
        self.log.depose();
        let within = World::up_to(&mut self.log_chance, self.options.log.election_max);
        self.call_election(within);
    }

    pub fn call_election(&mut self, within: Duration) {
        if !std::mem::replace(&mut self.elect_due, true) {
            self.agenda.after(within, Event::Elect);
        }
    }

    pub fn elect(&mut self) -> Result<(), Violation> {
        self.elect_due = false;
        if self.log.leader().is_some() {
            return Ok(());
        }
        let well = |server: &usize| self.servers[*server].up && !self.servers[*server].paused;
        let well: Vec<usize> = (0..self.servers.len()).filter(well).collect();
        if !self.has_quorum() {
            self.call_election(Duration::from_secs(1));
            return Ok(());
        }
        let winner = well[self.log_chance.below(well.len() as u64) as usize];
        let in_flight = self.log.in_flight();
        let kept = self.log_chance.below(in_flight as u64 + 1) as usize;
        self.log.elect(winner, kept);
        self.tell(format_args!(
            "server {winner} is elected in term {}; of {in_flight} batches in flight it has {kept}",
            self.log.term().0
        ));
        self.plan_commit();
        self.plan_learn(winner);
        Ok(())
    }

    /// A server vanishes with everything in its memory, and comes back after a while.
    pub fn crash(&mut self, server: usize, back_after: Duration) -> Result<(), Violation> {
        self.tell(format_args!("server {server} crashes"));
        self.servers[server].crash(&self.log.committed);
        (self.timer_due[server], self.turn_due[server], self.learn_due[server]) = (None, false, false);
        self.held[server].clear();
        self.checks.see(&Fact::Restarted { server })?;
        if self.log.leader() == Some(server) {
            self.lose_leader(Duration::ZERO);
        }
        let life = self.servers[server].life;
        self.agenda.after(back_after, Event::StartServer(server, life));
        Ok(())
    }

    pub fn start_server(&mut self, server: usize, life: u64) -> Result<(), Violation> {
        if self.servers[server].up || self.servers[server].life != life {
            return Ok(());
        }
        self.tell(format_args!("server {server} starts"));
        self.servers[server].start();
        self.start_workers(server);
        self.plan_learn(server);
        self.flush(server)
    }

    pub fn pause(&mut self, server: usize, span: Duration) {
        self.tell(format_args!("server {server} pauses for {} ms", span.as_millis()));
        self.servers[server].paused = true;
        let life = self.servers[server].life;
        self.agenda.after(span, Event::Resume(server, life));
        if self.log.leader() == Some(server) && self.log_chance.below(2) == 0 {
            self.lose_leader(Duration::from_secs(3));
        }
    }

    pub fn resume(&mut self, server: usize, life: u64) -> Result<(), Violation> {
        if self.servers[server].life != life || !self.servers[server].paused {
            return Ok(());
        }
        self.tell(format_args!("server {server} goes on"));
        self.servers[server].paused = false;
        for event in std::mem::take(&mut self.held[server]) {
            // In any order: what waited longest need not come first.
            let soon = World::up_to(&mut self.wires, Duration::from_millis(5));
            self.agenda.after(soon, event);
        }
        Ok(())
    }

    pub fn step_clock(&mut self, server: usize, ahead: Duration) -> Result<(), Violation> {
        self.tell(format_args!("the clock of server {server} is now {} ms ahead", ahead.as_millis()));
        let by = self.servers[server].set_clock(self.agenda.now(), ahead);
        self.checks.see(&Fact::ClockMoved { server, by })?;
        self.flush(server)
    }

    pub fn true_time(&self) -> Time {
        self.agenda.now()
    }
}
