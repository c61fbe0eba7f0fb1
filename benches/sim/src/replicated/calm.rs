//! After the storm: everything must settle within a bounded time, and then all servers have the same.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration as Span;

use base::{Duration, Index};
use fake_network::Conditions;
use journal::Journal;
use state::State;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::world::World;
use crate::fact::Fact;

/// Virtual time in which everything has to settle once faults are off: the last command of a client, a dead leader, a
/// server that begins anew and catches up, an election or two.
const SETTLES_WITHIN: Span = Span::from_secs(180);

/// The longest way of a message.
const SOON: Span = Span::from_millis(5);
/// How often somebody looks.
const LOOK_EVERY: Span = Span::from_millis(100);

impl World {
    /// No more faults: everybody comes back, agrees, and goes on.
    pub async fn settle(self: Rc<Self>, clients: Vec<JoinHandle<()>>) {
        self.tell(format_args!("no more faults"));
        self.calm.set(true);
        // From now on every message arrives, once and soon.
        let delay_max = self.options.network.delay_max.to_std().min(SOON);
        self.network.set_conditions(Conditions::lossy(delay_max, 0));
        self.network.heal();
        for (place, server) in self.servers.iter().enumerate() {
            server.disk.borrow().set_capacity(None);
            self.drift_clock(place, 0);
            server.clock.borrow_mut().set(self.now(), Duration::ZERO);
        }
        let settled = timeout(SETTLES_WITHIN, self.clone().until_settled(clients)).await;
        match settled {
            Ok(()) => self.finish(),
            Err(_) => {
                self.tell_standings();
                let sentence = format!("in calm everything settles within {} s", SETTLES_WITHIN.as_secs());
                self.violated(&sentence, self.what_is_missing().unwrap_or_else(|| "somebody asks".into()));
            }
        }
    }

    async fn until_settled(self: Rc<Self>, clients: Vec<JoinHandle<()>>) {
        for client in clients {
            // Its panic was recorded.
            client.await.unwrap_or(());
        }
        while self.changing.get() {
            sleep(LOOK_EVERY).await;
        }
        // A leader that was found after all faults takes a write.
        let mut last = Client::new(self.clone(), self.options.clients);
        while !last.write().await {}
        while self.what_is_missing().is_some() {
            sleep(LOOK_EVERY).await;
        }
    }

    /// What is not as it has to be when all is well.
    fn what_is_missing(&self) -> Option<String> {
        if self.changing.get() {
            return Some("the members are being changed".to_string());
        }
        let head = self.scene.borrow().head();
        for (place, server) in self.servers.iter().enumerate() {
            let process = server.process.borrow();
            let Some(process) = process.as_ref() else { return Some(format!("server {place} is dead")) };
            let (status, published) = (process.journal.status(), process.published());
            if published != head || status.committed != head {
                return Some(format!("server {place} is at {published} of {head}: {status:?}"));
            }
            if status.leader.is_none() {
                return Some(format!("server {place} knows no leader: {status:?}"));
            }
        }
        let behind = self.told.iter().position(|told| told.get() != head.next());
        behind.map(|reader| format!("reader {reader} was told what lies below {}", self.told[reader].get()))
    }

    fn tell_standings(&self) {
        for (place, server) in self.servers.iter().enumerate() {
            let status = server.journal().map(|(journal, _)| journal.status());
            self.tell(format_args!("server {place}: {status:?}"));
        }
    }

    /// Every server has the log and the state of the witness, and every reader has received it.
    fn finish(&self) {
        for place in 0..self.servers.len() {
            self.compare_log(place);
        }
        self.read_everything();
        let states: Vec<Arc<State>> = self.servers.iter().map(state_of).collect();
        let told: Vec<Index> = self.told.iter().map(|told| told.get()).collect();
        let mut scene = self.scene.borrow_mut();
        let seen = scene.checks.rest(states.iter().collect(), told);
        scene.note(seen);
        scene.tell(format_args!("at rest"));
    }

    /// What a server can read of its log is all that was committed from its horizon on.
    fn compare_log(&self, place: usize) {
        let (journal, _) = self.servers[place].journal().expect("every server lives");
        let (horizon, head) = (journal.horizon(), journal.committed());
        match journal.read(horizon, usize::MAX) {
            Ok(batches) if batches.len() as u64 == (head.0 + 1).saturating_sub(horizon.0) => {
                batches.iter().for_each(|batch| self.see(&Fact::InLog { server: place, batch }));
            }
            Ok(batches) => {
                let how = format!("server {place} has {} from {horizon} to {head}", batches.len());
                self.violated("I5 no committed batch is missing", how);
            }
            Err(error) => {
                self.violated("I5 no committed batch is missing", format!("server {place}: {error}"))
            }
        }
    }
}

fn state_of(server: &super::server::Server) -> Arc<State> {
    server.process.borrow().as_ref().expect("every server lives").shown.state()
}
