//! What is stored to find a running task again.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Names the driver of a task and holds what that driver needs to find it.
///
/// Stored as `{"<key of the driver>": <its state>}`. That is a promise: agents of all releases read it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskHandle {
    /// As [`super::Driver::handle_key`].
    pub key: String,
    pub state: Value,
}

impl Serialize for TaskHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(&self.key, &self.state)])
    }
}

impl<'de> Deserialize<'de> for TaskHandle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut entries = BTreeMap::<String, Value>::deserialize(deserializer)?.into_iter();
        match (entries.next(), entries.next()) {
            (Some((key, state)), None) => Ok(TaskHandle { key, state }),
            _ => Err(D::Error::custom("a task handle has exactly one key: that of its driver")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_an_object_with_the_key_of_its_driver() {
        let text = r#"{"raw_exec":{"directory":"/data/client/executors/5d16e7fe-1"}}"#;
        let handle: TaskHandle = serde_json::from_str(text).unwrap();
        assert_eq!(
            (handle.key.as_str(), &handle.state["directory"]),
            ("raw_exec", &Value::from("/data/client/executors/5d16e7fe-1"))
        );
        assert_eq!(serde_json::to_string(&handle).unwrap(), text);
        assert!(serde_json::from_str::<TaskHandle>("{}").is_err());
        assert!(serde_json::from_str::<TaskHandle>(r#"{"a":1,"b":2}"#).is_err());
    }
}
