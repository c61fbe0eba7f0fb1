//! HCL text to a tree with positions: bodies of attributes and blocks, and their expressions, unevaluated.
//!
//! Written by hand rather than taken from a library: the depth of recursion is bounded while parsing, the older
//! HCL of agent configuration and JSON share the one parser, and messages name what was being read.

mod ast;
mod cursor;
mod expression;
mod structure;
mod template;

pub(crate) use ast::{
    Attribute, Block, Body, Expr, ExprKind, For, Key, Label, Name, Operator, Part, Splat, Step,
};
pub(crate) use structure::{parse_body, parse_document, parse_expression};

/// Largest text that is parsed, in bytes. Servers keep job sources up to 1 MB; this leaves room for generated files.
pub const SOURCE_MAX: usize = 4 << 20;

/// Deepest nesting of blocks and expressions, together. Real files stay below 20. A level costs at most 22 KB of stack in
/// an unoptimised build (a for expression, measured), so this depth fits twice into the 2 MiB that threads have.
pub const NESTING_MAX: usize = 40;

/// The syntaxes the parser reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// HCL version 2 with templates.
    Native,
    /// HCL version 1 as agent configuration uses it: quoted keys and commas in bodies, no templates.
    Config,
    /// JSON text whose strings are templates, for job files in HCL's JSON syntax.
    JsonTemplates,
    /// JSON text.
    Json,
}

impl Dialect {
    fn has_templates(self) -> bool {
        matches!(self, Dialect::Native | Dialect::JsonTemplates)
    }

    fn is_json(self) -> bool {
        matches!(self, Dialect::Json | Dialect::JsonTemplates)
    }
}
