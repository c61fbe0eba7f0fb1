use std::time::Duration;

use tonic::Code;

/// Why a plugin has not done what it was asked for. Each says which plugin, and in which call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsiError {
    #[error("plugin {plugin}: nothing answers on its socket: {why}")]
    Unreachable { plugin: String, why: String },
    /// The plugin's own error.
    #[error("plugin {plugin}: {call}: {message} ({code:?})")]
    Refused { plugin: String, call: &'static str, code: Code, message: String },
    #[error("plugin {plugin}: {call}: no answer within {within:?}")]
    Late { plugin: String, call: &'static str, within: Duration },
    #[error("plugin {plugin}: {call}: the answer lacks {what}")]
    Incomplete { plugin: String, call: &'static str, what: &'static str },
}

impl CsiError {
    /// The plugin does not know the volume (any more): whoever wanted it gone has what he wanted.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CsiError::Refused { code: Code::NotFound, .. })
    }

    /// The plugin has no such call.
    pub fn is_unimplemented(&self) -> bool {
        matches!(self, CsiError::Refused { code: Code::Unimplemented, .. })
    }

    /// It may go well another time, without anything being asked for in another way.
    pub fn may_pass(&self) -> bool {
        match self {
            CsiError::Unreachable { .. } | CsiError::Late { .. } => true,
            CsiError::Incomplete { .. } => false,
            CsiError::Refused { code, .. } => matches!(
                code,
                Code::Unavailable
                    | Code::ResourceExhausted
                    | Code::Aborted
                    | Code::Internal
                    | Code::Unknown
                    | Code::DeadlineExceeded
                    | Code::Cancelled
            ),
        }
    }
}
