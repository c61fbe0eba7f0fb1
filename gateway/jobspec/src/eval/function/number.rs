use crate::eval::convert::{to_f64, to_int, to_number, to_text};
use crate::eval::{Value, ValueError};

fn finite(number: f64) -> Result<Value, ValueError> {
    Value::from_f64(number).ok_or_else(|| "the result is not a finite number".into())
}

/// Whole numbers are taken as they are: a float does not hold all of them.
fn whole(value: &Value) -> Result<Option<i128>, ValueError> {
    match to_number(value)? {
        Value::Int(whole) => Ok(Some(whole)),
        _ => Ok(None),
    }
}

pub(super) fn abs(a: &[Value]) -> Result<Value, ValueError> {
    match whole(&a[0])?.and_then(i128::checked_abs) {
        Some(whole) => Ok(Value::Int(whole)),
        None => finite(to_f64(&a[0])?.abs()),
    }
}

pub(super) fn ceil(a: &[Value]) -> Result<Value, ValueError> {
    match whole(&a[0])? {
        Some(whole) => Ok(Value::Int(whole)),
        None => finite(to_f64(&a[0])?.ceil()),
    }
}

pub(super) fn floor(a: &[Value]) -> Result<Value, ValueError> {
    match whole(&a[0])? {
        Some(whole) => Ok(Value::Int(whole)),
        None => finite(to_f64(&a[0])?.floor()),
    }
}

pub(super) fn log(a: &[Value]) -> Result<Value, ValueError> {
    finite(to_f64(&a[0])?.ln() / to_f64(&a[1])?.ln())
}

pub(super) fn pow(a: &[Value]) -> Result<Value, ValueError> {
    finite(to_f64(&a[0])?.powf(to_f64(&a[1])?))
}

pub(super) fn signum(a: &[Value]) -> Result<Value, ValueError> {
    Ok(Value::Int(to_int(&a[0])?.signum().into()))
}

pub(super) fn max(a: &[Value]) -> Result<Value, ValueError> {
    extreme(a, |best, next| next > best)
}

pub(super) fn min(a: &[Value]) -> Result<Value, ValueError> {
    extreme(a, |best, next| next < best)
}

fn extreme(numbers: &[Value], better: fn(f64, f64) -> bool) -> Result<Value, ValueError> {
    let mut best = to_number(&numbers[0])?;
    for number in &numbers[1..] {
        let number = to_number(number)?;
        if better(to_f64(&best)?, to_f64(&number)?) {
            best = number;
        }
    }
    Ok(best)
}

/// Digits beyond base 36 are upper case letters, as in Go.
fn digit(c: char, base: i128) -> Option<i128> {
    let value = match c {
        '0'..='9' => c as i128 - '0' as i128,
        'a'..='z' => c as i128 - 'a' as i128 + 10,
        'A'..='Z' if base <= 36 => c as i128 - 'A' as i128 + 10,
        'A'..='Z' => c as i128 - 'A' as i128 + 36,
        _ => return None,
    };
    Some(value).filter(|value| *value < base)
}

pub(super) fn parseint(a: &[Value]) -> Result<Value, ValueError> {
    let (text, base) = (to_text(&a[0])?, i128::from(to_int(&a[1])?));
    if !(2..=62).contains(&base) {
        return Err("the base must be from 2 to 62".into());
    }
    let wrong = || format!("\"{text}\" is not a whole number in base {base}");
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (if text.starts_with('-') { -1 } else { 1 }, digits),
        None => (1, text.as_str()),
    };
    if digits.is_empty() {
        return Err(wrong().into());
    }
    let mut number = 0_i128;
    for c in digits.chars() {
        let digit = sign * digit(c, base).ok_or_else(wrong)?;
        number = number.checked_mul(base).and_then(|number| number.checked_add(digit)).ok_or_else(wrong)?;
    }
    Ok(Value::Int(number))
}
