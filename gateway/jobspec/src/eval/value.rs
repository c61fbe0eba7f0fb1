use std::collections::BTreeMap;

use serde_json::Value as Json;

/// Bytes of any value besides its text.
const OVERHEAD: usize = size_of::<Value>();

/// What an expression gives. Sets are lists without repetitions, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Wider than any field, so that what is only passed on as text or to a driver keeps its digits.
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

impl Value {
    /// A number as written; whole numbers beyond 128 bits lose precision, infinite ones are `None`.
    pub(crate) fn number(text: &str) -> Option<Value> {
        if let Ok(whole) = text.parse() {
            return Some(Value::Int(whole));
        }
        text.parse().ok().and_then(Value::from_f64)
    }

    /// The nearest number: whole ones as `Int`. `None` when not finite.
    pub(crate) fn from_f64(number: f64) -> Option<Value> {
        let whole = number.fract() == 0.0 && number.abs() < 9.0e15;
        match number.is_finite() {
            true if whole => Some(Value::Int(number as i128)),
            true => Some(Value::Float(number)),
            false => None,
        }
    }

    /// `a list`, `the number 3`: how messages name it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Null => "null".to_string(),
            Value::Bool(value) => format!("the bool {value}"),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(text) if text.chars().count() <= 40 => format!("the text {text:?}"),
            Value::Text(_) => "a text".to_string(),
            Value::List(_) => "a list".to_string(),
            Value::Object(_) => "an object".to_string(),
        }
    }

    /// About the bytes it takes, as the budget counts them; `None` below `depth` levels.
    pub(crate) fn weigh(&self, depth: usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        match self {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => Some(OVERHEAD),
            Value::Text(text) => Some(OVERHEAD + text.len()),
            Value::List(items) => items.iter().try_fold(OVERHEAD, |sum, item| Some(sum + item.weigh(depth)?)),
            Value::Object(entries) => entries
                .iter()
                .try_fold(OVERHEAD, |sum, (key, value)| Some(sum + key.len() + value.weigh(depth)?)),
        }
    }

    pub(crate) fn into_json(self) -> Json {
        match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(value),
            Value::Int(value) => {
                serde_json::Number::from_i128(value).map_or_else(|| Json::from(value as f64), Json::Number)
            }
            Value::Float(value) => Json::from(value),
            Value::Text(text) => Json::String(text),
            Value::List(items) => Json::Array(items.into_iter().map(Value::into_json).collect()),
            Value::Object(entries) => {
                Json::Object(entries.into_iter().map(|(key, value)| (key, value.into_json())).collect())
            }
        }
    }

    pub(crate) fn from_json(json: Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => Value::number(&number.to_string()).unwrap_or(Value::Null),
            Json::String(text) => Value::Text(text),
            Json::Array(items) => Value::List(items.into_iter().map(Value::from_json).collect()),
            Json::Object(entries) => Value::Object(
                entries.into_iter().map(|(key, value)| (key, Value::from_json(value))).collect(),
            ),
        }
    }
}
