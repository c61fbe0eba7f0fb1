use std::fmt;

use serde_json::{Map, Value};

/// The configuration of a running agent.
pub trait AgentConfig: fmt::Debug + Send + Sync {
    /// As `agent/self` shows it: by the field names of Nomad's API, without secrets.
    fn shown(&self) -> Map<String, Value>;

    /// Reads it again and applies what can change while the agent runs. Reads files: not for a thread that others wait for.
    ///
    /// # Errors
    /// What is wrong with it, for the operator; nothing has changed then.
    fn reload(&self) -> Result<Reloaded, String>;
}

/// What came of reading a configuration again, by the names of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub applied: Vec<&'static str>,
    /// They differ from what the agent runs with, and count when it starts again.
    pub needs_restart: Vec<&'static str>,
}

/// A configuration that stays as it is.
impl AgentConfig for Map<String, Value> {
    fn shown(&self) -> Map<String, Value> {
        self.clone()
    }

    fn reload(&self) -> Result<Reloaded, String> {
        Err("this agent has no configuration to read again".to_string())
    }
}
