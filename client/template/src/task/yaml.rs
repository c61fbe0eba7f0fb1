//! YAML to values.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use crate::builtin::Outcome;
use crate::value::Value;

const DEPTH_MAX: usize = 100;

/// Values that a text may hold, with each use of an anchor counted: aliases of aliases multiply.
const VALUES_MAX: usize = 1 << 20;

/// The first document; an empty map when there is none.
pub fn parse(text: &str) -> Outcome {
    if text.is_empty() {
        return Ok(Value::map(BTreeMap::new()));
    }
    let mut reader = Reader { parser: Parser::new_from_str(text), anchors: HashMap::new(), made: 0 };
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd => return Ok(Value::Nil),
            first => return Ok(reader.node(first, 0)?.0),
        }
    }
}

/// Whether the plain text means itself, not a number, a bool or nothing.
pub fn is_text(text: &str) -> bool {
    matches!(plain(text), Value::Text(_)) && text != "<<" && text != "="
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, (Value, usize)>,
    made: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, String> {
        match self.parser.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(why)) => Err(format!("not YAML: {why}")),
            None => Ok(Event::StreamEnd),
        }
    }

    /// A value, and how many values it is.
    fn node(&mut self, event: Event<'t>, depth: usize) -> Result<(Value, usize), String> {
        if depth > DEPTH_MAX {
            return Err(format!("nested more than {DEPTH_MAX} levels deep"));
        }
        let before = self.made;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_ref().map(|tag| tag.suffix.as_str());
                let is_plain = style == ScalarStyle::Plain && tag != Some("str");
                (anchor, if is_plain { plain(&text) } else { Value::text(&text) })
            }
            Event::SequenceStart(anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => {
                let (value, weight) = self.anchors.get(&anchor).cloned().ok_or("an alias of nothing")?;
                self.made += weight;
                (0, value)
            }
            _ => return Err("not YAML: a value is missing".to_string()),
        };
        self.made += 1;
        if self.made > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values"));
        }
        let weight = self.made - before;
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), weight));
        }
        Ok((value, weight))
    }

    fn list(&mut self, depth: usize) -> Outcome {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::list(items)),
                event => items.push(self.node(event, depth + 1)?.0),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Outcome {
        let (mut entries, mut merged) = (BTreeMap::new(), Vec::new());
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                event => self.node(event, depth + 1)?.0.shown(),
            };
            let event = self.next()?;
            let value = self.node(event, depth + 1)?.0;
            match (key.as_str(), value) {
                ("<<", Value::List(many)) => merged.extend(many.iter().cloned()),
                ("<<", value) => merged.push(value),
                (_, value) => drop(entries.insert(key, value)),
            }
        }
        for value in merged {
            let Value::Map(other) = value else { return Err("<< takes a map".to_string()) };
            for (key, value) in other.iter() {
                entries.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        Ok(Value::map(entries))
    }
}

/// As YAML 1.1 reads a text without quotes.
fn plain(text: &str) -> Value {
    let lower = text.to_ascii_lowercase();
    let usual = lower == text || text.to_ascii_uppercase() == text || is_capitalised(text);
    match lower.as_str() {
        "" | "~" | "null" if usual => Value::Nil,
        "true" | "yes" | "on" | "y" if usual => Value::Bool(true),
        "false" | "no" | "off" | "n" if usual => Value::Bool(false),
        ".nan" if usual => Value::Float(f64::NAN),
        ".inf" | "+.inf" if usual => Value::Float(f64::INFINITY),
        "-.inf" if usual => Value::Float(f64::NEG_INFINITY),
        _ => number(text).unwrap_or_else(|| Value::text(text)),
    }
}

fn is_capitalised(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(char::is_uppercase) && chars.all(char::is_lowercase)
}

fn number(text: &str) -> Option<Value> {
    let digits = text.replace('_', "");
    let (negative, unsigned) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let radix =
        [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, _)| unsigned.starts_with(prefix));
    let whole = match radix {
        Some((_, radix)) => i128::from_str_radix(&unsigned[2..], radix).ok(),
        None if unsigned.len() > 1 && unsigned.starts_with('0') => i128::from_str_radix(unsigned, 8).ok(),
        None => unsigned.parse::<i128>().ok(),
    };
    if let Some(whole) = whole {
        let whole = if negative { -whole } else { whole };
        let small = i64::try_from(whole).map(Value::Int);
        return small.or_else(|_| u64::try_from(whole).map(Value::Uint)).ok();
    }
    let is_float = unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if is_float { digits.parse().ok().map(Value::Float) } else { None }
}
