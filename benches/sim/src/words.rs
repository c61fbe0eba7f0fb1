//! Events in plain words, short enough for a story.

use model::event::Event;
use model::{AllocId, EvalId};

/// What happened, in a few words.
pub fn of(event: &Event) -> String {
    match event {
        Event::NodeStatusChanged(e) => format!("node {} {} -> {}", short(e.node.0), e.from, e.to),
        Event::NodeEligibilityChanged(e) => format!("node {} {}", short(e.node.0), e.to),
        Event::NodeDrainStarted(e) => format!("node {} to be emptied", short(e.node.0)),
        Event::NodeDrainUpdated(e) => format!("node {} to be emptied otherwise", short(e.node.0)),
        Event::NodeDrainEnded(e) => format!("node {} emptied: {}", short(e.node.0), e.status),
        Event::NodeRegistered(e) => format!("node {} registered", short(e.node.0)),
        Event::NodeUpdated(e) => format!("node {} updated", short(e.node.0)),
        Event::NodeDeregistered(e) => format!("node {} forgotten", short(e.node.0)),
        Event::NodeAllocsReported(e) => format!("node {} reported nothing new", short(e.node.0)),
        Event::JobRegistered(e) => format!("{} version {}", e.key.id, e.version),
        Event::JobStopped(e) => format!("{} stopped", e.key.id),
        Event::JobPurged(e) => format!("{} purged", e.key.id),
        Event::EvalCreated(e) => {
            let eval = &e.eval;
            format!("eval {} of {} for {} {}", short(eval.id.0), eval.key.id, eval.trigger, eval.status)
        }
        Event::EvalUpdated(e) => format!("eval {} {}", short(e.eval.0), e.status),
        Event::EvalAcked(e) => format!("eval {} acked", short(e.eval.0)),
        Event::EvalsCanceled(e) => format!("canceled {}", evals(&e.evals)),
        Event::PlanCommitted(e) => format!("plan of {} on {}", short(e.eval.0), e.snapshot),
        Event::AllocsPlaced(e) => {
            let place = |at: usize| format!("{} on {}", short(e.ids[at].0), short(e.nodes[at].0));
            let places: Vec<String> = (0..e.ids.len()).map(place).collect();
            format!("placed {} of {}: {}", e.group, e.key.id, places.join(", "))
        }
        Event::AllocsUpdatedInPlace(e) => format!("updated {}", allocs(&e.allocs)),
        Event::AllocsStopped(e) => format!("stopped {} ({})", allocs(&e.allocs), e.description),
        Event::AllocsPreempted(e) => format!("preempted {} by {}", allocs(&e.allocs), short(e.by.0)),
        Event::AllocsMarkedUnknown(e) => format!("unknown {}", allocs(&e.allocs)),
        Event::AllocsReconnected(e) => format!("reconnected {}", allocs(&e.allocs)),
        Event::AllocReported(e) => format!("alloc {} {} -> {}", short(e.alloc.0), e.from, e.to),
        Event::AllocTransitionRequested(e) => format!("to move {}", allocs(&e.allocs)),
        Event::AllocHealthSet(e) => {
            format!("{} said to be {}healthy", allocs(&e.allocs), if e.healthy { "" } else { "un" })
        }
        Event::JobStabilityChanged(e) => format!("{} version {} stable {}", e.key.id, e.version, e.stable),
        Event::JobLaunched(e) => format!("{} launched {}", e.key.id, e.child),
        Event::JobScaled(e) => format!("{} scaled {}", e.key.id, e.group),
        Event::JobVersionTagged(e) => format!("{} version {} is {}", e.key.id, e.version, e.name),
        Event::JobVersionUntagged(e) => format!("{} forgets {}", e.key.id, e.name),
        Event::DeploymentCreated(e) => {
            format!("deployment {} of {} version {}", short(e.deployment.0), e.key.id, e.version)
        }
        Event::DeploymentGoalsChanged(e) => format!("deployment {} wants more", short(e.deployment.0)),
        Event::DeploymentStatusChanged(e) => {
            format!("deployment {} {} ({})", short(e.deployment.0), e.status, e.description)
        }
        Event::DeploymentPromoted(e) => {
            format!("deployment {} promoted {}", short(e.deployment.0), e.groups.join(" "))
        }
        Event::ClusterFounded(_)
        | Event::NodeMessagesEmitted(_)
        | Event::NodePoolUpserted(_)
        | Event::NodePoolDeleted(_)
        | Event::NamespaceUpserted(_)
        | Event::NamespaceDeleted(_)
        | Event::AutopilotConfigured(_)
        | Event::SchedulerConfigured(_)
        | Event::VolumeRegistered(_)
        | Event::VolumeDeregistered(_)
        | Event::StateChunkGiven(_)
        | Event::StateRestored(_) => event.name().to_string(),
    }
}

/// Enough of an id to know it by. The first part of a node's is the same for all.
fn short(id: base::Uuid) -> String {
    let text = id.to_string();
    if text.starts_with("90de") { text[33..].to_string() } else { text[..8].to_string() }
}

fn allocs(ids: &[AllocId]) -> String {
    ids.iter().map(|id| short(id.0)).collect::<Vec<_>>().join(" ")
}

fn evals(ids: &[EvalId]) -> String {
    ids.iter().map(|id| short(id.0)).collect::<Vec<_>>().join(" ")
}
