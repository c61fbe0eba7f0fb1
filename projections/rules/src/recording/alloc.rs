//! Allocations: where they were placed, what is wanted of them, and what their nodes say.

use base::Time;
use model::document::{AllocatedResources, Allocation, PortMapping};
use model::event::{
    AllocReported, AllocTransitionRequested, AllocsCollected, AllocsMarkedUnknown, AllocsPlaced,
    AllocsPreempted, AllocsStopped, AllocsUpdatedInPlace, HealthVerdict,
};
use model::{
    AllocId, ClientStatus, DeploymentId, Desired, Doc, EvalId, Given, JobKey, NodeId, Report, Template,
};
use state::alloc::Alloc;

use super::job::incarnation;
use super::{Seen, count};

/// One of a job, a version of it or a node that is not known is left out.
pub(super) fn observed(seen: &mut Seen, document: &Allocation) -> Option<(String, u64, Time)> {
    let id: AllocId = document.id.parse().ok()?;
    let client = ClientStatus::from_word(&document.client_status)?;
    let desired = Desired::from_word(&document.desired_status)?;
    if seen.state.allocs.find(id).is_none() {
        let placed = placed(seen, id, document)?;
        seen.add(placed);
    } else {
        update(seen, id, document)?;
    }
    preempt(seen, id, document);
    want(seen, id, document, (desired, client));
    if client == ClientStatus::Unknown && known(seen, id)?.client != ClientStatus::Unknown {
        let follow_up = document.followup_eval_id.parse().ok();
        seen.add(AllocsMarkedUnknown { allocs: vec![id], follow_up });
    }
    report(seen, id, document, client)?;
    transition(seen, id, document);
    Some((format!("alloc/{id}"), document.modify_index, Time(document.modify_time)))
}

pub(super) fn gone(seen: &mut Seen, id: AllocId) -> String {
    if seen.state.allocs.find(id).is_some() {
        seen.add(AllocsCollected { allocs: vec![id] });
    }
    format!("alloc/{id}")
}

fn known(seen: &Seen, id: AllocId) -> Option<&Alloc> {
    seen.state.allocs.lookup(id)
}

fn placed(seen: &Seen, id: AllocId, document: &Allocation) -> Option<AllocsPlaced> {
    let key = JobKey::new(&document.namespace, &document.job_id);
    let embedded = document.job.as_ref()?;
    let (version, node) = (embedded.version.unwrap_or_default(), document.node_id.parse::<NodeId>().ok()?);
    let owner = seen.state.jobs.lookup(&key)?.version(version)?;
    // It may be of a job that had the name before this one.
    if incarnation(&owner.job) != incarnation(embedded) || seen.state.nodes.find(node).is_none() {
        return None;
    }
    let (template, ports, given) = resources(document);
    Some(AllocsPlaced {
        eval: document.eval_id.parse().unwrap_or_default(),
        key,
        version,
        group: document.task_group.clone(),
        template: Doc::of(&template),
        metrics: document.metrics.as_ref().map(Doc::of).unwrap_or_default(),
        ids: vec![id],
        nodes: vec![node],
        names: vec![name_index(&document.name)],
        previous: document.previous_allocation.parse().ok().into_iter().collect(),
        deployment: document.deployment_id.parse().ok(),
        canary: document.deployment_status.as_ref().is_some_and(|status| status.canary),
        ports,
        given: if given.is_empty() { vec![] } else { vec![Doc::of(&given)] },
    })
}

/// It was moved to another version of its job, or into another deployment, where it is.
fn update(seen: &mut Seen, id: AllocId, document: &Allocation) -> Option<()> {
    let alloc = known(seen, id)?;
    let deployment: Option<DeploymentId> = document.deployment_id.parse().ok();
    let embedded = document.job.as_ref().filter(|job| incarnation(job) == incarnation(&alloc.version.job));
    let version = embedded.and_then(|job| job.version).unwrap_or(alloc.version.version);
    let is_kept = seen.state.jobs.get(alloc.job).version(version).is_some();
    if is_kept && (version != alloc.version.version || deployment != alloc.deployment) {
        let (template, ..) = resources(document);
        let eval: EvalId = document.eval_id.parse().unwrap_or(alloc.eval);
        let template = Doc::of(&template);
        seen.add(AllocsUpdatedInPlace { eval, version, template, allocs: vec![id], deployment });
    }
    Some(())
}

fn preempt(seen: &mut Seen, id: AllocId, document: &Allocation) {
    let Ok(by) = document.preempted_by_allocation.parse::<AllocId>() else { return };
    let is_new = known(seen, id).is_some_and(|alloc| alloc.preempted_by != Some(by));
    if is_new && seen.state.allocs.find(by).is_some() {
        seen.add(AllocsPreempted { allocs: vec![id], by });
    }
}

/// What the servers want of it, and whether they gave it up.
fn want(seen: &mut Seen, id: AllocId, document: &Allocation, (desired, client): (Desired, ClientStatus)) {
    let Some(alloc) = known(seen, id) else { return };
    let is_lost = client == ClientStatus::Lost && alloc.client != ClientStatus::Lost;
    let is_wanted = alloc.desired == desired && *alloc.desired_description == document.desired_description;
    if is_lost || !is_wanted {
        seen.add(AllocsStopped {
            allocs: vec![id],
            desired,
            description: document.desired_description.clone(),
            client: is_lost.then_some(ClientStatus::Lost),
            follow_up: document.followup_eval_id.parse().ok(),
        });
    }
}

fn report(seen: &mut Seen, id: AllocId, document: &Allocation, client: ClientStatus) -> Option<()> {
    let alloc = known(seen, id)?;
    let report = Doc::of(&Report::of(document));
    let verdict = document
        .deployment_status
        .as_ref()
        .and_then(|status| Some(HealthVerdict { healthy: status.healthy?, time: status.timestamp.time() }));
    let judged = alloc.health.healthy.map(|healthy| HealthVerdict { healthy, time: alloc.health.time });
    let health = verdict.filter(|verdict| Some(*verdict) != judged);
    let is_same = alloc.client == client
        && *alloc.client_description == document.client_description
        && *alloc.report == report.read::<Report>();
    if !is_same || health.is_some() {
        let (node, from, description) = (alloc.node_id, alloc.client, document.client_description.clone());
        seen.add(AllocReported { alloc: id, node, from, to: client, description, report, health });
    }
    Some(())
}

fn transition(seen: &mut Seen, id: AllocId, document: &Allocation) {
    let Some(known) = known(seen, id).map(|alloc| alloc.transition) else { return };
    let asked = &document.desired_transition;
    let new = |asked: Option<bool>, known: bool| asked == Some(true) && !known;
    let requested = AllocTransitionRequested {
        allocs: vec![id],
        migrate: new(asked.migrate, known.migrate),
        reschedule: new(asked.reschedule, known.reschedule),
        no_shutdown_delay: new(asked.no_shutdown_delay, known.no_shutdown_delay),
        force_reschedule: new(asked.force_reschedule, known.force_reschedule),
        disable_placement: new(asked.migrate_disable_placement, known.disable_placement),
        cause: "observed".to_string(),
    };
    let flags = [requested.migrate, requested.reschedule, requested.no_shutdown_delay];
    if flags.contains(&true) || requested.force_reschedule || requested.disable_placement {
        seen.add(requested);
    }
}

/// What it takes of its node. Host ports stand beside their template, and their addresses too.
fn resources(document: &Allocation) -> (Template, Vec<u16>, Given) {
    let mut resources: AllocatedResources = document.allocated_resources.clone().unwrap_or_default();
    let ports = std::mem::take(&mut resources.shared.ports);
    let sum = |part: fn(&model::document::AllocatedTaskResources) -> i64| -> u32 {
        count(resources.tasks.values().map(part).fold(0, i64::saturating_add))
    };
    let template = Template {
        cpu_mhz: sum(|task| task.cpu.cpu_shares),
        memory_mib: sum(|task| task.memory.memory_mb),
        disk_mib: count(resources.shared.disk_mb),
        ports: ports
            .iter()
            .map(|port| PortMapping { value: 0, host_ip: String::new(), ..port.clone() })
            .collect(),
        resources,
    };
    let numbers = ports.iter().map(|port| u16::try_from(port.value).unwrap_or_default());
    let addresses = ports.iter().map(|port| port.host_ip.clone()).collect();
    (template, numbers.collect(), Given { addresses, ..Given::default() })
}

/// The number in a name like `web.server[3]`.
fn name_index(name: &str) -> u32 {
    let number = name.rsplit_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}
