//! When a check that fails restarts its task.

use base::{Duration, Time};

use super::check::Restart;

/// One check since its task has started. It asks for one restart at most: the task then starts with another one.
#[derive(Debug)]
pub(super) struct Unhealthy {
    /// How long the check may fail.
    span: Duration,
    not_before: Time,
    since: Option<Time>,
    asked: bool,
}

impl Unhealthy {
    pub(super) fn new(restart: Restart, interval: Duration, started: Time) -> Unhealthy {
        let times = i64::from(restart.limit.saturating_sub(1));
        Unhealthy {
            span: Duration(interval.0.saturating_mul(times)),
            not_before: started.plus(restart.grace),
            since: None,
            asked: false,
        }
    }

    pub(super) fn observe(&mut self, is_healthy: bool, now: Time) {
        self.since = if is_healthy { None } else { self.since.or(Some(now)) };
    }

    /// When the task is to be restarted, if nothing changes until then.
    pub(super) fn due(&self) -> Option<Time> {
        let since = self.since.filter(|_| !self.asked)?;
        Some(since.plus(self.span).max(self.not_before))
    }

    pub(super) fn asked(&mut self) {
        self.asked = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fails_limit_times_in_a_row_and_not_within_the_grace() {
        let at = Time::from_secs;
        let restart = |limit, grace| Restart { limit, grace: Duration::from_secs(grace) };
        let watch = |limit, grace| Unhealthy::new(restart(limit, grace), Duration::from_secs(5), at(100));

        let mut three = watch(3, 1);
        assert_eq!(three.due(), None);
        three.observe(false, at(110));
        three.observe(false, at(115));
        assert_eq!(three.due(), Some(at(120)), "the third failure is at 120");
        three.observe(true, at(116));
        assert_eq!(three.due(), None);
        three.observe(false, at(121));
        assert_eq!(three.due(), Some(at(131)), "it begins again");
        three.asked();
        assert_eq!(three.due(), None, "once");

        let mut patient = watch(1, 60);
        patient.observe(false, at(100));
        assert_eq!(patient.due(), Some(at(160)));
    }
}
