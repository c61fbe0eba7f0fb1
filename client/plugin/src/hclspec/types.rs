//! Types of single keys, as schemas write them: `string`, `list(map(number))`, `object({a = bool})`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Number, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Number,
    Bool,
    Any,
    List(Box<Type>),
    /// A list without repetitions.
    Set(Box<Type>),
    Map(Box<Type>),
    Object(BTreeMap<String, Type>),
    Tuple(Vec<Type>),
}

/// How deep a type may be nested.
const DEPTH_MAX: usize = 16;

impl Type {
    /// # Errors
    /// When the text is no type.
    pub fn parse(text: &str) -> Result<Type, String> {
        let mut rest = text;
        let found = parse(&mut rest, 0).filter(|_| rest.trim().is_empty());
        found.ok_or_else(|| format!("the schema has the unknown type \"{text}\""))
    }

    /// The value as this type, where numbers, booleans and their texts stand for each other.
    pub fn convert(&self, given: &Value) -> Option<Value> {
        if given.is_null() {
            return Some(Value::Null);
        }
        match self {
            Type::Any => Some(given.clone()),
            Type::Text => match given {
                Value::String(_) => Some(given.clone()),
                Value::Number(number) => Some(number.to_string().into()),
                Value::Bool(flag) => Some(flag.to_string().into()),
                _ => None,
            },
            Type::Number => match given {
                Value::Number(_) => Some(given.clone()),
                Value::String(text) => text.trim().parse::<Number>().ok().map(Value::Number),
                _ => None,
            },
            Type::Bool => match given {
                Value::Bool(_) => Some(given.clone()),
                Value::String(text) => text.parse::<bool>().ok().map(Value::Bool),
                _ => None,
            },
            Type::List(of) => of.convert_all(given).map(Value::Array),
            Type::Set(of) => of.convert_all(given).map(without_repetitions).map(Value::Array),
            Type::Map(of) => {
                let fields = merged(given)?.into_iter();
                let fields = fields.map(|(key, value)| Some((key, of.convert(&value)?)));
                fields.collect::<Option<Map<_, _>>>().map(Value::Object)
            }
            Type::Object(types) => {
                let fields = merged(given)?;
                if fields.keys().any(|key| !types.contains_key(key)) {
                    return None;
                }
                let fields = types.iter().map(|(key, of)| {
                    Some((key.clone(), of.convert(fields.get(key).unwrap_or(&Value::Null))?))
                });
                fields.collect::<Option<Map<_, _>>>().map(Value::Object)
            }
            Type::Tuple(types) => {
                let items = given.as_array().filter(|items| items.len() == types.len())?;
                types.iter().zip(items).map(|(of, item)| of.convert(item)).collect()
            }
        }
    }

    /// A list whose items are of this type. One block stands for a list of one.
    fn convert_all(&self, given: &Value) -> Option<Vec<Value>> {
        match (given, self) {
            (Value::Array(items), _) => items.iter().map(|item| self.convert(item)).collect(),
            (Value::Object(_), Type::Map(_) | Type::Object(_)) => Some(vec![self.convert(given)?]),
            _ => None,
        }
    }
}

/// An object, or several as blocks repeated, of which later ones override.
fn merged(given: &Value) -> Option<Map<String, Value>> {
    match given {
        Value::Object(fields) => Some(fields.clone()),
        Value::Array(items) => {
            let mut all = Map::new();
            for item in items {
                all.extend(item.as_object()?.clone());
            }
            Some(all)
        }
        _ => None,
    }
}

pub fn without_repetitions(items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

fn parse(rest: &mut &str, depth: usize) -> Option<Type> {
    if depth > DEPTH_MAX {
        return None;
    }
    let of = |rest: &mut &str, build: fn(Box<Type>) -> Type| {
        skip(rest, '(')?;
        let inner = parse(rest, depth + 1)?;
        skip(rest, ')')?;
        Some(build(Box::new(inner)))
    };
    match word(rest) {
        "string" => Some(Type::Text),
        "number" => Some(Type::Number),
        "bool" => Some(Type::Bool),
        "any" => Some(Type::Any),
        "list" => of(rest, Type::List),
        "set" => of(rest, Type::Set),
        "map" => of(rest, Type::Map),
        "object" => {
            skip(rest, '(')?;
            skip(rest, '{')?;
            let mut fields = BTreeMap::new();
            while skip(rest, '}').is_none() {
                let name = word(rest).to_string();
                skip(rest, '=')?;
                fields.insert(name, parse(rest, depth + 1)?);
                let _ = skip(rest, ',');
            }
            skip(rest, ')')?;
            Some(Type::Object(fields))
        }
        "tuple" => {
            skip(rest, '(')?;
            skip(rest, '[')?;
            let mut items = Vec::new();
            while skip(rest, ']').is_none() {
                items.push(parse(rest, depth + 1)?);
                let _ = skip(rest, ',');
            }
            skip(rest, ')')?;
            Some(Type::Tuple(items))
        }
        _ => None,
    }
}

fn word<'a>(rest: &mut &'a str) -> &'a str {
    let text = rest.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    word
}

fn skip(rest: &mut &str, expected: char) -> Option<()> {
    *rest = rest.trim_start().strip_prefix(expected)?;
    Some(())
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Text => f.write_str("a string"),
            Type::Number => f.write_str("a number"),
            Type::Bool => f.write_str("true or false"),
            Type::Any => f.write_str("any value"),
            Type::List(of) => write!(f, "a list whose items are each {of}"),
            Type::Set(of) => write!(f, "a set whose items are each {of}"),
            Type::Map(of) => write!(f, "a map whose values are each {of}"),
            Type::Object(fields) => {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                write!(f, "an object of {}", names.join(", "))
            }
            Type::Tuple(items) => write!(f, "a list of {} values", items.len()),
        }
    }
}
