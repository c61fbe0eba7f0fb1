//! The common functions of the sprig library, each under [`PREFIX`].

mod data;
pub(crate) mod date;
mod lists;
mod math;
mod text;

use crate::builtin::Outcome;
use crate::value::Value;

pub const PREFIX: &str = "sprig_";

/// Who has a function: each group answers `None` for what is not its own.
type Group = fn(&str, &[Value]) -> Option<Outcome>;

const GROUPS: [Group; 5] = [text::call, math::call, lists::call, data::call, date::call];

/// Whether there is such a function. Asked without arguments each group still knows its own names.
pub fn is_known(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|name| GROUPS.iter().any(|group| group(name, &[]).is_some()))
}

pub fn call(name: &str, arguments: &[Value]) -> Outcome {
    let found = GROUPS.iter().find_map(|group| group(name, arguments));
    found.unwrap_or_else(|| Err("there is no such function".to_string()))
}

/// The arguments of one call, by place. What is missing or of the wrong type is said once, here.
#[derive(Clone, Copy)]
pub struct Given<'a>(pub &'a [Value]);

impl<'a> Given<'a> {
    pub fn value(self, at: usize) -> Result<&'a Value, String> {
        self.0.get(at).ok_or_else(|| format!("wrong number of args: got {}", self.0.len()))
    }

    pub fn last(self) -> Result<&'a Value, String> {
        self.0.last().ok_or_else(|| "wrong number of args: got 0".to_string())
    }

    /// A text; anything else as it prints.
    pub fn text(self, at: usize) -> Result<String, String> {
        self.value(at).map(as_text)
    }

    pub fn int(self, at: usize) -> Result<i64, String> {
        self.value(at).map(as_int)
    }

    pub fn size(self, at: usize) -> Result<usize, String> {
        let number = self.int(at)?;
        usize::try_from(number).map_err(|_| format!("{number} is negative"))
    }

    pub fn float(self, at: usize) -> Result<f64, String> {
        self.value(at).map(as_float)
    }

    pub fn list(self, at: usize) -> Result<Vec<Value>, String> {
        as_list(self.value(at)?)
    }

    pub fn map(self, at: usize) -> Result<&'a std::collections::BTreeMap<String, Value>, String> {
        match self.value(at)? {
            Value::Map(entries) => Ok(entries),
            other => Err(format!("expected a map, not {}", other.kind())),
        }
    }
}

pub fn as_text(value: &Value) -> String {
    match value {
        Value::Missing | Value::Nil => String::new(),
        value => value.shown(),
    }
}

/// Numbers in texts count too; what is no number is 0.
fn as_int(value: &Value) -> i64 {
    match value {
        Value::Text(text) => {
            text.trim().parse().unwrap_or_else(|_| text.trim().parse::<f64>().unwrap_or(0.0) as i64)
        }
        Value::Bool(yes) => i64::from(*yes),
        Value::Float(number) => *number as i64,
        value => value.as_int().unwrap_or(0),
    }
}

fn as_float(value: &Value) -> f64 {
    match value {
        Value::Text(text) => text.trim().parse().unwrap_or(0.0),
        Value::Bool(yes) => f64::from(u8::from(*yes)),
        value => value.as_float().unwrap_or(0.0),
    }
}

pub fn as_list(value: &Value) -> Result<Vec<Value>, String> {
    match value {
        Value::List(items) => Ok(items.to_vec()),
        Value::Missing | Value::Nil => Ok(Vec::new()),
        other => Err(format!("expected a list, not {}", other.kind())),
    }
}
