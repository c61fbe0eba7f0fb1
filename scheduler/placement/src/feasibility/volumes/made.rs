use model::NodeStatus;
use model::document::HostVolume;
use model::{Eligibility, NodeId};
use state::State;
use state::node::NodeRow;

use crate::feasibility::constraint::ConstraintCheck;

/// The node to make a host volume on: one that has the plugin, is in the pool, meets the constraints and has no volume of
/// that name; of several the one with the fewest volumes. A volume that names its node is made there or nowhere.
///
/// # Errors
/// In words: why there is none.
pub fn node_for(state: &State, volume: &HostVolume) -> Result<NodeId, String> {
    let checks: Vec<ConstraintCheck> = volume.constraints.iter().map(ConstraintCheck::of).collect();
    let plugin = format!("plugins.host_volume.{}.version", volume.plugin_id);
    let mut why = "no node is known".to_string();
    let mut rules_out = |row: NodeRow| {
        let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
        let document = &cold.document;
        let id = cold.id.to_string();
        let reason = if !volume.node_id.is_empty() && volume.node_id != id {
            format!("no node has the id {}", volume.node_id)
        } else if hot.status != NodeStatus::Ready {
            format!("node {id} is not ready")
        } else if volume.node_id.is_empty() && hot.eligibility != Eligibility::Eligible {
            format!("node {id} is not eligible")
        } else if !volume.node_pool.is_empty() && volume.node_pool != document.node_pool {
            format!("node {id} is not in node pool {}", volume.node_pool)
        } else if !document.attributes.contains_key(&plugin) {
            format!("node {id} has no host volume plugin {}", volume.plugin_id)
        } else if let Some(check) = checks.iter().find(|check| !check.holds(cold)) {
            format!("node {id} does not meet {}", check.text)
        } else if document.host_volumes.get(&volume.name).is_some_and(|other| other.id != volume.id) {
            format!("node {id} has a volume {} already", volume.name)
        } else {
            return false;
        };
        why = reason;
        true
    };
    let mut fit: Vec<NodeRow> = state.nodes.rows().filter(|row| !state.nodes.hot(*row).gone).collect();
    fit.retain(|row| !rules_out(*row));
    let fewest = fit.into_iter().min_by_key(|row| {
        let cold = state.nodes.cold(*row);
        (cold.document.host_volumes.len(), cold.id)
    });
    fewest.map(|row| state.nodes.cold(row).id).ok_or_else(|| format!("no node can make the volume: {why}"))
}
