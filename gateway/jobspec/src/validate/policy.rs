use model::document::{Duration, MigrateStrategy, ReschedulePolicy, RestartPolicy, UpdateStrategy};

use super::report::Report;

const SECOND: i64 = Duration::from_secs(1).0.0;
const RESTART_INTERVAL_MIN: i64 = 5 * SECOND;
const RESCHEDULE_INTERVAL_MIN: i64 = 15 * SECOND;
const RESCHEDULE_DELAY_MIN: i64 = 5 * SECOND;

/// Most attempts whose delays are added up; beyond it any interval is too short.
const ATTEMPTS_MAX: i64 = 10_000;

const HEALTH_CHECKS: [&str; 3] = ["checks", "task_states", "manual"];

/// Nanoseconds; unset spans judge nothing.
fn nanos(span: Option<Duration>) -> i64 {
    span.map_or(0, |span| span.0.0)
}

pub(super) fn restart(report: &mut Report, policy: &RestartPolicy) {
    let mode = policy.mode.as_deref().unwrap_or("");
    report.one_of("Mode", mode, &["fail", "delay"]);
    let attempts = policy.attempts.unwrap_or(0);
    if attempts < 0 {
        report.error("Attempts", "the number of attempts is negative");
    }
    if mode == "delay" && attempts == 0 {
        report.error("Attempts", "mode \"delay\" with 0 attempts never restarts and never fails");
    }
    let Some(interval) = policy.interval else { return };
    if interval.0.0 < RESTART_INTERVAL_MIN {
        report.error("Interval", format!("an interval of {} is shorter than 5s", interval.0));
    }
    if attempts.saturating_mul(nanos(policy.delay)) > interval.0.0 {
        let delay = policy.delay.unwrap_or_default().0;
        report.error(
            "Attempts",
            format!("{attempts} attempts with a delay of {delay} do not fit in {}", interval.0),
        );
    }
}

pub(super) fn reschedule(report: &mut Report, policy: &ReschedulePolicy) {
    let attempts = policy.attempts.unwrap_or(0);
    let unlimited = policy.unlimited.unwrap_or(false);
    if attempts == 0 && !unlimited {
        return;
    }
    if attempts < 0 {
        report.error("Attempts", "the number of attempts is negative");
    }
    if attempts > 0 && unlimited {
        report.error("Unlimited", format!("unlimited contradicts {attempts} attempts; it is the default of services, so write unlimited = false"));
    }
    let function = policy.delay_function.as_deref().unwrap_or("");
    report.one_of("DelayFunction", function, &["constant", "exponential", "fibonacci"]);
    let (delay, max_delay) = (nanos(policy.delay), nanos(policy.max_delay));
    if policy.delay.is_some() && delay < RESCHEDULE_DELAY_MIN {
        report.error("Delay", "a delay shorter than 5s");
    }
    let grows = !function.is_empty() && function != "constant";
    if grows && policy.max_delay.is_some() && max_delay < delay {
        report.error("MaxDelay", "the longest delay is shorter than the first");
    }
    if unlimited {
        return;
    }
    let interval = nanos(policy.interval);
    if policy.interval.is_some() && interval < RESCHEDULE_INTERVAL_MIN {
        report.error("Interval", "limited attempts need an interval of at least 15s");
    } else if policy.interval.is_some() && total_delay(attempts, delay, max_delay, function) > interval {
        report.error("Attempts", format!("{attempts} attempts do not fit in the interval with these delays"));
    }
}

/// The waits before `attempts` attempts, added up.
fn total_delay(attempts: i64, delay: i64, max_delay: i64, function: &str) -> i64 {
    let cap = |delay: i64| if max_delay > 0 { delay.min(max_delay) } else { delay };
    let (mut total, mut before, mut next) = (0_i64, 0_i64, delay);
    for _ in 0..attempts.min(ATTEMPTS_MAX) {
        total = total.saturating_add(if function == "constant" { delay } else { cap(next) });
        let after = match function {
            "exponential" => next.saturating_mul(2),
            "fibonacci" => next.saturating_add(before),
            _ => next,
        };
        (before, next) = (next, after);
    }
    total
}

pub(super) fn update(report: &mut Report, update: &UpdateStrategy) {
    report.one_of("HealthCheck", update.health_check.as_deref().unwrap_or(""), &HEALTH_CHECKS);
    if update.max_parallel.unwrap_or(0) < 0 {
        report.error("MaxParallel", "max_parallel is negative");
    }
    let canary = update.canary.unwrap_or(0);
    if canary < 0 {
        report.error("Canary", "the number of canaries is negative");
    }
    if update.auto_promote.unwrap_or(false) && canary == 0 {
        report.error("AutoPromote", "auto_promote needs canaries");
    }
    healthy(report, update.min_healthy_time, update.healthy_deadline);
    let (healthy, progress) = (nanos(update.healthy_deadline), nanos(update.progress_deadline));
    if update.healthy_deadline.is_some() && progress != 0 && healthy >= progress {
        report.error("ProgressDeadline", "progress_deadline must be longer than healthy_deadline");
    }
    if update.stagger.is_some_and(|stagger| stagger.0.0 <= 0) {
        report.error("Stagger", "stagger must be longer than 0");
    }
}

pub(super) fn migrate(report: &mut Report, migrate: &MigrateStrategy) {
    report.one_of("HealthCheck", migrate.health_check.as_deref().unwrap_or(""), &HEALTH_CHECKS[..2]);
    if migrate.max_parallel.unwrap_or(0) < 0 {
        report.error("MaxParallel", "max_parallel is negative");
    }
    healthy(report, migrate.min_healthy_time, migrate.healthy_deadline);
}

fn healthy(report: &mut Report, least: Option<Duration>, deadline: Option<Duration>) {
    if nanos(least) < 0 {
        report.error("MinHealthyTime", "min_healthy_time is negative");
    }
    if deadline.is_some() && nanos(least) >= nanos(deadline) {
        report.error("HealthyDeadline", "healthy_deadline must be longer than min_healthy_time");
    }
}
