//! The client status of an allocation, out of the states of its tasks.

use std::collections::BTreeMap;

use model::document::TaskState;

use crate::task::events::{DEAD, PENDING, RUNNING};

/// The client status of the allocation as a whole, and its description.
pub fn of(states: &BTreeMap<String, TaskState>) -> (&'static str, &'static str) {
    let any = |wanted: &str| states.values().any(|state| state.state == wanted);
    if states.values().any(|state| state.failed) {
        ("failed", "Failed tasks")
    } else if any(RUNNING) {
        ("running", "Tasks are running")
    } else if any(PENDING) || !any(DEAD) {
        ("pending", "No tasks have started")
    } else {
        ("complete", "All tasks have completed")
    }
}

/// True when the client is done with an allocation of this status.
pub fn is_terminal(client_status: &str) -> bool {
    matches!(client_status, "complete" | "failed" | "lost")
}

/// True when the servers want the allocation gone.
pub fn is_stopped(desired_status: &str) -> bool {
    matches!(desired_status, "stop" | "evict")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_task_decides_then_a_running_one_then_a_pending_one() {
        let cases: [(&[(&str, bool)], &str); 7] = [
            (&[], "pending"),
            (&[(PENDING, false), (DEAD, false)], "pending"),
            (&[(PENDING, false), (RUNNING, false)], "running"),
            (&[(RUNNING, false), (DEAD, true)], "failed"),
            (&[(RUNNING, false), (DEAD, false)], "running"),
            (&[(DEAD, false), (DEAD, false)], "complete"),
            (&[(PENDING, true)], "failed"),
        ];
        for (tasks, expected) in cases {
            let states = tasks
                .iter()
                .enumerate()
                .map(|(n, (state, failed))| {
                    let state =
                        TaskState { state: state.to_string(), failed: *failed, ..TaskState::default() };
                    (n.to_string(), state)
                })
                .collect();
            assert_eq!(of(&states).0, expected, "{tasks:?}");
        }
    }
}
