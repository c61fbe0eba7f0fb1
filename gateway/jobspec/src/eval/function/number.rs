use crate::eval::Value;
use crate::eval::convert::{to_f64, to_int, to_text};

fn finite(number: f64) -> Result<Value, String> {
    Value::from_f64(number).ok_or_else(|| "the result is not a finite number".to_string())
}

pub(super) fn abs(a: &[Value]) -> Result<Value, String> {
    finite(to_f64(&a[0])?.abs())
}

pub(super) fn ceil(a: &[Value]) -> Result<Value, String> {
    finite(to_f64(&a[0])?.ceil())
}

pub(super) fn floor(a: &[Value]) -> Result<Value, String> {
    finite(to_f64(&a[0])?.floor())
}

pub(super) fn log(a: &[Value]) -> Result<Value, String> {
    finite(to_f64(&a[0])?.ln() / to_f64(&a[1])?.ln())
}

pub(super) fn pow(a: &[Value]) -> Result<Value, String> {
    finite(to_f64(&a[0])?.powf(to_f64(&a[1])?))
}

pub(super) fn signum(a: &[Value]) -> Result<Value, String> {
    Ok(Value::Int(to_int(&a[0])?.signum()))
}

pub(super) fn max(a: &[Value]) -> Result<Value, String> {
    extreme(a, f64::max)
}

pub(super) fn min(a: &[Value]) -> Result<Value, String> {
    extreme(a, f64::min)
}

fn extreme(numbers: &[Value], choose: fn(f64, f64) -> f64) -> Result<Value, String> {
    let numbers = numbers.iter().map(to_f64).collect::<Result<Vec<_>, _>>()?;
    finite(numbers.into_iter().reduce(choose).unwrap_or(0.0))
}

pub(super) fn parseint(a: &[Value]) -> Result<Value, String> {
    let (text, base) = (to_text(&a[0])?, to_int(&a[1])?);
    let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base));
    let base = base.ok_or("the base must be from 2 to 36")?;
    i64::from_str_radix(&text, base)
        .map(Value::Int)
        .map_err(|_| format!("\"{text}\" is not a whole number in base {base}"))
}
