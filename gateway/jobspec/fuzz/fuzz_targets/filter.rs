//! Filter expressions: any text is a filter or an error, and a filter answers or says why not.
#![no_main]

use filter::{Filter, Schema};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(filter) = Filter::parse(text) else { return };
    let job = json!({
        "Status": "running", "Priority": 50, "Datacenters": ["a", "b"], "Meta": {"x": "1", "my.key": ""},
        "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Config": {"any": [1, true, null, {"deep": 1.5}]}}]}],
    });
    let _ = filter.matches(Schema::nomad(), "Job", &job);
});
