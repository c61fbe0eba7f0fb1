//! The events of a task, with the texts that people and tools read.

use base::{Duration, Time};
use model::document::{Map, TaskEvent, TaskState, Timestamp};

use super::restart::WITHIN_POLICY;
use executor::Exit;

/// Most events of one task; the oldest are dropped first.
pub const EVENTS_MAX: usize = 10;

pub const PENDING: &str = "pending";
pub const RUNNING: &str = "running";
pub const DEAD: &str = "dead";

/// Adds `event` at `now`, and what follows from it: failure and the restart count.
pub fn append(state: &mut TaskState, mut event: TaskEvent, now: Time) {
    event.time = now.0;
    if event.fails_task {
        state.failed = true;
    }
    if event.kind == "Restarting" {
        state.restarts += 1;
        state.last_restart = Timestamp::from(now);
    }
    state.events.push(event);
    let surplus = state.events.len().saturating_sub(EVENTS_MAX);
    state.events.drain(..surplus);
}

/// Moves to `to`, stamping the start each time and the end once.
pub fn enter(state: &mut TaskState, to: &str, now: Time) {
    if to == RUNNING && state.state != RUNNING {
        state.started_at = Timestamp::from(now);
    }
    if to == DEAD && state.finished_at.is_zero() {
        state.finished_at = Timestamp::from(now);
    }
    state.state = to.to_string();
}

fn event<const N: usize>(kind: &str, display: impl Into<String>, details: [(&str, String); N]) -> TaskEvent {
    TaskEvent {
        kind: kind.to_string(),
        display_message: display.into(),
        details: details.into_iter().map(|(key, value)| (key.to_string(), value)).collect::<Map<_, _>>(),
        ..TaskEvent::default()
    }
}

pub fn received() -> TaskEvent {
    event("Received", "Task received by client", [])
}

pub fn building_directory() -> TaskEvent {
    let text = "Building Task Directory";
    TaskEvent { message: text.into(), ..event("Task Setup", text, [("message", text.into())]) }
}

pub fn setup_failure(reason: &str) -> TaskEvent {
    let details = [("setup_error", reason.to_string()), ("fails_task", "true".to_string())];
    TaskEvent { setup_error: reason.into(), fails_task: true, ..event("Setup Failure", reason, details) }
}

pub fn failed_validation(error: &str) -> TaskEvent {
    let details = [("validation_error", error.to_string())];
    TaskEvent { validation_error: error.into(), ..event("Failed Validation", error, details) }
}

pub fn driver_failure(error: &str) -> TaskEvent {
    let details = [("driver_error", error.to_string())];
    TaskEvent { driver_error: error.into(), ..event("Driver Failure", error, details) }
}

pub fn driver_message(message: &str) -> TaskEvent {
    let details = [("driver_message", message.to_string())];
    TaskEvent { driver_message: message.into(), ..event("Driver", message, details) }
}

pub fn started() -> TaskEvent {
    event("Started", "Task started by client", [])
}

pub fn terminated(exit: &Exit) -> TaskEvent {
    let mut text = format!("Exit Code: {}", exit.code);
    if exit.signal != 0 {
        text += &format!(", Signal: {}", exit.signal);
    }
    if let Some(error) = &exit.error {
        text += &format!(", Exit Message: \"{error}\"");
    }
    let details = [
        ("exit_code", exit.code.to_string()),
        ("signal", exit.signal.to_string()),
        ("exit_message", exit.error.clone().unwrap_or_default()),
        ("oom_killed", exit.oom_killed.to_string()),
    ];
    TaskEvent {
        exit_code: exit.code,
        signal: exit.signal,
        message: exit.error.clone().unwrap_or_default(),
        ..event("Terminated", text, details)
    }
}

pub fn restarting(after: Duration, reason: &str) -> TaskEvent {
    let mut text = format!("Task restarting in {after}");
    if reason != WITHIN_POLICY {
        text = format!("{reason} - {text}");
    }
    let details = [("restart_reason", reason.to_string()), ("start_delay", after.0.to_string())];
    TaskEvent { restart_reason: reason.into(), start_delay: after.0, ..event("Restarting", text, details) }
}

pub fn not_restarting(reason: &str) -> TaskEvent {
    let details = [("restart_reason", reason.to_string()), ("fails_task", "true".to_string())];
    TaskEvent { restart_reason: reason.into(), fails_task: true, ..event("Not Restarting", reason, details) }
}

pub fn restart_signaled(reason: &str) -> TaskEvent {
    let details = [("restart_reason", reason.to_string())];
    TaskEvent { restart_reason: reason.into(), ..event("Restart Signaled", reason, details) }
}

pub fn signaling(signal: &str, reason: &str) -> TaskEvent {
    let text = match reason {
        "" => format!("Task being sent signal {signal}"),
        reason => format!("Task being sent signal {signal}: {reason}"),
    };
    let details = [("task_signal", signal.to_string()), ("task_signal_reason", reason.to_string())];
    TaskEvent {
        task_signal: signal.into(),
        task_signal_reason: reason.into(),
        ..event("Signaling", text, details)
    }
}

/// Why a task must stop, as far as its events are concerned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum KillReason {
    /// The allocation is stopped: nothing more to say.
    #[default]
    Stopped,
    /// The text is in the `Killing` event.
    Because(String),
    SiblingFailed(String),
    LeaderDead,
    MainDead,
    /// The allocation could not be set up; the task fails with this text.
    Setup(String),
}

/// The event with the reason, before the one with the signal.
pub fn kill_reason(reason: &KillReason) -> Option<TaskEvent> {
    match reason {
        KillReason::Stopped | KillReason::Because(_) => None,
        KillReason::SiblingFailed(name) => Some(TaskEvent {
            failed_sibling: name.clone(),
            ..event(
                "Sibling Task Failed",
                format!("Task's sibling \"{name}\" failed"),
                [("failed_sibling", name.clone())],
            )
        }),
        KillReason::LeaderDead => Some(event("Leader Task Dead", "Leader Task in Group dead", [])),
        KillReason::MainDead => Some(event("Main Tasks Dead", "Main tasks in the group died", [])),
        KillReason::Setup(reason) => Some(setup_failure(reason)),
    }
}

pub fn killing(reason: &KillReason, timeout: Duration) -> TaskEvent {
    let (text, why) = match reason {
        KillReason::Because(why) => (why.clone(), why.clone()),
        _ => (format!("Sent interrupt. Waiting {timeout} before force killing"), String::new()),
    };
    let details = [("kill_timeout", timeout.to_string()), ("kill_reason", why.clone())];
    TaskEvent { kill_timeout: timeout.into(), kill_reason: why, ..event("Killing", text, details) }
}

pub fn killed(error: Option<&str>) -> TaskEvent {
    let details = [("kill_error", error.unwrap_or_default().to_string())];
    TaskEvent {
        kill_error: error.unwrap_or_default().into(),
        ..event("Killed", error.unwrap_or("Task successfully killed"), details)
    }
}

pub fn hook_failed(message: &str) -> TaskEvent {
    let details = [("message", message.to_string())];
    TaskEvent { message: message.into(), ..event("Task hook failed", message, details) }
}

pub fn hook_message(message: &str) -> TaskEvent {
    let details = [("message", message.to_string())];
    TaskEvent { message: message.into(), ..event("Task hook message", message, details) }
}

pub fn downloading_artifacts() -> TaskEvent {
    event("Downloading Artifacts", "Client is downloading artifacts", [])
}

pub fn failed_artifact_download(error: &str) -> TaskEvent {
    let details = [("download_error", error.to_string())];
    TaskEvent { download_error: error.into(), ..event("Failed Artifact Download", error, details) }
}

/// What templates wait for.
pub fn template(message: &str) -> TaskEvent {
    let details = [("message", message.to_string())];
    TaskEvent { message: message.into(), ..event("Template", message, details) }
}

pub fn plugin_healthy(id: &str) -> TaskEvent {
    let text = format!("plugin: {id}");
    TaskEvent { message: text.clone(), ..event("Plugin became healthy", text, []) }
}

pub fn plugin_unhealthy(id: &str, why: &str) -> TaskEvent {
    let text = format!("plugin: {id}: {why}");
    TaskEvent { message: text.clone(), ..event("Plugin became unhealthy", text, []) }
}

/// The task is ended, and has failed.
pub fn killing_failed(why: &str) -> TaskEvent {
    let details = [("kill_reason", why.to_string()), ("fails_task", "true".to_string())];
    TaskEvent { kill_reason: why.into(), fails_task: true, ..event("Killing", why, details) }
}

pub fn failed_restoring() -> TaskEvent {
    event("Failed Restoring Task", "failed to restore task; will not run until server is contacted", [])
}

pub fn alloc_unhealthy(reason: &str) -> TaskEvent {
    let details = [("message", reason.to_string())];
    TaskEvent { message: reason.into(), ..event("Alloc Unhealthy", reason, details) }
}

pub fn reconnected() -> TaskEvent {
    event("Reconnected", "Client reconnected", [])
}

pub fn waiting_for_shutdown_delay(delay: Duration) -> TaskEvent {
    let text = format!("Waiting for shutdown_delay of {delay} before killing the task.");
    event("Waiting for shutdown delay", text, [])
}

pub fn skipping_shutdown_delay(delay: Duration) -> TaskEvent {
    let text = format!("Skipping shutdown_delay of {delay} before killing the task.");
    event("Skipping shutdown delay", text, [])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_are_dropped_first() {
        let mut state = TaskState::default();
        for code in 0..15 {
            append(&mut state, terminated(&Exit { code, ..Exit::default() }), Time::from_secs(code));
        }
        let codes: Vec<i64> = state.events.iter().map(|event| event.exit_code).collect();
        assert_eq!(codes, (5..15).collect::<Vec<i64>>());
        assert_eq!(state.events[0].time, Time::from_secs(5).0);
    }

    #[test]
    fn texts_are_the_ones_tools_know() {
        let second = Duration::from_secs(1);
        let cases = [
            (terminated(&Exit::default()), "Exit Code: 0"),
            (
                terminated(&Exit { code: 137, signal: 9, oom_killed: false, error: Some("x".into()) }),
                "Exit Code: 137, Signal: 9, Exit Message: \"x\"",
            ),
            (restarting(second, WITHIN_POLICY), "Task restarting in 1s"),
            (restarting(second, "Why"), "Why - Task restarting in 1s"),
            (
                killing(&KillReason::Stopped, Duration::from_secs(5)),
                "Sent interrupt. Waiting 5s before force killing",
            ),
            (killed(None), "Task successfully killed"),
            (signaling("SIGHUP", ""), "Task being sent signal SIGHUP"),
        ];
        for (event, text) in cases {
            assert_eq!(event.display_message, text);
        }
        let sibling = kill_reason(&KillReason::SiblingFailed("db".into())).unwrap();
        assert_eq!(sibling.display_message, "Task's sibling \"db\" failed");
        assert_eq!(sibling.details["failed_sibling"], "db");
    }

    #[test]
    fn a_restart_counts_and_a_failure_sticks() {
        let mut state = TaskState::default();
        append(&mut state, restarting(Duration::ZERO, WITHIN_POLICY), Time::from_secs(3));
        append(&mut state, not_restarting("no"), Time::from_secs(4));
        assert_eq!((state.restarts, state.failed), (1, true));
        assert_eq!(state.last_restart.time(), Time::from_secs(3));
    }

    #[test]
    fn a_start_is_stamped_each_time_and_the_end_once() {
        let mut state = TaskState::default();
        for (to, secs) in [(RUNNING, 1), (PENDING, 2), (RUNNING, 3), (DEAD, 4), (DEAD, 5)] {
            enter(&mut state, to, Time::from_secs(secs));
        }
        assert_eq!(state.started_at.time(), Time::from_secs(3));
        assert_eq!(state.finished_at.time(), Time::from_secs(4));
    }
}
