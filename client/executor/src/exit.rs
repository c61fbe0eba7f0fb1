//! How a task ended.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// How a task, or a command inside a task, ended. Stored by executors and agents: fields are only ever added.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Exit {
    /// 128 + the signal for a task that was killed by a signal.
    pub code: i64,
    pub signal: i64,
    pub oom_killed: bool,
    /// What went wrong outside of the task itself.
    pub error: Option<String>,
}

/// 128 and the signal for a process that was killed, as shells have it.
pub fn shell_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

impl Exit {
    pub fn is_success(&self) -> bool {
        self.code == 0 && self.signal == 0 && self.error.is_none()
    }

    /// The end of a task that nobody observed.
    pub fn lost(error: String) -> Exit {
        Exit { code: -1, error: Some(error), ..Exit::default() }
    }
}
