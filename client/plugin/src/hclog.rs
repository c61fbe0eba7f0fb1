//! What a plugin writes to its standard error: lines of JSON, as hclog writes them, or anything else.

use serde_json::{Map, Value};

/// A longer line is cut: nobody reads it.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// One line of a plugin's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub level: Level,
    pub module: String,
    /// The message, with its keys and values as `key=value`.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Line {
    /// What is no JSON of hclog is a message of level debug, as go-plugin takes it; Python's stack traces come so.
    pub fn parse(text: &str) -> Line {
        let mut end = text.len().min(LINE_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].trim_end();
        let fields: Option<Map<String, Value>> = serde_json::from_str(text).ok();
        match fields.filter(|fields| fields.contains_key("@message")) {
            Some(fields) => Line::of(fields),
            None => Line { level: level_of(text), module: String::new(), message: text.to_string() },
        }
    }

    fn of(mut fields: Map<String, Value>) -> Line {
        let mut taken = |key: &str| fields.remove(key).map(|value| shown(&value)).unwrap_or_default();
        let (level, module, mut message) = (taken("@level"), taken("@module"), taken("@message"));
        for (key, value) in fields.iter().filter(|(key, _)| !key.starts_with('@')) {
            message.push_str(&format!(" {key}={}", shown(value)));
        }
        let level = match level.as_str() {
            "trace" => Level::Trace,
            "info" => Level::Info,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => Level::Debug,
        };
        Line { level, module, message }
    }

    /// Into the log of this process.
    pub fn emit(&self, plugin: &str) {
        let (module, message) = (&self.module, &self.message);
        match self.level {
            Level::Trace => tracing::trace!(plugin, module, "{message}"),
            Level::Debug => tracing::debug!(plugin, module, "{message}"),
            Level::Info => tracing::info!(plugin, module, "{message}"),
            Level::Warn => tracing::warn!(plugin, module, "{message}"),
            Level::Error => tracing::error!(plugin, module, "{message}"),
        }
    }
}

/// A panic of a program in Go or Rust should be seen.
fn level_of(text: &str) -> Level {
    match text.starts_with("panic:") || text.contains("panicked at") || text.starts_with("fatal error:") {
        true => Level::Error,
        false => Level::Debug,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_hclog_and_others_are_read() {
        let line = Line::parse(
            r#"{"@level":"warn","@message":"slow","@module":"podman.api","@timestamp":"x","ms":7,"who":"a b"}"#,
        );
        let expected = ("podman.api", "slow ms=7 who=a b");
        assert_eq!((line.level, (line.module.as_str(), line.message.as_str())), (Level::Warn, expected));
        for (text, level) in [("hello", Level::Debug), ("{}", Level::Debug), ("panic: x", Level::Error)] {
            let line = Line::parse(text);
            assert_eq!((line.level, line.message.as_str()), (level, text));
        }
        assert_eq!(Line::parse(&"é".repeat(LINE_BYTES_MAX)).message.len(), LINE_BYTES_MAX);
    }
}
