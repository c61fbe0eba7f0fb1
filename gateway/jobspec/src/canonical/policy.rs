//! Policies that are merged from the job and the defaults of its type.

use model::document::{
    Duration, Job, MigrateStrategy, ReschedulePolicy, RestartPolicy, TaskGroup, UpdateStrategy,
};

use super::overlay;

/// The type of a job; any other text gets the defaults of a service and is rejected by validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    Service,
    Batch,
    System,
    Sysbatch,
}

impl JobKind {
    pub(super) fn of(job: &Job) -> JobKind {
        match job.kind.as_deref() {
            Some("batch") => JobKind::Batch,
            Some("system") => JobKind::System,
            Some("sysbatch") => JobKind::Sysbatch,
            _ => JobKind::Service,
        }
    }
}

const fn secs(secs: i64) -> Option<Duration> {
    Some(Duration::from_secs(secs))
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// How long a rolling update waits between its steps where nothing is said.
pub(crate) const DEFAULT_STAGGER: Duration = Duration::from_secs(30);

fn update_default() -> UpdateStrategy {
    UpdateStrategy {
        stagger: Some(DEFAULT_STAGGER),
        max_parallel: Some(1),
        health_check: Some("checks".to_string()),
        min_healthy_time: secs(10),
        healthy_deadline: secs(5 * MINUTE),
        progress_deadline: secs(10 * MINUTE),
        canary: Some(0),
        auto_revert: Some(false),
        auto_promote: Some(false),
    }
}

fn overlay_update(into: &mut UpdateStrategy, from: &UpdateStrategy) {
    overlay!(
        into,
        from,
        stagger,
        max_parallel,
        health_check,
        min_healthy_time,
        healthy_deadline,
        progress_deadline,
        canary,
        auto_revert,
        auto_promote,
    );
}

/// True when nothing but zeroes was said: how servers show a job without update block.
pub(crate) fn is_zero_update(update: &UpdateStrategy) -> bool {
    let zero = |span: &Option<Duration>| span.unwrap_or_default() == Duration::default();
    let spans =
        [&update.stagger, &update.min_healthy_time, &update.healthy_deadline, &update.progress_deadline];
    spans.into_iter().all(zero)
        && update.max_parallel.unwrap_or(0) == 0
        && update.canary.unwrap_or(0) == 0
        && update.health_check.as_deref().unwrap_or("").is_empty()
        && !update.auto_revert.unwrap_or(false)
        && !update.auto_promote.unwrap_or(false)
}

pub(super) fn complete_job_update(job: &mut Job, kind: JobKind) {
    if job.update.is_none() && matches!(kind, JobKind::Service | JobKind::System) {
        job.update = Some(UpdateStrategy::default());
    }
    if let Some(update) = job.update.as_mut().filter(|update| !is_shown_empty(update)) {
        overlay_update(update, &update_default());
    }
}

/// All fields present and zero: not something a file says, but what a server shows for batch jobs.
fn is_shown_empty(update: &UpdateStrategy) -> bool {
    update.stagger.is_some() && update.max_parallel.is_some() && is_zero_update(update)
}

pub(super) fn complete_update(group: &mut TaskGroup, of_job: Option<&UpdateStrategy>) {
    let of_job = of_job.filter(|update| !is_zero_update(update));
    if group.update.is_none() && of_job.is_some() {
        group.update = Some(UpdateStrategy::default());
    }
    if let Some(update) = &mut group.update {
        if let Some(of_job) = of_job {
            overlay_update(update, of_job);
        }
        overlay_update(update, &update_default());
    }
}

pub(super) fn complete_migrate(group: &mut TaskGroup, of_job: Option<&MigrateStrategy>, kind: JobKind) {
    if group.migrate.is_none() && (of_job.is_some() || kind == JobKind::Service) {
        group.migrate = Some(MigrateStrategy::default());
    }
    let default = MigrateStrategy {
        max_parallel: Some(1),
        health_check: Some("checks".to_string()),
        min_healthy_time: secs(10),
        healthy_deadline: secs(5 * MINUTE),
    };
    if let Some(migrate) = &mut group.migrate {
        for from in of_job.into_iter().chain([&default]) {
            overlay!(migrate, from, max_parallel, health_check, min_healthy_time, healthy_deadline);
        }
    }
}

fn reschedule_default(kind: JobKind) -> ReschedulePolicy {
    let (attempts, interval, delay, function, max_delay, unlimited) = match kind {
        JobKind::Service => (0, 0, 30, "exponential", HOUR, true),
        JobKind::Batch => (1, 24 * HOUR, 5, "constant", 0, false),
        JobKind::System | JobKind::Sysbatch => (0, 0, 0, "", 0, false),
    };
    ReschedulePolicy {
        attempts: Some(attempts),
        interval: secs(interval),
        delay: secs(delay),
        delay_function: Some(function.to_string()),
        max_delay: secs(max_delay),
        unlimited: Some(unlimited),
    }
}

pub(super) fn complete_reschedule(group: &mut TaskGroup, of_job: Option<&ReschedulePolicy>, kind: JobKind) {
    let defaulted = matches!(kind, JobKind::Service | JobKind::Batch);
    if group.reschedule_policy.is_none() && (of_job.is_some() || defaulted) {
        group.reschedule_policy = Some(ReschedulePolicy::default());
    }
    let default = reschedule_default(kind);
    let Some(policy) = &mut group.reschedule_policy else { return };
    if let Some(of_job) = of_job {
        overlay!(policy, of_job, attempts, interval, delay, delay_function, max_delay, unlimited);
    }
    overlay!(policy, default, attempts, interval, delay, delay_function, max_delay, unlimited);
}

pub(super) fn restart_default(kind: JobKind) -> RestartPolicy {
    let (attempts, interval) = match kind {
        JobKind::Service | JobKind::System => (2, 30 * MINUTE),
        JobKind::Batch | JobKind::Sysbatch => (3, 24 * HOUR),
    };
    RestartPolicy {
        interval: secs(interval),
        attempts: Some(attempts),
        delay: secs(15),
        mode: Some("fail".to_string()),
        render_templates: Some(false),
    }
}

/// The fields of `policy` that are set, else those of `under`.
pub(super) fn overlay_restart(policy: Option<&RestartPolicy>, under: &RestartPolicy) -> RestartPolicy {
    let mut merged = policy.cloned().unwrap_or_default();
    overlay!(merged, under, interval, attempts, delay, mode, render_templates);
    merged
}
