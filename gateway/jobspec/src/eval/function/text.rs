use regex::RegexBuilder;

use crate::eval::convert::{to_int, to_text, wanted};
use crate::eval::{RESULT_MAX, Value, ValueError};

/// Largest compiled regular expression, in bytes; repetition counts multiply.
const REGEX_MAX: usize = 1 << 20;

fn too_long() -> ValueError {
    format!("the result grows beyond {RESULT_MAX} bytes").into()
}

fn text(value: String) -> Result<Value, ValueError> {
    Ok(Value::Text(value))
}

pub(super) fn lower(a: &[Value]) -> Result<Value, ValueError> {
    text(to_text(&a[0])?.to_lowercase())
}

pub(super) fn upper(a: &[Value]) -> Result<Value, ValueError> {
    text(to_text(&a[0])?.to_uppercase())
}

pub(super) fn title(a: &[Value]) -> Result<Value, ValueError> {
    let mut starts = true;
    // As in Go, an apostrophe ends a word; of letters beyond ASCII only space does.
    let word =
        |c: char| if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { !c.is_whitespace() };
    let whole = to_text(&a[0])?;
    let titled = whole.chars().flat_map(|c| {
        let first = std::mem::replace(&mut starts, !word(c));
        if first { c.to_uppercase().collect::<Vec<_>>() } else { vec![c] }
    });
    text(titled.collect())
}

pub(super) fn chomp(a: &[Value]) -> Result<Value, ValueError> {
    text(to_text(&a[0])?.trim_end_matches(['\r', '\n']).to_string())
}

pub(super) fn trim(a: &[Value]) -> Result<Value, ValueError> {
    let cut = to_text(&a[1])?;
    text(to_text(&a[0])?.trim_matches(|c| cut.contains(c)).to_string())
}

pub(super) fn trimspace(a: &[Value]) -> Result<Value, ValueError> {
    text(to_text(&a[0])?.trim().to_string())
}

pub(super) fn trimprefix(a: &[Value]) -> Result<Value, ValueError> {
    let (whole, prefix) = (to_text(&a[0])?, to_text(&a[1])?);
    text(whole.strip_prefix(&prefix).unwrap_or(&whole).to_string())
}

pub(super) fn trimsuffix(a: &[Value]) -> Result<Value, ValueError> {
    let (whole, suffix) = (to_text(&a[0])?, to_text(&a[1])?);
    text(whole.strip_suffix(&suffix).unwrap_or(&whole).to_string())
}

pub(super) fn strlen(a: &[Value]) -> Result<Value, ValueError> {
    Ok(Value::Int(to_text(&a[0])?.chars().count() as i128))
}

/// Text by character; a list by element.
pub(super) fn reverse(a: &[Value]) -> Result<Value, ValueError> {
    match &a[0] {
        Value::List(items) => Ok(Value::List(items.iter().rev().cloned().collect())),
        other => text(to_text(other)?.chars().rev().collect()),
    }
}

pub(super) fn substr(a: &[Value]) -> Result<Value, ValueError> {
    let characters: Vec<char> = to_text(&a[0])?.chars().collect();
    let (offset, length) = (to_int(&a[1])?, to_int(&a[2])?);
    let held = characters.len() as i64;
    let start = if offset < 0 { held.saturating_add(offset) } else { offset }.clamp(0, held);
    if length < -1 {
        return Err("the length is -1 for all, or not negative".into());
    }
    let end = if length < 0 { held } else { start.saturating_add(length).min(held) };
    text(characters[start as usize..end as usize].iter().collect())
}

pub(super) fn join(a: &[Value]) -> Result<Value, ValueError> {
    let separator = to_text(&a[0])?;
    let mut joined = String::new();
    let mut first = true;
    for list in &a[1..] {
        let Value::List(items) = list else { return Err(wanted("a list", list)) };
        for item in items {
            let item = to_text(item)?;
            let gap = if std::mem::replace(&mut first, false) { "" } else { separator.as_str() };
            if joined.len() + gap.len() + item.len() > RESULT_MAX {
                return Err(too_long());
            }
            joined.push_str(gap);
            joined.push_str(&item);
        }
    }
    text(joined)
}

pub(super) fn split(a: &[Value]) -> Result<Value, ValueError> {
    let (separator, whole) = (to_text(&a[0])?, to_text(&a[1])?);
    let part = |part: &str| Value::Text(part.to_string());
    if separator.is_empty() {
        return Ok(Value::List(whole.chars().map(|c| Value::Text(c.to_string())).collect()));
    }
    Ok(Value::List(whole.split(separator.as_str()).map(part).collect()))
}

pub(super) fn replace(a: &[Value]) -> Result<Value, ValueError> {
    let (whole, from, to) = (to_text(&a[0])?, to_text(&a[1])?, to_text(&a[2])?);
    let found = whole.matches(from.as_str()).count();
    if whole.len() + found.saturating_mul(to.len()) > RESULT_MAX {
        return Err(too_long());
    }
    text(whole.replace(&from, &to))
}

pub(super) fn regex_replace(a: &[Value]) -> Result<Value, ValueError> {
    let (whole, pattern, to) = (to_text(&a[0])?, to_text(&a[1])?, to_text(&a[2])?);
    let regex = RegexBuilder::new(&pattern).size_limit(REGEX_MAX).build();
    let regex = regex.map_err(|why| format!("not a regular expression: {why}"))?;
    let mut replaced = String::new();
    let mut after = 0;
    for found in regex.captures_iter(&whole) {
        let matched = found.get(0).expect("a match has a whole");
        replaced.push_str(&whole[after..matched.start()]);
        after = matched.end();
        found.expand(&to, &mut replaced);
        if replaced.len() > RESULT_MAX {
            return Err(too_long());
        }
    }
    replaced.push_str(&whole[after..]);
    text(replaced)
}

/// Puts `n` spaces before every line but the first.
pub(super) fn indent(a: &[Value]) -> Result<Value, ValueError> {
    let (spaces, whole) = (to_int(&a[0])?, to_text(&a[1])?);
    let spaces = usize::try_from(spaces).map_err(|_| "cannot indent by less than nothing")?;
    let lines = whole.matches('\n').count();
    if lines.saturating_mul(spaces).saturating_add(whole.len()) > RESULT_MAX {
        return Err(too_long());
    }
    text(if lines == 0 { whole } else { whole.replace('\n', &format!("\n{}", " ".repeat(spaces))) })
}

pub(super) fn basename(a: &[Value]) -> Result<Value, ValueError> {
    let path = to_text(&a[0])?;
    let path = path.trim_end_matches('/');
    text(path.rsplit('/').next().unwrap_or("").to_string())
}

pub(super) fn dirname(a: &[Value]) -> Result<Value, ValueError> {
    let path = to_text(&a[0])?;
    text(match path.rsplit_once('/') {
        None => ".".to_string(),
        Some(("", _)) => "/".to_string(),
        Some((folder, _)) => folder.to_string(),
    })
}
