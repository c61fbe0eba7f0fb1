//! How two documents differ, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// A field that is not the same: without one of the values where it was not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Change {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// Fields that change with every write, and say nothing besides that.
const STAMPS: [&str; 6] =
    ["ModifyTime", "SubmitTime", "CreateTime", "StatusUpdatedAt", "LastDrain", "JobVersion"];

/// What entries of a list are known by, in order of preference.
const NAMES: [&str; 5] = ["Name", "ID", "Label", "LTarget", "Volume"];

/// The fields of a document by their paths: `TaskGroups[web].Count`. What is empty is not there.
pub(crate) fn fields(document: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect(document, String::new(), &mut found);
    found
}

pub(crate) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let (mut before, after) = (fields(before), fields(after));
    let mut changes: Vec<Change> = Vec::new();
    for (path, to) in after {
        let from = before.remove(&path);
        if from.as_ref() != Some(&to) {
            changes.push(Change { path, from, to: Some(to) });
        }
    }
    changes.extend(before.into_iter().map(|(path, from)| Change { path, from: Some(from), to: None }));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// Differences between two documents that hold lists of entries by name: an entry that is new or gone is one change.
pub(crate) fn entry_changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    for list in names(before, after) {
        let (before, after) = (&before[&list], &after[&list]);
        for name in names(before, after) {
            let path = format!("{list}[{name}]");
            match (before.get(&name), after.get(&name)) {
                (Some(before), Some(after)) => found.extend(
                    changes(before, after)
                        .into_iter()
                        .map(|change| Change { path: format!("{path}.{}", change.path), ..change }),
                ),
                (from, to) => found.push(Change { path, from: from.cloned(), to: to.cloned() }),
            }
        }
    }
    found
}

/// The members that one of them has.
fn names(before: &Value, after: &Value) -> BTreeSet<String> {
    let members = |value: &Value| value.as_object().map(|members| members.keys().cloned().collect());
    let (before, after): (Option<BTreeSet<String>>, Option<BTreeSet<String>>) =
        (members(before), members(after));
    before.into_iter().chain(after).flatten().collect()
}

fn collect(value: &Value, path: String, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !is_stamp(name)) {
                collect(member, below(&path, name), found);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{path}[{}]", name_of(items, item, at)), found);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        leaf => drop(found.insert(path, leaf.clone())),
    }
}

fn is_stamp(name: &str) -> bool {
    name.ends_with("Index") || STAMPS.contains(&name)
}

/// A name with anything but letters, digits, `_` and `-` stands in brackets, so that dots stay dots.
fn below(path: &str, name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    match (path.is_empty(), plain) {
        (true, true) => name.to_string(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{name}]"),
    }
}

/// What tells an entry from the others of its list, or else its place.
fn name_of(items: &[Value], item: &Value, at: usize) -> String {
    let unique = |field: &&&str| {
        let own = item[**field].as_str().filter(|name| !name.is_empty());
        own.is_some_and(|own| items.iter().filter(|other| other[**field] == own).count() == 1)
    };
    let name = NAMES.iter().find(unique).and_then(|field| item[*field].as_str());
    name.map_or_else(|| at.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_of_lists_are_compared_by_name_wherever_they_stand() {
        let before = json!({"ModifyIndex": 1, "Count": 1, "Groups": [{"Name": "a", "N": 1}, {"Name": "b"}], "Gone": "x"});
        let after = json!({"ModifyIndex": 9, "Count": 2, "Groups": [{"Name": "b"}, {"Name": "a", "N": 2}],
            "Meta": {"a.b": "c"}, "Tags": ["t"], "Empty": [], "Nil": null});
        let changes: Vec<String> =
            changes(&before, &after).iter().map(|change| serde_json::to_string(change).unwrap()).collect();
        assert_eq!(
            changes,
            [
                r#"{"Path":"Count","From":1,"To":2}"#,
                r#"{"Path":"Gone","From":"x"}"#,
                r#"{"Path":"Groups[a].N","From":1,"To":2}"#,
                r#"{"Path":"Meta[a.b]","To":"c"}"#,
                r#"{"Path":"Tags","To":["t"]}"#,
            ]
        );
    }

    #[test]
    fn an_entry_that_is_new_or_gone_is_one_change() {
        let before = json!({"Jobs": {"default/a": {"Status": "running"}, "default/b": {"N": 1}}});
        let after = json!({"Jobs": {"default/b": {"N": 2}, "default/c": {"Status": "dead"}}, "Nodes": {}});
        let paths: Vec<String> =
            entry_changes(&before, &after).into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["Jobs[default/a]", "Jobs[default/b].N", "Jobs[default/c]"]);
    }

    #[test]
    fn entries_without_a_name_are_known_by_their_place() {
        let list = json!({"L": [{"Name": "a"}, {"Name": "a"}]});
        assert_eq!(fields(&list).into_keys().collect::<Vec<_>>(), ["L[0].Name", "L[1].Name"]);
    }
}
