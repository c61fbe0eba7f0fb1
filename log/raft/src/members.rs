//! Membership: founding a cluster, adding and removing servers, transferring leadership.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use openraft::error::{ChangeMembershipError, ClientWriteError, InitializeError, RaftError};
use openraft::metrics::{RaftMetrics, RaftServerMetrics};
use openraft::{BasicNode, ChangeMembers, Precondition, ReadPolicy};
use tokio::time::{Instant, timeout_at};

use crate::config::{LogId, Types};
use crate::journal::RaftJournal;
use crate::message::Message;
use crate::peers::PeerError;
use crate::status::Member;

/// A new server gets a vote when it lacks no more entries than this: a leader sends as many in one message.
const CAUGHT_UP: u64 = 256;

/// Why a change of the members failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    #[error("this server does not lead{}", named(leader))]
    NotLeading { leader: Option<u64> },
    /// Another request changed them first, or is about to.
    #[error("the members are being changed by another request: look at them and ask again")]
    Changed,
    #[error("server {0} is not a member")]
    Unknown(u64),
    #[error("server {0} has no vote: it cannot lead")]
    NoVote(u64),
    #[error("server {0} is the only one with a vote: without it there is no cluster")]
    LastVoter(u64),
    #[error("there is no other server that could lead now")]
    NoSuccessor,
    /// It stays a member without a vote: ask again to give it more time.
    #[error("server {node} has no vote yet: it still lacks {lag} entries of the log")]
    Behind { node: u64, lag: u64 },
    /// What was asked for may have happened or not: look at the members.
    #[error("nothing came of it within {0:?}")]
    TimedOut(Duration),
    #[error("{0}")]
    Invalid(String),
    #[error("the other server refused: {0}")]
    Refused(#[from] PeerError),
    #[error("the log has stopped: {0}")]
    Stopped(String),
}

fn named(leader: &Option<u64>) -> String {
    leader.map_or_else(String::new, |leader| format!(": server {leader} does"))
}

fn stopped(why: impl std::fmt::Display) -> MemberError {
    MemberError::Stopped(why.to_string())
}

/// Ends what takes too long.
async fn within<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, MemberError>>,
) -> Result<T, MemberError> {
    tokio::time::timeout(patience, asked).await.unwrap_or(Err(MemberError::TimedOut(patience)))
}

impl RaftJournal {
    /// Founds a cluster of `members`, which all have a vote and of which this server is one. Harmless if this server
    /// has a log already. The others wait ([`crate::Found::Wait`]) and read of it in the log; only one server is to be asked.
    ///
    /// # Errors
    /// [`MemberError::Invalid`] when `members` cannot be a cluster; nothing is founded.
    pub async fn bootstrap(&self, members: &[Member]) -> Result<(), MemberError> {
        let nodes: BTreeMap<u64, BasicNode> = members.iter().map(numbered).collect();
        let addresses: BTreeSet<&str> = members.iter().map(|member| member.address.as_str()).collect();
        if nodes.len() < members.len() || addresses.len() < members.len() {
            return Err(MemberError::Invalid("two members have the same number or address".into()));
        }
        if let Some(mute) = members.iter().find(|member| !member.voter) {
            let why = format!("member {} has no vote: a cluster is founded by voters", mute.node);
            return Err(MemberError::Invalid(why));
        }
        match self.raft.initialize(nodes).await {
            Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
            Err(RaftError::APIError(InitializeError::NotInMembers(_))) => {
                let node = self.raft.node_id();
                Err(MemberError::Invalid(format!("server {node} is not one of the members it founds")))
            }
            Err(RaftError::Fatal(why)) => Err(stopped(why)),
        }
    }

    /// Adds `member`: it is sent the log, and when it has caught up it gets its vote. A member that is known
    /// under another address moves. Only the leader can; asking again goes on where it ended.
    ///
    /// # Errors
    /// [`MemberError::Behind`] when it has not caught up within `patience`.
    pub async fn add(&self, member: Member, patience: Duration) -> Result<(), MemberError> {
        let deadline = Instant::now() + patience;
        let (node, at) = numbered(&member);
        let asked = async {
            let mut seen = self.uniform_members().await?;
            let known = self.members(|members| members.get_node(&node).cloned());
            if known.as_ref() != Some(&at) {
                let nodes = BTreeMap::from([(node, at)]);
                let change = match known {
                    None => ChangeMembers::AddNodes(nodes),
                    Some(_) => ChangeMembers::SetNodes(nodes),
                };
                seen = self.change(change, seen).await?;
            }
            if !member.voter || self.has_vote(node) {
                return Ok(());
            }
            self.caught_up(node, seen, deadline).await?;
            self.change(ChangeMembers::AddVoterIds(BTreeSet::from([node])), seen).await.map(drop)
        };
        // A little longer, so that who is behind is reported as that.
        within(patience + self.timings.election.end, asked).await
    }

    /// Removes the server `node`: it is sent nothing, and has no vote. Only the leader can. A leader that
    /// removes itself transfers leadership first, and has its successor do it.
    ///
    /// # Errors
    /// [`MemberError::LastVoter`]; nothing is changed then.
    pub async fn remove(&self, node: u64) -> Result<(), MemberError> {
        let voters: BTreeSet<u64> = self.members(|members| members.voter_ids().collect());
        if voters == BTreeSet::from([node]) {
            return Err(MemberError::LastVoter(node));
        }
        if node == self.network.node {
            let members = within(self.patience(), self.uniform_members()).await?;
            let successor = self.transfer(None).await?;
            let at = self.members(|members| members.get_node(&successor).cloned());
            let at = at.ok_or(MemberError::Unknown(successor))?;
            return match self.network.ask(successor, &at.addr, Message::Remove { node, members }).await? {
                Message::Done => Ok(()),
                _ => Err(PeerError::Refused("it gave an answer to another question".into()).into()),
            };
        }
        within(self.patience(), async {
            let seen = self.uniform_members().await?;
            self.remove_now(node, seen).await
        })
        .await
    }

    /// The same after a transfer of leadership, if the members are still those of the entry that it saw.
    pub(crate) async fn remove_of(&self, members: Option<LogId>, node: u64) -> Result<(), MemberError> {
        within(self.patience(), async {
            let seen = self.uniform_members().await?;
            if seen != members {
                return Err(MemberError::Changed);
            }
            self.remove_now(node, seen).await
        })
        .await
    }

    async fn remove_now(&self, node: u64, seen: Option<LogId>) -> Result<(), MemberError> {
        if !self.is_member(node) {
            return Err(MemberError::Unknown(node));
        }
        let nodes = BTreeSet::from([node]);
        let change = match self.has_vote(node) {
            true => ChangeMembers::RemoveVoters(nodes),
            false => ChangeMembers::RemoveNodes(nodes),
        };
        self.change(change, seen).await.map(drop)
    }

    /// Transfers leadership to the server `to`, or to the one that has most of the log, and returns who leads then.
    ///
    /// First nothing more is taken ([`journal::ProposeError::Full`]) until everything in flight is committed, and until
    /// the successor has the whole log: so no proposal has an unknown outcome. Proposers wait a few round trips.
    ///
    /// # Errors
    /// [`MemberError::TimedOut`] or [`MemberError::NoSuccessor`]: `following` is called, and if this server still leads,
    /// `leading` again.
    pub async fn transfer(&self, to: Option<u64>) -> Result<u64, MemberError> {
        let me = self.network.node;
        self.leading()?;
        if to == Some(me) {
            return Ok(me);
        }
        let to = self.successor(to)?;
        let Some(term) = self.proposals.hold() else { return Err(MemberError::NotLeading { leader: None }) };
        let transferred = within(self.patience(), async {
            self.proposals.idle().await;
            let metrics = |metrics: &RaftMetrics<Types>| lag(metrics, to) == Some(0);
            self.wait_until(metrics).await?;
            self.raft.trigger().transfer_leader(to).await.map_err(stopped)?;
            let mut votes = self.raft.server_metrics();
            let another =
                |votes: &RaftServerMetrics<Types>| votes.current_leader.is_some_and(|leader| leader != me);
            let votes = votes.wait_until(another).await.map_err(stopped)?;
            Ok(votes.current_leader.expect("another leads"))
        });
        let transferred = transferred.await;
        if transferred.is_err() {
            self.proposals.fail(term);
        }
        transferred
    }

    /// The server that takes over: one with a vote, and whose log is as long as any other's.
    fn successor(&self, to: Option<u64>) -> Result<u64, MemberError> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let members = metrics.membership_config.membership();
        if let Some(to) = to {
            return match members.get_node(&to) {
                None => Err(MemberError::Unknown(to)),
                Some(_) if members.voter_ids().all(|voter| voter != to) => Err(MemberError::NoVote(to)),
                Some(_) => Ok(to),
            };
        }
        let others = members.voter_ids().filter(|voter| *voter != metrics.id);
        let matched =
            |node: &u64| metrics.replication.as_ref().and_then(|all| all.get(node).copied().flatten());
        others.max_by_key(matched).ok_or(MemberError::NoSuccessor)
    }

    /// How long a change may take that needs no more than a healthy majority.
    fn patience(&self) -> Duration {
        self.timings.election.end * 3
    }

    fn leading(&self) -> Result<(), MemberError> {
        let leader = self.raft.server_metrics().borrow_watched().current_leader;
        match leader == Some(self.network.node) {
            true => Ok(()),
            false => Err(MemberError::NotLeading { leader }),
        }
    }

    fn members<T>(&self, look: impl FnOnce(&crate::config::Membership) -> T) -> T {
        look(self.raft.server_metrics().borrow_watched().membership_config.membership())
    }

    pub(crate) fn is_member(&self, node: u64) -> bool {
        self.members(|members| members.get_node(&node).is_some())
    }

    fn has_vote(&self, node: u64) -> bool {
        self.members(|members| members.voter_ids().any(|voter| voter == node))
    }

    /// The place of the members in the log. A change that its leader did not live to complete is completed first.
    async fn uniform_members(&self) -> Result<Option<LogId>, MemberError> {
        self.leading()?;
        // A leader of a moment ago takes nothing before a majority has answered it.
        if self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await.is_err() {
            return Err(MemberError::NotLeading { leader: None });
        }
        loop {
            let members = self.raft.with_raft_state(|state| state.membership_state.effective().clone());
            let members = members.await.map_err(stopped)?;
            if members.voter_ids().all(|voter| voter != self.network.node) {
                // It is about to leave, and changes nothing more.
                return Err(MemberError::NotLeading { leader: None });
            }
            if members.membership().get_joint_config().len() == 1 {
                return Ok(*members.log_id());
            }
            self.change(ChangeMembers::AddVoterIds(BTreeSet::new()), *members.log_id()).await?;
        }
    }

    /// Changes the members if they are still those `seen`, and returns the place of the new ones.
    async fn change(
        &self,
        change: ChangeMembers<u64, BasicNode>,
        seen: Option<LogId>,
    ) -> Result<Option<LogId>, MemberError> {
        let unchanged = Precondition::LastMembershipLogId { last_membership_log_id: seen };
        match self.raft.change_membership_if(change, false, [unchanged]).await {
            Ok(changed) => Ok(Some(changed.log_id)),
            Err(RaftError::Fatal(why)) => Err(stopped(why)),
            Err(RaftError::APIError(error)) => Err(match error {
                ClientWriteError::ForwardToLeader(forward) => {
                    let leader = forward.leader_id.filter(|leader| *leader != self.network.node);
                    MemberError::NotLeading { leader }
                }
                ClientWriteError::LogEntryDiscarded(forward) => {
                    MemberError::NotLeading { leader: forward.leader_id }
                }
                ClientWriteError::PreconditionFailed(_)
                | ClientWriteError::ChangeMembershipError(
                    ChangeMembershipError::InProgress(_) | ChangeMembershipError::UncommittedLeaderLog(_),
                ) => MemberError::Changed,
                ClientWriteError::ChangeMembershipError(other) => MemberError::Invalid(other.to_string()),
            }),
        }
    }

    /// Returns when the server `node` lacks little of the log and is there: one that is not must not get a vote, or the
    /// others could need it for a majority.
    async fn caught_up(&self, node: u64, added: Option<LogId>, deadline: Instant) -> Result<(), MemberError> {
        let near = |metrics: &RaftMetrics<Types>| {
            let Some(replication) = &metrics.replication else { return true };
            let has = replication.get(&node).is_some_and(|matched| *matched >= added);
            let in_contact = contact(metrics, node).is_some_and(|ago| ago < self.timings.election.start);
            has && in_contact && lag(metrics, node).is_some_and(|lag| lag <= CAUGHT_UP)
        };
        if timeout_at(deadline, self.wait_until(near)).await.is_err() {
            let lag = lag(&self.raft.metrics().borrow_watched(), node).unwrap_or(u64::MAX);
            return Err(MemberError::Behind { node, lag });
        }
        self.leading()
    }

    pub(crate) async fn wait_until(
        &self,
        reached: impl Fn(&RaftMetrics<Types>) -> bool,
    ) -> Result<(), MemberError> {
        let mut metrics = self.raft.metrics();
        loop {
            if reached(&metrics.borrow_and_update()) {
                return Ok(());
            }
            metrics.changed().await.map_err(stopped)?;
        }
    }
}

fn numbered(member: &Member) -> (u64, BasicNode) {
    (member.node, BasicNode { addr: member.address.clone() })
}

/// How long ago the newest message was sent that a server answered.
pub(crate) fn contact(metrics: &RaftMetrics<Types>, node: u64) -> Option<Duration> {
    let sent = *metrics.heartbeat.as_ref()?.get(&node)?;
    Some(sent?.elapsed())
}

/// How many entries a server lacks, as its leader knows it.
pub(crate) fn lag(metrics: &RaftMetrics<Types>, node: u64) -> Option<u64> {
    let matched = *metrics.replication.as_ref()?.get(&node)?;
    let has = matched.map_or(0, |matched| matched.index + 1);
    let last = metrics.last_log_index.map_or(0, |last| last + 1);
    Some(last.saturating_sub(has))
}
