//! One event as a line, in the forms that readers of agents' logs know.

use std::fmt::{Debug, Write};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};

/// What an event or a span says: its message, and what it names.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogRecord {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl LogRecord {
    /// Adds what the spans around an event name.
    pub(crate) fn within(&mut self, span: &LogRecord) {
        self.fields.extend(span.fields.iter().cloned());
    }

    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => self.fields.push((name, value)),
        }
    }
}

impl Visit for LogRecord {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }
}

/// `TIME [LEVEL] where: message: name=value`.
pub(crate) fn text(at: Timestamp, meta: &Metadata<'_>, record: &LogRecord, location: bool) -> String {
    let mut line = format!("{at:.3} {:<7} ", format!("[{}]", meta.level()));
    if let (true, Some(file), Some(number)) = (location, meta.file(), meta.line()) {
        let _never_fails = write!(line, "{file}:{number}: ");
    }
    line.push_str(meta.target());
    line.push_str(": ");
    line.push_str(&record.message);
    for (at, (name, value)) in record.fields.iter().enumerate() {
        let before = if at == 0 { ":" } else { "" };
        let _never_fails = match value {
            Value::String(text) if is_plain(text) => write!(line, "{before} {name}={text}"),
            value => write!(line, "{before} {name}={value}"),
        };
    }
    line.push('\n');
    line
}

/// One object; what is not named by the event has an `@` before its name.
pub(crate) fn json(at: Timestamp, meta: &Metadata<'_>, record: &LogRecord, location: bool) -> String {
    let mut object = Map::new();
    object.insert("@level".to_string(), meta.level().as_str().to_lowercase().into());
    object.insert("@message".to_string(), record.message.as_str().into());
    object.insert("@module".to_string(), meta.target().into());
    object.insert("@timestamp".to_string(), format!("{at:.6}").into());
    if let (true, Some(file), Some(number)) = (location, meta.file(), meta.line()) {
        object.insert("@caller".to_string(), format!("{file}:{number}").into());
    }
    for (name, value) in &record.fields {
        object.insert((*name).to_string(), value.clone());
    }
    format!("{}\n", Value::Object(object))
}

/// What was left out because the follower was slow.
pub(crate) fn dropped(at: Timestamp, count: u64, json: bool) -> String {
    let message = format!("Monitor dropped {count} logs during monitor request");
    if json {
        let line = serde_json::json!({
            "@level": "warn",
            "@message": message,
            "@module": "monitor",
            "@timestamp": format!("{at:.6}"),
        });
        return format!("{line}\n");
    }
    format!("{at:.3} {:<7} monitor: {message}\n", format!("[{}]", Level::WARN))
}

/// Needs no quotes to be separate from what follows.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=')
}
