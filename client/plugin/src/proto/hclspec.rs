//! `hashicorp.nomad.plugins.shared.hclspec`: what a configuration block may hold.

use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Spec {
    #[prost(oneof = "Block", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub block: Option<Block>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Block {
    #[prost(message, tag = "1")]
    Object(Object),
    #[prost(message, tag = "2")]
    Array(Array),
    #[prost(message, tag = "3")]
    Attr(Attr),
    #[prost(message, tag = "4")]
    BlockValue(Box<BlockValue>),
    #[prost(message, tag = "5")]
    BlockAttrs(Attr),
    #[prost(message, tag = "6")]
    BlockList(Box<BlockList>),
    #[prost(message, tag = "7")]
    BlockSet(Box<BlockList>),
    #[prost(message, tag = "8")]
    BlockMap(Box<BlockMap>),
    #[prost(message, tag = "9")]
    Default(Box<DefaultValue>),
    #[prost(message, tag = "10")]
    Literal(Literal),
}

/// One key, or a block of any keys whose values are of one type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attr {
    #[prost(string, tag = "1")]
    pub name: String,
    /// Like `list(map(string))`.
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(bool, tag = "3")]
    pub required: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BlockValue {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bool, tag = "2")]
    pub required: bool,
    #[prost(message, optional, boxed, tag = "3")]
    pub nested: Option<Box<Spec>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BlockList {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint64, tag = "2")]
    pub min_items: u64,
    /// 0 for no bound.
    #[prost(uint64, tag = "3")]
    pub max_items: u64,
    #[prost(message, optional, boxed, tag = "4")]
    pub nested: Option<Box<Spec>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BlockMap {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    pub labels: Vec<String>,
    #[prost(message, optional, boxed, tag = "3")]
    pub nested: Option<Box<Spec>>,
}

/// An expression of HCL.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Literal {
    #[prost(string, tag = "1")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DefaultValue {
    #[prost(message, optional, boxed, tag = "1")]
    pub primary: Option<Box<Spec>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub default: Option<Box<Spec>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Object {
    #[prost(btree_map = "string, message", tag = "1")]
    pub attributes: BTreeMap<String, Spec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Array {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Spec>,
}

/// The usual parts of a schema, for plugins that are written with this crate.
impl Spec {
    pub fn object<const N: usize>(attributes: [(&str, Spec); N]) -> Spec {
        let attributes = attributes.into_iter().map(|(key, spec)| (key.to_string(), spec)).collect();
        Block::Object(Object { attributes }).into()
    }

    pub fn attr(name: &str, kind: &str, required: bool) -> Spec {
        Block::Attr(Attr { name: name.to_string(), kind: kind.to_string(), required }).into()
    }

    /// What `self` is when it is not given: an expression of HCL.
    pub fn or(self, literal: &str) -> Spec {
        let default = Block::Literal(Literal { value: literal.to_string() }).into();
        Block::Default(Box::new(DefaultValue {
            primary: Some(Box::new(self)),
            default: Some(Box::new(default)),
        }))
        .into()
    }
}

impl From<Block> for Spec {
    fn from(block: Block) -> Spec {
        Spec { block: Some(block) }
    }
}
