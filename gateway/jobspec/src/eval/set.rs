//! Sets: lists without repetitions, in the one order their elements have.

use std::cmp::Ordering;

use super::convert::to_text;
use super::error::ValueError;
use super::value::Value;

/// Most elements of a set; removing repetitions compares each with each.
const SET_MAX: usize = 4096;

/// The elements as a set: numbers by size, false before true, text by its bytes, null last.
///
/// # Errors
/// When there are too many to compare.
pub(crate) fn set(items: Vec<Value>) -> Result<Vec<Value>, ValueError> {
    if items.len() > SET_MAX {
        return Err(format!("a set of more than {SET_MAX} elements").into());
    }
    let mut kept: Vec<Value> = Vec::new();
    for item in of_one_type(items) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept.sort_by_cached_key(Key::of);
    Ok(kept)
}

/// Numbers and bools next to text become text.
fn of_one_type(items: Vec<Value>) -> Vec<Value> {
    if !items.iter().any(|item| matches!(item, Value::Text(_))) {
        return items;
    }
    items.into_iter().map(|item| to_text(&item).map_or(item, Value::Text)).collect()
}

/// What an element is sorted by. The order of the variants matters between values of different types only.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Bool(bool),
    /// Nearly, then exactly.
    Number(Near, i128),
    Text(String),
    /// Lists and objects go by how they are written, not by what they hold: 10 comes before 9 in them.
    Written(String),
    Null,
}

impl Key {
    fn of(value: &Value) -> Key {
        match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(whole) => Key::Number(Near(*whole as f64), *whole),
            Value::Float(number) => Key::Number(Near(*number), 0),
            Value::Text(text) => Key::Text(text.clone()),
            Value::List(_) | Value::Object(_) => {
                let mut text = String::new();
                write(&mut text, value);
                Key::Written(text)
            }
            Value::Null => Key::Null,
        }
    }
}

fn write(into: &mut String, value: &Value) {
    match value {
        Value::List(items) => {
            into.push('[');
            for item in items {
                write(into, item);
                into.push(';');
            }
            into.push(']');
        }
        Value::Object(entries) => {
            into.push('{');
            for (name, value) in entries {
                into.extend([&format!("{name:?}"), ":"]);
                write(into, value);
                into.push(';');
            }
            into.push('}');
        }
        Value::Text(text) => into.push_str(&format!("{text:?}")),
        // Behind all numbers and texts.
        Value::Null => into.push('~'),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => into.extend(to_text(value)),
    }
}

struct Near(f64);

impl Ord for Near {
    fn cmp(&self, other: &Near) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Near) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Near) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Near {}
