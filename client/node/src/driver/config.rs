//! Reading a driver's `config` block: each key once, its type checked, no key left over.

use std::collections::BTreeMap;

use serde_json::Value;

use super::StartError;

/// The keys of a block that were not asked for yet.
#[derive(Debug)]
pub struct Reader {
    driver: &'static str,
    keys: BTreeMap<String, Value>,
}

impl Reader {
    pub fn new(driver: &'static str, keys: BTreeMap<String, Value>) -> Reader {
        Reader { driver, keys }
    }

    /// # Errors
    /// Names the first key that nobody asked for.
    pub fn finish(self) -> Result<(), StartError> {
        match self.keys.keys().next() {
            None => Ok(()),
            Some(key) => Err(invalid(format!("driver {} has no config key \"{key}\"", self.driver))),
        }
    }

    fn take<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, StartError> {
        match self.keys.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(&value) {
                Some(read) => Ok(Some(read)),
                None => Err(invalid(format!("config key \"{key}\" must be {expected}, not {value}"))),
            },
        }
    }

    pub fn text(&mut self, key: &str) -> Result<Option<String>, StartError> {
        self.take(key, "a string", scalar)
    }

    /// Texts; numbers and truth values are written out.
    pub fn texts(&mut self, key: &str) -> Result<Vec<String>, StartError> {
        let read = |value: &Value| value.as_array()?.iter().map(scalar).collect();
        Ok(self.take(key, "a list of strings", read)?.unwrap_or_default())
    }

    pub fn number(&mut self, key: &str) -> Result<Option<i64>, StartError> {
        self.take(key, "a whole number", |value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_i64(),
        })
    }

    pub fn flag(&mut self, key: &str) -> Result<bool, StartError> {
        let read = |value: &Value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_bool(),
        };
        Ok(self.take(key, "true or false", read)?.unwrap_or_default())
    }

    /// Text like `10s`, or whole nanoseconds.
    pub fn span(&mut self, key: &str) -> Result<std::time::Duration, StartError> {
        let read = |value: &Value| match value {
            Value::String(text) if text.is_empty() => Some(base::Duration::ZERO),
            Value::String(text) => text.parse().ok(),
            other => other.as_i64().map(base::Duration),
        };
        let span = self.take(key, "a duration like 10s", read)?.unwrap_or_default();
        Ok(span.to_std())
    }

    /// A nested block, in any of the forms in which job files deliver one.
    pub fn block(&mut self, key: &str) -> Result<Option<BTreeMap<String, Value>>, StartError> {
        self.take(key, "a block", |value| {
            let block = match value {
                Value::Array(items) => items.last()?,
                single => single,
            };
            Some(block.as_object()?.clone().into_iter().collect())
        })
    }

    /// For keys that are known and cannot be obeyed here.
    pub fn refuse(&mut self, key: &str, why: &str) -> Result<(), StartError> {
        match self.keys.remove(key) {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(invalid(format!("config key \"{key}\" is not supported: {why}"))),
        }
    }
}

fn invalid(text: String) -> StartError {
    StartError::Invalid(text)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(value: Value) -> Reader {
        Reader::new("raw_exec", value.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn each_type_is_read_and_wrong_ones_are_named() {
        let mut config = reader(serde_json::json!({
            "args": ["a", 1, true], "n": "5", "span": "1m", "ns": 7, "flag": true, "block": [{"x": 1}], "bad": {}
        }));
        assert_eq!(config.texts("args").unwrap(), ["a", "1", "true"]);
        assert_eq!(config.number("n").unwrap(), Some(5));
        assert_eq!(config.span("span").unwrap().as_secs(), 60);
        assert_eq!(config.span("ns").unwrap().as_nanos(), 7);
        assert!(config.flag("flag").unwrap());
        assert_eq!(config.block("block").unwrap().unwrap()["x"], 1);
        let error = config.text("bad").unwrap_err().to_string();
        assert_eq!(error, "config key \"bad\" must be a string, not {}");
        config.finish().unwrap();
    }

    #[test]
    fn a_key_nobody_knows_is_refused_by_name() {
        let error = reader(serde_json::json!({"comand": "x"})).finish().unwrap_err();
        assert_eq!(error.to_string(), "driver raw_exec has no config key \"comand\"");
    }
}
