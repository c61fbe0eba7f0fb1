//! Single allocations for tests of the pure parts.

use std::sync::Arc;

use base::{Duration, Index, Time, Uuid};
use model::document::{AllocationMetric, DisconnectStrategy, Job, NodeScoreMeta, TaskGroup, TaskState};
use model::{AllocId, ClientStatus, Desired, EvalId, JobType, NodeId, Report};
use state::LazyDoc;
use state::alloc::{Alloc, Health, KnownState, Transition};
use state::job::{JobRow, JobVersion};
use state::node::NodeRow;

pub struct TestAlloc {
    pub alloc: Alloc,
}

/// A group whose allocations are lost when their node is disconnected for so many seconds.
pub fn lost_after(secs: i64, replace: bool) -> TaskGroup {
    let strategy = DisconnectStrategy {
        lost_after: Some(Duration::from_secs(secs).into()),
        replace: Some(replace),
        ..DisconnectStrategy::default()
    };
    TaskGroup { name: Some("web".into()), disconnect: Some(strategy), ..TaskGroup::default() }
}

impl TestAlloc {
    pub fn new(group: TaskGroup) -> TestAlloc {
        let name: Arc<str> = group.name.as_deref().unwrap_or_default().into();
        let job = Job { id: Some("job".into()), task_groups: vec![group].into(), ..Job::default() };
        let version = JobVersion {
            version: 0,
            stop: false,
            job: LazyDoc::of(&job),
            kind: JobType::Service,
            job_created: Index(1),
            registered: Index(1),
            submitted: Time::ZERO,
            submission: None,
        };
        TestAlloc {
            alloc: Alloc {
                id: AllocId(Uuid::from(1)),
                job: JobRow(0),
                node: NodeRow(0),
                node_id: NodeId(Uuid::from(1)),
                version: Arc::new(version),
                group: name,
                name_index: 0,
                eval: EvalId(Uuid::from(1)),
                desired: Desired::Run,
                desired_description: "".into(),
                client: ClientStatus::Pending,
                client_description: "".into(),
                transition: Transition::default(),
                template: LazyDoc::default(),
                metrics: LazyDoc::default(),
                ports: Arc::from([]),
                given: LazyDoc::default(),
                states: Arc::default(),
                previous: None,
                next: None,
                follow_up: None,
                preempted: Arc::from([]),
                preempted_by: None,
                deployment: None,
                health: Health::default(),
                report: LazyDoc::default(),
                gone: false,
                created: Index(2),
                modified: Index(2),
                alloc_modified: Index(2),
                create_time: Time::ZERO,
                modify_time: Time::ZERO,
            },
        }
    }

    pub fn client(mut self, status: ClientStatus) -> TestAlloc {
        self.alloc.client = status;
        self
    }

    pub fn unknown_since(mut self, time: Time) -> TestAlloc {
        let known = KnownState { status: ClientStatus::Unknown, time };
        Arc::make_mut(&mut self.alloc.states).push(known);
        self
    }

    pub fn scored(mut self, score: Option<f64>) -> TestAlloc {
        let shown = score.map(|norm_score| NodeScoreMeta { norm_score, ..NodeScoreMeta::default() });
        let score_meta_data = shown.into_iter().collect();
        self.alloc.metrics =
            LazyDoc::of(&AllocationMetric { score_meta_data, ..AllocationMetric::default() });
        self
    }

    /// A task started at so many seconds, zero for never; it was restarted if `restarted` says when.
    pub fn task(mut self, name: &str, started: i64, restarted: Option<i64>) -> TestAlloc {
        let task = TaskState {
            started_at: Time::from_secs(started).into(),
            last_restart: restarted.map(Time::from_secs).unwrap_or_default().into(),
            restarts: u64::from(restarted.is_some()),
            ..TaskState::default()
        };
        let mut report = Report::clone(&self.alloc.report);
        report.task_states.insert(name.into(), task);
        self.alloc.report = LazyDoc::of(&report);
        self
    }
}
