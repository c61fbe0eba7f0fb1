//! Templates in the language of Go's `text/template`, over JSON.
//!
//! Pipelines, variables, `if`, `with`, `range`, `define`, `template`, `block`, trim markers, comments, Go's own
//! functions and the common ones of sprig, under `sprig_`. Objects are maps, whose keys are visited in order; there
//! are no methods, so `call` has nothing to call. What is missing in a map is no error: it prints as `<no value>`.
//! Nothing here reads files, the environment or the network; only `sprig_now` reads the clock.
//! Read [`parse`] next, then [`run`].

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod builtin;
mod format;
mod lex;
mod parse;
mod run;
mod sprig;
mod value;

use std::collections::BTreeMap;

use parse::Node;
pub use value::Value;

/// A template that was understood.
#[derive(Debug)]
pub struct Template {
    body: Vec<Node>,
    /// What `define` and `block` named.
    named: BTreeMap<String, Vec<Node>>,
}

/// Why a template cannot be understood or applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Error {
    pub line: usize,
    pub reason: String,
}

impl Template {
    /// # Errors
    /// The first thing that makes no sense, with its line.
    pub fn parse(text: &str) -> Result<Template, Error> {
        parse::template(text)
    }

    /// The text that the template makes of `data`.
    ///
    /// # Errors
    /// What cannot be done with the data, with the line that asks for it.
    pub fn render(&self, data: &serde_json::Value) -> Result<String, Error> {
        run::render(&self.body, &self.named, Value::from(data))
    }
}

#[cfg(test)]
mod tests;
