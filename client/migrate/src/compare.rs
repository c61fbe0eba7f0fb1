//! What differs between two documents.

use serde_json::{Map, Value};

/// Most paths that are named of one object.
const PATHS_MAX: usize = 4;

/// The document without these fields.
pub(crate) fn without(mut document: Value, fields: &[&str]) -> Value {
    if let Value::Object(members) = &mut document {
        members.retain(|name, _| !fields.contains(&name.as_str()));
    }
    document
}

/// Where two documents differ, never with what: values may be secrets. At most four paths, then `…`.
pub(crate) fn differences(from: &Value, to: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    walk(String::new(), from, to, &mut paths);
    if paths.len() > PATHS_MAX {
        paths.truncate(PATHS_MAX);
        paths.push("…".to_string());
    }
    paths
}

fn walk(path: String, from: &Value, to: &Value, paths: &mut Vec<String>) {
    match (from, to) {
        _ if from == to || paths.len() > PATHS_MAX => {}
        (Value::Object(from), Value::Object(to)) => {
            for name in names(from, to) {
                let [left, right] = [from, to].map(|members| members.get(name).unwrap_or(&Value::Null));
                walk(below(&path, name), left, right, paths);
            }
        }
        (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
            for (at, (left, right)) in from.iter().zip(to).enumerate() {
                walk(format!("{path}[{at}]"), left, right, paths);
            }
        }
        _ => paths.push(path),
    }
}

fn names<'a>(from: &'a Map<String, Value>, to: &'a Map<String, Value>) -> Vec<&'a String> {
    from.keys().chain(to.keys().filter(|name| !from.contains_key(*name))).collect()
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

/// Fields that were sent and that `known`, read from it, has nothing of. Empty ones are not counted.
pub(crate) fn unknown(sent: &Value, known: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    lost(String::new(), sent, known, &mut paths);
    paths
}

fn lost(path: String, sent: &Value, known: &Value, paths: &mut Vec<String>) {
    match (sent, known) {
        (Value::Object(sent), Value::Object(known)) => {
            for (name, value) in sent {
                match known.get(name) {
                    Some(known) => lost(below(&path, name), value, known, paths),
                    None if is_empty(value) => {}
                    None => paths.push(below(&path, name)),
                }
            }
        }
        (Value::Array(sent), Value::Array(known)) => {
            for (at, (value, known)) in sent.iter().zip(known).enumerate() {
                lost(format!("{path}[{at}]"), value, known, paths);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(members) => members.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_named_and_values_are_not() {
        let from = json!({ "Path": "a", "Items": { "password": "one", "user": "x" }, "List": [1, 2] });
        let to = json!({ "Path": "a", "Items": { "password": "two" }, "List": [1, 3] });
        assert_eq!(differences(&from, &to), ["Items.password", "Items.user", "List[1]"]);
        assert_eq!(differences(&from, &from), [""; 0]);
        assert_eq!(differences(&json!([1]), &json!([1, 2])), [""]);
    }

    #[test]
    fn of_many_differences_the_first_are_named() {
        let many: Value = (0..9).map(|n| (format!("f{n}"), json!(n + 1))).collect::<Map<_, _>>().into();
        assert_eq!(differences(&many, &json!({})), ["f0", "f1", "f2", "f3", "…"]);
    }

    #[test]
    fn fields_that_nobody_here_knows_are_found_unless_they_are_empty() {
        let sent =
            json!({ "ID": "a", "New": true, "Off": false, "Groups": [{ "Name": "g", "Newer": { "x": 1 } }] });
        let known = json!({ "ID": "a", "Groups": [{ "Name": "g" }] });
        assert_eq!(unknown(&sent, &known), ["Groups[0].Newer", "New"]);
    }

    #[test]
    fn fields_are_left_out_at_the_top_alone() {
        let document = json!({ "ModifyIndex": 1, "Meta": { "ModifyIndex": "2" } });
        assert_eq!(without(document, &["ModifyIndex"]), json!({ "Meta": { "ModifyIndex": "2" } }));
    }
}
