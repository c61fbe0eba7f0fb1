//! The functions that Go's templates have by themselves.

use std::cmp::Ordering;

use crate::format;
use crate::value::Value;

/// What a function gives, or why it cannot.
pub type Outcome = Result<Value, String>;

const NAMES: [&str; 19] = [
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print",
    "printf", "println", "slice", "urlquery",
];

pub fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Everything but `and` and `or`, which look at their arguments one by one.
pub fn call(name: &str, arguments: &[Value]) -> Outcome {
    match (name, arguments) {
        ("not", [value]) => Ok(Value::Bool(!value.is_true())),
        ("len", [value]) => length(value),
        ("index", [value, keys @ ..]) => keys.iter().try_fold(value.clone(), |value, key| index(&value, key)),
        ("slice", [value, bounds @ ..]) => slice(value, bounds),
        ("print", values) => Ok(Value::text(print(values))),
        ("println", values) => {
            let shown: Vec<_> = values.iter().map(Value::shown).collect();
            Ok(Value::text(shown.join(" ") + "\n"))
        }
        ("printf", [format, values @ ..]) => match format {
            Value::Text(format) => Ok(Value::text(format::printf(format, values))),
            other => Err(format!("the format is no text but {}", other.kind())),
        },
        ("html", values) => Ok(Value::text(html(&joined(values)))),
        ("js", values) => Ok(Value::text(js(&joined(values)))),
        ("urlquery", values) => Ok(Value::text(urlquery(&joined(values)))),
        ("eq", [first, others @ ..]) if !others.is_empty() => {
            let equal = others.iter().map(|other| equal(first, other)).collect::<Result<Vec<_>, _>>()?;
            Ok(Value::Bool(equal.contains(&true)))
        }
        ("ne", [first, second]) => Ok(Value::Bool(!equal(first, second)?)),
        ("lt", [first, second]) => Ok(Value::Bool(order(first, second)? == Ordering::Less)),
        ("le", [first, second]) => Ok(Value::Bool(order(first, second)? != Ordering::Greater)),
        ("gt", [first, second]) => Ok(Value::Bool(order(first, second)? == Ordering::Greater)),
        ("ge", [first, second]) => Ok(Value::Bool(order(first, second)? != Ordering::Less)),
        ("call", _) => Err("objects hold no functions".to_string()),
        (_, arguments) => Err(format!("wrong number of args: got {}", arguments.len())),
    }
}

fn length(value: &Value) -> Outcome {
    match value {
        Value::Text(text) => Ok(Value::size(text.len())),
        Value::List(items) => Ok(Value::size(items.len())),
        Value::Map(entries) => Ok(Value::size(entries.len())),
        // Lists and maps that are not there are null in JSON.
        Value::Nil => Ok(Value::Int(0)),
        other => Err(format!("len of type {}", other.kind())),
    }
}

fn index(value: &Value, key: &Value) -> Outcome {
    match (value, key) {
        (Value::Map(entries), Value::Text(key)) => {
            Ok(entries.get(key.as_ref()).cloned().unwrap_or(Value::Missing))
        }
        (Value::List(items), key) => {
            let at =
                key.as_int().ok_or_else(|| format!("cannot index slice/array with type {}", key.kind()))?;
            let item = usize::try_from(at).ok().and_then(|at| items.get(at)).cloned();
            item.ok_or_else(|| format!("index out of range: {at}"))
        }
        (Value::Text(text), key) => {
            let at = key.as_int().and_then(|at| usize::try_from(at).ok());
            let byte = at.and_then(|at| text.as_bytes().get(at)).copied();
            byte.map(|byte| Value::Int(byte.into()))
                .ok_or_else(|| format!("index out of range: {}", key.shown()))
        }
        (Value::Missing | Value::Nil, _) => Ok(Value::Missing),
        (Value::Map(_), key) => Err(format!("value has type {}; should be string", key.kind())),
        (other, _) => Err(format!("can't index item of type {}", other.kind())),
    }
}

fn slice(value: &Value, bounds: &[Value]) -> Outcome {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::List(items) => items.len(),
        Value::Missing | Value::Nil => return Ok(Value::Nil),
        other => return Err(format!("can't slice item of type {}", other.kind())),
    };
    let bound = |at: usize, default: usize| match bounds.get(at) {
        None => Ok(default),
        Some(bound) => {
            let bound = bound.as_int().and_then(|bound| usize::try_from(bound).ok());
            bound.filter(|bound| *bound <= length).ok_or_else(|| "index out of range".to_string())
        }
    };
    let (from, to) = (bound(0, 0)?, bound(1, length)?);
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}"));
    }
    match value {
        Value::Text(text) => {
            let part = text.get(from..to).ok_or("the text is cut within a character")?;
            Ok(Value::text(part))
        }
        Value::List(items) => Ok(Value::list(items[from..to].to_vec())),
        _ => unreachable!("other types were refused above"),
    }
}

/// Blanks stand between two values neither of which is a text.
pub fn print(values: &[Value]) -> String {
    let mut out = String::new();
    let mut before_is_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !before_is_text && !is_text && !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&value.shown());
        before_is_text = is_text;
    }
    out
}

fn joined(values: &[Value]) -> String {
    match values {
        [Value::Text(text)] => text.to_string(),
        values => print(values),
    }
}

fn html(text: &str) -> String {
    let escape = |c: char| match c {
        '\'' => "&#39;".to_string(),
        '"' => "&#34;".to_string(),
        '&' => "&amp;".to_string(),
        '<' => "&lt;".to_string(),
        '>' => "&gt;".to_string(),
        '\0' => '\u{fffd}'.to_string(),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

fn js(text: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".to_string(),
        '\'' => "\\'".to_string(),
        '"' => "\\\"".to_string(),
        '<' | '>' | '&' | '=' => format!("\\u{:04X}", u32::from(c)),
        c if u32::from(c) < 0x20 => format!("\\u{:04X}", u32::from(c)),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

fn urlquery(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b' ' => "+".to_string(),
        byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Numbers are equal whatever their type: JSON does not distinguish them.
pub fn equal(first: &Value, second: &Value) -> Result<bool, String> {
    let nothing = |value: &Value| matches!(value, Value::Missing | Value::Nil);
    if nothing(first) || nothing(second) {
        return Ok(nothing(first) && nothing(second));
    }
    match (first, second) {
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::Text(one), Value::Text(other)) => Ok(one == other),
        (Value::List(one), Value::List(other)) => Ok(one == other),
        (Value::Map(one), Value::Map(other)) => Ok(one == other),
        _ => order(first, second).map(|order| order == Ordering::Equal),
    }
}

pub fn order(first: &Value, second: &Value) -> Result<Ordering, String> {
    if let (Value::Text(one), Value::Text(other)) = (first, second) {
        return Ok(one.cmp(other));
    }
    if let (Some(one), Some(other)) = (first.as_int(), second.as_int()) {
        return Ok(one.cmp(&other));
    }
    match (first.as_float(), second.as_float()) {
        (Some(one), Some(other)) => one.partial_cmp(&other).ok_or_else(|| "not a number".to_string()),
        _ => Err("incompatible types for comparison".to_string()),
    }
}
