//! Values as JSON, YAML and TOML, byte by byte as Go's libraries write them.

use std::collections::BTreeMap;

use crate::value::Value;

/// Objects by their keys; `escape` also writes `<`, `>` and `&` as escapes.
pub fn json(value: &Value, escape: bool, pretty: bool) -> String {
    let mut out = String::new();
    Json { escape, pretty }.value(value, 0, &mut out);
    out
}

struct Json {
    escape: bool,
    pretty: bool,
}

impl Json {
    fn value(&self, value: &Value, depth: usize, out: &mut String) {
        match value {
            Value::Missing | Value::Nil | Value::Scratch(_) => out.push_str("null"),
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) => out.push_str(&value.shown()),
            Value::Float(number) => out.push_str(&json_float(*number)),
            Value::Text(text) => self.text(text, out),
            Value::Bytes(_) => self.text(&value.shown(), out),
            Value::Object(object) => self.value(&object.plain, depth, out),
            Value::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.separate(at, depth + 1, out);
                    self.value(item, depth + 1, out);
                }
                self.end(items.is_empty(), depth, ']', out);
            }
            Value::Map(entries) => {
                out.push('{');
                for (at, (key, item)) in entries.iter().enumerate() {
                    self.separate(at, depth + 1, out);
                    self.text(key, out);
                    out.push_str(if self.pretty { ": " } else { ":" });
                    self.value(item, depth + 1, out);
                }
                self.end(entries.is_empty(), depth, '}', out);
            }
        }
    }

    fn separate(&self, at: usize, depth: usize, out: &mut String) {
        if at > 0 {
            out.push(',');
        }
        self.new_line(depth, out);
    }

    fn end(&self, empty: bool, depth: usize, close: char, out: &mut String) {
        if !empty {
            self.new_line(depth, out);
        }
        out.push(close);
    }

    fn new_line(&self, depth: usize, out: &mut String) {
        if self.pretty {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        }
    }

    fn text(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '<' | '>' | '&' if self.escape => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// Without an exponent between 1e-6 and 1e21.
fn json_float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return match text.split_once("e-") {
            Some(_) => text,
            None => text.replace('e', "e+"),
        };
    }
    format!("{number}")
}

/// Blocks of two spaces, lists at the level of their key.
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(object) => return yaml(&object.plain),
        Value::List(items) if !items.is_empty() => list(items, 0, true, &mut out),
        Value::Map(entries) if !entries.is_empty() => map(entries, 0, true, &mut out),
        scalar => yaml_scalar(scalar, 0, &mut out),
    }
    out.trim().to_string()
}

/// `starts`: the cursor stands where the first line has its indentation already.
fn list(items: &[Value], indent: usize, starts: bool, out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 || !starts {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str("- ");
        match item.clone().plain() {
            Value::List(inner) if !inner.is_empty() => list(&inner, indent + 2, true, out),
            Value::Map(inner) if !inner.is_empty() => map(&inner, indent + 2, true, out),
            scalar => {
                yaml_scalar(&scalar, indent + 2, out);
                out.push('\n');
            }
        }
    }
}

fn map(entries: &BTreeMap<String, Value>, indent: usize, starts: bool, out: &mut String) {
    for (at, (key, item)) in entries.iter().enumerate() {
        if at > 0 || !starts {
            out.push_str(&" ".repeat(indent));
        }
        yaml_scalar(&Value::text(key), indent, out);
        out.push(':');
        match item.clone().plain() {
            Value::List(inner) if !inner.is_empty() => {
                out.push('\n');
                list(&inner, indent, false, out);
            }
            Value::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                map(&inner, indent + 2, false, out);
            }
            scalar => {
                out.push(' ');
                yaml_scalar(&scalar, indent + 2, out);
                out.push('\n');
            }
        }
    }
}

fn yaml_scalar(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Missing | Value::Nil | Value::Scratch(_) => out.push_str("null"),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
        Value::Float(number) if number.is_nan() => out.push_str(".nan"),
        Value::Float(number) if number.is_infinite() => {
            out.push_str(if *number > 0.0 { ".inf" } else { "-.inf" });
        }
        Value::Text(text) => yaml_text(text, indent, out),
        other => out.push_str(&other.shown()),
    }
}

fn yaml_text(text: &str, indent: usize, out: &mut String) {
    let is_special = |c: char| c.is_control() && c != '\n' || c == '\u{feff}';
    if text.chars().any(is_special) || !super::yaml::is_text(text) {
        out.push_str(&crate::format::quoted(text));
    } else if text.contains('\n') {
        literal(text, indent, out);
    } else if is_plain(text) {
        out.push_str(text);
    } else {
        out.push_str(&format!("'{}'", text.replace('\'', "''")));
    }
}

/// `|`, and the lines; the mark says how many line breaks end it.
fn literal(text: &str, indent: usize, out: &mut String) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = text.trim_end_matches('\n');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 if !body.is_empty() => {}
        _ => out.push('+'),
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
    }
}

fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let (first, second) = (chars.next().unwrap_or(' '), chars.next());
    let begins_badly = "#,[]{}&*!|>'\"%@`".contains(first)
        || ("-?:".contains(first) && second.is_none_or(|c| c == ' '))
        || (first == '-' && text.starts_with("---"))
        || text.starts_with("...");
    let blank_at_an_end = text.starts_with(' ') || text.ends_with(' ');
    !begins_badly && !blank_at_an_end && !text.contains(": ") && !text.contains(" #") && !text.ends_with(':')
}

/// Values first, then tables, each indented below its parent.
pub fn toml(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    match value {
        Value::Object(object) => return toml(&object.plain),
        Value::Map(entries) => table(entries, &[], &mut out)?,
        Value::Missing | Value::Nil => {}
        other => return Err(format!("TOML is a table, not {}", other.kind())),
    }
    Ok(out.trim().to_string())
}

fn is_table_list(value: &Value) -> bool {
    matches!(value, Value::List(items) if !items.is_empty() && items.iter().all(|item| matches!(item, Value::Map(_))))
}

fn table(entries: &BTreeMap<String, Value>, path: &[String], out: &mut String) -> Result<(), String> {
    let indent = "  ".repeat(path.len());
    let nothing = |value: &Value| matches!(value, Value::Missing | Value::Nil);
    let entries = || entries.iter().map(|(key, value)| (key, value.clone().plain()));
    for (key, value) in entries().filter(|(_, value)| !nothing(value)) {
        if !matches!(value, Value::Map(_)) && !is_table_list(&value) {
            out.push_str(&format!("{indent}{} = {}\n", toml_key(key), toml_value(&value)?));
        }
    }
    for (key, value) in entries() {
        let inner: Vec<String> = path.iter().cloned().chain([toml_key(key)]).collect();
        match value {
            Value::Map(own) => {
                out.push_str(&format!("\n{indent}[{}]\n", inner.join(".")));
                table(&own, &inner, out)?;
            }
            Value::List(items) if is_table_list(&Value::List(items.clone())) => {
                for item in items.iter() {
                    let Value::Map(own) = item else { continue };
                    out.push_str(&format!("\n{indent}[[{}]]\n", inner.join(".")));
                    table(own, &inner, out)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_string() } else { crate::format::quoted(key) }
}

fn toml_value(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Float(number) => {
            let text = crate::format::shortest(*number);
            if text.contains(['.', 'e', 'N', 'I']) { text } else { text + ".0" }
        }
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => value.shown(),
        Value::Text(_) | Value::Bytes(_) => crate::format::quoted(&value.shown()),
        Value::List(items) => {
            let items = items.iter().map(toml_value).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(object) => toml_value(&object.plain)?,
        other => return Err(format!("TOML has no {} in a list", other.kind())),
    })
}
