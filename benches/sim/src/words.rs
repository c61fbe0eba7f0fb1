//! Events in plain words, short enough for a story.

use model::event::Event;
use model::{AllocId, EvalId, Subject};

/// What happened, in a few words.
pub fn of(event: &Event) -> String {
    match event {
        Event::NodeStatusChanged(e) => format!("node {} {} -> {}", short(e.node.0), e.from, e.to),
        Event::NodeEligibilityChanged(e) => format!("node {} {}", short(e.node.0), e.to),
        Event::NodeDrainEnded(e) => format!("node {} emptied: {}", short(e.node.0), e.status),
        Event::JobRegistered(e) => format!("{} version {}", e.key.id, e.version),
        Event::EvalCreated(e) => {
            let eval = &e.eval;
            format!("eval {} of {} for {} {}", short(eval.id.0), eval.key.id, eval.trigger, eval.status)
        }
        Event::EvalUpdated(e) => format!("eval {} {}", short(e.eval.0), e.status),
        Event::PlanCommitted(e) => format!("plan of {} on {}", short(e.eval.0), e.snapshot),
        Event::AllocsPlaced(e) => {
            let place = |at: usize| format!("{} on {}", short(e.ids[at].0), short(e.nodes[at].0));
            let places: Vec<String> = (0..e.ids.len()).map(place).collect();
            format!("placed {} of {}: {}", e.group, e.key.id, places.join(", "))
        }
        Event::AllocsStopped(e) => format!("stopped {} ({})", allocs(&e.allocs), e.description),
        Event::AllocsPreempted(e) => format!("preempted {} by {}", allocs(&e.allocs), short(e.by.0)),
        Event::AllocReported(e) => format!("alloc {} {} -> {}", short(e.alloc.0), e.from, e.to),
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
        Event::DeploymentStatusChanged(e) => {
            format!("deployment {} {} ({})", short(e.deployment.0), e.status, e.description)
        }
        Event::DeploymentPromoted(e) => {
            format!("deployment {} promoted {}", short(e.deployment.0), e.groups.join(" "))
        }
        _ => format!("{} {}", event.name(), subject(event.subject())).trim_end().to_string(),
    }
}

fn subject(subject: Subject<'_>) -> String {
    match subject {
        Subject::Cluster => String::new(),
        Subject::Node(id) => short(id.0),
        Subject::Job(key) => key.id.clone(),
        Subject::Evals(ids) => evals(ids),
        Subject::Allocs(ids) => allocs(ids),
        Subject::Deployment(id) => short(id.0),
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
