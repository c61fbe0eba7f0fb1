//! Whether, and after how long, a task that ended is started again.

use base::{Duration, Rng, Time};
use model::document::{Job, RestartPolicy, Task};

use super::lifecycle::{Role, Stage};
use executor::Exit;

/// What happens when the attempts of one interval are used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Fail,
    Delay,
}

/// A restart policy with its defaults filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    pub attempts: u64,
    pub interval: Duration,
    pub delay: Duration,
    pub mode: Mode,
    /// True when even a successful exit is followed by a new start.
    pub on_success: bool,
}

/// Why the task does not run.
#[derive(Clone, Copy, Debug)]
pub enum Cause<'a> {
    Killed,
    /// Somebody asked for a restart: neither counted nor delayed.
    Asked,
    /// It ran, and was ended because a check of one of its services failed.
    Unhealthy,
    StartFailed {
        recoverable: bool,
    },
    Exited(&'a Exit),
}

/// What the task runner does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    Killed,
    Finished,
    /// Starts no more; the task has failed.
    GiveUp(String),
    Restart {
        after: Duration,
        reason: &'static str,
    },
}

/// The usual reason, which events do not repeat.
pub const WITHIN_POLICY: &str = "Restart within policy";

/// Counts the restarts of one task.
#[derive(Debug)]
pub struct Tracker {
    policy: Policy,
    count: u64,
    interval_start: Time,
    rng: Rng,
}

impl Policy {
    /// The policy of `task`, or of its group, with the defaults of the job type.
    pub fn of(job: &Job, group: Option<&RestartPolicy>, task: &Task, role: Role) -> Policy {
        let batch = matches!(job.kind.as_deref(), Some("batch" | "sysbatch"));
        let empty = RestartPolicy::default();
        let own = task.restart_policy.as_ref().or(group).unwrap_or(&empty);
        let span = |given: Option<model::document::Duration>, secs| {
            given.map_or(Duration::from_secs(secs), |given| given.0)
        };
        Policy {
            attempts: own.attempts.unwrap_or(if batch { 3 } else { 2 }).max(0) as u64,
            interval: span(own.interval, if batch { 24 * 3600 } else { 30 * 60 }),
            delay: span(own.delay, 15),
            mode: if own.mode.as_deref() == Some("delay") { Mode::Delay } else { Mode::Fail },
            on_success: match role.stage {
                Stage::Main => !batch,
                Stage::Prestart | Stage::Poststart => role.sidecar,
                Stage::Poststop => false,
            },
        }
    }
}

impl Tracker {
    /// `rng` spreads the delays; the same seed gives the same delays.
    pub fn new(policy: Policy, rng: Rng) -> Tracker {
        Tracker { policy, count: 0, interval_start: Time::ZERO, rng }
    }

    /// A newer allocation brings a newer policy; what was counted stays counted.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    pub fn decide(&mut self, cause: Cause<'_>, now: Time) -> Decision {
        let (success, fatal) = match cause {
            Cause::Killed => return Decision::Killed,
            Cause::Asked => {
                return Decision::Restart { after: Duration::ZERO, reason: "User requested restart" };
            }
            Cause::Unhealthy => (false, false),
            Cause::StartFailed { recoverable } => (false, !recoverable),
            Cause::Exited(exit) => (exit.is_success(), false),
        };
        let done = success && !self.policy.on_success;
        if self.policy.attempts == 0 {
            return if done { Decision::Finished } else { give_up("Policy allows no restarts") };
        }
        self.count(now);
        if fatal {
            return give_up("Error was unrecoverable");
        }
        if done {
            return Decision::Finished;
        }
        if self.count > self.policy.attempts {
            return self.exhausted(now);
        }
        Decision::Restart { after: self.delay(), reason: WITHIN_POLICY }
    }

    fn count(&mut self, now: Time) {
        if now > self.interval_start.plus(self.policy.interval) {
            self.count = 0;
            self.interval_start = now;
        }
        self.count += 1;
    }

    fn exhausted(&self, now: Time) -> Decision {
        match self.policy.mode {
            Mode::Fail => Decision::GiveUp(format!(
                "Exceeded allowed attempts {} in interval {} and mode is \"fail\"",
                self.policy.attempts, self.policy.interval
            )),
            Mode::Delay => Decision::Restart {
                after: self.interval_start.plus(self.policy.interval).since(now),
                reason: "Exceeded allowed attempts, applying a delay",
            },
        }
    }

    /// The delay and up to a quarter more, so that tasks that fell together do not rise together.
    fn delay(&mut self) -> Duration {
        let delay = self.policy.delay.0.max(0);
        let spread = if delay == 0 { 0 } else { self.rng.below(delay as u64) / 4 };
        Duration(delay + spread as i64)
    }
}

fn give_up(reason: &str) -> Decision {
    Decision::GiveUp(reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_000_000);

    fn tracker(attempts: u64, mode: Mode, on_success: bool) -> Tracker {
        let policy = Policy {
            attempts,
            interval: Duration::from_secs(60),
            delay: Duration::from_secs(8),
            mode,
            on_success,
        };
        Tracker::new(policy, Rng::new(1))
    }

    fn at(secs: i64) -> Time {
        START.plus(Duration::from_secs(secs))
    }

    fn failed() -> Exit {
        Exit { code: 1, ..Exit::default() }
    }

    fn restarts(decision: Decision) -> bool {
        matches!(decision, Decision::Restart { reason: WITHIN_POLICY, .. })
    }

    #[test]
    fn a_killed_task_stays_down_and_an_asked_restart_is_free() {
        let mut tracker = tracker(1, Mode::Fail, true);
        assert_eq!(tracker.decide(Cause::Killed, START), Decision::Killed);
        for _ in 0..5 {
            let asked = tracker.decide(Cause::Asked, START);
            assert!(matches!(asked, Decision::Restart { after: Duration::ZERO, .. }));
        }
        assert!(restarts(tracker.decide(Cause::Exited(&failed()), START)), "nothing was counted so far");
    }

    #[test]
    fn fail_mode_gives_up_after_the_attempts_of_one_interval() {
        let mut tracker = tracker(2, Mode::Fail, false);
        assert!(restarts(tracker.decide(Cause::Exited(&failed()), at(0))));
        assert!(restarts(tracker.decide(Cause::Exited(&failed()), at(1))));
        let text = "Exceeded allowed attempts 2 in interval 1m0s and mode is \"fail\"";
        assert_eq!(tracker.decide(Cause::Exited(&failed()), at(2)), Decision::GiveUp(text.into()));
        assert!(restarts(tracker.decide(Cause::Exited(&failed()), at(61))), "a new interval");
    }

    #[test]
    fn delay_mode_waits_for_the_rest_of_the_interval() {
        let mut tracker = tracker(1, Mode::Delay, false);
        assert!(restarts(tracker.decide(Cause::Exited(&failed()), at(0))));
        let Decision::Restart { after, reason } = tracker.decide(Cause::Exited(&failed()), at(20)) else {
            panic!("delay mode never gives up");
        };
        assert_eq!(after, Duration::from_secs(40));
        assert_eq!(reason, "Exceeded allowed attempts, applying a delay");
    }

    #[test]
    fn success_ends_a_batch_task_and_restarts_a_service() {
        let success = Exit::default();
        assert_eq!(tracker(3, Mode::Fail, false).decide(Cause::Exited(&success), START), Decision::Finished);
        assert_eq!(tracker(0, Mode::Fail, false).decide(Cause::Exited(&success), START), Decision::Finished);
        assert!(restarts(tracker(3, Mode::Fail, true).decide(Cause::Exited(&success), START)));
        let none = give_up("Policy allows no restarts");
        assert_eq!(tracker(0, Mode::Fail, true).decide(Cause::Exited(&success), START), none);
    }

    #[test]
    fn only_recoverable_start_errors_are_tried_again() {
        let mut tracker = tracker(2, Mode::Fail, true);
        assert!(restarts(tracker.decide(Cause::StartFailed { recoverable: true }, START)));
        let fatal = tracker.decide(Cause::StartFailed { recoverable: false }, START);
        assert_eq!(fatal, give_up("Error was unrecoverable"));
    }

    #[test]
    fn delays_spread_by_a_quarter_and_are_named_by_the_seed() {
        let mut one = tracker(100, Mode::Fail, true);
        let mut two = tracker(100, Mode::Fail, true);
        for _ in 0..50 {
            let a = one.decide(Cause::Exited(&failed()), START);
            assert_eq!(a, two.decide(Cause::Exited(&failed()), START));
            let Decision::Restart { after, .. } = a else { panic!("{a:?}") };
            assert!((Duration::from_secs(8)..Duration::from_secs(10)).contains(&after), "{after}");
        }
    }

    #[test]
    fn sidecars_restart_on_success_and_other_hooks_do_not() {
        let job = Job { kind: Some("service".into()), ..Job::default() };
        let of = |stage, sidecar| {
            Policy::of(&job, None, &Task::default(), Role { stage, sidecar, leader: false }).on_success
        };
        assert!(of(Stage::Main, false) && of(Stage::Prestart, true) && of(Stage::Poststart, true));
        assert!(!of(Stage::Prestart, false) && !of(Stage::Poststart, false) && !of(Stage::Poststop, false));
    }
}
