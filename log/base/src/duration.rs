use std::fmt;
use std::str::FromStr;

use rkyv::{Archive, Deserialize, Serialize};

/// A span of time in nanoseconds, read and written the way Go writes durations (`1h0m0s`, `1.5s`, `250ms`).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Duration(pub i64);

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a duration: expected a number with a unit, like 30s, 1h30m or 250ms")]
pub struct DurationError(pub String);

const NANO: i64 = 1;
const MICRO: i64 = 1_000 * NANO;
const MILLI: i64 = 1_000 * MICRO;
const SECOND: i64 = 1_000 * MILLI;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Longest spelling first, so that `ms` is not read as minutes.
const UNITS: [(&str, i64); 8] = [
    ("ns", NANO),
    ("us", MICRO),
    ("\u{b5}s", MICRO),
    ("\u{3bc}s", MICRO),
    ("ms", MILLI),
    ("s", SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];

impl Duration {
    pub const ZERO: Duration = Duration(0);

    pub const fn from_secs(secs: i64) -> Duration {
        Duration(secs * SECOND)
    }

    pub const fn from_millis(millis: i64) -> Duration {
        Duration(millis * MILLI)
    }

    pub fn as_millis(self) -> i64 {
        self.0 / MILLI
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// For the standard library's timers; a negative span becomes zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0) as u64)
    }
}

impl From<std::time::Duration> for Duration {
    fn from(span: std::time::Duration) -> Duration {
        Duration(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        parse(text).map(Duration).ok_or_else(|| DurationError(text.to_string()))
    }
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let (unit, nanos) = *UNITS.iter().find(|(unit, _)| {
            tail.starts_with(unit) && !tail[unit.len()..].starts_with(|c: char| c.is_alphabetic())
        })?;
        total += scaled(number, nanos)?;
        rest = &tail[unit.len()..];
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// `number` times `unit`, with the fraction cut at a nanosecond.
fn scaled(number: &str, unit: i64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 19 || fraction.contains('.') {
        return None;
    }
    let mut nanos = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? * i128::from(unit) };
    let mut place = i128::from(unit);
    for digit in fraction.bytes() {
        place /= 10;
        nanos += i128::from(digit - b'0') * place;
    }
    Some(nanos)
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let nanos = self.0.unsigned_abs();
        if nanos < SECOND as u64 {
            let (unit, size) = match nanos {
                n if n < MICRO as u64 => ("ns", 1),
                n if n < MILLI as u64 => ("\u{b5}s", MICRO as u64),
                _ => ("ms", MILLI as u64),
            };
            return write!(f, "{}{unit}", decimal(nanos, size));
        }
        let (hours, minutes) = (nanos / HOUR as u64, nanos % HOUR as u64 / MINUTE as u64);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(nanos % MINUTE as u64, SECOND as u64))
    }
}

fn decimal(nanos: u64, unit: u64) -> String {
    let fraction = nanos % unit;
    if fraction == 0 {
        return (nanos / unit).to_string();
    }
    let digits = unit.ilog10() as usize;
    let text = format!("{:0digits$}", fraction);
    format!("{}.{}", nanos / unit, text.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5\u{b5}s"),
            (250 * MILLI, "250ms"),
            (15 * SECOND, "15s"),
            (90 * SECOND, "1m30s"),
            (HOUR, "1h0m0s"),
            (HOUR + 1_500 * MILLI, "1h0m1.5s"),
            (-2 * SECOND, "-2s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(Duration(nanos).to_string(), text);
            assert_eq!(text.parse::<Duration>().unwrap().0, nanos, "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in
            [("1.5h", 90 * MINUTE), ("1h30m", 90 * MINUTE), (".5s", 500 * MILLI), ("0", 0), ("+3us", 3_000)]
        {
            assert_eq!(text.parse::<Duration>().unwrap().0, nanos, "{text}");
        }
        for text in ["", "3", "s", "-", "1.2.3s", "1x", "1 s", "99999999999999999999h", "9999999999h"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }
}
