//! Configuration blocks of plugins: checked against the schema that the plugin has sent, and turned into what it expects.
//!
//! A block comes as job files and agent files deliver it: a nested block may be an object or a list of them. What comes out
//! has each key of the schema once, by the schema's own name, with `null` for what is not given.

mod types;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::proto::hclspec::{Attr, Block, BlockList, BlockMap, BlockValue, Literal, Spec};
use types::Type;

/// How deep a schema may be nested. That of a stock plugin has four levels.
const DEPTH_MAX: usize = 32;

/// Reads a block. `owner` is what errors call it by, like `driver podman`.
///
/// # Errors
/// Names the first key that is required and missing, has a wrong type, or is not in the schema; or what is wrong with the
/// schema.
pub fn read(owner: &str, spec: &Spec, block: &Map<String, Value>) -> Result<Value, String> {
    Reader { owner, path: String::new(), depth: 0 }.body(spec, block)
}

/// As plugins get it: MessagePack, with keys by name.
pub fn encode(value: &Value) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("JSON is always MessagePack")
}

/// Checks a schema by itself, so that one that cannot be read is found before a job needs it.
///
/// # Errors
/// Names what is wrong.
pub fn check(spec: &Spec) -> Result<(), String> {
    check_within(spec, 0)
}

fn check_within(spec: &Spec, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("the schema is nested more than {DEPTH_MAX} levels deep"));
    }
    let nested = |spec: &Option<Box<Spec>>| match spec {
        Some(spec) => check_within(spec, depth + 1),
        None => Ok(()),
    };
    match spec.block.as_ref().ok_or("the schema has an empty part")? {
        Block::Object(object) => {
            object.attributes.values().try_for_each(|spec| check_within(spec, depth + 1))
        }
        Block::Array(array) => array.values.iter().try_for_each(|spec| check_within(spec, depth + 1)),
        Block::Attr(attr) | Block::BlockAttrs(attr) => {
            Type::parse(&attr.kind).map(drop).map_err(|why| format!("key \"{}\": {why}", attr.name))
        }
        Block::BlockValue(value) => nested(&value.nested),
        Block::BlockList(list) | Block::BlockSet(list) => nested(&list.nested),
        Block::BlockMap(map) => nested(&map.nested),
        Block::Default(default) => nested(&default.primary).and_then(|()| nested(&default.default)),
        Block::Literal(text) => literal(text).map(drop),
    }
}

struct Reader<'a> {
    owner: &'a str,
    /// Of the blocks around this one, each with a dot behind it.
    path: String,
    depth: usize,
}

impl Reader<'_> {
    /// A whole block: all of its keys have to be in the schema.
    fn body(&self, spec: &Spec, block: &Map<String, Value>) -> Result<Value, String> {
        if self.depth > DEPTH_MAX {
            return Err(format!("{}: blocks are nested more than {DEPTH_MAX} levels deep", self.owner));
        }
        let mut known = BTreeSet::new();
        names(spec, &mut known);
        if let Some(key) = block.keys().find(|key| !known.contains(key.as_str())) {
            return Err(format!("{} has no config key \"{}{key}\"", self.owner, self.path));
        }
        self.part(spec, block)
    }

    /// What one part of the schema takes from a block.
    fn part(&self, spec: &Spec, block: &Map<String, Value>) -> Result<Value, String> {
        match spec.block.as_ref().ok_or("the schema has an empty part")? {
            Block::Object(object) => {
                let fields = object.attributes.iter();
                let fields = fields.map(|(key, spec)| Ok((key.clone(), self.part(spec, block)?)));
                fields.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            Block::Array(array) => {
                array.values.iter().map(|spec| self.part(spec, block)).collect::<Result<_, _>>()
            }
            Block::Attr(attr) => self.attr(attr, block),
            Block::BlockValue(value) => self.single(value, block),
            Block::BlockAttrs(attr) => self.attrs(attr, block),
            Block::BlockList(list) => self.list(list, block),
            Block::BlockSet(list) => {
                let Value::Array(items) = self.list(list, block)? else { return Ok(Value::Null) };
                Ok(types::without_repetitions(items).into())
            }
            Block::BlockMap(map) => self.map(map, block),
            Block::Default(default) => {
                let primary = default.primary.as_deref().map(|spec| self.part(spec, block)).transpose()?;
                match (primary.unwrap_or_default(), default.default.as_deref()) {
                    (Value::Null, Some(default)) => self.part(default, block),
                    (value, _) => Ok(value),
                }
            }
            Block::Literal(text) => literal(text),
        }
    }

    fn attr(&self, attr: &Attr, block: &Map<String, Value>) -> Result<Value, String> {
        let Some(given) = given(block, &attr.name) else { return self.missing(&attr.name, attr.required) };
        let kind = Type::parse(&attr.kind)?;
        kind.convert(given).ok_or_else(|| self.wrong(&attr.name, &kind.to_string(), given))
    }

    fn attrs(&self, attr: &Attr, block: &Map<String, Value>) -> Result<Value, String> {
        let Some(given) = given(block, &attr.name) else { return self.missing(&attr.name, attr.required) };
        let kind = Type::Map(Box::new(Type::parse(&attr.kind)?));
        kind.convert(given).ok_or_else(|| self.wrong(&attr.name, &format!("a block of {}", attr.kind), given))
    }

    fn single(&self, value: &BlockValue, block: &Map<String, Value>) -> Result<Value, String> {
        match self.blocks(&value.name, block)?.as_slice() {
            [] => self.missing(&value.name, value.required),
            [one] => self.nested(&value.name, value.nested.as_deref(), one),
            more => Err(format!("config key \"{}{}\" is given {} times", self.path, value.name, more.len())),
        }
    }

    fn list(&self, list: &BlockList, block: &Map<String, Value>) -> Result<Value, String> {
        let blocks = self.blocks(&list.name, block)?;
        let count = blocks.len() as u64;
        if count < list.min_items || list.max_items > 0 && count > list.max_items {
            let most =
                if list.max_items > 0 { format!(" and at most {}", list.max_items) } else { String::new() };
            return Err(format!(
                "config key \"{}{}\" is given {count} times: expected at least {}{most}",
                self.path, list.name, list.min_items
            ));
        }
        blocks.into_iter().map(|one| self.nested(&list.name, list.nested.as_deref(), one)).collect()
    }

    /// Blocks with labels: an object of objects, by the labels.
    fn map(&self, map: &BlockMap, block: &Map<String, Value>) -> Result<Value, String> {
        let mut found = Map::new();
        for one in self.blocks(&map.name, block)? {
            for (label, rest) in one {
                let inner = Map::from_iter([(map.name.clone(), rest.clone())]);
                let value = match map.labels.len() {
                    0 | 1 => {
                        let nested = map.nested.clone();
                        let required = BlockValue { name: map.name.clone(), required: true, nested };
                        self.single(&required, &inner)?
                    }
                    _ => {
                        let labels = map.labels[1..].to_vec();
                        let rest = BlockMap { name: map.name.clone(), labels, nested: map.nested.clone() };
                        self.map(&rest, &inner)?
                    }
                };
                found.insert(label.clone(), value);
            }
        }
        Ok(Value::Object(found))
    }

    fn nested(&self, name: &str, spec: Option<&Spec>, block: &Map<String, Value>) -> Result<Value, String> {
        let spec = spec.ok_or_else(|| format!("the schema of \"{}{name}\" is empty", self.path))?;
        let path = format!("{}{name}.", self.path);
        Reader { owner: self.owner, path, depth: self.depth + 1 }.body(spec, block)
    }

    /// The blocks of a name, in either form.
    fn blocks<'b>(
        &self,
        name: &str,
        block: &'b Map<String, Value>,
    ) -> Result<Vec<&'b Map<String, Value>>, String> {
        let Some(given) = given(block, name) else { return Ok(Vec::new()) };
        let found = match given {
            Value::Object(one) => Some(vec![one]),
            Value::Array(items) => items.iter().map(Value::as_object).collect(),
            _ => None,
        };
        found.ok_or_else(|| self.wrong(name, "a block", given))
    }

    fn missing(&self, name: &str, required: bool) -> Result<Value, String> {
        match required {
            true => Err(format!("config key \"{}{name}\" is required", self.path)),
            false => Ok(Value::Null),
        }
    }

    fn wrong(&self, name: &str, expected: &str, given: &Value) -> String {
        format!("config key \"{}{name}\" must be {expected}, not {given}", self.path)
    }
}

fn given<'a>(block: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    block.get(name).filter(|value| !value.is_null())
}

/// The keys that a part of a schema takes from its block.
fn names<'a>(spec: &'a Spec, known: &mut BTreeSet<&'a str>) {
    match &spec.block {
        None | Some(Block::Literal(_)) => {}
        Some(Block::Object(object)) => object.attributes.values().for_each(|spec| names(spec, known)),
        Some(Block::Array(array)) => array.values.iter().for_each(|spec| names(spec, known)),
        Some(Block::Attr(attr) | Block::BlockAttrs(attr)) => drop(known.insert(&attr.name)),
        Some(Block::BlockValue(value)) => drop(known.insert(&value.name)),
        Some(Block::BlockList(list) | Block::BlockSet(list)) => drop(known.insert(&list.name)),
        Some(Block::BlockMap(map)) => drop(known.insert(&map.name)),
        Some(Block::Default(default)) => {
            [&default.primary, &default.default].into_iter().flatten().for_each(|spec| names(spec, known));
        }
    }
}

/// The value of an expression like `"5m"` or `{ enabled = true }`.
fn literal(text: &Literal) -> Result<Value, String> {
    let wrong = |why: String| format!("the schema has the literal {}: {why}", text.value);
    let source = jobspec::Source::new("literal.hcl", format!("value = {}\n", text.value));
    let mut read = jobspec::config::Section::parse(&source).map_err(|error| wrong(error.to_string()))?;
    read.take::<Value>("value").map(Option::unwrap_or_default).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests;
