//! Rules with a bug in what they do with volumes.

use model::{Actor, AllocId, Command, EvalStatus, Event, NodeId, NodeStatus};
use rules::{Context, decide};
use state::State;
use state::volume::MANY_WRITERS;

use super::rules::Judged;
use crate::workload::volumes::MADE;

pub fn many_writers(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut command = command.clone();
    if let Command::RegisterCsiVolume { volume } = &mut command {
        volume.access_mode = MANY_WRITERS.to_string();
    }
    decide(state, ctx, actor, &command)
}

pub fn forget_in_use(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    match command {
        Command::DeregisterVolume { volume, .. } => {
            let forced = Command::DeregisterVolume { volume: volume.clone(), force: true };
            decide(state, ctx, actor, &forced)
        }
        command => decide(state, ctx, actor, command),
    }
}

pub fn sticky_wanders(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    let has_one = |node: &NodeId| {
        let row = state.nodes.find(*node).filter(|row| state.nodes.hot(*row).status == NodeStatus::Ready);
        row.is_some_and(|row| state.nodes.cold(row).document.host_volumes.contains_key(MADE))
    };
    let nodes: Vec<NodeId> = state.nodes.rows().map(|row| state.nodes.cold(row).id).filter(has_one).collect();
    for event in &mut decision.events {
        let Event::AllocsPlaced(placed) = event else { continue };
        let version = state.jobs.lookup(&placed.key).and_then(|job| job.version(placed.version));
        let group = version.and_then(|version| version.group(&placed.group));
        if !group.is_some_and(|group| group.volumes.values().any(|request| request.sticky)) {
            continue;
        }
        for (node, _) in
            placed.nodes.iter_mut().zip(&placed.previous).filter(|(_, id)| **id != AllocId::default())
        {
            *node = nodes.iter().copied().find(|other| other != node).unwrap_or(*node);
        }
    }
    Ok(decision)
}

pub fn wake_nobody(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    let classes = || state.nodes.classes().map(|(_, name)| (name.to_string(), false));
    for event in &mut decision.events {
        let Event::EvalCreated(created) = event else { continue };
        let job = state.jobs.lookup(&created.eval.key).filter(|job| job.is_wanted());
        let mounts = job.is_some_and(|job| {
            job.current()
                .job
                .task_groups
                .iter()
                .any(|group| group.volumes.values().any(|own| own.kind == "csi"))
        });
        if mounts && created.eval.status == EvalStatus::Blocked {
            created.eval.outcome.escaped = false;
            created.eval.outcome.classes = classes().collect();
        }
    }
    Ok(decision)
}
