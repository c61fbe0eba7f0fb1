//! What the leader does about the servers, and how a server goes.

use std::sync::Arc;
use std::time::Duration;

use base::Time;
use model::{Autopilot, EPOCH};
use tokio::time::Instant;

use super::admin::named;
use super::roster::{RegionServer, as_span};
use super::{Inner, Status};
use crate::autopilot::{self, ClusterView, HealthHistory, Step, next_step};
use crate::gossip::Standing;

/// How long a server that goes waits for another leader, and until it no longer votes.
const LEAVE_PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks whether that is so.
const LEAVE_POLL: Duration = Duration::from_millis(100);

const LAST_CONTACT: &str = "nomad.raft.leader.lastContact";

/// Judges the servers while this one leads.
pub(super) async fn watch(inner: Arc<Inner>) {
    let mut history = HealthHistory::default();
    loop {
        tokio::time::sleep(inner.settings.timings.health).await;
        let status = inner.consensus.status();
        if !status.leads() {
            history = HealthHistory::default();
            *inner.health.lock() = None;
            continue;
        }
        let (rules, view) = (inner.rules().await, inner.view(&status, Duration::ZERO));
        *inner.health.lock() = Some(autopilot::health(&rules, &view, &mut history, clock()));
    }
}

/// Measures how long ago each follower answered, while this server leads.
pub(super) async fn measure(inner: Arc<Inner>) {
    loop {
        tokio::time::sleep(inner.settings.timings.contact).await;
        let status = inner.consensus.status();
        if status.leads() {
            let followers = status.peers.iter().filter(|peer| peer.number != status.own);
            for contact in followers.filter_map(|peer| peer.last_contact) {
                inner.contacts.took(LAST_CONTACT, std::time::Instant::now(), contact.to_std());
            }
        }
    }
}

/// Follows the rules while this server leads, one step at a time.
pub(super) async fn lead(inner: Arc<Inner>) {
    let mut leading: Option<Instant> = None;
    loop {
        tokio::time::sleep(inner.settings.timings.step).await;
        let status = inner.consensus.status();
        if !status.leads() {
            leading = None;
            continue;
        }
        let since = *leading.get_or_insert_with(Instant::now);
        let rules = inner.rules().await;
        if let Some(step) = next_step(&rules, &inner.view(&status, since.elapsed())) {
            inner.follow(step).await;
        }
    }
}

/// Raises the epoch once every server has known the next one for long enough, while this server leads.
pub(super) async fn raise(inner: Arc<Inner>) {
    if !inner.settings.raise_epoch {
        return;
    }
    let mut known: Option<(u16, Instant)> = None;
    loop {
        tokio::time::sleep(inner.settings.timings.step).await;
        let (status, now) = (inner.consensus.status(), inner.facts.epoch());
        let may_rise = status.leads() && now < EPOCH;
        let next = may_rise.then(|| inner.known_epoch(&status)).flatten().filter(|epoch| *epoch > now);
        known = next.map(|next| match known {
            Some((epoch, since)) if epoch == next => (epoch, since),
            _ => (next, Instant::now()),
        });
        let Some((epoch, since)) = known else { continue };
        if since.elapsed() < inner.settings.timings.settle {
            continue;
        }
        match inner.facts.raise_epoch(epoch).await {
            Ok(()) => tracing::info!(epoch, "every server knows this epoch: the cluster is there now"),
            Err(error) => tracing::warn!(epoch, %error, "the cluster's epoch stays as it is for now"),
        }
    }
}

/// For what is shown; nothing is decided by it.
fn clock() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::ZERO.plus(since.into())
}

impl Inner {
    /// How the servers are right now, without what was seen of them before.
    pub(super) fn first_judgement(&self, status: &Status) -> autopilot::Health {
        let rules = self.facts.autopilot().unwrap_or_else(|| self.settings.autopilot.clone());
        let view = self.view(status, Duration::ZERO);
        autopilot::health(&rules, &view, &mut HealthHistory::default(), clock())
    }

    /// The newest epoch that every server of the cluster knows; `None` while the release of one is not known.
    pub(super) fn known_epoch(&self, status: &Status) -> Option<u16> {
        let names = self.names();
        let epochs = status.peers.iter().map(|peer| Some(named(&names, peer.number)?.release().epoch));
        let epochs: Option<Vec<u16>> = epochs.collect();
        epochs?.into_iter().min()
    }

    /// Everything the autopilot looks at.
    pub(super) fn view(&self, status: &Status, leading_for: Duration) -> ClusterView {
        ClusterView {
            own: status.own,
            term: status.term.0,
            last_entry: status.last_entry,
            leading_for: as_span(leading_for),
            peers: status.peers.clone(),
            servers: self.others().iter().map(RegionServer::server).chain([self.own_server()]).collect(),
        }
    }

    fn own_server(&self) -> autopilot::ServerInfo {
        let own = &self.settings.own;
        autopilot::ServerInfo {
            number: own.number,
            name: own.name.clone(),
            address: own.rpc.clone(),
            standing: Standing::Alive,
            for_how_long: as_span(self.now()),
        }
    }

    /// The rules as the log has them. The first leader writes down what it was configured with.
    async fn rules(&self) -> Autopilot {
        if let Some(rules) = self.facts.autopilot() {
            return rules;
        }
        let first = self.settings.autopilot.clone();
        if let Err(error) = self.facts.begin_autopilot(first.clone()).await {
            tracing::warn!(%error, "the autopilot's configuration is not written down yet");
        }
        first
    }

    async fn follow(&self, step: Step) {
        let done = match &step {
            Step::Add { number, address } | Step::Readdress { number, address } => {
                let member = raft::Member { node: *number, address: address.clone(), voter: true };
                self.consensus.add(member, self.settings.timings.catch_up).await
            }
            Step::Remove { number, .. } => self.consensus.remove(*number).await,
        };
        match (&step, done) {
            (Step::Add { number, address }, Ok(())) => {
                tracing::info!(number, address, "a server votes now");
            }
            (Step::Readdress { number, address }, Ok(())) => {
                tracing::info!(number, address, "a server is reached elsewhere now");
            }
            (Step::Remove { number, why }, Ok(())) => {
                tracing::warn!(number, why, "a server was removed from the cluster");
            }
            (step, Err(error)) => tracing::warn!(?step, %error, "the servers stay as they are for now"),
        }
    }

    /// See [`super::Cluster::leave`].
    pub(super) async fn leave(&self) {
        let status = self.consensus.status();
        let own = status.own;
        let voters = status.peers.iter().filter(|peer| peer.voter).count();
        if status.leads() && voters > 1 {
            // The new leader removes this server when it sees that it leaves.
            match tokio::time::timeout(LEAVE_PATIENCE, self.consensus.transfer(None)).await {
                Ok(Ok(leader)) => tracing::info!(leader, "another server leads now"),
                Ok(Err(error)) => tracing::warn!(%error, "leaving as the leader: nobody took over"),
                Err(_) => tracing::warn!("leaving as the leader: nobody took over in time"),
            }
        }
        if let Some(gossip) = &self.gossip {
            gossip.leave().await;
        }
        if voters <= 1 {
            return;
        }
        let removed = async {
            while self.consensus.status().peers.iter().any(|peer| peer.number == own) {
                tokio::time::sleep(LEAVE_POLL).await;
            }
        };
        if tokio::time::timeout(LEAVE_PATIENCE, removed).await.is_err() {
            tracing::info!("gone before the cluster took this server off its list");
        }
    }
}
