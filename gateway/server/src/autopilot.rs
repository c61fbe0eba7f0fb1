//! How the leader manages the servers: which are healthy, which to add, which to remove. Rules only: the loop that
//! follows them is in `cluster/lead.rs`.

use std::collections::BTreeMap;

use base::{Duration, Time};
use model::Autopilot;

use crate::gossip::Standing;

/// How long a voter that gossip does not know is waited for: a leader that has just started knows no server yet.
pub const UNKNOWN_GRACE: Duration = Duration::from_secs(60);

/// How long a voter has to be failed before it is removed. Gossip takes some 5 s to call a server failed, elections take 1 to
/// 2 s, a restart or a moment without network not many more: what is back by then finds its vote, and does not have to wait to
/// be added again while one more failure could stop the cluster. Nobody needs it sooner: the others have their majority.
pub const DEAD_AFTER: Duration = Duration::from_secs(10);

/// A server that answered the leader this recently is not dead, whatever gossip reports: right after a cut, a suspicion may run out
/// before its denial arrives. Shorter than any suspicion, so that no server that is really gone is kept by it.
pub const RECENT_CONTACT: Duration = Duration::from_secs(2);

/// A member of the raft cluster, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub number: u64,
    /// Its RPC address, from the log.
    pub address: String,
    pub voter: bool,
    /// How long ago it last answered the leader; `None` if it never did. Zero for the leader itself.
    pub last_contact: Option<Duration>,
    /// The last entry it is known to have.
    pub matched: Option<u64>,
}

/// A server of this region that is known, in raft or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    pub number: u64,
    pub name: String,
    /// Its RPC address, from the server itself.
    pub address: String,
    pub standing: Standing,
    /// How long it has been standing so.
    pub for_how_long: Duration,
}

/// Everything the rules look at.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// The leader.
    pub own: u64,
    pub term: u64,
    /// The leader's last entry.
    pub last_entry: u64,
    pub leading_for: Duration,
    pub peers: Vec<Peer>,
    pub servers: Vec<ServerInfo>,
}

impl ClusterView {
    pub fn server(&self, number: u64) -> Option<&ServerInfo> {
        self.servers.iter().find(|server| server.number == number)
    }

    pub fn peer(&self, number: u64) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.number == number)
    }

    fn voters(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.voter)
    }

    fn is_live(&self, number: u64) -> bool {
        number == self.own || self.server(number).is_some_and(|server| server.standing.is_live())
    }

    fn is_voter(&self, number: u64) -> bool {
        self.voters().any(|voter| voter.number == number)
    }
}

/// A change of the raft cluster. One at a time: the next one is decided on what this one led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Becomes a voter once it has caught up.
    Add {
        number: u64,
        address: String,
    },
    /// The same server is now reached elsewhere.
    Readdress {
        number: u64,
        address: String,
    },
    Remove {
        number: u64,
        why: &'static str,
    },
}

/// What is to be done next, if anything.
pub fn next_step(rules: &Autopilot, view: &ClusterView) -> Option<Step> {
    remove_left(view).or_else(|| readdress(view)).or_else(|| match candidates(view).next() {
        // A server about to be added replaces one about to be removed: first the one, then the other, and no
        // majority is ever smaller than it has to be.
        Some(_) => add(rules, view),
        None => remove_dead(rules, view),
    })
}

fn remove_left(view: &ClusterView) -> Option<Step> {
    let left = |peer: &&Peer| {
        peer.number != view.own
            && view.server(peer.number).is_some_and(|server| server.standing == Standing::Left)
    };
    let left = view.peers.iter().find(left)?;
    Some(Step::Remove { number: left.number, why: "it left" })
}

fn readdress(view: &ClusterView) -> Option<Step> {
    let moved = |server: &&ServerInfo| {
        server.standing == Standing::Alive
            && view.peer(server.number).is_some_and(|peer| peer.address != server.address)
    };
    let moved = view.servers.iter().find(moved)?;
    Some(Step::Readdress { number: moved.number, address: moved.address.clone() })
}

/// Servers that live and do not vote yet, the one that has waited longest first.
fn candidates(view: &ClusterView) -> impl Iterator<Item = &ServerInfo> {
    let twin = |server: &ServerInfo| {
        let voting = |other: &&ServerInfo| view.is_voter(other.number) && other.standing.is_live();
        view.servers.iter().filter(voting).any(|other| other.name == server.name)
    };
    let is_candidate = move |server: &&ServerInfo| {
        server.standing == Standing::Alive && !view.is_voter(server.number) && !twin(server)
    };
    let mut found: Vec<&ServerInfo> = view.servers.iter().filter(is_candidate).collect();
    found.sort_by_key(|server| (std::cmp::Reverse(server.for_how_long), server.number));
    found.into_iter()
}

fn add(rules: &Autopilot, view: &ClusterView) -> Option<Step> {
    let stable = |server: &&ServerInfo| server.for_how_long >= rules.server_stabilization_time();
    let server = candidates(view).find(stable)?;
    Some(Step::Add { number: server.number, address: server.address.clone() })
}

fn remove_dead(rules: &Autopilot, view: &ClusterView) -> Option<Step> {
    let dead = |peer: &&Peer| match view.server(peer.number) {
        _ if peer.number == view.own || peer.last_contact.is_some_and(|ago| ago <= RECENT_CONTACT) => false,
        Some(server) => server.standing == Standing::Failed,
        // Where it was a living voter is now: it need not be waited for.
        None => view.leading_for >= UNKNOWN_GRACE || is_replaced(view, peer),
    };
    let dead: Vec<&Peer> = view.peers.iter().filter(dead).collect();
    // Removing a server that does not vote risks nothing.
    let silent = dead.iter().find(|peer| !peer.voter && rules.cleanup_dead_servers);
    let step = |number, why| Some(Step::Remove { number, why });
    if let Some(silent) = silent {
        return step(silent.number, "it failed before it could vote");
    }
    let dead: Vec<&Peer> = dead.into_iter().filter(|peer| peer.voter).collect();
    let voters = view.voters().count();
    let live = view.voters().filter(|voter| view.is_live(voter.number)).count();
    let left = voters.saturating_sub(1);
    let is_safe = dead.len() <= left / 2 && left >= rules.min_quorum as usize && live > left / 2;
    if !is_safe {
        return None;
    }
    if let Some(replaced) = dead.iter().find(|peer| is_replaced(view, peer)) {
        return step(replaced.number, "another server has taken its place");
    }
    let away = |peer: &&&Peer| {
        let failed = view.server(peer.number).map(|server| server.for_how_long);
        failed.is_none_or(|failed| failed >= DEAD_AFTER)
    };
    let first = dead.iter().find(away).filter(|_| rules.cleanup_dead_servers)?;
    step(first.number, "it failed")
}

/// A voter that lives has its name or its address: it cannot come back as it was.
fn is_replaced(view: &ClusterView, dead: &Peer) -> bool {
    let name = view.server(dead.number).map(|server| &server.name);
    let heirs = view.servers.iter().filter(|server| {
        server.number != dead.number && server.standing.is_live() && view.is_voter(server.number)
    });
    heirs.into_iter().any(|heir| Some(&heir.name) == name || heir.address == dead.address)
}

/// How one server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    pub number: u64,
    pub standing: Option<Standing>,
    pub leader: bool,
    pub voter: bool,
    pub last_contact: Option<Duration>,
    pub last_index: u64,
    pub healthy: bool,
    /// Since when it has been healthy, or not, without a break.
    pub stable_since: Time,
}

/// How the cluster does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub healthy: bool,
    /// Servers that may still fail before there is no majority.
    pub failure_tolerance: usize,
    pub servers: Vec<ServerHealth>,
}

/// Since when each server is as healthy as it is.
#[derive(Clone, Debug, Default)]
pub struct HealthHistory(BTreeMap<u64, (bool, Time)>);

/// Judges every member of the raft cluster.
pub fn health(rules: &Autopilot, view: &ClusterView, history: &mut HealthHistory, now: Time) -> Health {
    history.0.retain(|number, _| view.peer(*number).is_some());
    let servers: Vec<_> = view.peers.iter().map(|peer| assess(rules, view, history, now, peer)).collect();
    let voters = servers.iter().filter(|server| server.voter).count();
    let healthy = servers.iter().filter(|server| server.voter && server.healthy).count();
    Health {
        healthy: servers.iter().all(|server| server.healthy),
        failure_tolerance: healthy.saturating_sub(voters / 2 + 1),
        servers,
    }
}

fn assess(
    rules: &Autopilot,
    view: &ClusterView,
    history: &mut HealthHistory,
    now: Time,
    peer: &Peer,
) -> ServerHealth {
    let leader = peer.number == view.own;
    let standing = view.server(peer.number).map(|server| server.standing);
    let last_index = if leader { view.last_entry } else { peer.matched.unwrap_or(0) };
    let in_touch = peer.last_contact.is_some_and(|silent| silent <= rules.last_contact_threshold());
    let trails = view.last_entry.saturating_sub(last_index);
    let keeps_up = peer.matched.is_some() && trails <= rules.max_trailing_logs;
    let healthy = leader || (standing == Some(Standing::Alive) && in_touch && keeps_up);
    let (was, since) = history.0.entry(peer.number).or_insert((healthy, now));
    if *was != healthy {
        (*was, *since) = (healthy, now);
    }
    let last_contact = if leader { Some(Duration::ZERO) } else { peer.last_contact };
    ServerHealth {
        number: peer.number,
        standing,
        leader,
        voter: peer.voter,
        last_contact,
        last_index,
        healthy,
        stable_since: *since,
    }
}

#[cfg(test)]
mod tests;
