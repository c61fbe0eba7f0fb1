//! Reads JSON the way Go does: keys match whatever their case (an exact match wins), `null` is the zero value of whatever
//! was asked for, unknown keys are ignored. Unlike Go, an error names the field: `Job.TaskGroups[0].Count: …`.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::shape::Duration;

/// A value of the wrong shape, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{message}", if .path.is_empty() { "" } else { ": " })]
pub struct InputError {
    /// From the outside in, like `Job.TaskGroups[0].Count`; empty for the document itself.
    pub path: String,
    pub message: String,
}

impl de::Error for InputError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        InputError { path: String::new(), message: message.to_string() }
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = match expected.to_string() {
            rust if ["i8", "i32", "i64", "u8", "u32", "u64"].contains(&rust.as_str()) => {
                "a whole number".into()
            }
            rust if rust == "f64" => "a number".into(),
            words => words,
        };
        Self::custom(format_args!("invalid type: {found}, expected {expected}"))
    }
}

impl InputError {
    fn within(mut self, outer: &str) -> InputError {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{outer}{dot}{}", self.path);
        self
    }
}

/// Reads a document out of parsed JSON. Durations may be text, as people write them.
///
/// # Errors
/// [`InputError`] with the path of the first value of a wrong type.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, InputError> {
    T::deserialize(Input { value, durations: Durations::Any })
}

/// Reads the body of a request: durations are nanoseconds there, and text is refused as Nomad refuses it. The few that are
/// text in Nomad's API take both.
///
/// # Errors
/// As [`from_value`].
pub fn from_request<T: DeserializeOwned>(value: Value) -> Result<T, InputError> {
    T::deserialize(Input { value, durations: Durations::Numbers })
}

/// Reads a document out of JSON text.
///
/// # Errors
/// [`InputError`]: with an empty path when the text is not JSON, else with the path of the wrong value.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, InputError> {
    let value = serde_json::from_slice(text).map_err(|e| de::Error::custom(format!("not JSON: {e}")))?;
    from_value(value)
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What durations may be.
#[derive(Clone, Copy, PartialEq)]
enum Durations {
    Any,
    Numbers,
}

struct Input {
    value: Value,
    durations: Durations,
}

/// Go writes null for what is empty, and reads it as such: also in lists and maps.
macro_rules! zero_for_null {
    ($($method:ident => $visit:ident($zero:expr))*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InputError> {
            if self.value.is_null() { visitor.$visit($zero) } else { self.deserialize_any(visitor) }
        })*
    };
}

impl<'de> Deserializer<'de> for Input {
    type Error = InputError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InputError> {
        let durations = self.durations;
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => number.deserialize_any(visitor).map_err(de::Error::custom),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items { items: items.into_iter(), at: 0, durations }),
            Value::Object(fields) => {
                let entries = fields.into_iter().collect::<Vec<_>>();
                visitor.visit_map(Entries { entries: entries.into_iter(), value: None, durations })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InputError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, InputError> {
        if name == Duration::NAME && self.durations == Durations::Numbers && self.value.is_string() {
            let text = "expected a duration in whole nanoseconds, found a string";
            return Err(de::Error::custom(text));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InputError> {
        let fields = match self.value {
            Value::Object(fields) => fields,
            Value::Null => serde_json::Map::new(),
            // Left to the visitor, a list would fill the fields in the order of their declaration.
            other => return Err(de::Error::custom(format!("expected an object, found {}", kind(&other)))),
        };
        let mut entries: Vec<(String, Value)> = Vec::with_capacity(fields.len());
        let exact = |name: &str| known.contains(&name);
        let (matching, others): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(name, _)| exact(name));
        entries.extend(matching);
        for (name, value) in others {
            let field = known.iter().find(|field| field.eq_ignore_ascii_case(&name));
            if let Some(field) = field.filter(|field| entries.iter().all(|(taken, _)| taken != *field)) {
                entries.push(((*field).to_string(), value));
            }
        }
        entries.retain(|(_, value)| !value.is_null());
        visitor.visit_map(Entries { entries: entries.into_iter(), value: None, durations: self.durations })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InputError> {
        self.value.deserialize_enum(name, variants, visitor).map_err(de::Error::custom)
    }

    zero_for_null! {
        deserialize_bool => visit_bool(false)
        deserialize_i8 => visit_i8(0)
        deserialize_i16 => visit_i16(0)
        deserialize_i32 => visit_i32(0)
        deserialize_i64 => visit_i64(0)
        deserialize_u8 => visit_u8(0)
        deserialize_u16 => visit_u16(0)
        deserialize_u32 => visit_u32(0)
        deserialize_u64 => visit_u64(0)
        deserialize_f32 => visit_f32(0.0)
        deserialize_f64 => visit_f64(0.0)
        deserialize_str => visit_str("")
        deserialize_string => visit_str("")
        deserialize_seq => visit_seq(Items { items: Vec::new().into_iter(), at: 0, durations: Durations::Any })
        deserialize_map => visit_map(Entries { entries: Vec::new().into_iter(), value: None, durations: Durations::Any })
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items {
    items: std::vec::IntoIter<Value>,
    at: usize,
    durations: Durations,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = InputError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, InputError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        let input = Input { value: item, durations: self.durations };
        seed.deserialize(input).map(Some).map_err(|e| e.within(&format!("[{at}]")))
    }
}

struct Entries {
    entries: std::vec::IntoIter<(String, Value)>,
    value: Option<(String, Value)>,
    durations: Durations,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = InputError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, InputError> {
        self.value = self.entries.next();
        let Some((name, _)) = &self.value else { return Ok(None) };
        let key: StrDeserializer<InputError> = name.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, InputError> {
        let (name, value) = self.value.take().expect("serde asks for a value after its key");
        let input = Input { value, durations: self.durations };
        seed.deserialize(input).map_err(|e| e.within(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Job;
    use super::*;

    #[test]
    fn keys_match_in_any_case_and_the_exact_one_wins() {
        let job: Job =
            from_slice(br#"{"id": "wrong", "ID": "right", "taskgroups": [{"NAME": "g"}], "x": 1}"#).unwrap();
        assert_eq!(job.id.as_deref(), Some("right"));
        assert_eq!(job.task_groups[0].name.as_deref(), Some("g"));
    }

    #[test]
    fn null_leaves_the_zero_value() {
        let job: Job =
            from_slice(br#"{"ID": null, "TaskGroups": null, "Dispatched": null, "Meta": null}"#).unwrap();
        assert_eq!(job, Job::default());
    }

    #[test]
    fn null_is_the_zero_value_in_lists_and_maps_and_by_itself() {
        use super::super::{AllocatedResources, Duration, List, Map, TaskLifecycle, Timestamp};
        type Maps<T> = Map<String, T>;
        // As Nomad writes it for a task without a lifecycle.
        let resources: AllocatedResources =
            from_slice(br#"{"TaskLifecycles": {"t": null}, "Tasks": {"t": null}}"#).unwrap();
        assert_eq!(resources.task_lifecycles["t"], TaskLifecycle::default());
        assert_eq!(resources.tasks["t"], Default::default());
        fn zero<T: DeserializeOwned + Default + PartialEq + fmt::Debug + Clone>() {
            assert_eq!(from_slice::<T>(b"null").unwrap(), T::default());
            assert_eq!(from_slice::<List<T>>(b"[null]").unwrap().0, [T::default()]);
            assert_eq!(from_slice::<Maps<T>>(br#"{"x": null}"#).unwrap()["x"], T::default());
        }
        zero::<bool>();
        zero::<u8>();
        zero::<i64>();
        zero::<f64>();
        zero::<String>();
        zero::<Vec<String>>();
        zero::<std::collections::BTreeMap<String, i64>>();
        zero::<List<Job>>();
        zero::<Duration>();
        zero::<Timestamp>();
        zero::<Job>();
        let kept: Maps<Option<String>> = from_slice(br#"{"x": null}"#).unwrap();
        assert_eq!(kept["x"], None, "what may be missing is missing");
    }

    #[test]
    fn an_error_names_the_field() {
        let wrong =
            from_slice::<Job>(br#"{"TaskGroups": [{"Tasks": [{"Name": "a"}, {"Name": 7}]}]}"#).unwrap_err();
        assert_eq!(wrong.path, "TaskGroups[0].Tasks[1].Name");
        assert!(wrong.message.contains("expected a string"), "{wrong}");
    }

    #[test]
    fn durations_of_a_request_are_numbers_but_where_nomad_has_text() {
        let job = |span: &str| serde_json::json!({"TaskGroups": [{"MaxClientDisconnect": span}]});
        let wrong = from_request::<Job>(job("30s")).unwrap_err();
        let why =
            "TaskGroups[0].MaxClientDisconnect: expected a duration in whole nanoseconds, found a string";
        assert_eq!(wrong.to_string(), why);
        let written: Job = from_value(job("30s")).unwrap();
        assert_eq!(written.task_groups[0].max_client_disconnect, Some(Duration::from_secs(30)));
        let number = serde_json::json!({"TaskGroups": [{"MaxClientDisconnect": 30_000_000_000_i64}]});
        assert_eq!(from_request::<Job>(number).unwrap(), written);
        let pool: super::super::NodePool =
            from_request(serde_json::json!({"NodeIdentityTTL": "30s"})).unwrap();
        assert_eq!(pool.node_identity_ttl, Duration::from_secs(30));
    }

    #[test]
    fn a_list_is_no_object() {
        let wrong = from_slice::<Job>(br#"{"Update": [1000]}"#).unwrap_err();
        assert_eq!(wrong.to_string(), "Update: expected an object, found a list");
    }

    #[test]
    fn an_error_speaks_of_numbers_as_people_do() {
        let wrong = from_slice::<Job>(br#"{"Priority": "high"}"#).unwrap_err();
        assert_eq!(wrong.to_string(), "Priority: invalid type: string \"high\", expected a whole number");
    }
}
