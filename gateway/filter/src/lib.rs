//! Filter expressions of list requests: `Status == "running" and "web" in Tags`.
//!
//! Text becomes a [`Filter`]; a filter says of a document whether it is meant. Documents are JSON with the field names
//! of Nomad's API. JSON does not distinguish an object with fixed fields from a map, nor a duration from another
//! number, and zero fields may be left out: so evaluation goes by a [`Schema`], usually [`Schema::nomad`].
//!
//! Pure, and safe with untrusted text: length, depth and work are bounded ([`LENGTH_MAX`], [`DEPTH_MAX`],
//! [`STEPS_MAX`]). Nothing here knows of lists, pages or permissions; the HTTP gateway does.
//!
//! Read `parse.rs` for the grammar, `evaluate.rs` for what operators mean, `schema.rs` for types, `DESIGN.md` for why.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

mod ast;
mod coerce;
mod cursor;
mod evaluate;
mod parse;
mod schema;

pub use evaluate::{EvalError, STEPS_MAX};
pub use parse::{DEPTH_MAX, LENGTH_MAX, ParseError};
pub use schema::{Schema, SchemaError, Type};

use ast::Expr;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Expr,
}

impl Filter {
    /// Whether the expression looks at this field of the document. Documents may leave out what it does not look at.
    pub fn looks_at(&self, field: &str) -> bool {
        self.root.looks_at(field)
    }
}
