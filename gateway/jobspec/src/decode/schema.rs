//! What a block may hold, as data.

use serde_json::{Map, Value as Json};

use crate::diagnostic::Fault;
use crate::hcl::Block;

pub(super) type Object = Map<String, Json>;

/// The shape of one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text,
    Bool,
    /// A whole number within these bounds.
    Int(i64, i64),
    /// Go's duration text, or nanoseconds.
    Duration,
    Texts,
    /// A list of whole numbers within these bounds.
    Ints(i64, i64),
    /// Text by name; an attribute or a block.
    TextMap,
    /// Lists of text by name; an attribute or a block.
    TextsMap,
    /// Anything; blocks inside become lists of objects.
    Free,
}

impl FieldKind {
    /// True for the kinds that may also be written as a block.
    pub(super) fn takes_block(self) -> bool {
        matches!(self, FieldKind::TextMap | FieldKind::TextsMap | FieldKind::Free)
    }
}

#[derive(Debug)]
pub(crate) struct Field {
    pub hcl: &'static str,
    /// Name in the document. Names that start with `~` are consumed by the schema's `finish`.
    pub json: &'static str,
    pub kind: FieldKind,
    pub required: bool,
}

impl Field {
    pub(super) const fn required(mut self) -> Field {
        self.required = true;
        self
    }
}

const fn field(hcl: &'static str, json: &'static str, kind: FieldKind) -> Field {
    Field { hcl, json, kind, required: false }
}

pub(super) const fn text(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::Text)
}

pub(super) const fn bool(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::Bool)
}

pub(super) const fn int(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::Int(i64::MIN, i64::MAX))
}

pub(super) const fn int_in(hcl: &'static str, json: &'static str, least: i64, most: i64) -> Field {
    field(hcl, json, FieldKind::Int(least, most))
}

pub(super) const fn duration(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::Duration)
}

pub(super) const fn texts(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::Texts)
}

pub(super) const fn ints_in(hcl: &'static str, json: &'static str, least: i64, most: i64) -> Field {
    field(hcl, json, FieldKind::Ints(least, most))
}

pub(super) const fn text_map(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::TextMap)
}

pub(super) const fn texts_map(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::TextsMap)
}

pub(super) const fn free(hcl: &'static str, json: &'static str) -> Field {
    field(hcl, json, FieldKind::Free)
}

/// How often a block may stand in its parent, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    One,
    List,
    /// A map by label; a label twice is an error.
    ByLabel,
}

pub(crate) struct Nested {
    pub hcl: &'static str,
    pub json: &'static str,
    pub many: Many,
    pub schema: &'static Schema,
}

pub(super) const fn one(hcl: &'static str, json: &'static str, schema: &'static Schema) -> Nested {
    Nested { hcl, json, many: Many::One, schema }
}

pub(super) const fn many(hcl: &'static str, json: &'static str, schema: &'static Schema) -> Nested {
    Nested { hcl, json, many: Many::List, schema }
}

pub(super) const fn by_label(hcl: &'static str, json: &'static str, schema: &'static Schema) -> Nested {
    Nested { hcl, json, many: Many::ByLabel, schema }
}

/// What becomes of a block's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    None,
    Required(&'static str),
    Optional(&'static str),
    /// Accepted and dropped.
    Ignored,
}

pub(crate) struct Schema {
    pub label: Label,
    pub fields: &'static [Field],
    pub blocks: &'static [Nested],
    /// Rewrites the decoded object where the document differs from the file.
    pub finish: fn(&mut Object, &Block) -> Result<(), Fault>,
}

pub(super) fn as_it_is(_: &mut Object, _: &Block) -> Result<(), Fault> {
    Ok(())
}

/// A block without label whose attributes and blocks are the document's.
pub(super) const fn plain(fields: &'static [Field], blocks: &'static [Nested]) -> Schema {
    Schema { label: Label::None, fields, blocks, finish: as_it_is }
}

impl Schema {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.hcl).chain(self.blocks.iter().map(|block| block.hcl))
    }

    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.hcl == name)
    }

    pub(super) fn block(&self, name: &str) -> Option<&'static Nested> {
        self.blocks.iter().find(|block| block.hcl == name)
    }
}
