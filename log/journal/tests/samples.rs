//! Samples of every kind of event: its smallest form, and a usual one.

use base::{Index, Time, Uuid};
use model::event::*;
use model::*;

pub fn samples(name: &str) -> Vec<Event> {
    let doc = || Doc(vec![0x81, 0xa2, b'I', b'D', 0xa1, b'x']);
    let message = || NodeMessage {
        details: vec![("driver".into(), "exec".into())],
        ..NodeMessage::new("Cluster", "Node heartbeat missed – ✗", Time(9))
    };
    let silence = || NodeMessage::new("", "", Time(0));
    let none = || JobKey::new("", "");
    match name {
        "ClusterFounded" => {
            vec![ClusterFounded { cluster: Uuid::NIL }.into(), ClusterFounded { cluster: id(9) }.into()]
        }
        "NodeRegistered" => vec![
            NodeRegistered {
                node: NodeId::default(),
                document: Doc::default(),
                computed_class: String::new(),
                secret_hash: [0; 32],
            }
            .into(),
            NodeRegistered {
                node: node(),
                document: doc(),
                computed_class: "v1:10674230201498450052".into(),
                secret_hash: [0xfe; 32],
            }
            .into(),
        ],
        "NodeUpdated" => vec![
            NodeUpdated { node: NodeId::default(), document: Doc::default(), computed_class: String::new() }
                .into(),
            NodeUpdated { node: node(), document: doc(), computed_class: "v1:10674230201498450052".into() }
                .into(),
        ],
        "NodeStatusChanged" => vec![
            NodeStatusChanged {
                node: node(),
                from: NodeStatus::Initializing,
                to: NodeStatus::Ready,
                message: None,
            }
            .into(),
            NodeStatusChanged {
                node: node(),
                from: NodeStatus::Ready,
                to: NodeStatus::Disconnected,
                message: Some(message()),
            }
            .into(),
        ],
        "NodeEligibilityChanged" => vec![
            NodeEligibilityChanged { node: NodeId::default(), to: Eligibility::Eligible, message: silence() }
                .into(),
            NodeEligibilityChanged { node: node(), to: Eligibility::Ineligible, message: message() }.into(),
        ],
        "NodeMessagesEmitted" => vec![
            NodeMessagesEmitted { node: node(), messages: vec![] }.into(),
            NodeMessagesEmitted { node: node(), messages: vec![message(), silence()] }.into(),
        ],
        "NodeDeregistered" => {
            vec![
                NodeDeregistered { node: NodeId::default() }.into(),
                NodeDeregistered { node: node() }.into(),
            ]
        }
        "NodeAllocsReported" => {
            vec![
                NodeAllocsReported { node: NodeId::default() }.into(),
                NodeAllocsReported { node: node() }.into(),
            ]
        }
        "JobRegistered" => vec![
            JobRegistered { key: none(), version: 0, document: Doc::default(), submission: Doc::default() }
                .into(),
            JobRegistered { key: key(), version: 3, document: doc(), submission: doc() }.into(),
        ],
        "JobStopped" => vec![
            JobStopped { key: none(), version: 0 }.into(),
            JobStopped { key: key(), version: u64::MAX }.into(),
        ],
        "JobPurged" => vec![JobPurged { key: none() }.into(), JobPurged { key: key() }.into()],
        "EvalCreated" => {
            vec![EvalCreated { eval: smallest_eval() }.into(), EvalCreated { eval: eval() }.into()]
        }
        "EvalUpdated" => vec![
            EvalUpdated {
                eval: EvalId::default(),
                status: EvalStatus::Pending,
                description: String::new(),
                outcome: EvalOutcome::default(),
                desired: Doc::default(),
            }
            .into(),
            EvalUpdated {
                eval: EvalId(id(4)),
                status: EvalStatus::Complete,
                description: "created for job".into(),
                outcome: outcome(),
                desired: doc(),
            }
            .into(),
        ],
        "EvalAcked" => {
            vec![EvalAcked { eval: EvalId::default() }.into(), EvalAcked { eval: EvalId(id(4)) }.into()]
        }
        "EvalsDeleted" => vec![
            EvalsDeleted { evals: vec![] }.into(),
            EvalsDeleted { evals: vec![EvalId(id(4)), EvalId(id(5))] }.into(),
        ],
        "EvalsCanceled" => vec![
            EvalsCanceled { evals: vec![], cause: String::new() }.into(),
            EvalsCanceled { evals: vec![EvalId(id(4)), EvalId(id(5))], cause: "superseded".into() }.into(),
        ],
        "PlanCommitted" => vec![
            PlanCommitted {
                eval: EvalId::default(),
                snapshot: Index(0),
                seed: 0,
                now: Time(0),
                refresh: Index(0),
                rejected: vec![],
            }
            .into(),
            PlanCommitted {
                eval: EvalId(id(4)),
                snapshot: Index(40),
                seed: u64::MAX,
                now: Time(1_700_000_000_000_000_000),
                refresh: Index(41),
                rejected: vec![RejectedNode { node: node(), reason: "resources exhausted: memory".into() }],
            }
            .into(),
        ],
        "AllocsPlaced" => vec![placed(0), placed(2)],
        "AllocsUpdatedInPlace" => vec![
            AllocsUpdatedInPlace {
                eval: EvalId::default(),
                version: 0,
                template: Doc::default(),
                allocs: vec![],
                deployment: None,
            }
            .into(),
            AllocsUpdatedInPlace {
                eval: EvalId(id(4)),
                version: 2,
                template: doc(),
                allocs: vec![alloc()],
                deployment: Some(deployment()),
            }
            .into(),
        ],
        "AllocsStopped" => vec![
            AllocsStopped {
                allocs: vec![],
                desired: Desired::Run,
                description: String::new(),
                client: None,
                follow_up: None,
            }
            .into(),
            AllocsStopped {
                allocs: vec![alloc(), AllocId(id(12))],
                desired: Desired::Stop,
                description: "alloc is lost since its node is down".into(),
                client: Some(ClientStatus::Lost),
                follow_up: Some(EvalId(id(5))),
            }
            .into(),
        ],
        "AllocsPreempted" => vec![
            AllocsPreempted { allocs: vec![], by: AllocId::default() }.into(),
            AllocsPreempted { allocs: vec![alloc(), AllocId(id(12))], by: AllocId(id(13)) }.into(),
        ],
        "VolumeRegistered" => {
            let registered = |kind, id: &str, document| VolumeRegistered {
                volume: VolumeKey::new(kind, "default", id),
                document,
            };
            vec![
                registered(VolumeKind::Csi, "", Doc::default()).into(),
                registered(VolumeKind::Host, "dane-ż", doc()).into(),
            ]
        }
        "VolumeDeregistered" => vec![
            VolumeDeregistered { volume: VolumeKey::new(VolumeKind::Csi, "", "") }.into(),
            VolumeDeregistered { volume: VolumeKey::new(VolumeKind::Host, "default", "dane-ż") }.into(),
        ],
        "AllocsMarkedUnknown" => vec![
            AllocsMarkedUnknown { allocs: vec![], follow_up: None }.into(),
            AllocsMarkedUnknown { allocs: vec![alloc()], follow_up: Some(EvalId(id(5))) }.into(),
        ],
        "AllocsCollected" => {
            vec![AllocsCollected { allocs: vec![] }.into(), AllocsCollected { allocs: vec![alloc()] }.into()]
        }
        "AllocsReconnected" => {
            vec![
                AllocsReconnected { allocs: vec![] }.into(),
                AllocsReconnected { allocs: vec![alloc()] }.into(),
            ]
        }
        "AllocReported" => vec![
            AllocReported {
                alloc: AllocId::default(),
                node: NodeId::default(),
                from: ClientStatus::Pending,
                to: ClientStatus::Pending,
                description: String::new(),
                report: Doc::default(),
                health: None,
            }
            .into(),
            AllocReported {
                alloc: alloc(),
                node: node(),
                from: ClientStatus::Pending,
                to: ClientStatus::Running,
                description: "Tasks are running".into(),
                report: doc(),
                health: Some(HealthVerdict { healthy: true, time: Time(1_700_000_000_000_000_000) }),
            }
            .into(),
        ],
        "AllocTransitionRequested" => vec![
            AllocTransitionRequested {
                allocs: vec![],
                migrate: false,
                reschedule: false,
                no_shutdown_delay: false,
                force_reschedule: false,
                disable_placement: false,
                cause: String::new(),
            }
            .into(),
            AllocTransitionRequested {
                allocs: vec![alloc()],
                migrate: true,
                reschedule: false,
                no_shutdown_delay: true,
                force_reschedule: true,
                disable_placement: true,
                cause: "drain".into(),
            }
            .into(),
        ],
        "EpochRaised" => vec![EpochRaised { epoch: 0 }.into(), EpochRaised { epoch: u16::MAX }.into()],
        "AutopilotConfigured" => vec![
            AutopilotConfigured {
                rules: Autopilot {
                    cleanup_dead_servers: false,
                    last_contact_threshold_ns: 0,
                    max_trailing_logs: 0,
                    min_quorum: 0,
                    server_stabilization_ns: 0,
                },
            }
            .into(),
            AutopilotConfigured { rules: Autopilot { min_quorum: 3, ..Autopilot::default() } }.into(),
        ],
        "ServerKeyAnnounced" => vec![
            ServerKeyAnnounced { server: Uuid::NIL, public: [0; 32] }.into(),
            ServerKeyAnnounced { server: id(9), public: [255; 32] }.into(),
        ],
        "RootKeyActivated" => vec![
            RootKeyActivated { key: Uuid::NIL, modulus: vec![], exponent: vec![], sealed: vec![] }.into(),
            RootKeyActivated {
                key: id(8),
                modulus: vec![0xc0, 1],
                exponent: vec![1, 0, 1],
                sealed: vec![SealedKey { server: id(9), bytes: vec![1, 2, 3] }],
            }
            .into(),
        ],
        "RootKeySealed" => vec![
            RootKeySealed { key: Uuid::NIL, sealed: SealedKey { server: Uuid::NIL, bytes: vec![] } }.into(),
            RootKeySealed { key: id(8), sealed: SealedKey { server: id(9), bytes: vec![1, 2, 3] } }.into(),
        ],
        "RootKeyRemoved" => {
            vec![RootKeyRemoved { key: Uuid::NIL }.into(), RootKeyRemoved { key: id(8) }.into()]
        }
        "AclPolicyUpserted" => vec![
            AclPolicyUpserted { name: String::new(), document: Doc::default() }.into(),
            AclPolicyUpserted { name: "readers".into(), document: doc() }.into(),
        ],
        "AclPolicyDeleted" => vec![
            AclPolicyDeleted { name: String::new() }.into(),
            AclPolicyDeleted { name: "readers".into() }.into(),
        ],
        "AclRoleUpserted" => vec![
            AclRoleUpserted { role: Uuid::NIL, document: Doc::default() }.into(),
            AclRoleUpserted { role: id(3), document: doc() }.into(),
        ],
        "AclRoleDeleted" => {
            vec![AclRoleDeleted { role: Uuid::NIL }.into(), AclRoleDeleted { role: id(3) }.into()]
        }
        "AclTokenCreated" => vec![
            AclTokenCreated {
                accessor: Uuid::NIL,
                document: Doc::default(),
                secret: TokenSecret { digest: [0; 32], sealed: SealedData { key: Uuid::NIL, bytes: vec![] } },
                bootstrap: false,
            }
            .into(),
            AclTokenCreated {
                accessor: id(4),
                document: doc(),
                secret: TokenSecret {
                    digest: [0xfe; 32],
                    sealed: SealedData { key: id(8), bytes: vec![1, 2, 3] },
                },
                bootstrap: true,
            }
            .into(),
        ],
        "AclTokenUpdated" => vec![
            AclTokenUpdated { accessor: Uuid::NIL, document: Doc::default() }.into(),
            AclTokenUpdated { accessor: id(4), document: doc() }.into(),
        ],
        "AclTokensDeleted" => vec![
            AclTokensDeleted { accessors: vec![], expired: false }.into(),
            AclTokensDeleted { accessors: vec![id(4), id(5)], expired: true }.into(),
        ],
        "OneTimeTokenCreated" => vec![
            OneTimeTokenCreated { accessor: Uuid::NIL, digest: [0; 32], expires: Time(0) }.into(),
            OneTimeTokenCreated { accessor: id(4), digest: [0xfe; 32], expires: Time(i64::MAX) }.into(),
        ],
        "OneTimeTokenExchanged" => vec![
            OneTimeTokenExchanged { accessor: Uuid::NIL }.into(),
            OneTimeTokenExchanged { accessor: id(4) }.into(),
        ],
        "OneTimeTokensExpired" => vec![
            OneTimeTokensExpired { accessors: vec![] }.into(),
            OneTimeTokensExpired { accessors: vec![id(4), id(5)] }.into(),
        ],
        "SchedulerConfigured" => vec![
            SchedulerConfigured { rules: SchedulerRules::default() }.into(),
            SchedulerConfigured {
                rules: SchedulerRules {
                    algorithm: Algorithm::Spread,
                    memory_oversubscription: true,
                    preempting: Preempting { service: true, batch: true, system: true, sysbatch: true },
                    reject_job_registration: true,
                    pause_eval_broker: true,
                    node_limit: u32::MAX,
                    sampled: true,
                },
            }
            .into(),
        ],
        "NodePoolUpserted" => vec![
            NodePoolUpserted { name: String::new(), document: Doc::default() }.into(),
            NodePoolUpserted { name: "gpu".into(), document: doc() }.into(),
        ],
        "NodePoolDeleted" => vec![
            NodePoolDeleted { name: String::new() }.into(),
            NodePoolDeleted { name: "gpu".into() }.into(),
        ],
        "NamespaceUpserted" => vec![
            NamespaceUpserted { name: String::new(), document: Doc::default() }.into(),
            NamespaceUpserted { name: "dev".into(), document: doc() }.into(),
        ],
        "NamespaceDeleted" => vec![
            NamespaceDeleted { name: String::new() }.into(),
            NamespaceDeleted { name: "dev".into() }.into(),
        ],
        "JobLaunched" => {
            let launched = |at, child: &str, forced| JobLaunched {
                key: key(),
                at: Time(at),
                child: child.into(),
                forced,
            };
            vec![launched(0, "", false).into(), launched(i64::MAX, "web/periodic-1", true).into()]
        }
        "JobScaled" => vec![
            JobScaled { key: JobKey::new("", ""), group: String::new(), scaling: Doc::default() }.into(),
            JobScaled { key: key(), group: "web".into(), scaling: doc() }.into(),
        ],
        "JobVersionTagged" => {
            let tagged = |version, name: &str, description: &str| JobVersionTagged {
                key: key(),
                version,
                name: name.into(),
                description: description.into(),
            };
            vec![tagged(0, "", "").into(), tagged(u64::MAX, "golden", "the good one").into()]
        }
        "JobVersionUntagged" => vec![
            JobVersionUntagged { key: JobKey::new("", ""), name: String::new() }.into(),
            JobVersionUntagged { key: key(), name: "golden".into() }.into(),
        ],
        "StateChunkGiven" => vec![
            StateChunkGiven { restore: id(7), number: 0, bytes: vec![] }.into(),
            StateChunkGiven { restore: id(7), number: u32::MAX, bytes: vec![0, 255] }.into(),
        ],
        "StateRestored" => {
            let restored = |chunks, image| StateRestored { restore: id(7), chunks, image: Index(image) };
            vec![restored(0, 0).into(), restored(u32::MAX, u64::MAX).into()]
        }
        "JobStabilityChanged" => {
            let changed = |version, stable| JobStabilityChanged { key: key(), version, stable };
            vec![changed(0, false).into(), changed(u64::MAX, true).into()]
        }
        "DeploymentCreated" => vec![
            DeploymentCreated {
                deployment: DeploymentId::default(),
                key: JobKey::new("", ""),
                version: 0,
                priority: 0,
                is_multiregion: false,
                status: DeploymentStatus::Running,
                description: String::new(),
                groups: vec![],
            }
            .into(),
            DeploymentCreated {
                deployment: deployment(),
                key: key(),
                version: 3,
                priority: 50,
                is_multiregion: true,
                status: DeploymentStatus::Initializing,
                description: "Deployment is running".into(),
                groups: vec![DeploymentGoal::default(), goal()],
            }
            .into(),
        ],
        "DeploymentGoalsChanged" => vec![
            DeploymentGoalsChanged { deployment: DeploymentId::default(), groups: vec![] }.into(),
            DeploymentGoalsChanged { deployment: deployment(), groups: vec![goal()] }.into(),
        ],
        "DeploymentStatusChanged" => {
            let changed = |status, description: &str| DeploymentStatusChanged {
                deployment: deployment(),
                status,
                description: description.into(),
            };
            vec![
                changed(DeploymentStatus::Running, "").into(),
                changed(DeploymentStatus::Unblocking, "Deployment is unblocking remaining regions").into(),
            ]
        }
        "NodeDrainStarted" => vec![
            NodeDrainStarted { node: NodeId::default(), order: DrainOrder::default(), message: message() }
                .into(),
            NodeDrainStarted { node: node(), order: drain_order(), message: message() }.into(),
        ],
        "NodeDrainUpdated" => vec![
            NodeDrainUpdated { node: NodeId::default(), order: DrainOrder::default(), message: message() }
                .into(),
            NodeDrainUpdated { node: node(), order: drain_order(), message: message() }.into(),
        ],
        "NodeDrainEnded" => {
            let ended = |status, eligible, meta: &[(&str, &str)]| NodeDrainEnded {
                node: node(),
                status,
                eligible,
                meta: meta.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
                accessor: "anonymous".into(),
                message: message(),
            };
            vec![
                ended(DrainStatus::Complete, false, &[]).into(),
                ended(DrainStatus::Canceled, true, &[("message", "done")]).into(),
            ]
        }
        "DeploymentCollected" => vec![
            DeploymentCollected { deployment: DeploymentId::default() }.into(),
            DeploymentCollected { deployment: deployment() }.into(),
        ],
        "DeploymentPromoted" => vec![
            DeploymentPromoted { deployment: DeploymentId::default(), groups: vec![] }.into(),
            DeploymentPromoted { deployment: deployment(), groups: vec!["web".into()] }.into(),
        ],
        "AllocHealthSet" => vec![
            AllocHealthSet { deployment: DeploymentId::default(), healthy: false, allocs: vec![] }.into(),
            AllocHealthSet { deployment: deployment(), healthy: true, allocs: vec![alloc()] }.into(),
        ],
        other => crate::samples_variables::samples(other),
    }
}

fn deployment() -> DeploymentId {
    DeploymentId(id(60))
}

fn goal() -> DeploymentGoal {
    DeploymentGoal {
        group: "web".into(),
        auto_revert: true,
        auto_promote: true,
        progress_deadline: base::Duration::from_secs(600),
        desired_canaries: 1,
        desired_total: u32::MAX,
    }
}

fn placed(count: u32) -> Event {
    AllocsPlaced {
        eval: EvalId(id(4)),
        key: key(),
        version: u64::from(count),
        group: "grupa-ß".into(),
        template: Doc(vec![0x80]),
        metrics: Doc(vec![0x80]),
        ids: (0..count).map(|nth| AllocId(id(20 + u128::from(nth)))).collect(),
        nodes: (0..count).map(|_| node()).collect(),
        names: (0..count).collect(),
        previous: (0..count).map(|_| AllocId::default()).collect(),
        deployment: (count > 0).then(deployment),
        canary: count > 0,
        ports: (0..count).map(|nth| 20_000 + nth as u16).collect(),
        given: (0..count).map(|_| Doc(vec![0x80])).collect(),
    }
    .into()
}

fn smallest_eval() -> NewEval {
    NewEval {
        id: EvalId::default(),
        key: JobKey::new("", ""),
        kind: JobType::Service,
        priority: 0,
        trigger: Trigger::JobRegister,
        status: EvalStatus::Pending,
        description: String::new(),
        node: None,
        job_modify: Index(0),
        node_modify: Index(0),
        previous: None,
        wait_until: Time(0),
        outcome: EvalOutcome::default(),
    }
}

fn eval() -> NewEval {
    NewEval {
        id: EvalId(id(4)),
        key: key(),
        kind: JobType::System,
        priority: 100,
        trigger: Trigger::NodeUpdate,
        status: EvalStatus::Blocked,
        description: "created to place remaining allocations".into(),
        node: Some(node()),
        job_modify: Index(17),
        node_modify: Index(18),
        previous: Some(EvalId(id(3))),
        wait_until: Time(1_700_000_000_000_000_000),
        outcome: outcome(),
    }
}

fn outcome() -> EvalOutcome {
    EvalOutcome {
        snapshot: Index(40),
        seed: u64::MAX,
        now: Time(1_700_000_000_000_000_000),
        queued: vec![("web".into(), 3)],
        failed_groups: Doc(vec![0x80]),
        classes: vec![("v1:1".into(), true), ("v1:2".into(), false)],
        escaped: true,
        missing: vec!["csi-volume:default:dane".into()],
        next: Some(EvalId(id(5))),
        blocked: Some(EvalId(id(6))),
        deployment: Some(deployment()),
    }
}

fn key() -> JobKey {
    JobKey::new("default", "example-ünïcode")
}

fn drain_order() -> DrainOrder {
    DrainOrder {
        deadline: base::Duration(3_600_000_000_000),
        force_at: Time(3_600_000_000_007),
        ignore_system_jobs: true,
        meta: vec![("message".into(), "new disks".into())],
        accessor: "anonymous".into(),
    }
}

pub fn node() -> NodeId {
    NodeId(id(10))
}

fn alloc() -> AllocId {
    AllocId(id(11))
}

pub fn id(n: u128) -> Uuid {
    Uuid::from(0x5d16_e7fe_8a2e_4b44_9c0a_3c7a_b13b_9f00 + n)
}
