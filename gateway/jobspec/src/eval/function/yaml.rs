//! YAML to values and back.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use crate::eval::convert::to_text;
use crate::eval::{RESULT_MAX, VALUE_DEPTH_MAX, Value, ValueError};

pub(super) fn yamldecode(a: &[Value]) -> Result<Value, ValueError> {
    let text = to_text(&a[0])?;
    let parser = Parser::new_from_str(&text);
    let mut reader = Reader { parser, anchors: HashMap::new(), made: 0 };
    let document = reader.document()?;
    match reader.next()? {
        Event::StreamEnd => Ok(document),
        _ => Err("more than one document".into()),
    }
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Value>,
    /// Bytes of values made, with each use of an anchor counted: aliases of aliases multiply.
    made: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, ValueError> {
        match self.parser.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(why)) => Err(format!("not YAML: {why}").into()),
            None => Ok(Event::StreamEnd),
        }
    }

    fn document(&mut self) -> Result<Value, ValueError> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
                Event::StreamEnd => return Ok(Value::Null),
                first => {
                    let value = self.node(first, 0)?;
                    return match self.next()? {
                        Event::DocumentEnd => Ok(value),
                        _ => Err("not YAML: a second value".into()),
                    };
                }
            }
        }
    }

    fn node(&mut self, event: Event<'t>, depth: usize) -> Result<Value, ValueError> {
        if depth > VALUE_DEPTH_MAX {
            return Err(format!("nested more than {VALUE_DEPTH_MAX} levels deep").into());
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_ref().map(|tag| tag.suffix.as_str());
                (anchor, scalar(&text, style, tag)?)
            }
            Event::SequenceStart(anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.object(depth)?),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                (0, value.ok_or("an alias of what is not complete")?)
            }
            _ => return Err("not YAML: a value is missing".into()),
        };
        self.made += value.weigh(VALUE_DEPTH_MAX).ok_or("nested too deep")?;
        if self.made > RESULT_MAX {
            return Err(format!("the result grows beyond {RESULT_MAX} bytes").into());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, ValueError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::List(items)),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ValueError> {
        let mut entries = BTreeMap::new();
        let mut merged = Vec::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                event => self.node(event, depth + 1)?,
            };
            let key = to_text(&key).map_err(|why| why.within("a key of an object"))?;
            let event = self.next()?;
            let value = self.node(event, depth + 1)?;
            if key == "<<" {
                merged.push(value);
            } else if entries.insert(key.clone(), value).is_some() {
                return Err(format!("the key \"{key}\" stands twice").into());
            }
        }
        for value in merged {
            merge(&mut entries, value)?;
        }
        Ok(Value::Object(entries))
    }
}

/// `<<: *other`: the entries of another object, where there are none of that name.
fn merge(entries: &mut BTreeMap<String, Value>, from: Value) -> Result<(), ValueError> {
    match from {
        Value::Object(other) => {
            for (key, value) in other {
                entries.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::List(others) => others.into_iter().try_for_each(|other| merge(entries, other)),
        _ => Err("<< takes an object or a list of objects".into()),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&str>) -> Result<Value, ValueError> {
    let wrong = |kind: &str| ValueError::new(format!("{text:?} is not {kind}"));
    match tag {
        Some("str" | "binary" | "timestamp" | "!") => return Ok(Value::Text(text.to_string())),
        Some("int" | "float") => return number(text).ok_or_else(|| wrong("a number")),
        Some("bool") => return boolean(text).ok_or_else(|| wrong("a bool")),
        Some("null") => return Ok(Value::Null),
        _ => {}
    }
    if style != ScalarStyle::Plain {
        return Ok(Value::Text(text.to_string()));
    }
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(Value::Null);
    }
    Ok(boolean(text).or_else(|| number(text)).unwrap_or_else(|| Value::Text(text.to_string())))
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|digits| !digits.starts_with(['+', '-'])) {
            return i128::from_str_radix(digits, radix).ok().map(Value::Int);
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if numeric { Value::number(text.strip_prefix('+').unwrap_or(text)) } else { None }
}

pub(super) fn yamlencode(a: &[Value]) -> Result<Value, ValueError> {
    let mut text = String::new();
    match &a[0] {
        value if is_block(value) => block(value, 0, &mut text)?,
        value => {
            inline(value, 0, &mut text);
            text.push('\n');
        }
    }
    Ok(Value::Text(text))
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::List(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        _ => false,
    }
}

/// A list or an object, one line for each element; the first continues the line that was begun.
fn block(value: &Value, indent: usize, text: &mut String) -> Result<(), ValueError> {
    let pad = " ".repeat(indent);
    let start = |at: usize, text: &mut String| {
        if at > 0 {
            text.push_str(&pad);
        }
    };
    match value {
        Value::List(items) => {
            for (at, item) in items.iter().enumerate() {
                start(at, text);
                text.push_str("- ");
                if is_block(item) {
                    block(item, indent + 2, text)?;
                } else {
                    inline(item, indent + 2, text);
                    text.push('\n');
                }
            }
        }
        Value::Object(entries) => {
            for (at, (key, value)) in entries.iter().enumerate() {
                start(at, text);
                text.push_str(&quoted(key));
                text.push(':');
                entry(value, indent, text)?;
            }
        }
        _ => {}
    }
    if text.len() > RESULT_MAX {
        Err(format!("the result grows beyond {RESULT_MAX} bytes").into())
    } else {
        Ok(())
    }
}

/// What stands after a key: lists at its own indentation, objects two further in.
fn entry(value: &Value, indent: usize, text: &mut String) -> Result<(), ValueError> {
    if !is_block(value) {
        text.push(' ');
        inline(value, indent + 2, text);
        text.push('\n');
        return Ok(());
    }
    let inner = if matches!(value, Value::List(_)) { indent } else { indent + 2 };
    text.push('\n');
    text.push_str(&" ".repeat(inner));
    block(value, inner, text)
}

fn inline(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::List(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
        Value::Text(own) if is_literal(own) => literal(own, indent, text),
        Value::Text(own) => text.push_str(&quoted(own)),
        other => text.push_str(&to_text(other).unwrap_or_default()),
    }
}

/// Text of several lines, as long as nothing in it needs an escape.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || c == '\u{feff}')
}

fn literal(own: &str, indent: usize, text: &mut String) {
    let body = own.trim_end_matches('\n');
    let ends = own.len() - body.len();
    text.push_str(match ends {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in own[..own.len() - ends.min(1)].split('\n') {
        text.push('\n');
        if !line.is_empty() {
            text.push_str(&" ".repeat(indent));
            text.push_str(line);
        }
    }
}

fn quoted(own: &str) -> String {
    let mut text = String::from("\"");
    for c in own.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() || c == '\u{feff}' => text.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
