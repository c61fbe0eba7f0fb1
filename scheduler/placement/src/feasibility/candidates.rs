//! The nodes in scope of a job: ready, in its node pool and datacenters.

use std::collections::BTreeMap;

use model::document::Job;
use state::State;
use state::node::{NodeHot, NodeRow};

use crate::feasibility::constraint::satisfies_semver;
use crate::feasibility::static_checks::{is_in_datacenters, is_in_pool};

/// Whether nodes are in the job's node pool and datacenters. Both are part of the class, so it is computed once per
/// class.
#[derive(Debug)]
pub struct Scope<'e> {
    state: &'e State,
    job: &'e Job,
    /// By class; `None` until computed.
    answers: Vec<Option<bool>>,
}

impl<'e> Scope<'e> {
    pub fn new(state: &'e State, job: &'e Job) -> Scope<'e> {
        Scope { state, job, answers: vec![None; state.nodes.classes().count()] }
    }

    pub fn contains(&mut self, row: NodeRow, hot: &NodeHot) -> bool {
        let answer = &mut self.answers[hot.class.0 as usize];
        *answer.get_or_insert_with(|| {
            let node = &self.state.nodes.cold(row).document;
            is_in_pool(self.job.node_pool.as_deref(), node) && is_in_datacenters(&self.job.datacenters, node)
        })
    }
}

/// All of them in the order of ids: servers may number rows differently and still decide the same.
#[derive(Debug)]
pub struct Candidates {
    pub list: Vec<NodeRow>,
    /// By node row: the position in `list`, plus one.
    positions: Vec<u32>,
    /// Ready nodes by datacenter.
    pub available: BTreeMap<String, i64>,
    /// Some agent is too old to report the health of allocations of system jobs, so no deployment can wait for it.
    pub lacks_health_reports: bool,
}

/// Agents from 1.11 on report the health of allocations of system jobs.
const BEFORE_HEALTH: &str = "< 1.11.0";

impl Candidates {
    pub fn find(state: &State, scope: &mut Scope) -> Candidates {
        let mut found = Candidates {
            list: Vec::with_capacity(state.nodes.len()),
            positions: vec![0; state.nodes.rows_len()],
            available: BTreeMap::new(),
            lacks_health_reports: false,
        };
        let mut of_class: Vec<(u32, NodeRow)> = vec![(0, NodeRow(0)); state.nodes.classes().count()];
        for row in state.nodes.rows() {
            let hot = state.nodes.hot(row);
            if !hot.takes_work() || !scope.contains(row, hot) {
                continue;
            }
            found.list.push(row);
            found.positions[row.0 as usize] = found.list.len() as u32;
            let class = &mut of_class[hot.class.0 as usize];
            *class = (class.0 + 1, row);
        }
        for (count, example) in of_class.into_iter().filter(|(count, _)| *count > 0) {
            let node = &state.nodes.cold(example).document;
            *found.available.entry(node.datacenter.clone()).or_default() += i64::from(count);
            let version = node.attributes.get("nomad.version");
            found.lacks_health_reports |=
                version.is_some_and(|version| satisfies_semver(version, BEFORE_HEALTH));
        }
        found
    }

    pub fn position(&self, row: NodeRow) -> Option<u32> {
        self.positions[row.0 as usize].checked_sub(1)
    }
}
