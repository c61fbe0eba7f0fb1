//! A user of its own for a task that asks for one.

use std::collections::BTreeMap;

use model::document::Map;
use serde_json::Value;

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::driver::StartError;
use crate::hook::{HookError, HookFuture, HookState, ready};

pub const NAME: &str = "workload_users";

/// What it has, by its number.
pub const UID: &str = "uid";

#[derive(Debug)]
pub struct WorkloadUsers;

impl TaskHook for WorkloadUsers {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: a newer version of the job may ask for it, or no longer.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(take(task, start, &mut state.values))
    }

    fn stop<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        task.context.users.give_back(&task.alloc.borrow().id, &task.name);
        ready(Ok(()))
    }
}

fn take(
    task: &TaskContext,
    start: &StartRequest,
    values: &mut BTreeMap<String, String>,
) -> Result<(), HookError> {
    let (parts, alloc_id) = (parts(&start.alloc, task, NAME)?, &start.alloc.id);
    let users = &task.context.users;
    let can = task.context.drivers.get(&parts.task.driver).is_ok_and(|driver| driver.has_dynamic_users());
    if !can || !wants(&parts.task.config) {
        users.give_back(alloc_id, &task.name);
        return Ok(());
    }
    if !parts.task.user.is_empty() {
        let text = format!("user \"{}\" and a user of the task's own exclude each other", parts.task.user);
        return Err(HookError::fatal(NAME, text));
    }
    let before = values.get(UID).and_then(|uid| uid.parse().ok());
    let uid = users.take(alloc_id, &task.name, before);
    // Another task may end and give its own back.
    let uid = uid.ok_or_else(|| HookError::recoverable(NAME, "all dynamic users of this node are taken"))?;
    values.insert(UID.to_string(), uid.to_string());
    Ok(())
}

/// The keys of a task's `config` that need such a user. They are read before variables are replaced, so these have no
/// place in them; [`check`] says so.
pub const KEYS: [&str; 2] = ["dynamic_user", "user_namespace"];

fn wants(config: &Map<String, Value>) -> bool {
    let is_on = |value: &Value| match value {
        Value::Bool(on) => *on,
        Value::String(text) => matches!(text.as_str(), "true" | "1"),
        _ => false,
    };
    KEYS.iter().any(|key| config.get(*key).is_some_and(is_on))
}

/// For a driver, which has the keys with their variables replaced.
///
/// # Errors
/// When the task asks for a user of its own and has got none.
pub fn check(asked: bool, uid: Option<u32>) -> Result<(), StartError> {
    match (asked, uid) {
        (true, None) => {
            let text = format!("{} must be true or false, without variables", KEYS.join(" and "));
            Err(StartError::Invalid(text))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_asks_with_one_of_the_keys() {
        let wants = |config: Value| super::wants(&serde_json::from_value(config).unwrap());
        assert!(wants(json!({"dynamic_user": true})));
        assert!(wants(json!({"user_namespace": "true"})));
        assert!(!wants(json!({"dynamic_user": false, "user": "x"})));
        assert!(!wants(json!({})));
        assert!(check(true, None).unwrap_err().to_string().contains("without variables"));
    }
}
