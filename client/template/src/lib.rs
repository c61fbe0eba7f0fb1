//! Templates in the language of Go's `text/template`, over JSON.
//!
//! Pipelines, variables, `if`, `with`, `range`, `define`, `template`, `block`, trim markers, comments, Go's own
//! functions and the common ones of sprig, under `sprig_`. Objects are maps, whose keys are visited in order; `call` has
//! nothing to call. What is missing in a map is no error unless the template says so: it prints as `<no value>`.
//!
//! Templates of tasks ([`Dialect::Task`]) have the functions of consul-template besides. What those read stands behind
//! [`Source`]: nothing here reads files, the environment or the network; only `sprig_now` reads the clock.
//! Read [`parse`] next, then [`run`], then [`task`].

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod builtin;
mod format;
mod lex;
mod parse;
mod run;
mod sprig;
mod task;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use parse::Node;
pub use task::{ConsulKind, ConsulRead, Dependency, Fetched, Place, Source, VaultKind, VaultRead};
pub use value::Value;

/// A template that was understood.
#[derive(Debug)]
pub struct Template {
    body: Vec<Node>,
    /// What `define` and `block` named.
    named: BTreeMap<String, Vec<Node>>,
    strict: bool,
}

/// How a template is written.
#[derive(Clone, Debug)]
pub struct Syntax {
    pub left: String,
    pub right: String,
    pub dialect: Dialect,
    /// A key that a map does not have is an error instead of nothing.
    pub missing_key_is_error: bool,
}

/// Which functions a template has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Go's own and sprig's.
    Plain,
    /// Those of consul-template as well.
    Task,
}

impl Default for Syntax {
    fn default() -> Syntax {
        Syntax {
            left: "{{".to_string(),
            right: "}}".to_string(),
            dialect: Dialect::Plain,
            missing_key_is_error: false,
        }
    }
}

/// Why a template cannot be understood or applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Error {
    pub line: usize,
    pub reason: String,
}

/// What became of a template of a task.
#[derive(Debug, PartialEq, Eq)]
pub enum Rendered {
    Done(Vec<u8>),
    /// Nothing yet: these have not arrived.
    Missing(BTreeSet<Dependency>),
}

impl Template {
    /// # Errors
    /// The first thing that makes no sense, with its line.
    pub fn parse(text: &str) -> Result<Template, Error> {
        parse::template(text, &Syntax::default())
    }

    /// # Errors
    /// As [`Template::parse`]; delimiters must not be empty.
    pub fn parse_as(text: &str, syntax: &Syntax) -> Result<Template, Error> {
        if syntax.left.is_empty() || syntax.right.is_empty() {
            return Err(Error { line: 1, reason: "a delimiter is empty".to_string() });
        }
        parse::template(text, syntax)
    }

    /// The text that the template makes of `data`.
    ///
    /// # Errors
    /// What cannot be done with the data, with the line that asks for it.
    pub fn render(&self, data: &serde_json::Value) -> Result<String, Error> {
        let bytes = run::render(self, Value::from(data), None)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// What a template of a task makes of what `source` has. `denied` functions are errors where they are called.
    ///
    /// # Errors
    /// As [`Template::render`], but not while something is missing: without it nearly anything may go wrong.
    pub fn render_task(&self, source: &dyn Source, denied: &BTreeSet<String>) -> Result<Rendered, Error> {
        let session = task::Session::new(source, denied);
        let done = run::render(self, Value::Nil, Some(&session));
        let missing = session.missing();
        if missing.is_empty() { done.map(Rendered::Done) } else { Ok(Rendered::Missing(missing)) }
    }
}

#[cfg(test)]
mod tests;
