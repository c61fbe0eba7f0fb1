use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::{Given, as_text};
use crate::builtin::Outcome;
use crate::format;
use crate::value::Value;

/// Most characters `repeat` and padding make.
const TEXT_MAX: usize = 1 << 20;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    let one = |change: fn(&str) -> String| given.text(0).map(|text| Value::text(change(&text)));
    let two = |change: fn(&str, &str) -> String| Ok(Value::text(change(&given.text(0)?, &given.text(1)?)));
    let test = |test: fn(&str, &str) -> bool| Ok(Value::Bool(test(&given.text(1)?, &given.text(0)?)));
    Some(match name {
        "trim" => one(|text| text.trim().to_string()),
        "upper" => one(str::to_uppercase),
        "lower" => one(str::to_lowercase),
        "title" => one(|text| by_words(text, true)),
        "untitle" => one(|text| by_words(text, false)),
        "nospace" => one(|text| text.chars().filter(|c| !c.is_whitespace()).collect()),
        "snakecase" => one(|text| words(text).join("_").to_lowercase()),
        "kebabcase" => one(|text| words(text).join("-").to_lowercase()),
        "camelcase" => {
            one(|text| words(text).iter().map(|word| by_words(&word.to_lowercase(), true)).collect())
        }
        "initials" => one(|text| text.split_whitespace().filter_map(|word| word.chars().next()).collect()),
        "trimAll" | "trimall" => two(|cut, text| text.trim_matches(|c| cut.contains(c)).to_string()),
        "trimPrefix" => two(|cut, text| text.strip_prefix(cut).unwrap_or(text).to_string()),
        "trimSuffix" => two(|cut, text| text.strip_suffix(cut).unwrap_or(text).to_string()),
        "contains" => test(|text, part| text.contains(part)),
        "hasPrefix" => test(|text, part| text.starts_with(part)),
        "hasSuffix" => test(|text, part| text.ends_with(part)),
        "quote" => Ok(around(arguments, format::quoted)),
        "squote" => Ok(around(arguments, |text| format!("'{text}'"))),
        "cat" => Ok(around(arguments, str::to_string)),
        "toString" => given.text(0).map(Value::text),
        "repeat" => repeat(given),
        "substr" => substr(given),
        "trunc" => truncated(given),
        "abbrev" => abbreviated(given),
        "replace" => replaced(given),
        "indent" => indented(given, ""),
        "nindent" => indented(given, "\n"),
        "plural" => plural(given),
        "wrap" => wrapped(given),
        "b64enc" => one(|text| STANDARD.encode(text)),
        "b64dec" => one(|text| match STANDARD.decode(text) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => error.to_string(),
        }),
        "base" => one(|text| text.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_string()),
        "dir" => one(|text| text.rsplit_once('/').map_or(".", |(dir, _)| dir).to_string()),
        "ext" => one(|text| {
            let file = text.rsplit('/').next().unwrap_or_default();
            file.rfind('.').map_or(String::new(), |at| file[at..].to_string())
        }),
        "isAbs" => given.text(0).map(|text| Value::Bool(text.starts_with('/'))),
        name if name.starts_with("regex") || name.starts_with("mustRegex") => return regexes(name, given),
        _ => return None,
    })
}

fn around(values: &[Value], change: impl Fn(&str) -> String) -> Value {
    let there = values.iter().filter(|value| !matches!(value, Value::Missing | Value::Nil));
    Value::text(there.map(|value| change(&as_text(value))).collect::<Vec<_>>().join(" "))
}

/// The first letter of every word in upper or lower case.
fn by_words(text: &str, upper: bool) -> String {
    let mut starts = true;
    let mut change = |c: char| {
        let out: String = match (starts, upper) {
            (true, true) => c.to_uppercase().collect(),
            (true, false) => c.to_lowercase().collect(),
            (false, _) => c.to_string(),
        };
        starts = c.is_whitespace();
        out
    };
    text.chars().map(&mut change).collect()
}

/// The words of a name in any of the usual spellings.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for c in text.chars() {
        let parts = !c.is_alphanumeric();
        if (parts || (c.is_uppercase() && before_is_lower))
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !parts) {
            word.push(c);
        }
        before_is_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn repeat(given: Given) -> Outcome {
    let (count, text) = (given.size(0)?, given.text(1)?);
    if count.saturating_mul(text.len()) > TEXT_MAX {
        return Err(format!("more than {TEXT_MAX} bytes"));
    }
    Ok(Value::text(text.repeat(count)))
}

fn substr(given: Given) -> Outcome {
    let (from, to, text) = (given.int(0)?, given.int(1)?, given.text(2)?);
    let count = text.chars().count();
    let place = |at: i64, none: usize| usize::try_from(at).unwrap_or(none).min(count);
    let (from, to) = (place(from, 0), place(to, count));
    Ok(Value::text(text.chars().skip(from).take(to.saturating_sub(from)).collect::<String>()))
}

/// The first characters, or the last ones for a negative count.
fn truncated(given: Given) -> Outcome {
    let (count, text) = (given.int(0)?, given.text(1)?);
    let most = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let skipped = if count < 0 { text.chars().count().saturating_sub(most) } else { 0 };
    Ok(Value::text(text.chars().skip(skipped).take(most).collect::<String>()))
}

fn abbreviated(given: Given) -> Outcome {
    let (width, text) = (given.size(0)?, given.text(1)?);
    if width < 4 || text.chars().count() <= width {
        return Ok(Value::text(text));
    }
    Ok(Value::text(text.chars().take(width - 3).collect::<String>() + "..."))
}

fn replaced(given: Given) -> Outcome {
    let (old, new, text) = (given.text(0)?, given.text(1)?, given.text(2)?);
    Ok(Value::text(text.replace(&old, &new)))
}

fn indented(given: Given, before: &str) -> Outcome {
    let (count, text) = (given.size(0)?.min(TEXT_MAX), given.text(1)?);
    let blanks = " ".repeat(count);
    Ok(Value::text(format!("{before}{blanks}{}", text.replace('\n', &format!("\n{blanks}")))))
}

fn plural(given: Given) -> Outcome {
    let (one, many, count) = (given.text(0)?, given.text(1)?, given.int(2)?);
    Ok(Value::text(if count == 1 { one } else { many }))
}

fn wrapped(given: Given) -> Outcome {
    let (width, text) = (given.size(0)?, given.text(1)?);
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    Ok(Value::text(out))
}

fn regexes(name: &str, given: Given) -> Option<Outcome> {
    let name = name.strip_prefix("mustR").map_or(name.to_string(), |rest| format!("r{rest}"));
    let known = [
        "regexMatch",
        "regexFind",
        "regexFindAll",
        "regexReplaceAll",
        "regexReplaceAllLiteral",
        "regexSplit",
    ];
    known.contains(&name.as_str()).then(|| regex(&name, given))
}

fn regex(name: &str, given: Given) -> Outcome {
    let regex = Regex::new(&given.text(0)?).map_err(|error| error.to_string())?;
    let text = given.text(1)?;
    let most = |at| given.int(at).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    Ok(match name {
        "regexMatch" => Value::Bool(regex.is_match(&text)),
        "regexFind" => Value::text(regex.find(&text).map_or("", |found| found.as_str())),
        "regexFindAll" => {
            let found = regex.find_iter(&text).take(most(2)?);
            Value::list(found.map(|found| Value::text(found.as_str())).collect())
        }
        "regexReplaceAll" => Value::text(regex.replace_all(&text, given.text(2)?.as_str())),
        "regexReplaceAllLiteral" => {
            Value::text(regex.replace_all(&text, regex::NoExpand(given.text(2)?.as_str())))
        }
        _ => Value::list(regex.splitn(&text, most(2)?).map(Value::text).collect()),
    })
}
