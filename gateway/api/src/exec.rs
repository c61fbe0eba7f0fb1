//! What passes between a terminal and a command that is run inside a task: one JSON object a message.

use model::document::{Bytes, shape::is_zero};
use serde::{Deserialize, Serialize};

/// From the caller. `{}` is a heartbeat.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecInput {
    #[serde(skip_serializing_if = "is_zero")]
    pub stdin: Option<ExecData>,
    #[serde(skip_serializing_if = "is_zero")]
    pub tty_size: Option<TtySize>,
}

/// From the command. `{}` says nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecOutput {
    #[serde(skip_serializing_if = "is_zero")]
    pub stdout: Option<ExecData>,
    #[serde(skip_serializing_if = "is_zero")]
    pub stderr: Option<ExecData>,
    /// The command has ended; nothing follows.
    #[serde(skip_serializing_if = "is_zero")]
    pub exited: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub result: Option<ExecResult>,
}

/// A piece of one of the three streams, or its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecData {
    #[serde(skip_serializing_if = "is_zero")]
    pub data: Bytes,
    #[serde(skip_serializing_if = "is_zero")]
    pub close: bool,
}

impl ExecData {
    pub fn piece(data: &[u8]) -> ExecData {
        ExecData { data: Bytes(data.to_vec()), close: false }
    }

    pub fn end() -> ExecData {
        ExecData { close: true, ..ExecData::default() }
    }
}

/// In characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TtySize {
    pub height: u16,
    pub width: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecResult {
    /// 128 + the signal for a command that a signal ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub exit_code: i64,
}

/// The first message of a caller that cannot set headers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecHandshake {
    pub version: i64,
    pub auth_token: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_names_that_clients_know() {
        let json = |output: &ExecOutput| serde_json::to_string(output).unwrap();
        let piece = ExecOutput { stdout: Some(ExecData::piece(b"hi")), ..ExecOutput::default() };
        assert_eq!(json(&piece), r#"{"stdout":{"data":"aGk="}}"#);
        let end = ExecOutput { stderr: Some(ExecData::end()), ..ExecOutput::default() };
        assert_eq!(json(&end), r#"{"stderr":{"close":true}}"#);
        let exited = |exit_code| ExecOutput {
            exited: true,
            result: Some(ExecResult { exit_code }),
            ..ExecOutput::default()
        };
        assert_eq!(json(&exited(3)), r#"{"exited":true,"result":{"exit_code":3}}"#);
        assert_eq!(json(&exited(0)), r#"{"exited":true,"result":{}}"#);
        let input: ExecInput =
            serde_json::from_str(r#"{"tty_size":{"height":40,"width":120},"x":1}"#).unwrap();
        assert_eq!(input.tty_size, Some(TtySize { height: 40, width: 120 }));
        assert_eq!(serde_json::from_str::<ExecInput>("{}").unwrap(), ExecInput::default());
    }
}
