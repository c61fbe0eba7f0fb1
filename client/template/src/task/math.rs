//! Whole numbers and floats. The second argument comes first: `5 | subtract 2` is 3.

use std::cmp::Ordering;

use crate::builtin::{Outcome, order};
use crate::sprig::Given;
use crate::value::Value;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    Some(match name {
        "add" => combined(given, |a, b| Some(a.wrapping_add(b)), |a, b| a + b),
        "subtract" => combined(given, |a, b| Some(a.wrapping_sub(b)), |a, b| a - b),
        "multiply" => combined(given, |a, b| Some(a.wrapping_mul(b)), |a, b| a * b),
        "divide" => combined(given, i64::checked_div, |a, b| a / b),
        "modulo" => modulo(given),
        "minimum" => chosen(given, Ordering::Less),
        "maximum" => chosen(given, Ordering::Greater),
        _ => return None,
    })
}

fn operands<'a>(given: Given<'a>) -> Result<(&'a Value, &'a Value), String> {
    let (b, a) = (given.value(0)?, given.value(1)?);
    match [a, b].into_iter().find(|value| value.as_float().is_none()) {
        None => Ok((a, b)),
        Some(other) => Err(format!("{} is not a number", other.kind())),
    }
}

fn combined(given: Given<'_>, whole: fn(i64, i64) -> Option<i64>, real: fn(f64, f64) -> f64) -> Outcome {
    let (a, b) = operands(given)?;
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return whole(a, b).map(Value::Int).ok_or_else(|| "division by zero".to_string());
    }
    let float = |value: &Value| value.as_float().unwrap_or(f64::NAN);
    Ok(Value::Float(real(float(a), float(b))))
}

fn modulo(given: Given<'_>) -> Outcome {
    let (a, b) = operands(given)?;
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a.checked_rem(b).map(Value::Int).ok_or_else(|| "division by zero".to_string()),
        _ => Err("modulo takes whole numbers".to_string()),
    }
}

fn chosen(given: Given<'_>, wanted: Ordering) -> Outcome {
    let (a, b) = operands(given)?;
    Ok(if order(a, b)? == wanted { a } else { b }.clone())
}
