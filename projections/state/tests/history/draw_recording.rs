//! What a recorder sees.

use base::{Rng, Time};
use model::event::*;
use model::{AllocId, DeploymentId, DeploymentStatus};
use state::State;
use state::job::JobState;

/// Of whatever the state has: a recording holds the same rows as a cluster.
pub fn events(state: &State, rng: &mut Rng) -> Vec<Event> {
    let source = format!("http://nomad-{}:4646", rng.below(2));
    let mut events = Vec::new();
    // All of them at once, so that a short history has them.
    let (index, seen) = (rng.below(1000), Time(rng.next() as i64));
    let (objects, indexes, happened) = match rng.below(2) {
        0 => (vec![], vec![], vec![]),
        _ => (vec!["job/default/web".to_string()], vec![rng.below(index + 1)], vec![Time(7)]),
    };
    events.push(Observed { source: source.clone(), index, seen, objects, indexes, happened }.into());
    let (from, to) = (rng.below(1000), rng.below(1000));
    events.push(ObservationGap { source, from, to, reason: "restored".to_string() }.into());
    if let Some((_, job)) = state.jobs.iter().min_by_key(|(row, _)| *row) {
        events.push(JobEndObserved { key: job.key.clone() }.into());
        let known = state.deployments.iter().next().map(|(_, deployment)| deployment.id);
        let deployment = known.unwrap_or_else(|| {
            let created = created(job, rng);
            events.push(created.clone().into());
            created.deployment
        });
        let groups = vec![progress(rng)];
        events.push(DeploymentProgressObserved { deployment, groups }.into());
    }
    events
}

fn created(job: &JobState, rng: &mut Rng) -> DeploymentCreated {
    DeploymentCreated {
        deployment: DeploymentId(rng.uuid()),
        key: job.key.clone(),
        version: job.current().version,
        priority: 50,
        is_multiregion: false,
        status: DeploymentStatus::Running,
        description: String::new(),
        groups: vec![],
    }
}

fn progress(rng: &mut Rng) -> ObservedProgress {
    ObservedProgress {
        group: "web".to_string(),
        promoted: rng.below(2) == 0,
        placed_canaries: vec![AllocId(rng.uuid())],
        placed: rng.below(9) as u32,
        healthy: rng.below(9) as u32,
        unhealthy: rng.below(9) as u32,
        require_progress_by: Time(rng.below(9) as i64),
    }
}
