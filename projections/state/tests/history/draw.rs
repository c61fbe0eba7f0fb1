use std::collections::BTreeMap;

use base::{Index, Rng, Time, Uuid};
use model::document::{
    ACLPolicy, ACLRole, ACLToken, AllocatedDeviceResource, AllocationMetric, CSIVolume, DesiredUpdates,
    HostVolume, Job, JobSubmission, Namespace, Node, NodePool, PortMapping, ScalingEvent, TaskEvent,
    TaskGroup, TaskState,
};
use model::event::*;
use model::{
    AllocId, Autopilot, Chunk, ClientStatus, DeploymentId, DeploymentStatus, Desired, Doc, DrainStatus,
    EPOCH, Eligibility, EvalId, EvalStatus, Given, GivenToTask, JobKey, JobType, NodeId, NodeStatus, Report,
    SchedulerRules, SealedData, SealedKey, Template, TokenSecret, Trigger, VolumeKey, VolumeKind,
};
use state::State;
use state::alloc::Alloc;
use state::eval::Eval;
use state::image::Imager;
use state::job::JobState;
use state::node::NodeRow;

/// What may happen next: events of one command, in their order.
pub fn events(state: &State, rng: &mut Rng) -> Vec<Event> {
    loop {
        let drawn = match rng.below(100) {
            0..12 => of_nodes(state, rng),
            12..26 => of_jobs(state, rng),
            26..49 => of_evals(state, rng),
            49 => super::draw_claims::events(state, rng),
            50..62 => Some(placed(state, rng)),
            62 => of_allocs(state, rng),
            63..65 => Some(of_volumes(state, rng)),
            65..70 => of_deployments(state, rng),
            70 if state.epoch() < EPOCH => Some(vec![EpochRaised { epoch: EPOCH }.into()]),
            70 => Some(vec![AutopilotConfigured { rules: rules(rng) }.into()]),
            71 => Some(vec![configured(rng)]),
            72 => Some(vec![pool(state, rng)]),
            73..76 => Some(vec![namespace(state, rng)]),
            76..82 => of_keys(state, rng),
            82..86 => of_acl(state, rng),
            86..90 => super::draw_variables::events(state, rng),
            90..93 => super::draw_services::events(state, rng),
            93 => Some(super::draw_erasure::and_rarer(state, rng)),
            96..100 => super::draw_logins::of_logins(state, rng),
            _ => of_allocs(state, rng),
        };
        match drawn {
            Some(events) if !events.is_empty() => return events,
            Some(_) | None => {}
        }
    }
}

/// The state as it is, given in pieces and put in its own place.
pub fn restored(state: &State, rng: &mut Rng) -> Vec<Event> {
    let restore = rng.uuid();
    let chunks = Imager::default().image(state).chunks;
    let piece = |(number, chunk): (usize, &Chunk)| {
        let bytes = chunk.bytes.as_ref().expect("the first image of an imager has all bytes").to_vec();
        StateChunkGiven { restore, number: number as u32, bytes }.into()
    };
    let mut events: Vec<Event> = chunks.iter().enumerate().map(piece).collect();
    events.push(StateRestored { restore, chunks: chunks.len() as u32, image: state.index }.into());
    events
}

fn of_volumes(state: &State, rng: &mut Rng) -> Vec<Event> {
    let kind = one(VolumeKind::ALL, rng).expect("there are kinds");
    let id = format!("vol-{}", rng.below(3));
    let volume = VolumeKey::new(kind, "default", &id);
    if state.volumes.get(&volume).is_some() && rng.below(2) == 0 {
        return vec![VolumeDeregistered { volume }.into()];
    }
    let document = match kind {
        VolumeKind::Csi => Doc::of(&CSIVolume { id, capacity: rng.below(9) as i64, ..CSIVolume::default() }),
        VolumeKind::Host => {
            Doc::of(&HostVolume { id, capacity_bytes: rng.below(9) as i64, ..HostVolume::default() })
        }
    };
    vec![VolumeRegistered { volume, document }.into()]
}

fn of_keys(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let servers: Vec<Uuid> = state.keyring.servers().keys().copied().collect();
    let active = state.keyring.active().map(|(key, _)| key);
    let keys: Vec<Uuid> = state.keyring.keys().keys().copied().collect();
    let sealed = |server| SealedKey { server, bytes: vec![3; 4] };
    // What needs something to be there comes first, so that a short history has all of it.
    let event = match rng.below(4) {
        _ if servers.is_empty() => ServerKeyAnnounced { server: Uuid::from(1), public: [1; 32] }.into(),
        0 => ServerKeyAnnounced { server: Uuid::from(u128::from(rng.below(80))), public: [1; 32] }.into(),
        1 => {
            let sealed = one(&servers, rng).map(sealed).into_iter().collect();
            RootKeyActivated { key: rng.uuid(), modulus: vec![1], exponent: vec![2], sealed }.into()
        }
        2 => RootKeySealed { key: one(&keys, rng)?, sealed: sealed(one(&servers, rng)?) }.into(),
        _ => {
            let key = one(&keys, rng).filter(|key| Some(*key) != active)?;
            RootKeyRemoved { key }.into()
        }
    };
    Some(vec![event])
}

fn of_acl(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let acl = &state.acl;
    let accessors: Vec<Uuid> = acl.tokens().map(|(accessor, _)| accessor).collect();
    let one_time: Vec<Uuid> = acl.one_time().keys().copied().collect();
    let policies = acl.policies.names();
    let roles: Vec<Uuid> = acl.roles.names().iter().map(|id| id.parse().expect("ids are UUIDs")).collect();
    let token = |rng: &mut Rng| {
        Doc::of(&ACLToken {
            kind: "client".to_string(),
            name: rng.below(9).to_string(),
            ..ACLToken::default()
        })
    };
    // What needs something to be there comes first, so that a short history has all of it.
    let event = match rng.below(10) {
        8.. if accessors.is_empty() => {
            let sealed = SealedData { key: rng.uuid(), bytes: vec![5; 3] };
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&rng.below(u64::MAX).to_le_bytes());
            let secret = TokenSecret { digest, sealed };
            AclTokenCreated { accessor: rng.uuid(), document: token(rng), secret, bootstrap: true }.into()
        }
        0 => {
            let name = format!("policy-{}", rng.below(4));
            let document =
                ACLPolicy { name: name.clone(), rules: rng.below(9).to_string(), ..ACLPolicy::default() };
            AclPolicyUpserted { name, document: Doc::of(&document) }.into()
        }
        1 => AclPolicyDeleted { name: one(&policies, rng)?.to_string() }.into(),
        2 => {
            let role = Uuid::from(u128::from(rng.below(4) + 1));
            let document =
                ACLRole { id: role.to_string(), name: rng.below(9).to_string(), ..ACLRole::default() };
            AclRoleUpserted { role, document: Doc::of(&document) }.into()
        }
        3 => AclRoleDeleted { role: one(&roles, rng)? }.into(),
        4 => AclTokenUpdated { accessor: one(&accessors, rng)?, document: token(rng) }.into(),
        5 => AclTokensDeleted { accessors: vec![one(&accessors, rng)?], expired: rng.below(2) == 0 }.into(),
        7 if !one_time.is_empty() => OneTimeTokenExchanged { accessor: one(&one_time, rng)? }.into(),
        6 | 7 => {
            let expires = Time(rng.below(1_000) as i64);
            OneTimeTokenCreated { accessor: one(&accessors, rng)?, digest: [6; 32], expires }.into()
        }
        8 => OneTimeTokensExpired { accessors: one_time }.into(),
        _ => {
            let secret = TokenSecret {
                digest: [rng.below(256) as u8; 32],
                sealed: SealedData { key: Uuid::NIL, bytes: vec![] },
            };
            if acl.by_secret(&secret.digest).is_some() {
                return None;
            }
            AclTokenCreated { accessor: rng.uuid(), document: token(rng), secret, bootstrap: false }.into()
        }
    };
    Some(vec![event])
}

fn rules(rng: &mut Rng) -> Autopilot {
    Autopilot {
        cleanup_dead_servers: rng.below(2) == 0,
        max_trailing_logs: rng.below(1000),
        min_quorum: rng.below(5) as u32,
        ..Autopilot::default()
    }
}

fn configured(rng: &mut Rng) -> Event {
    let rules = SchedulerRules {
        pause_eval_broker: rng.below(2) == 0,
        node_limit: rng.below(200) as u32,
        ..SchedulerRules::default()
    };
    SchedulerConfigured { rules }.into()
}

fn pool(state: &State, rng: &mut Rng) -> Event {
    let name = format!("pool-{}", rng.below(4));
    if state.pools.get(&name).is_some() && rng.below(2) == 0 {
        return NodePoolDeleted { name }.into();
    }
    let document =
        NodePool { name: name.clone(), description: rng.next().to_string(), ..NodePool::default() };
    NodePoolUpserted { name, document: Doc::of(&document) }.into()
}

fn namespace(state: &State, rng: &mut Rng) -> Event {
    let name = format!("space-{}", rng.below(2));
    if state.namespaces.get(&name).is_some() && rng.below(2) == 0 {
        return NamespaceDeleted { name }.into();
    }
    let document =
        Namespace { name: name.clone(), description: rng.next().to_string(), ..Namespace::default() };
    NamespaceUpserted { name, document: Doc::of(&document) }.into()
}

pub fn one<T: Copy>(of: &[T], rng: &mut Rng) -> Option<T> {
    (!of.is_empty()).then(|| of[rng.below(of.len() as u64) as usize])
}

fn node(state: &State, rng: &mut Rng) -> Option<NodeRow> {
    one(&state.nodes.rows().collect::<Vec<_>>(), rng)
}

fn job<'a>(state: &'a State, rng: &mut Rng) -> Option<&'a JobState> {
    one(&state.jobs.iter().map(|(_, job)| job).collect::<Vec<_>>(), rng)
}

fn live_eval<'a>(state: &'a State, rng: &mut Rng) -> Option<&'a Eval> {
    let live = state.evals.iter().map(|(_, eval)| eval).filter(|eval| !eval.status.is_terminal());
    one(&live.collect::<Vec<_>>(), rng)
}

fn over_eval<'a>(state: &'a State, rng: &mut Rng) -> Option<&'a Eval> {
    let over = state.evals.iter().map(|(_, eval)| eval).filter(|eval| eval.status.is_terminal());
    one(&over.collect::<Vec<_>>(), rng)
}

fn alloc<'a>(state: &'a State, rng: &mut Rng) -> Option<&'a Alloc> {
    one(&state.allocs.iter().map(|(_, alloc)| alloc).collect::<Vec<_>>(), rng)
}

fn message(rng: &mut Rng) -> NodeMessage {
    let details = (0..rng.below(3)).map(|n| (format!("detail {n}"), "ü".repeat(rng.below(20) as usize)));
    NodeMessage {
        details: details.collect(),
        ..NodeMessage::new("Cluster", "something", Time(rng.next() as i64))
    }
}

fn of_nodes(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let known = node(state, rng);
    let (Some(row), false) = (known, rng.below(3) == 0) else { return Some(vec![registered(rng)]) };
    let (hot, node) = (state.nodes.hot(row), state.nodes.cold(row).id);
    let event = match rng.below(15) {
        12.. => drained(state, row, rng),
        0..5 => {
            let to = one(NodeStatus::ALL, rng).filter(|to| *to != hot.status)?;
            let message = (rng.below(2) == 0).then(|| message(rng));
            NodeStatusChanged { node, from: hot.status, to, message }.into()
        }
        5..7 => NodeUpdated { node, document: document(rng), computed_class: class(rng) }.into(),
        7 => NodeEligibilityChanged { node, to: one(Eligibility::ALL, rng)?, message: message(rng) }.into(),
        8 | 9 => {
            NodeMessagesEmitted { node, messages: (0..rng.below(5)).map(|_| message(rng)).collect() }.into()
        }
        10 => NodeAllocsReported { node }.into(),
        _ => NodeDeregistered { node }.into(),
    };
    Some(vec![event])
}

fn drained(state: &State, row: NodeRow, rng: &mut Rng) -> Event {
    let (cold, message) = (state.nodes.cold(row), message(rng));
    let meta = if rng.below(2) == 0 { vec![("message".into(), format!("{}", rng.below(9)))] } else { vec![] };
    let (node, accessor) = (cold.id, "anonymous".to_string());
    if cold.draining().is_some() && rng.below(3) == 0 {
        let status = if rng.below(2) == 0 { DrainStatus::Complete } else { DrainStatus::Canceled };
        let eligible = rng.below(2) == 0;
        return NodeDrainEnded { node, status, eligible, meta, accessor, message }.into();
    }
    let deadline = base::Duration(rng.below(9) as i64 - 1);
    let (force_at, ignore_system_jobs) = (Time(rng.below(9) as i64), rng.below(2) == 0);
    let order = DrainOrder { deadline, force_at, ignore_system_jobs, meta, accessor };
    match cold.draining() {
        Some(_) => NodeDrainUpdated { node, order, message }.into(),
        None => NodeDrainStarted { node, order, message }.into(),
    }
}

fn registered(rng: &mut Rng) -> Event {
    let node = NodeId(rng.uuid());
    NodeRegistered { node, document: document(rng), computed_class: class(rng), secret_hash: [7; 32] }.into()
}

fn document(rng: &mut Rng) -> Doc {
    Doc::of(&Node { name: format!("node-{}", rng.below(1000)), datacenter: "dc1".into(), ..Node::default() })
}

fn class(rng: &mut Rng) -> String {
    format!("v1:{}", rng.below(5))
}

fn of_jobs(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let event = match rng.below(26) {
        0..14 => {
            let child = if rng.below(4) == 0 { format!("/dispatch-{}", rng.below(3)) } else { String::new() };
            let key = JobKey::new("default", &format!("job-{}{child}", rng.below(12)));
            let version = state.jobs.lookup(&key).map_or(0, |job| job.current().version + 1);
            let submission = match rng.below(3) {
                0 => Doc::of(&JobSubmission { source: "a job".into(), ..JobSubmission::default() }),
                _ => Doc::default(),
            };
            JobRegistered { document: job_document(&key, rng), key, version, submission }.into()
        }
        14..19 => {
            let job = job(state, rng)?;
            JobStopped { key: job.key.clone(), version: job.current().version + 1 }.into()
        }
        19..21 => return Some(purged(state, job(state, rng)?)),
        _ => noted(job(state, rng)?, rng),
    };
    Some(vec![event])
}

fn purged(state: &State, job: &JobState) -> Vec<Event> {
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    let running: Vec<AllocId> = allocs.filter(|alloc| !alloc.is_terminal()).map(|alloc| alloc.id).collect();
    let stopped = AllocsStopped {
        allocs: running,
        desired: Desired::Stop,
        description: "its job is purged".to_string(),
        client: None,
        follow_up: None,
    };
    vec![stopped.into(), JobPurged { key: job.key.clone() }.into()]
}

fn noted(job: &JobState, rng: &mut Rng) -> Event {
    let (key, name) = (job.key.clone(), format!("tag-{}", rng.below(3)));
    match rng.below(4) {
        0 => {
            let child = format!("{}/periodic-1", key.id);
            JobLaunched { key, at: Time(rng.below(99) as i64), child, forced: rng.below(2) == 0 }.into()
        }
        1 => {
            let scaling = ScalingEvent { count: Some(rng.below(9) as i64), ..ScalingEvent::default() };
            JobScaled { key, group: "web".to_string(), scaling: Doc::of(&scaling) }.into()
        }
        2 if job.tagged(&name).is_none() => {
            let version = one(&job.versions.iter().map(|kept| kept.version).collect::<Vec<_>>(), rng);
            let (version, description) = (version.expect("a job has a version"), String::new());
            JobVersionTagged { key, version, name, description }.into()
        }
        _ => JobVersionUntagged { key, name }.into(),
    }
}

fn job_document(key: &JobKey, rng: &mut Rng) -> Doc {
    let group = |name: &str| TaskGroup { name: Some(name.into()), count: Some(3), ..TaskGroup::default() };
    Doc::of(&Job {
        id: Some(key.id.clone()),
        parent_id: key.id.split_once('/').map(|(parent, _)| parent.to_string()),
        kind: Some(one(JobType::ALL, rng).expect("there are kinds").to_string()),
        priority: Some(rng.below(100) as i64),
        task_groups: vec![group("web"), group("db")].into(),
        ..Job::default()
    })
}

fn of_evals(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let event = match rng.below(13) {
        0..4 => EvalCreated { eval: new_eval(state, rng)? }.into(),
        4..9 => {
            let eval = live_eval(state, rng)?.id();
            let status = one(EvalStatus::ALL, rng)?;
            let description = one(&["", "created for job", "blocked"], rng)?.to_string();
            let desired = match rng.below(2) {
                0 => Doc::default(),
                _ => Doc::of(&BTreeMap::from([(
                    "web",
                    DesiredUpdates { place: rng.below(9), ..DesiredUpdates::default() },
                )])),
            };
            EvalUpdated { eval, status, description, outcome: outcome(rng), desired }.into()
        }
        9 => EvalAcked { eval: live_eval(state, rng)?.id() }.into(),
        11 => EvalsDeleted { evals: vec![over_eval(state, rng)?.id()] }.into(),
        10 => EvalsCanceled { evals: vec![live_eval(state, rng)?.id()], cause: "superseded".into() }.into(),
        _ => PlanCommitted {
            eval: live_eval(state, rng)?.id(),
            snapshot: state.index,
            seed: rng.next(),
            now: Time(rng.next() as i64),
            refresh: Index::ZERO,
            rejected: vec![],
        }
        .into(),
    };
    Some(vec![event])
}

fn new_eval(state: &State, rng: &mut Rng) -> Option<NewEval> {
    let id = |rng: &mut Rng| (rng.below(3) == 0).then(|| rng.uuid());
    Some(NewEval {
        id: EvalId(rng.uuid()),
        key: job(state, rng)?.key.clone(),
        kind: one(JobType::ALL, rng)?,
        priority: rng.below(100) as u32,
        trigger: one(Trigger::ALL, rng)?,
        status: one(&[EvalStatus::Pending, EvalStatus::Pending, EvalStatus::Blocked], rng)?,
        description: one(&["", "for a test"], rng)?.to_string(),
        node: id(rng).map(NodeId),
        job_modify: Index(rng.below(100)),
        node_modify: Index(rng.below(100)),
        previous: id(rng).map(EvalId),
        wait_until: Time(rng.below(9) as i64),
        outcome: outcome(rng),
    })
}

fn outcome(rng: &mut Rng) -> EvalOutcome {
    let groups = &["web", "db"][..rng.below(3) as usize];
    let classes = 0..rng.below(4);
    EvalOutcome {
        snapshot: Index(rng.below(100)),
        seed: rng.next(),
        now: Time(rng.next() as i64),
        queued: groups.iter().map(|group| (group.to_string(), rng.below(9) as u32)).collect(),
        failed_groups: if rng.below(3) == 0 { Doc::of(&FailedGroups::default()) } else { Doc::default() },
        classes: classes.map(|n| (format!("v1:{n}"), n % 2 == 0)).collect(),
        escaped: rng.below(2) == 0,
        missing: (0..rng.below(2)).map(|n| format!("csi-volume:default:vol-{n}")).collect(),
        next: (rng.below(4) == 0).then(|| EvalId(rng.uuid())),
        blocked: (rng.below(4) == 0).then(|| EvalId(rng.uuid())),
        deployment: (rng.below(4) == 0).then(|| DeploymentId(rng.uuid())),
    }
}

fn placed(state: &State, rng: &mut Rng) -> Vec<Event> {
    let (Some(job), Some(_)) = (job(state, rng), node(state, rng)) else { return Vec::new() };
    let (count, width) = (1 + rng.below(6) as usize, rng.below(3) as usize);
    let version = job.versions[rng.below(job.versions.len() as u64) as usize].version;
    let nodes = (0..count).map(|_| state.nodes.cold(node(state, rng).expect("one is known")).id).collect();
    let previous = |rng: &mut Rng| alloc(state, rng).map(|alloc| alloc.id).unwrap_or_default();
    let previous = match rng.below(3) {
        0 => (0..count).map(|n| if n % 2 == 0 { previous(rng) } else { AllocId::default() }).collect(),
        _ => Vec::new(),
    };
    let deployment = job.deployments.last().map(|row| state.deployments.get(*row).id);
    let event = AllocsPlaced {
        canary: deployment.is_some() && rng.below(3) == 0,
        deployment,
        eval: live_eval(state, rng).map(Eval::id).unwrap_or_default(),
        key: job.key.clone(),
        version,
        group: if rng.below(4) == 0 { "db" } else { "web" }.to_string(),
        template: template(rng, width),
        metrics: Doc::of(&AllocationMetric { nodes_evaluated: rng.below(3) as i64, ..Default::default() }),
        ids: (0..count).map(|_| AllocId(rng.uuid())).collect(),
        nodes,
        names: (0..count as u32).collect(),
        previous,
        ports: (0..count * width).map(|_| 20_000 + rng.below(50) as u16).collect(),
        given: if rng.below(3) == 0 { (0..count).map(|_| given(rng, width)).collect() } else { Vec::new() },
    };
    let by = event.ids[0];
    let mut events = vec![event.into()];
    if let Some(victim) = alloc(state, rng).filter(|_| rng.below(4) == 0) {
        events.push(AllocsPreempted { allocs: vec![victim.id], by }.into());
    }
    events
}

fn given(rng: &mut Rng, ports: usize) -> Doc {
    let device = |n: u64| AllocatedDeviceResource {
        kind: "gpu".into(),
        device_ids: vec![format!("gpu-{n}")].into(),
        ..AllocatedDeviceResource::default()
    };
    let task = GivenToTask {
        cores: (0..rng.below(3) as u16).collect(),
        cpu_mhz: 1000 * rng.below(3) as u32,
        devices: (0..rng.below(2)).map(device).collect(),
    };
    match rng.below(3) {
        0 => Doc::default(),
        1 => Doc::of(&Given { addresses: vec!["10.0.0.2".to_string(); ports].into(), ..Given::default() }),
        _ => {
            Doc::of(&Given { tasks: [("task".to_string(), task)].into_iter().collect(), ..Given::default() })
        }
    }
}

fn template(rng: &mut Rng, ports: usize) -> Doc {
    let port = |n: usize| PortMapping { label: format!("port-{n}"), ..PortMapping::default() };
    Doc::of(&Template {
        ports: (0..ports).map(port).collect(),
        cpu_mhz: 100 * rng.below(4) as u32,
        memory_mib: 64,
        ..Template::default()
    })
}

fn of_allocs(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let drawn = alloc(state, rng)?;
    if state.jobs.get(drawn.job).purged {
        return Some(vec![AllocsCollected { allocs: vec![drawn.id] }.into()]);
    }
    let mut allocs = vec![drawn.id];
    if rng.below(3) == 0 {
        let other = alloc(state, rng).filter(|alloc| !state.jobs.get(alloc.job).purged);
        allocs.extend(other.map(|alloc| alloc.id).filter(|id| *id != drawn.id));
    }
    let follow_up = (rng.below(3) == 0).then(|| EvalId(rng.uuid()));
    let event = match rng.below(20) {
        0..10 => reported(drawn, rng)?,
        10..13 => {
            let client = (rng.below(2) == 0).then_some(ClientStatus::Lost);
            let description = "stopped for a test".to_string();
            AllocsStopped { allocs, desired: one(Desired::ALL, rng)?, description, client, follow_up }.into()
        }
        13..15 => AllocsMarkedUnknown { allocs, follow_up }.into(),
        15 => AllocsReconnected { allocs }.into(),
        16 | 17 => {
            let job = state.jobs.get(drawn.job);
            let version = job.versions[rng.below(job.versions.len() as u64) as usize].version;
            let (eval, template) = (EvalId(rng.uuid()), template(rng, 0));
            let deployment = job.deployments.last().map(|row| state.deployments.get(*row).id);
            AllocsUpdatedInPlace { eval, version, template, allocs: vec![drawn.id], deployment }.into()
        }
        _ => AllocTransitionRequested {
            allocs,
            migrate: rng.below(2) == 0,
            reschedule: rng.below(2) == 0,
            no_shutdown_delay: rng.below(2) == 0,
            force_reschedule: rng.below(4) == 0,
            disable_placement: rng.below(4) == 0,
            cause: "drawn".into(),
        }
        .into(),
    };
    Some(vec![event])
}

fn reported(alloc: &Alloc, rng: &mut Rng) -> Option<Event> {
    let event = |n: u64| TaskEvent { kind: "Started".into(), time: n as i64, ..TaskEvent::default() };
    let task = TaskState {
        state: "running".into(),
        events: (0..rng.below(3)).map(event).collect(),
        ..Default::default()
    };
    let report =
        Report { task_states: [("task".to_string(), task)].into_iter().collect(), ..Report::default() };
    let to = one(ClientStatus::ALL, rng)?;
    let description = one(&["", "Tasks are running", "Failed tasks"], rng)?.to_string();
    let (alloc, node, from) = (alloc.id, alloc.node_id, alloc.client);
    let verdict =
        |rng: &mut Rng| HealthVerdict { healthy: rng.below(2) == 0, time: Time(rng.below(99) as i64) };
    let health = (rng.below(3) == 0).then(|| verdict(rng));
    Some(AllocReported { alloc, node, from, to, description, report: Doc::of(&report), health }.into())
}

fn of_deployments(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let known = one(&state.deployments.iter().map(|(_, known)| known).collect::<Vec<_>>(), rng);
    let (Some(known), false) = (known, rng.below(4) == 0) else { return begun(state, rng) };
    let deployment = known.id;
    let event = match rng.below(6) {
        5 if known.is_active() => return None,
        5 => DeploymentCollected { deployment }.into(),
        0 => DeploymentGoalsChanged { deployment, groups: vec![goal("db", rng)] }.into(),
        1 => {
            let status = one(DeploymentStatus::ALL, rng)?;
            DeploymentStatusChanged { deployment, status, description: status.to_string() }.into()
        }
        2 => DeploymentPromoted { deployment, groups: known.groups.keys().take(1).cloned().collect() }.into(),
        3 => {
            let key = state.jobs.get(known.job).key.clone();
            let version = state.jobs.get(known.job).current().version;
            JobStabilityChanged { key, version, stable: rng.below(3) > 0 }.into()
        }
        _ => {
            let allocs = vec![alloc(state, rng)?.id];
            AllocHealthSet { deployment, healthy: rng.below(2) == 0, allocs }.into()
        }
    };
    Some(vec![event])
}

fn begun(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let job = job(state, rng)?;
    let status = one(DeploymentStatus::ALL, rng)?;
    let event = DeploymentCreated {
        deployment: DeploymentId(rng.uuid()),
        key: job.key.clone(),
        version: job.current().version,
        priority: rng.below(100) as u32,
        is_multiregion: rng.below(2) == 0,
        status,
        description: status.to_string(),
        groups: vec![goal("web", rng)],
    };
    Some(vec![event.into()])
}

fn goal(group: &str, rng: &mut Rng) -> DeploymentGoal {
    DeploymentGoal {
        group: group.to_string(),
        auto_revert: rng.below(2) == 0,
        auto_promote: rng.below(2) == 0,
        progress_deadline: base::Duration::from_secs(rng.below(3) as i64),
        desired_canaries: rng.below(3) as u32,
        desired_total: rng.below(9) as u32,
    }
}
