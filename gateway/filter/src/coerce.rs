//! Values of a filter are text; here they become what the field holds.

use serde_json::Value as Json;

use crate::schema::Type;

/// A value that can be equal to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Text(&'a str),
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// What the document holds at a place of type `kind`; zero for what it leaves out.
///
/// # Errors
/// For lists, maps and objects, and when the document does not hold what its type says.
pub(crate) fn of_document<'a>(kind: &Type, value: &'a Json) -> Result<Scalar<'a>, String> {
    let found = match (kind, value) {
        (Type::Text, Json::Null) => Some(Scalar::Text("")),
        (Type::Text | Type::Any, Json::String(text)) => Some(Scalar::Text(text)),
        (Type::Bool, Json::Null) => Some(Scalar::Bool(false)),
        (Type::Bool | Type::Any, Json::Bool(value)) => Some(Scalar::Bool(*value)),
        (Type::Int | Type::Uint | Type::Duration, Json::Null) => Some(Scalar::Int(0)),
        (Type::Int | Type::Uint | Type::Duration, Json::Number(number)) => number.as_i128().map(Scalar::Int),
        (Type::Duration, Json::String(text)) => nanoseconds(text).map(Scalar::Int),
        (Type::Float, Json::Null) => Some(Scalar::Float(0.0)),
        (Type::Float, Json::Number(number)) => number.as_f64().map(Scalar::Float),
        (Type::Any, Json::Number(number)) => {
            number.as_i128().map(Scalar::Int).or_else(|| number.as_f64().map(Scalar::Float))
        }
        (Type::List(_) | Type::Map(_) | Type::Object(_) | Type::Bytes | Type::Any, _) => {
            return Err(format!("is {}, which is equal to no value", describe(kind, value)));
        }
        _ => None,
    };
    found.ok_or_else(|| format!("should be {}, the document holds {value}", describe(kind, value)))
}

/// Reads `text` as the kind of value that `other` is.
///
/// # Errors
/// When it cannot be read as that kind.
pub(crate) fn like<'a>(other: &Scalar, kind: &Type, text: &'a str) -> Result<Scalar<'a>, String> {
    let (value, wanted) = match other {
        Scalar::Text(_) => (Some(Scalar::Text(text)), "text"),
        Scalar::Bool(_) => (boolean(text).map(Scalar::Bool), "true or false"),
        Scalar::Int(_) if *kind == Type::Uint => (
            integer(text).filter(|n| u64::try_from(*n).is_ok()).map(Scalar::Int),
            "a number that is not negative",
        ),
        Scalar::Int(_) => {
            let wanted = if *kind == Type::Duration { "a number of nanoseconds" } else { "a whole number" };
            (integer(text).filter(|n| i64::try_from(*n).is_ok()).map(Scalar::Int), wanted)
        }
        Scalar::Float(_) => (text.parse().ok().map(Scalar::Float), "a number"),
    };
    value.ok_or_else(|| format!("{text:?} is not {wanted}"))
}

/// What to call a value in a message.
pub(crate) fn describe(kind: &Type, value: &Json) -> &'static str {
    match (kind, value) {
        (Type::Text, _) | (Type::Any, Json::String(_)) => "text",
        (Type::Bool, _) | (Type::Any, Json::Bool(_)) => "a boolean",
        (Type::Int | Type::Uint | Type::Float, _) | (Type::Any, Json::Number(_)) => "a number",
        (Type::Duration, _) => "a duration",
        (Type::Bytes, _) => "a blob",
        (Type::List(_), _) | (Type::Any, Json::Array(_)) => "a list",
        (Type::Map(_), _) | (Type::Any, Json::Object(_)) => "a map",
        (Type::Object(_), _) => "an object",
        (Type::Any, Json::Null) => "nothing",
    }
}

/// The spellings that Go's `strconv.ParseBool` reads.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Decimal, or with a prefix hexadecimal, octal or binary; a leading zero is octal.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (if text.starts_with('-') { -1 } else { 1 }, digits),
        None => (1, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok().map(|value| sign * value)
}

/// `1h30m`, `-1.5s`: Go's text for durations. Fractions of a nanosecond are dropped.
fn nanoseconds(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    if matches!(rest, "" | "0") {
        return Some(0);
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "ns" => 1_i128,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        total = total.checked_add(times(number, unit)?)?;
        rest = after;
    }
    Some(sign * total)
}

fn times(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Twelve digits are finer than a nanosecond of an hour.
    let fraction: String = fraction.chars().take(12).collect();
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.checked_mul(unit)?.checked_add(part * unit / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_go_reads_them() {
        for (text, value) in
            [("12", 12), ("-3", -3), ("+4", 4), ("0", 0), ("0x1F", 31), ("0b101", 5), ("010", 8)]
        {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for wrong in ["", "-", "1.0", "0x", "twelve", "1 2", "--1", "0b2", "9".repeat(60).as_str()] {
            assert_eq!(integer(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_in_text_become_nanoseconds() {
        for (text, value) in [("30s", 30_000_000_000), ("1h0m0s", 3_600_000_000_000), ("1.5ms", 1_500_000)] {
            assert_eq!(nanoseconds(text), Some(value), "{text}");
        }
        assert_eq!(nanoseconds("-2us"), Some(-2000));
        assert_eq!(nanoseconds("0"), Some(0));
        for wrong in ["5", "1d", "s", "1..5s", "9".repeat(80).as_str()] {
            assert_eq!(nanoseconds(wrong), None, "{wrong}");
        }
    }
}
