//! Moments in time, in RFC 3339.

use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::eval::convert::to_text;
use crate::eval::{Value, ValueError};

/// A moment, in the offset that its text names.
fn moment(text: &str) -> Result<Zoned, ValueError> {
    let wrong = || format!("\"{text}\" is not an RFC 3339 time such as 2006-01-02T15:04:05Z");
    let instant: Timestamp = text.parse().map_err(|_| wrong())?;
    let offset = Pieces::parse(text).ok().and_then(|pieces| pieces.to_numeric_offset()).ok_or_else(wrong)?;
    Ok(instant.to_zoned(TimeZone::fixed(offset)))
}

pub(super) fn timeadd(a: &[Value]) -> Result<Value, ValueError> {
    let (time, span) = (moment(&to_text(&a[0])?)?, to_text(&a[1])?);
    let span: base::Duration = span.parse().map_err(|why: base::DurationError| why.to_string())?;
    let moved = time.checked_add(jiff::SignedDuration::from_nanos(span.0));
    let moved = moved.map_err(|_| "the time is out of range")?;
    Ok(Value::Text(format!("{}{}", moved.strftime("%Y-%m-%dT%H:%M:%S"), offset(&moved, true, true))))
}

/// Times in a form given by runs of letters: `YYYY-MM-DD'T'hh:mm`.
pub(super) fn formatdate(a: &[Value]) -> Result<Value, ValueError> {
    let (form, time) = (to_text(&a[0])?, moment(&to_text(&a[1])?)?);
    let mut text = String::new();
    let mut rest = form.as_str();
    while let Some(first) = rest.chars().next() {
        let run = match first {
            '\'' => quoted(rest, &mut text)?,
            'a'..='z' | 'A'..='Z' => {
                let run = rest.len() - rest.trim_start_matches(first).len();
                text.push_str(&verb(&rest[..run], &time)?);
                run
            }
            other => {
                text.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[run..];
    }
    Ok(Value::Text(text))
}

/// Text in quotes stands for itself; two quotes in it are one. Gives how long it was.
fn quoted(rest: &str, text: &mut String) -> Result<usize, ValueError> {
    let mut at = 1;
    loop {
        let end = rest[at..].find('\'').ok_or("a quote in the form is never closed")?;
        text.push_str(&rest[at..at + end]);
        at += end + 1;
        if !rest[at..].starts_with('\'') {
            return Ok(at);
        }
        text.push('\'');
        at += 1;
    }
}

fn verb(run: &str, time: &Zoned) -> Result<String, ValueError> {
    let twelve = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let month = || time.strftime("%B").to_string();
    let weekday = || time.strftime("%A").to_string();
    Ok(match run {
        "YYYY" => format!("{:04}", time.year()),
        "YY" => format!("{:02}", time.year().rem_euclid(100)),
        "MMMM" => month(),
        "MMM" => month()[..3].to_string(),
        "MM" => format!("{:02}", time.month()),
        "M" => time.month().to_string(),
        "DD" => format!("{:02}", time.day()),
        "D" => time.day().to_string(),
        "EEEE" => weekday(),
        "EEE" => weekday()[..3].to_string(),
        "hh" => format!("{:02}", time.hour()),
        "h" => time.hour().to_string(),
        "HH" => format!("{twelve:02}"),
        "H" => twelve.to_string(),
        "AA" => (if time.hour() < 12 { "AM" } else { "PM" }).to_string(),
        "aa" => (if time.hour() < 12 { "am" } else { "pm" }).to_string(),
        "mm" => format!("{:02}", time.minute()),
        "m" => time.minute().to_string(),
        "ss" => format!("{:02}", time.second()),
        "s" => time.second().to_string(),
        "ZZZZZ" => offset(time, true, false),
        "ZZZZ" => offset(time, false, false),
        "ZZZ" if time.offset().is_zero() => "UTC".to_string(),
        "ZZZ" => offset(time, false, false),
        "Z" => offset(time, true, true),
        _ => return Err(format!("\"{run}\" is no part of a date; text goes in single quotes").into()),
    })
}

/// `+02:00`, with or without colon; `Z` for UTC where that is wanted.
fn offset(time: &Zoned, colon: bool, short: bool) -> String {
    let seconds = time.offset().seconds();
    if seconds == 0 && short {
        return "Z".to_string();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}{}{:02}", minutes / 60, if colon { ":" } else { "" }, minutes % 60)
}
