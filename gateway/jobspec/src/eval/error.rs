/// Why a value is not what its place asks for.
///
/// It says where inside the value. Where in the file is added by the evaluator, which makes a
/// [`Fault`](crate::diagnostic::Fault) of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}{message}", .path.iter().rev().map(|step| format!("{step}: ")).collect::<String>())]
pub(crate) struct ValueError {
    /// The innermost step first.
    path: Vec<String>,
    message: String,
}

impl ValueError {
    pub(crate) fn new(message: impl Into<String>) -> ValueError {
        ValueError { path: Vec::new(), message: message.into() }
    }

    /// The same error of a value of which this one is a part: an element, a field, or an argument of a function.
    pub(crate) fn within(mut self, step: impl Into<String>) -> ValueError {
        self.path.push(step.into());
        self
    }
}

impl From<String> for ValueError {
    fn from(message: String) -> ValueError {
        ValueError::new(message)
    }
}

impl From<&str> for ValueError {
    fn from(message: &str) -> ValueError {
        ValueError::new(message)
    }
}

impl From<ValueError> for String {
    fn from(error: ValueError) -> String {
        error.to_string()
    }
}
