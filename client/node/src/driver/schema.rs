//! Configuration blocks of drivers: which keys there are, and of which type.
//!
//! A driver declares a [`Schema`]; [`Values::read`] reads a block and rejects unknown keys and
//! wrong types by name. Both the `config` block of a task and that of a `plugin` in the agent's configuration are
//! declared this way.

use std::collections::BTreeMap;

use serde_json::Value;

/// All keys of one block, in several lists so that blocks can share some.
#[derive(Clone, Copy, Debug)]
pub struct Schema(pub &'static [&'static [Field]]);

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub key: &'static str,
    pub value: ValueType,
    pub required: bool,
}

impl Field {
    pub const fn optional(key: &'static str, value: ValueType) -> Field {
        Field { key, value, required: false }
    }

    pub const fn required(key: &'static str, value: ValueType) -> Field {
        Field { key, value, required: true }
    }
}

/// What a key may hold.
#[derive(Clone, Copy, Debug)]
pub enum ValueType {
    /// Numbers and booleans are accepted as their text.
    Text,
    TextList,
    /// The same, or a single text, which is a list of one.
    TextOrList,
    /// Texts by names, written as a block, as a map, or as a list of these, of which later ones override.
    TextMap,
    /// A whole number, or a text that is one.
    Number,
    /// `true`, `false`, or one of these as text.
    Boolean,
    /// A text like `10s`, or whole nanoseconds.
    Duration,
    /// A nested block, in any of the forms in which job files deliver one.
    Block(Schema),
    /// Any number of such blocks, in their order.
    Blocks(Schema),
    /// A key of Nomad that this release rejects, and why.
    Unsupported(&'static str),
}

impl Schema {
    pub fn fields(self) -> impl Iterator<Item = &'static Field> {
        self.0.iter().copied().flatten()
    }
}

/// A block that fits its schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(BTreeMap<&'static str, Checked>);

/// A value of the type that its field declares.
#[derive(Clone, Debug, PartialEq)]
enum Checked {
    Text(String),
    TextList(Vec<String>),
    TextMap(BTreeMap<String, String>),
    Number(i64),
    Boolean(bool),
    Block(Values),
    Blocks(Vec<Values>),
}

impl Values {
    /// # Errors
    /// Names the first key that is required and missing, has a wrong type, or is not in the schema.
    pub fn read(driver: &str, schema: Schema, mut block: BTreeMap<String, Value>) -> Result<Values, String> {
        let mut values = BTreeMap::new();
        for field in schema.fields() {
            let given = block.remove(field.key).filter(|value| !value.is_null());
            let value = given.map(|given| field.read(driver, &given)).transpose()?;
            match value.filter(|value| !(field.required && value.is_empty())) {
                Some(value) => drop(values.insert(field.key, value)),
                None if field.required => return Err(format!("config key \"{}\" is required", field.key)),
                None => {}
            }
        }
        match block.keys().next() {
            None => Ok(Values(values)),
            Some(key) => Err(format!("driver {driver} has no config key \"{key}\"")),
        }
    }

    /// None when the key is missing or empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Checked::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Empty when the key is missing.
    pub fn texts(&self, key: &str) -> &[String] {
        match self.0.get(key) {
            Some(Checked::TextList(texts)) => texts,
            _ => &[],
        }
    }

    /// The texts by their names; empty when the key is missing.
    pub fn map(&self, key: &str) -> BTreeMap<String, String> {
        match self.0.get(key) {
            Some(Checked::TextMap(texts)) => texts.clone(),
            _ => BTreeMap::new(),
        }
    }

    pub fn number(&self, key: &str) -> Option<i64> {
        match self.0.get(key)? {
            Checked::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// False when the key is missing.
    pub fn boolean(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some(Checked::Boolean(true)))
    }

    /// None when the key is missing.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.0.get(key)? {
            Checked::Boolean(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Zero when the key is missing.
    pub fn duration(&self, key: &str) -> std::time::Duration {
        base::Duration(self.number(key).unwrap_or_default()).to_std()
    }

    pub fn block(&self, key: &str) -> Option<&Values> {
        match self.0.get(key)? {
            Checked::Block(values) => Some(values),
            _ => None,
        }
    }

    /// Empty when the key is missing.
    pub fn blocks(&self, key: &str) -> &[Values] {
        match self.0.get(key) {
            Some(Checked::Blocks(blocks)) => blocks,
            _ => &[],
        }
    }
}

impl Checked {
    fn is_empty(&self) -> bool {
        matches!(self, Checked::Text(text) if text.is_empty())
    }
}

impl Field {
    fn read(&self, driver: &str, given: &Value) -> Result<Checked, String> {
        let (expected, read) = match self.value {
            ValueType::Text => ("a string", scalar(given).map(Checked::Text)),
            ValueType::TextList => ("a list of strings", text_list(given).map(Checked::TextList)),
            ValueType::TextOrList => {
                let texts = scalar(given).map(|text| vec![text]).or_else(|| text_list(given));
                ("a string or a list of strings", texts.map(Checked::TextList))
            }
            ValueType::TextMap => ("a block of strings", text_map(given).map(Checked::TextMap)),
            ValueType::Number => ("a whole number", number(given).map(Checked::Number)),
            ValueType::Boolean => ("true or false", boolean(given).map(Checked::Boolean)),
            ValueType::Duration => ("a duration like 10s", nanoseconds(given).map(Checked::Number)),
            ValueType::Block(schema) => match nested(given) {
                Some(block) => return Values::read(driver, schema, block).map(Checked::Block),
                None => ("a block", None),
            },
            ValueType::Blocks(schema) => match several(given) {
                Some(blocks) => {
                    let blocks = blocks.into_iter().map(|block| Values::read(driver, schema, block));
                    return blocks.collect::<Result<_, _>>().map(Checked::Blocks);
                }
                None => ("a block", None),
            },
            ValueType::Unsupported(why) => {
                return Err(format!("config key \"{}\" is not supported: {why}", self.key));
            }
        };
        read.ok_or_else(|| format!("config key \"{}\" must be {expected}, not {given}", self.key))
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn text_list(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(scalar).collect()
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_bool(),
    }
}

fn nanoseconds(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) if text.is_empty() => Some(0),
        Value::String(text) => text.parse::<base::Duration>().ok().map(|span| span.0),
        other => other.as_i64(),
    }
}

fn text_map(value: &Value) -> Option<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for block in several(value)? {
        for (name, value) in block {
            texts.insert(name, scalar(&value)?);
        }
    }
    Some(texts)
}

fn several(value: &Value) -> Option<Vec<BTreeMap<String, Value>>> {
    let fields = |value: &Value| Some(value.as_object()?.clone().into_iter().collect());
    match value {
        Value::Array(items) => items.iter().map(fields).collect(),
        single => Some(vec![fields(single)?]),
    }
}

fn nested(value: &Value) -> Option<BTreeMap<String, Value>> {
    let block = match value {
        Value::Array(items) => items.last()?,
        single => single,
    };
    Some(block.as_object()?.clone().into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: Schema = Schema(&[&[Field::optional("x", ValueType::Number)]]);
    const SCHEMA: Schema = Schema(&[
        &[Field::required("command", ValueType::Text), Field::optional("args", ValueType::TextList)],
        &[
            Field::optional("n", ValueType::Number),
            Field::optional("span", ValueType::Duration),
            Field::optional("on", ValueType::Boolean),
            Field::optional("block", ValueType::Block(INNER)),
            Field::optional("old", ValueType::Unsupported("it is gone")),
            Field::optional("labels", ValueType::TextMap),
            Field::optional("mount", ValueType::Blocks(INNER)),
        ],
    ]);

    fn read(value: Value) -> Result<Values, String> {
        Values::read("toy", SCHEMA, value.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn each_type_is_read() {
        let values = read(serde_json::json!({
            "command": "c", "args": ["a", 1, true], "n": "5", "span": "1m", "on": "true", "block": [{"x": 1}],
            "old": null
        }))
        .unwrap();
        assert_eq!(
            (values.text("command"), values.texts("args")),
            (Some("c"), &["a", "1", "true"].map(String::from)[..])
        );
        assert_eq!(
            (values.number("n"), values.duration("span").as_secs(), values.boolean("on")),
            (Some(5), 60, true)
        );
        assert_eq!(values.block("block").unwrap().number("x"), Some(1));
        assert_eq!(
            read(serde_json::json!({"command": "c", "span": 7})).unwrap().duration("span").as_nanos(),
            7
        );
    }

    #[test]
    fn maps_and_repeated_blocks_are_read_in_each_form() {
        for labels in
            [serde_json::json!({"a": 1, "b": "x"}), serde_json::json!([{"a": 2}, {"b": "x", "a": "1"}])]
        {
            let values = read(serde_json::json!({"command": "c", "labels": labels})).unwrap();
            assert_eq!(
                values.map("labels"),
                [("a", "1"), ("b", "x")].map(|(k, v)| (k.into(), v.into())).into()
            );
        }
        let values =
            read(serde_json::json!({"command": "c", "mount": [{"x": 1}, {"x": 2}], "on": false})).unwrap();
        let numbers: Vec<_> = values.blocks("mount").iter().map(|block| block.number("x")).collect();
        assert_eq!(numbers, [Some(1), Some(2)]);
        assert_eq!((values.flag("on"), values.flag("old")), (Some(false), None));
        assert!(values.map("none").is_empty() && values.blocks("none").is_empty());
        let wrong = read(serde_json::json!({"command": "c", "mount": [{"y": 1}]})).unwrap_err();
        assert_eq!(wrong, "driver toy has no config key \"y\"");
        let wrong = read(serde_json::json!({"command": "c", "labels": {"a": []}})).unwrap_err();
        assert_eq!(wrong, "config key \"labels\" must be a block of strings, not {\"a\":[]}");
    }

    #[test]
    fn every_mistake_is_named() {
        for (block, text) in [
            (serde_json::json!({}), "config key \"command\" is required"),
            (serde_json::json!({"command": ""}), "config key \"command\" is required"),
            (serde_json::json!({"command": "c", "comand": "x"}), "driver toy has no config key \"comand\""),
            (serde_json::json!({"command": {}}), "config key \"command\" must be a string, not {}"),
            (
                serde_json::json!({"command": "c", "n": "x"}),
                "config key \"n\" must be a whole number, not \"x\"",
            ),
            (serde_json::json!({"command": "c", "block": {"y": 1}}), "driver toy has no config key \"y\""),
            (
                serde_json::json!({"command": "c", "old": 1}),
                "config key \"old\" is not supported: it is gone",
            ),
        ] {
            assert_eq!(read(block).unwrap_err(), text);
        }
    }
}
