//! Changes of the cluster: nodes that are made eligible, come back, get a volume or join, and preemption.

use base::Rng;
use model::document::{HostVolumeInfo, NearMiss, Node};
use model::{Command, Eligibility, JobType, NodeId, NodeStatus, Preempting, SchedulerRules};
use state::State;
use state::node::NodeRow;

use super::Search;

impl Search<'_> {
    pub(super) fn cluster_changes(&mut self, nearest: &[NearMiss]) {
        let nodes = &self.asked.state.nodes;
        let near = nearest.iter().filter_map(|miss| nodes.find(miss.node_id.parse().ok()?));
        let near: Vec<NodeRow> = near.collect();
        near.iter().for_each(|row| self.brought_back(*row));
        near.iter().for_each(|row| self.host_volumes(*row));
        self.csi_volumes(&near);
        self.one_more(&near);
        self.preemption();
    }

    /// The node takes work again.
    fn brought_back(&mut self, row: NodeRow) {
        let state = self.asked.state;
        let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
        let name = &cold.document.name;
        if hot.status != NodeStatus::Ready && self.may_try() {
            let fork = rules::fork::with_ready(state, cold.id, self.asked.now);
            self.try_fork(&fork, || format!("node {name:?} were ready instead of {}", hot.status));
        }
        if hot.eligibility != Eligibility::Eligible && cold.draining().is_none() && self.may_try() {
            let set = Command::SetNodeEligibility { node: cold.id, to: Eligibility::Eligible };
            if let Ok(fork) = rules::fork::after(state, &set, self.asked.now, self.asked.seed) {
                self.try_fork(&fork, || format!("node {name:?} were eligible for scheduling"));
            }
        }
    }

    /// The node has a host volume that it does not have.
    fn host_volumes(&mut self, row: NodeRow) {
        let Some(group) = self.own_group() else { return };
        let (state, now) = (self.asked.state, self.asked.now);
        let cold = state.nodes.cold(row);
        for request in group.volumes.values().filter(|request| request.kind == "host") {
            // Which of its volumes an allocation of its own would mount depends on the number in its name.
            let has = cold.document.host_volumes.contains_key(&request.source);
            if has || request.per_alloc || !self.may_try() {
                continue;
            }
            let mut document = Node::clone(&cold.document);
            document.host_volumes.insert(request.source.clone(), HostVolumeInfo::default());
            let fork = rules::fork::with_node(state, cold.id, &document, now);
            let change = || format!("node {:?} had the host volume {:?}", cold.document.name, request.source);
            self.try_fork(&fork, change);
        }
    }

    /// A node like one of the nearest, or like the largest of all, joins with nothing on it. One is enough to know.
    fn one_more(&mut self, near: &[NodeRow]) {
        let (state, now) = (self.asked.state, self.asked.now);
        let largest = state.nodes.rows().max_by_key(|row| {
            let capacity = state.nodes.hot(*row).capacity;
            (capacity.memory_mib, capacity.cpu_mhz, std::cmp::Reverse(state.nodes.cold(*row).id))
        });
        let found = self.found.changes.len();
        for row in near.iter().copied().chain(largest.filter(|row| !near.contains(row))) {
            if self.found.changes.len() > found || !self.may_try() {
                return;
            }
            let like = &state.nodes.cold(row).document;
            let node = NodeId(Rng::stream(self.asked.seed, "a node that could join").uuid());
            let eligible = Eligibility::Eligible.to_string();
            let document =
                Node { id: node.to_string(), scheduling_eligibility: eligible, ..Node::clone(like) };
            let fork = rules::fork::with_node(state, node, &document, now);
            self.try_fork(&fork, || format!("one more node like {:?} joined", like.name));
        }
    }

    fn preemption(&mut self) {
        let (state, kind) = (self.asked.state, self.asked.eval.facts.kind);
        let rules = state.scheduler().cloned().unwrap_or_default();
        if state.scheduler().is_none() || rules.preempting.by(kind) || !self.may_try() {
            return;
        }
        let set = Command::SetScheduler { rules: with_preemption(rules, kind), only_at: None };
        if let Ok(fork) = rules::fork::after(state, &set, self.asked.now, self.asked.seed) {
            let change = || format!("{kind} jobs were allowed to take the place of others (preemption)");
            self.try_fork(&fork, change);
        }
    }

    pub(super) fn try_fork(&mut self, fork: &State, change: impl FnOnce() -> String) {
        if self.places(fork) {
            self.give(change());
        }
    }
}

fn with_preemption(rules: SchedulerRules, kind: JobType) -> SchedulerRules {
    let on = |of: JobType| of == kind || rules.preempting.by(of);
    let preempting = Preempting {
        service: on(JobType::Service),
        batch: on(JobType::Batch),
        system: on(JobType::System),
        sysbatch: on(JobType::Sysbatch),
    };
    SchedulerRules { preempting, ..rules }
}
