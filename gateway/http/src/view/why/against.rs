//! Why nothing of a job is placed on a node.

use api::{GroupOnNode, WhyNot};
use state::State;
use state::alloc::Alloc;
use state::job::JobRow;
use state::node::NodeRow;

pub(crate) fn why_not(state: &State, job: JobRow, node: NodeRow) -> WhyNot {
    let (known, cold) = (state.jobs.get(job), state.nodes.cold(node));
    let of_group = |group: &str, there: bool| {
        let own = known.allocs.iter().map(|alloc| state.allocs.get(*alloc));
        let counts =
            |alloc: &&Alloc| alloc.takes_room() && &*alloc.group == group && (!there || alloc.node == node);
        own.filter(counts).count() as u64
    };
    let groups = placement::against(state, job, node).into_iter().map(|(group, lacks)| GroupOnNode {
        there: of_group(&group, true),
        everywhere: of_group(&group, false),
        lacks: lacks.into(),
        group,
    });
    WhyNot {
        approximate: String::new(),
        job_id: known.key.id.clone(),
        stopped: known.is_stopped(),
        node_id: cold.id.to_string(),
        node_name: cold.document.name.clone(),
        groups: groups.collect::<Vec<_>>().into(),
    }
}
