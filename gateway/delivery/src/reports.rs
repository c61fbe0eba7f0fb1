//! How deliveries go: what whoever sends knows, for those who ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Time;
use parking_lot::Mutex;

/// Longest reason that is kept, in bytes; what is longer is cut.
const REASON_MAX: usize = 512;

/// How it goes with one target since this process sends to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What has arrived.
    pub sent: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// The last of them, even if it went better after that.
    pub last_failure: Option<Failed>,
    /// Attempts that failed for what is being sent.
    pub attempts: u32,
    /// When it is tried again.
    pub next_attempt: Option<Time>,
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What was sent.
    pub what: String,
    pub why: String,
    pub at: Time,
}

/// By the name of the target; a clone is a pointer copy. There are as many as there are targets that are sent to.
#[derive(Clone, Debug, Default)]
pub struct Reports(Arc<Mutex<BTreeMap<String, Report>>>);

impl Reports {
    /// `None` if this process does not send to it.
    pub fn get(&self, name: &str) -> Option<Report> {
        self.0.lock().get(name).cloned()
    }

    /// It is sent to from now on.
    pub fn begun(&self, name: &str) {
        self.0.lock().entry(name.to_string()).or_default();
    }

    pub fn arrived(&self, name: &str) {
        self.with(name, |report| {
            report.sent += 1;
            (report.attempts, report.next_attempt) = (0, None);
        });
    }

    pub fn failed(&self, name: &str, mut failed: Failed, attempts: u32, next: Option<Time>) {
        let end = (0..=REASON_MAX.min(failed.why.len())).rev().find(|end| failed.why.is_char_boundary(*end));
        failed.why.truncate(end.unwrap_or_default());
        self.with(name, |report| {
            report.failures += 1;
            (report.attempts, report.next_attempt) = (attempts, next);
            report.last_failure = Some(failed);
        });
    }

    /// Those that are not wanted are not sent to any more.
    pub fn keep(&self, is_wanted: impl Fn(&str) -> bool) {
        self.0.lock().retain(|name, _| is_wanted(name));
    }

    fn with(&self, name: &str, change: impl FnOnce(&mut Report)) {
        change(self.0.lock().entry(name.to_string()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stays_known_after_it_went_better() {
        let reports = Reports::default();
        assert_eq!(reports.get("a"), None);
        reports.begun("a");
        assert_eq!(reports.get("a"), Some(Report::default()));
        let failed = Failed { what: "7.0".into(), why: "ż".repeat(999), at: Time(5) };
        reports.failed("a", failed, 2, Some(Time(9)));
        let report = reports.get("a").unwrap();
        assert_eq!((report.failures, report.attempts, report.next_attempt), (1, 2, Some(Time(9))));
        assert_eq!(report.last_failure.unwrap().why.len(), REASON_MAX);
        reports.arrived("a");
        let report = reports.get("a").unwrap();
        assert_eq!((report.sent, report.failures, report.attempts, report.next_attempt), (1, 1, 0, None));
        assert!(report.last_failure.is_some());
        reports.keep(|name| name != "a");
        assert_eq!(reports.get("a"), None);
    }
}
