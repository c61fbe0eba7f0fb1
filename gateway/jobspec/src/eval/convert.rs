use super::error::ValueError;
use super::value::Value;

/// Text of a scalar: numbers and bools as they are written.
pub(crate) fn to_text(value: &Value) -> Result<String, ValueError> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Int(value) => Ok(value.to_string()),
        Value::Float(value) => Ok(value.to_string()),
        Value::Null | Value::List(_) | Value::Object(_) => Err(wanted("text", value)),
    }
}

/// A bool, also from the texts `true`, `false`, `1` and `0`.
pub(crate) fn to_bool(value: &Value) -> Result<bool, ValueError> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::Text(text) => match text.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wanted("a bool", value)),
        },
        _ => Err(wanted("a bool", value)),
    }
}

/// A number, also from text that is one.
pub(crate) fn to_number(value: &Value) -> Result<Value, ValueError> {
    let numeric = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    match value {
        Value::Int(_) | Value::Float(_) => Ok(value.clone()),
        Value::Text(text) if numeric(text) => Value::number(text).ok_or_else(|| wanted("a number", value)),
        _ => Err(wanted("a number", value)),
    }
}

/// A whole number, also from text that is one.
pub(crate) fn to_int(value: &Value) -> Result<i64, ValueError> {
    match to_number(value).map_err(|_| wanted("a whole number", value))? {
        Value::Int(whole) => {
            i64::try_from(whole).map_err(|_| format!("{whole} does not fit in 64 bits").into())
        }
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => Ok(number as i64),
        _ => Err(wanted("a whole number", value)),
    }
}

pub(super) fn to_f64(value: &Value) -> Result<f64, ValueError> {
    match to_number(value)? {
        Value::Int(whole) => Ok(whole as f64),
        Value::Float(number) => Ok(number),
        _ => Err(wanted("a number", value)),
    }
}

pub(super) fn wanted(what: &str, value: &Value) -> ValueError {
    format!("expected {what}, found {}", value.describe()).into()
}
