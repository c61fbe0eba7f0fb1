//! Moments: seconds of the epoch, RFC 3339 texts, or nanoseconds where the number is too large to be seconds.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::{Given, as_text};
use crate::builtin::Outcome;
use crate::value::Value;

/// Numbers from here on are nanoseconds: as seconds they would lie 3000 years ahead. The API gives moments so.
const NANOS_FROM: i64 = 100_000_000_000;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    Some(match name {
        "now" => Ok(Value::text(Timestamp::now().to_string())),
        "date" => dated(given, &TimeZone::system()),
        "dateInZone" | "date_in_zone" => in_zone(given),
        "htmlDate" => {
            moment(given, 0, &TimeZone::system()).map(|at| Value::text(at.strftime("%Y-%m-%d").to_string()))
        }
        "unixEpoch" => {
            moment(given, 0, &TimeZone::UTC).map(|at| Value::text(at.timestamp().as_second().to_string()))
        }
        "ago" => moment(given, 0, &TimeZone::UTC).map(|at| {
            let seconds = Timestamp::now().as_second() - at.timestamp().as_second();
            Value::text(span(seconds))
        }),
        "duration" => given.int(0).map(|seconds| Value::text(span(seconds))),
        "durationRound" => given.int(0).map(|seconds| Value::text(rounded(seconds))),
        _ => return None,
    })
}

fn dated(given: Given, zone: &TimeZone) -> Outcome {
    let at = moment(given, 1, zone)?;
    Ok(Value::text(in_layout(&given.text(0)?, &at)))
}

fn in_zone(given: Given) -> Outcome {
    let name = given.text(2)?;
    let zone = if name == "Local" { Ok(TimeZone::system()) } else { TimeZone::get(&name) };
    dated(given, &zone.unwrap_or(TimeZone::UTC))
}

fn moment(given: Given, at: usize, zone: &TimeZone) -> Result<Zoned, String> {
    let value = given.value(at)?;
    let wrong = || format!("{:?} is no moment", as_text(value));
    let stamp = match value.as_int() {
        Some(nanos) if nanos.abs() >= NANOS_FROM => {
            Timestamp::from_nanosecond(nanos.into()).map_err(|_| wrong())?
        }
        Some(seconds) => Timestamp::from_second(seconds).map_err(|_| wrong())?,
        None => as_text(value).parse().map_err(|_| wrong())?,
    };
    Ok(stamp.to_zoned(zone.clone()))
}

/// A moment in a layout that is written as Go's reference moment would be: `2006-01-02 15:04:05`.
pub(crate) fn in_layout(layout: &str, at: &Zoned) -> String {
    // The longer spelling first: `January` begins with `Jan`.
    const PARTS: [(&str, &str); 28] = [
        ("2006", "%Y"),
        ("January", "%B"),
        ("Monday", "%A"),
        ("-07:00:00", "%::z"),
        ("Z07:00", ""),
        ("-07:00", "%:z"),
        ("-0700", "%z"),
        (".000000000", ".%9f"),
        (".000000", ".%6f"),
        (".000", ".%3f"),
        ("Jan", "%b"),
        ("Mon", "%a"),
        ("MST", "%Z"),
        ("002", "%j"),
        ("01", "%m"),
        ("02", "%d"),
        ("03", "%I"),
        ("04", "%M"),
        ("05", "%S"),
        ("06", "%y"),
        ("15", "%H"),
        ("PM", "%p"),
        ("pm", "%P"),
        ("_2", "%e"),
        ("1", "%-m"),
        ("2", "%-d"),
        ("3", "%-I"),
        ("4", "%-M"),
    ];
    let (mut out, mut rest) = (String::new(), layout);
    'next: while let Some(first) = rest.chars().next() {
        for (part, code) in PARTS {
            if let Some(left) = rest.strip_prefix(part) {
                let code = match code {
                    "" if at.offset().is_zero() => "Z",
                    "" => "%:z",
                    code => code,
                };
                out.push_str(&at.strftime(code).to_string());
                rest = left;
                continue 'next;
            }
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// Go's spelling of a span: `1h2m3s`.
fn span(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let size = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Only the largest unit of a span.
fn rounded(seconds: i64) -> String {
    const UNITS: [(&str, u64); 6] =
        [("y", 31_536_000), ("mo", 2_592_000), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let size = seconds.unsigned_abs();
    let unit = UNITS.iter().find(|(_, unit)| size >= *unit);
    unit.map_or("0s".to_string(), |(name, unit)| format!("{}{name}", size / unit))
}
