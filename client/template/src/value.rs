use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a pipeline carries. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// What a map does not hold; no JSON says that.
    Missing,
    Nil,
    Bool(bool),
    Int(i64),
    /// Only what is too large for [`Value::Int`].
    Uint(u64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<Vec<Value>>),
    Map(Rc<BTreeMap<String, Value>>),
    /// A text that is no UTF-8.
    Bytes(Rc<[u8]>),
    Object(Rc<Object>),
    /// Where a template notes values for later.
    Scratch(Rc<RefCell<BTreeMap<String, Value>>>),
}

/// A value with more to ask for than it shows.
#[derive(Debug, PartialEq)]
pub struct Object {
    /// What it is to functions, to `range`, and in print.
    pub plain: Value,
    /// What stands behind names besides the keys that `plain` may have; they come first.
    pub methods: BTreeMap<&'static str, Value>,
    /// What a key gives that `plain` does not have.
    pub absent: Value,
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Nil,
            serde_json::Value::Bool(yes) => Value::Bool(*yes),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Value::Int(number),
                (None, Some(number)) => Value::Uint(number),
                (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::text(text),
            serde_json::Value::Array(items) => Value::list(items.iter().map(Value::from).collect()),
            serde_json::Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| (key.clone(), Value::from(value)));
                Value::Map(Rc::new(entries.collect()))
            }
        }
    }
}

impl Value {
    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Text(Rc::from(text.as_ref()))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(items))
    }

    pub fn map(entries: BTreeMap<String, Value>) -> Value {
        Value::Map(Rc::new(entries))
    }

    /// A text, as a function made it.
    pub fn from_bytes(bytes: Vec<u8>) -> Value {
        match String::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(error) => Value::Bytes(Rc::from(error.into_bytes())),
        }
    }

    /// Without what only an object has.
    pub fn plain(self) -> Value {
        match self {
            Value::Object(object) => object.plain.clone(),
            other => other,
        }
    }

    pub fn size(count: usize) -> Value {
        Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// What conditions make of it: zero, empty and nothing are false.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Missing | Value::Nil => false,
            Value::Bool(yes) => *yes,
            Value::Int(number) => *number != 0,
            Value::Uint(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Map(entries) => !entries.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::Object(object) => object.plain.is_true(),
            Value::Scratch(_) => true,
        }
    }

    /// Its type, in Go's words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Missing | Value::Nil => "<nil>",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint64",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::List(_) => "[]interface {}",
            Value::Map(_) => "map[string]interface {}",
            Value::Bytes(_) => "string",
            Value::Object(object) => object.plain.kind(),
            Value::Scratch(_) => "*template.Scratch",
        }
    }

    /// As `%v` prints it.
    pub fn shown(&self) -> String {
        match self {
            Value::Missing => "<no value>".to_string(),
            Value::Nil => "<nil>".to_string(),
            Value::Bool(yes) => yes.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Uint(number) => number.to_string(),
            Value::Float(number) => crate::format::shortest(*number),
            Value::Text(text) => text.to_string(),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(Value::shown_inside).collect();
                format!("[{}]", items.join(" "))
            }
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{key}:{}", value.shown_inside()));
                format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
            }
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Object(object) => object.plain.shown(),
            Value::Scratch(_) => "scratch".to_string(),
        }
    }

    fn shown_inside(&self) -> String {
        if matches!(self, Value::Missing) { "<nil>".to_string() } else { self.shown() }
    }

    /// Back to JSON, for functions that write it.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Missing | Value::Nil => serde_json::Value::Null,
            Value::Bool(yes) => (*yes).into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Text(text) => text.as_ref().into(),
            Value::List(items) => items.iter().map(Value::json).collect(),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.clone(), value.json()));
                serde_json::Value::Object(entries.collect())
            }
            Value::Bytes(_) => self.shown().into(),
            Value::Object(object) => object.plain.json(),
            Value::Scratch(_) => serde_json::Value::Null,
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Uint(number) => i64::try_from(*number).ok(),
            Value::Object(object) => object.plain.as_int(),
            Value::Missing
            | Value::Nil
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Bytes(_)
            | Value::Scratch(_) => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Uint(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Object(object) => object.plain.as_float(),
            Value::Missing
            | Value::Nil
            | Value::Bool(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Bytes(_)
            | Value::Scratch(_) => None,
        }
    }
}
