//! What is changed on a fork, as commands of the cluster.

use std::collections::BTreeMap;

use base::{Duration, Rng};
use model::command::{DrainWish, RegisterJob, ScaleJob};
use model::document::Node;
use model::{Actor, Command, JobKey, NodeId, NodeStatus, Rejection, SchedulerRules};
use state::State;

use super::machine::Fork;

/// Most nodes that one change adds.
pub const ADDED_MAX: u32 = 1_000;

/// How long what runs on a drained node has, as for drains that say nothing else.
const DRAIN_DEADLINE: Duration = Duration::from_secs(3600);

/// What a fork differs in.
#[derive(Clone, Debug)]
pub enum Change {
    Drain(NodeId),
    /// Nothing is heard from these nodes any more. Those that are down already stay so.
    Down(Vec<NodeId>),
    /// New nodes, with nothing on them.
    Add {
        like: NodeId,
        count: u32,
    },
    Job(Box<RegisterJob>),
    Stop(JobKey),
    Scale {
        key: JobKey,
        group: String,
        count: i64,
    },
    Scheduler(SchedulerRules),
}

/// Why a fork was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes[{number}]: {why}")]
pub struct Refused {
    /// Of the changes, from 0.
    pub number: usize,
    pub why: Rejection,
}

/// Why a name means nothing on a fork.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfound {
    #[error("no node has the name {0:?}, or an id that begins with it")]
    Node(String),
    #[error("no node is in a datacenter {0:?}")]
    Datacenter(String),
    #[error("{text:?} means several nodes ({}): expected the id of one", .nodes.join(", "))]
    Several {
        text: String,
        /// The first of their ids.
        nodes: Vec<String>,
    },
}

/// The node that a text names: its id, its name, or the beginning of its id.
///
/// # Errors
/// There is none, or there are several.
pub fn find_node(state: &State, text: &str) -> Result<NodeId, Unfound> {
    let unknown = || Unfound::Node(text.to_string());
    if let Ok(id) = text.parse::<NodeId>() {
        return state.nodes.find(id).map(|_| id).ok_or_else(unknown);
    }
    let cold = |row| state.nodes.cold(row);
    let mut found: Vec<NodeId> =
        state.nodes.rows().map(cold).filter(|cold| cold.document.name == text).map(|cold| cold.id).collect();
    if found.is_empty() && !text.is_empty() {
        let begins = |id: &NodeId| id.to_string().starts_with(text);
        found = state.nodes.rows().map(|row| cold(row).id).filter(begins).take(CANDIDATES).collect();
    }
    match found[..] {
        [id] => Ok(id),
        [] => Err(unknown()),
        _ => {
            let nodes = found.iter().take(CANDIDATES).map(ToString::to_string).collect();
            Err(Unfound::Several { text: text.to_string(), nodes })
        }
    }
}

/// Nodes that are named where several are meant.
const CANDIDATES: usize = 8;

/// The nodes of a datacenter.
///
/// # Errors
/// There are none.
pub fn find_datacenter(state: &State, name: &str) -> Result<Vec<NodeId>, Unfound> {
    let cold = |row| state.nodes.cold(row);
    let there = state.nodes.rows().map(cold).filter(|cold| cold.document.datacenter == name);
    let nodes: Vec<NodeId> = there.map(|cold| cold.id).collect();
    if nodes.is_empty() { Err(Unfound::Datacenter(name.to_string())) } else { Ok(nodes) }
}

impl Fork {
    /// Makes the change, in the way in which an operator or a failure would.
    ///
    /// # Errors
    /// As for the real one.
    pub(super) fn change(&mut self, change: &Change) -> Result<(), Rejection> {
        match change {
            Change::Drain(node) => self.drain(*node),
            Change::Down(nodes) => nodes.iter().try_for_each(|node| self.fall_silent(*node)),
            Change::Add { like, count } => self.add(*like, *count),
            Change::Job(request) => self.although_closed(Command::RegisterJob(request.clone())),
            Change::Stop(key) => {
                self.known_job(key)?;
                let (key, purge) = (key.clone(), false);
                self.ask(Command::DeregisterJob { key, purge, eval_priority: None, no_shutdown_delay: false })
            }
            Change::Scale { key, group, count } => {
                self.known_job(key)?;
                let (key, group, count) = (key.clone(), group.clone(), Some(*count));
                let message = "on a fork".to_string();
                let command = ScaleJob { key, group, count, message, ..ScaleJob::default() };
                self.although_closed(Command::ScaleJob(Box::new(command)))
            }
            Change::Scheduler(rules) => {
                self.ask(Command::SetScheduler { rules: rules.clone(), only_at: None })
            }
        }
    }

    fn drain(&mut self, node: NodeId) -> Result<(), Rejection> {
        let wish = DrainWish { deadline: DRAIN_DEADLINE, ignore_system_jobs: false };
        let meta = BTreeMap::new();
        self.ask(Command::SetNodeDrain { node, drain: Some(wish), mark_eligible: false, meta })
    }

    fn fall_silent(&mut self, node: NodeId) -> Result<(), Rejection> {
        self.expect_heartbeat(node);
        self.ask(Command::MissHeartbeat { node })
    }

    fn add(&mut self, like: NodeId, count: u32) -> Result<(), Rejection> {
        let row = self.state().nodes.find(like).ok_or(Rejection::NodeUnknown(like))?;
        let like = Node::clone(&self.state().nodes.cold(row).document);
        let before = self.at.added;
        for number in before + 1..=before + count {
            let node = NodeId(Rng::stream(u64::from(number), "a node that is added to a fork").uuid());
            let document = Node {
                id: node.to_string(),
                secret_id: node.to_string(),
                name: format!("{}-new-{number}", like.name),
                ..like.clone()
            };
            self.ask(Command::RegisterNode { document: Box::new(document) })?;
            self.trust(node);
            let claimed = NodeStatus::Ready;
            self.submit(Actor::Node(node), &Command::UpdateNodeStatus { node, claimed })?;
            self.at.added = number;
        }
        Ok(())
    }

    /// Also while the registration of jobs is closed: nothing is registered.
    fn although_closed(&mut self, command: Command) -> Result<(), Rejection> {
        let was_closed = self.close_registration(false);
        let done = self.ask(command);
        self.close_registration(was_closed);
        done
    }

    fn known_job(&self, key: &JobKey) -> Result<(), Rejection> {
        let known = self.state().jobs.lookup(key).filter(|job| !job.purged);
        known.map(|_| ()).ok_or_else(|| Rejection::JobUnknown(key.clone()))
    }

    fn ask(&mut self, command: Command) -> Result<(), Rejection> {
        self.submit(Actor::ANONYMOUS, &command).map(|_| ())
    }
}
