use super::Given;
use crate::builtin::Outcome;
use crate::value::Value;

/// Longest list that a range of numbers makes.
const COUNT_MAX: usize = 1 << 20;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    let whole = |fold: fn(i64, i64) -> Option<i64>| folded(given, fold);
    let real = |fold: fn(f64, f64) -> f64| {
        let first = given.float(0)?;
        (1..arguments.len()).try_fold(first, |sum, at| Ok(fold(sum, given.float(at)?))).map(Value::Float)
    };
    Some(match name {
        "add" => whole(i64::checked_add),
        "add1" => given.int(0).map(|number| Value::Int(number.saturating_add(1))),
        "sub" => whole(i64::checked_sub),
        "mul" => whole(i64::checked_mul),
        "div" => whole(i64::checked_div),
        "mod" => whole(i64::checked_rem),
        "max" | "biggest" => whole(|one, other| Some(one.max(other))),
        "min" => whole(|one, other| Some(one.min(other))),
        "addf" => real(|one, other| one + other),
        "add1f" => given.float(0).map(|number| Value::Float(number + 1.0)),
        "subf" => real(|one, other| one - other),
        "mulf" => real(|one, other| one * other),
        "divf" => real(|one, other| one / other),
        "maxf" => real(f64::max),
        "minf" => real(f64::min),
        "floor" => given.float(0).map(|number| Value::Float(number.floor())),
        "ceil" => given.float(0).map(|number| Value::Float(number.ceil())),
        "round" => rounded(given),
        "int" | "int64" | "atoi" => given.int(0).map(Value::Int),
        "float64" => given.float(0).map(Value::Float),
        "toDecimal" => given.text(0).map(|text| Value::Int(i64::from_str_radix(&text, 8).unwrap_or(0))),
        "until" => given.int(0).and_then(|end| range(0, end, end.signum())),
        "untilStep" => step(given),
        "seq" => sequence(given),
        _ => return None,
    })
}

fn folded(given: Given, fold: fn(i64, i64) -> Option<i64>) -> Outcome {
    let first = given.int(0)?;
    let impossible = || "the result is no whole number".to_string();
    let sum = (1..given.0.len()).try_fold(first, |sum, at| fold(sum, given.int(at)?).ok_or_else(impossible));
    sum.map(Value::Int)
}

fn rounded(given: Given) -> Outcome {
    let (number, places) = (given.float(0)?, given.int(1)?);
    let scale = 10_f64.powi(i32::try_from(places).map_err(|_| "too many places".to_string())?);
    Ok(Value::Float((number * scale).round() / scale))
}

fn step(given: Given) -> Outcome {
    range(given.int(0)?, given.int(1)?, given.int(2)?)
}

/// From `start` to before `end`.
fn range(start: i64, end: i64, step: i64) -> Outcome {
    let mut numbers = Vec::new();
    let mut number = start;
    while step != 0 && ((step > 0 && number < end) || (step < 0 && number > end)) {
        if numbers.len() == COUNT_MAX {
            return Err(format!("more than {COUNT_MAX} numbers"));
        }
        numbers.push(Value::Int(number));
        number = number.saturating_add(step);
    }
    Ok(Value::list(numbers))
}

/// As the shell's `seq`: a text, with the last number in it.
fn sequence(given: Given) -> Outcome {
    let (start, step, end) = match given.0.len() {
        1 => (1, if given.int(0)? < 1 { -1 } else { 1 }, given.int(0)?),
        2 => (given.int(0)?, if given.int(1)? < given.int(0)? { -1 } else { 1 }, given.int(1)?),
        3 => (given.int(0)?, given.int(1)?, given.int(2)?),
        _ => return Ok(Value::text("")),
    };
    let Value::List(numbers) = range(start, end.saturating_add(step.signum()), step)? else {
        unreachable!("a range is a list")
    };
    Ok(Value::text(numbers.iter().map(Value::shown).collect::<Vec<_>>().join(" ")))
}
