//! What is stored of a task to find its container again.

use executor::spec::LogSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::driver::{DriverError, Logs};

/// Fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    pub container_id: String,
    pub container_name: String,
    pub image_id: String,
    /// Where the output is written; None for nowhere.
    pub logs: Option<StoredLogs>,
    /// Which engine has it, where a driver knows several; empty for the only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredLogs {
    pub stdout: LogSpec,
    pub stderr: LogSpec,
}

impl State {
    /// # Errors
    /// When it is not one, or names no container.
    pub fn read(state: &Value) -> Result<State, DriverError> {
        let state = State::deserialize(state).map_err(|error| DriverError::Handle(error.to_string()))?;
        match state.container_id.is_empty() {
            true => Err(DriverError::Handle("it names no container".to_string())),
            false => Ok(state),
        }
    }

    pub fn logs(&self) -> Option<Logs> {
        let StoredLogs { stdout, stderr } = self.logs.clone()?;
        Some(Logs { stdout, stderr })
    }
}

impl From<Logs> for StoredLogs {
    fn from(Logs { stdout, stderr }: Logs) -> StoredLogs {
        StoredLogs { stdout, stderr }
    }
}
