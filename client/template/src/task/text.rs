//! Texts.

use regex::Regex;

use crate::builtin::{Outcome, equal};
use crate::sprig::Given;
use crate::value::Value;

/// Widest indentation.
const INDENT_MAX: usize = 1 << 10;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    let one = |change: fn(&str) -> String| given.text(0).map(|text| Value::text(change(&text)));
    let two = |change: fn(&str, &str) -> String| Ok(Value::text(change(&given.text(0)?, &given.text(1)?)));
    Some(match name {
        "toLower" => one(str::to_lowercase),
        "toUpper" => one(str::to_uppercase),
        "toTitle" => one(title),
        "trimSpace" => one(|text| text.trim().to_string()),
        "trim" => two(|cut, text| text.trim_matches(|c| cut.contains(c)).to_string()),
        "trimPrefix" => two(|cut, text| text.strip_prefix(cut).unwrap_or(text).to_string()),
        "trimSuffix" => two(|cut, text| text.strip_suffix(cut).unwrap_or(text).to_string()),
        "split" => split(given),
        "join" => join(given),
        "splitToMap" => split_to_map(given),
        "replaceAll" => replace(given),
        "regexReplaceAll" => regex_replace(given),
        "regexMatch" => regex_match(given),
        "indent" => indent(given),
        "in" => given.value(1).and_then(|item| contains(given.value(0)?, item)).map(Value::Bool),
        "contains" => given.value(1).and_then(|list| contains(list, given.value(0)?)).map(Value::Bool),
        "containsAll" => counted(given, |found, all| found == all),
        "containsAny" => counted(given, |found, _| found > 0),
        "containsNone" => counted(given, |found, _| found == 0),
        "containsNotAll" => counted(given, |found, all| found < all),
        _ => return None,
    })
}

/// The first letter of each word in upper case, as Go parts words: ASCII by anything but letters, digits and `_`.
fn title(text: &str) -> String {
    let mut before = ' ';
    let mut change = |c: char| {
        let starts = if before.is_ascii() {
            !(before.is_ascii_alphanumeric() || before == '_')
        } else {
            before.is_whitespace()
        };
        before = c;
        if starts { c.to_uppercase().collect() } else { c.to_string() }
    };
    text.chars().map(&mut change).collect()
}

fn split(given: Given<'_>) -> Outcome {
    let (between, text) = (given.text(0)?, given.text(1)?);
    Ok(Value::list(parts(text.trim(), &between).into_iter().map(Value::text).collect()))
}

/// An empty separator stands between all characters.
fn parts<'t>(text: &'t str, between: &str) -> Vec<&'t str> {
    match (text, between) {
        ("", _) => Vec::new(),
        (text, "") => text.split_inclusive(|_: char| true).collect(),
        (text, between) => text.split(between).collect(),
    }
}

fn join(given: Given<'_>) -> Outcome {
    let (between, items) = (given.text(0)?, given.list(1)?);
    Ok(Value::text(items.iter().map(Value::shown).collect::<Vec<_>>().join(&between)))
}

fn split_to_map(given: Given<'_>) -> Outcome {
    let (between, within, text) = (given.text(0)?, given.text(1)?, given.text(2)?);
    let pair = |part: &str| match part.split_once(within.as_str()) {
        Some((key, value)) => (key.to_string(), Value::text(value)),
        None => (part.to_string(), Value::text("")),
    };
    Ok(Value::map(parts(text.trim(), &between).into_iter().map(pair).collect()))
}

fn replace(given: Given<'_>) -> Outcome {
    Ok(Value::text(given.text(2)?.replace(&given.text(0)?, &given.text(1)?)))
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

fn regex_replace(given: Given<'_>) -> Outcome {
    let (regex, with, text) = (regex(&given.text(0)?)?, given.text(1)?, given.text(2)?);
    Ok(Value::text(regex.replace_all(&text, with.as_str())))
}

fn regex_match(given: Given<'_>) -> Outcome {
    Ok(Value::Bool(regex(&given.text(0)?)?.is_match(&given.text(1)?)))
}

/// Every line but empty ones.
fn indent(given: Given<'_>) -> Outcome {
    let count = given.size(0)?;
    if count > INDENT_MAX {
        return Err(format!("{count} is more than {INDENT_MAX}"));
    }
    let (blanks, text) = (" ".repeat(count), given.text(1)?);
    let line =
        |line: &str| if matches!(line, "" | "\n") { line.to_string() } else { format!("{blanks}{line}") };
    Ok(Value::text(text.split_inclusive('\n').map(line).collect::<String>()))
}

fn contains(list: &Value, item: &Value) -> Result<bool, String> {
    match list {
        Value::List(items) => Ok(items.iter().any(|own| equal(own, item).unwrap_or(false))),
        Value::Text(text) => Ok(text.contains(&item.shown())),
        Value::Missing | Value::Nil => Ok(false),
        other => Err(format!("cannot look into {}", other.kind())),
    }
}

/// How many of the wanted ones the list has, and how many are wanted.
fn counted(given: Given<'_>, test: fn(usize, usize) -> bool) -> Outcome {
    let (wanted, list) = (given.list(0)?, given.value(1)?);
    let mut found = 0;
    for item in &wanted {
        found += usize::from(contains(list, item)?);
    }
    Ok(Value::Bool(test(found, wanted.len())))
}
