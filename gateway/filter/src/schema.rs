//! Which fields an object has, and what kind of value stands in each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value as Json;
use thiserror::Error;

/// The types of Nomad's HTTP API, by name.
const NOMAD_API: &str = include_str!("../../api/nomad/api-types.json");

/// Deepest nesting of `list<…>`, `map<…>` and aliases that a type may have.
const TYPE_DEPTH_MAX: u8 = 16;

/// A kind of value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Bool,
    Int,
    Uint,
    Float,
    /// Nanoseconds, as a number or as text such as `30s`; compared as an integer.
    Duration,
    /// Base64 text; only whether it is there can be asked.
    Bytes,
    /// Whatever the document holds.
    Any,
    List(Box<Type>),
    /// Keys are text, whatever Nomad's API calls them.
    Map(Box<Type>),
    /// An object with the fields of this type of the schema.
    Object(String),
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("Nomad's API has no usable type {0:?}")]
pub struct SchemaError(pub String);

/// Types by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    objects: BTreeMap<String, BTreeMap<String, Type>>,
}

impl Schema {
    /// The types of Nomad's HTTP API: `Job`, `Allocation`, `Node` and the rest.
    pub fn nomad() -> &'static Schema {
        static LOADED: LazyLock<Schema> = LazyLock::new(|| {
            let document: Json = serde_json::from_str(NOMAD_API).expect("the description of the API is JSON");
            Schema::read(&document["types"]).expect("the description of the API names only types it has")
        });
        &LOADED
    }

    /// Reads types as `gateway/api/nomad` has them: `{"Name": {"kind": "object", "fields": [{"name": …, "type": …}]}}`
    /// or `{"kind": "alias", "of": …}`. Fields that only clients know are not part of an object.
    ///
    /// # Errors
    /// When a field is of a type that is neither in the vocabulary nor in `types`, or aliases run in a circle.
    pub fn read(types: &Json) -> Result<Schema, SchemaError> {
        let mut schema = Schema::default();
        let Some(named) = types.as_object() else { return Err(SchemaError("types".to_string())) };
        for (name, entry) in named {
            if entry["kind"] == "object" {
                schema.objects.insert(name.clone(), fields(types, entry)?);
            }
        }
        Ok(schema)
    }

    /// The field names of a type; `None` when the schema has no such object.
    pub fn fields(&self, object: &str) -> Option<impl Iterator<Item = &str>> {
        Some(self.objects.get(object)?.keys().map(String::as_str))
    }

    /// The type of one field; `None` when the object, or its field, is unknown.
    pub fn field(&self, object: &str, field: &str) -> Option<&Type> {
        self.objects.get(object)?.get(field)
    }

    pub fn has(&self, object: &str) -> bool {
        self.objects.contains_key(object)
    }
}

fn fields(types: &Json, entry: &Json) -> Result<BTreeMap<String, Type>, SchemaError> {
    let listed = entry["fields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let known = listed.iter().filter(|field| field["side"] != "client_only");
    let typed = known.map(|field| {
        let text = |key: &str| field[key].as_str().unwrap_or_default().to_string();
        Ok((text("name"), read_type(types, &text("type"), 0)?))
    });
    typed.collect()
}

fn read_type(types: &Json, text: &str, depth: u8) -> Result<Type, SchemaError> {
    let wrong = || SchemaError(text.to_string());
    if depth > TYPE_DEPTH_MAX {
        return Err(wrong());
    }
    if let Some(inner) = between(text, "list<") {
        return Ok(Type::List(Box::new(read_type(types, inner, depth + 1)?)));
    }
    if let Some((_, value)) = between(text, "map<").and_then(|inner| inner.split_once(',')) {
        return Ok(Type::Map(Box::new(read_type(types, value.trim(), depth + 1)?)));
    }
    Ok(match text {
        "string" | "timestamp" => Type::Text,
        "bool" => Type::Bool,
        "int" | "int8" | "int16" | "int32" | "int64" => Type::Int,
        "uint" | "uint8" | "uint16" | "uint32" | "uint64" => Type::Uint,
        "float32" | "float64" => Type::Float,
        "duration_ns" | "duration_string" => Type::Duration,
        "bytes_base64" => Type::Bytes,
        "any" => Type::Any,
        name => match types[name]["kind"].as_str() {
            Some("object") => Type::Object(name.to_string()),
            Some("alias") => read_type(types, types[name]["of"].as_str().unwrap_or_default(), depth + 1)?,
            _ => return Err(wrong()),
        },
    })
}

fn between<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    text.strip_prefix(prefix)?.strip_suffix('>')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nomads_types_load_and_name_jobs_nodes_and_allocations() {
        let schema = Schema::nomad();
        assert_eq!(schema.field("Job", "Status"), Some(&Type::Text));
        assert_eq!(schema.field("Job", "Meta"), Some(&Type::Map(Box::new(Type::Text))));
        let groups = Type::List(Box::new(Type::Object("TaskGroup".to_string())));
        assert_eq!(schema.field("Job", "TaskGroups"), Some(&groups));
        assert_eq!(schema.field("Task", "KillTimeout"), Some(&Type::Duration));
        assert_eq!(schema.field("Node", "Drain"), Some(&Type::Bool));
        assert!(schema.has("Allocation"));
        assert_eq!(schema.field("Job", "JobSummary"), None);
    }

    #[test]
    fn aliases_are_followed_and_never_in_circles() {
        let types = json!({
            "Color": {"kind": "alias", "of": "string"},
            "Paint": {"kind": "object", "fields": [{"name": "Colors", "type": "map<Color,list<Color>>"}]},
        });
        let schema = Schema::read(&types).unwrap();
        let colors = Type::Map(Box::new(Type::List(Box::new(Type::Text))));
        assert_eq!(schema.field("Paint", "Colors"), Some(&colors));
        let circle = json!({
            "A": {"kind": "alias", "of": "list<A>"},
            "B": {"kind": "object", "fields": [{"name": "X", "type": "A"}]},
        });
        assert!(Schema::read(&circle).is_err());
        let unknown = json!({"B": {"kind": "object", "fields": [{"name": "X", "type": "Nothing"}]}});
        assert_eq!(Schema::read(&unknown), Err(SchemaError("Nothing".to_string())));
    }
}
