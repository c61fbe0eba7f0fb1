//! `variable` and `locals` blocks, and the values given for them from outside.

mod declare;
mod given;
mod locals;
mod types;

pub(crate) use declare::{Declarations, VALIDATION, VARIABLE};
pub(crate) use locals::resolve as resolve_locals;
pub(crate) use types::Type;

use crate::diagnostic::Source;

/// Environment variables with this prefix give values to variables.
pub const ENVIRONMENT_PREFIX: &str = "NOMAD_VAR_";

/// Values for the variables of a job file. Later sources win: environment, files, text, flags.
#[derive(Clone, Debug)]
pub struct Variables {
    /// `-var name=value`, in order.
    pub flags: Vec<(String, String)>,
    /// `-var-file`, in order; a name that ends in `.json` is read as JSON.
    pub files: Vec<Source>,
    /// The environment, whole or in part: only names with [`ENVIRONMENT_PREFIX`] count, undeclared ones are ignored.
    pub env: Vec<(String, String)>,
    /// The `Variables` text of the HTTP API, in the syntax of a variable file.
    pub text: Option<String>,
    /// Undeclared names in files and flags are errors; otherwise warnings.
    pub strict: bool,
}

impl Default for Variables {
    fn default() -> Variables {
        Variables { flags: Vec::new(), files: Vec::new(), env: Vec::new(), text: None, strict: true }
    }
}
