use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{ADDED, DELETED, EDITED, NONE};
use crate::plan::{FieldDiff, ObjectDiff};

pub(super) type Object = Map<String, Value>;

/// How much is shown of an object that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its changes.
    Changes,
    /// Its other fields too.
    Contextual,
}

/// Objects of texts by name: each entry is a field, like `Meta[owner]`.
const MAPS: [&str; 8] =
    ["Meta", "Env", "CanaryMeta", "TaggedAddresses", "Header", "GetterOptions", "GetterHeaders", "Args"];

/// Lists and maps of objects under the names that Nomad's API has for one of their members.
const LABELS: [(&str, &str); 20] = [
    ("Constraints", "Constraint"),
    ("Affinities", "Affinity"),
    ("Spreads", "Spread"),
    ("SpreadTarget", "SpreadTarget"),
    ("Services", "Service"),
    ("Checks", "Check"),
    ("Networks", "Network"),
    ("DynamicPorts", "Dynamic Port"),
    ("ReservedPorts", "Static Port"),
    ("Templates", "Template"),
    ("Artifacts", "Artifact"),
    ("VolumeMounts", "VolumeMount"),
    ("Volumes", "VolumeRequest"),
    ("Devices", "Device"),
    ("ScalingPolicies", "ScalingPolicy"),
    ("Secrets", "Secret"),
    ("Actions", "Action"),
    ("Identities", "Identity"),
    ("Links", "Link"),
    ("Regions", "Region"),
];

pub(super) fn object_of(document: &impl Serialize) -> Object {
    match serde_json::to_value(document).expect("documents hold only what JSON can say") {
        Value::Object(object) => object,
        other => unreachable!("a document is an object, not {other}"),
    }
}

pub(super) fn verdict(old: Option<&Object>, new: Option<&Object>, changed: bool) -> String {
    let word = match (old, new) {
        (None, Some(_)) => ADDED,
        (Some(_), None) => DELETED,
        (Some(_), Some(_)) if changed => EDITED,
        (Some(_), Some(_)) | (None, None) => NONE,
    };
    word.to_string()
}

/// Fields by name, then by what they were and are.
pub(super) fn fields(
    old: Option<&Object>,
    new: Option<&Object>,
    ignored: &[&str],
    detail: Detail,
) -> Vec<FieldDiff> {
    of_texts(&texts(old, ignored), &texts(new, ignored), detail)
}

/// Objects by type and name.
pub(super) fn objects(
    old: Option<&Object>,
    new: Option<&Object>,
    ignored: &[&str],
    detail: Detail,
) -> Vec<ObjectDiff> {
    let keys: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Object::keys).collect();
    let keys =
        keys.into_iter().filter(|key| !ignored.contains(&key.as_str()) && !MAPS.contains(&key.as_str()));
    let value =
        |of: Option<&Object>, key: &String| of.and_then(|of| of.get(key)).cloned().unwrap_or_default();
    let changes = keys.flat_map(|key| child(key, &value(old, key), &value(new, key), detail));
    let mut changes: Vec<ObjectDiff> = changes.collect();
    changes.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
    changes
}

fn child(key: &str, old: &Value, new: &Value, detail: Detail) -> Vec<ObjectDiff> {
    let label = LABELS.iter().find(|(list, _)| *list == key).map_or(key, |(_, label)| label);
    match (old, new) {
        _ if key == "Config" => config(old, new, detail).into_iter().collect(),
        _ if key == "Volumes" => of_map(label, old.as_object(), new.as_object(), detail),
        (Value::Array(_), _) | (_, Value::Array(_)) => list(label, members(old), members(new), detail),
        _ => object(label, old.as_object(), new.as_object(), detail).into_iter().collect(),
    }
}

/// `None` when nothing is different.
fn object(label: &str, old: Option<&Object>, new: Option<&Object>, detail: Detail) -> Option<ObjectDiff> {
    let changes = fields(old, new, &[], detail);
    let objects = objects(old, new, &[], detail);
    let changed = changes.iter().any(|field| field.kind != NONE) || !objects.is_empty();
    let kind = verdict(old, new, changed);
    (changed || old.is_some() != new.is_some()).then(|| ObjectDiff {
        kind,
        name: label.to_string(),
        fields: changes.into(),
        objects: objects.into(),
    })
}

/// A driver's configuration: flat, with the path to each text as its name.
fn config(old: &Value, new: &Value, detail: Detail) -> Option<ObjectDiff> {
    let flat = |value: &Value| {
        let mut texts = BTreeMap::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            flatten(key.clone(), value, &mut texts);
        }
        texts
    };
    let (before, after) = (flat(old), flat(new));
    let changes = of_texts(&before, &after, detail);
    changes.iter().any(|field| field.kind != NONE).then(|| ObjectDiff {
        kind: (if before.is_empty() {
            ADDED
        } else if after.is_empty() {
            DELETED
        } else {
            EDITED
        })
        .to_string(),
        name: "Config".to_string(),
        fields: changes.into(),
        objects: Default::default(),
    })
}

fn flatten(name: String, value: &Value, to: &mut BTreeMap<String, String>) {
    match value {
        Value::Array(members) => {
            for (at, member) in members.iter().enumerate() {
                flatten(format!("{name}[{at}]"), member, to);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                flatten(format!("{name}[{key}]"), member, to);
            }
        }
        other => to.extend(text(other).map(|text| (name, text))),
    }
}

fn of_map(label: &str, old: Option<&Object>, new: Option<&Object>, detail: Detail) -> Vec<ObjectDiff> {
    let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Object::keys).collect();
    let member = |of: Option<&Object>, name: &String| {
        of.and_then(|of| of.get(name)).and_then(Value::as_object).cloned()
    };
    let changes = names.into_iter().map(|name| (member(old, name), member(new, name)));
    changes.filter_map(|(old, new)| object(label, old.as_ref(), new.as_ref(), detail)).collect()
}

fn members(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn list(label: &str, old: &[Value], new: &[Value], detail: Detail) -> Vec<ObjectDiff> {
    if old.iter().chain(new).all(|member| !member.is_object()) {
        return set(label, old, new, detail).into_iter().collect();
    }
    let (mut old, mut new): (Vec<&Object>, Vec<&Object>) = (
        old.iter().filter_map(Value::as_object).collect(),
        new.iter().filter_map(Value::as_object).collect(),
    );
    let mut changes = Vec::new();
    for likeness in likenesses(label) {
        let mut rest = Vec::new();
        for before in old {
            match new.iter().position(|after| likeness(before, after)) {
                Some(at) => changes.extend(object(label, Some(before), Some(new.remove(at)), detail)),
                None => rest.push(before),
            }
        }
        old = rest;
    }
    changes.extend(old.into_iter().filter_map(|gone| object(label, Some(gone), None, detail)));
    changes.extend(new.into_iter().filter_map(|come| object(label, None, Some(come), detail)));
    changes
}

type Likeness = fn(&Object, &Object) -> bool;

/// How the members of two lists find each other, the surest way first. Whoever finds nobody came or went.
fn likenesses(label: &str) -> &'static [Likeness] {
    fn same(one: &Object, other: &Object, key: &str) -> bool {
        one.get(key).is_some_and(|value| !value.is_null()) && one.get(key) == other.get(key)
    }
    const WHOLE: Likeness = |one, other| one == other;
    const NAME: Likeness = |one, other| same(one, other, "Name");
    const NAME_AND_PORT: Likeness = |one, other| same(one, other, "Name") && same(one, other, "PortLabel");
    const DESTINATION: Likeness = |one, other| same(one, other, "DestPath");
    match label {
        "Service" => &[WHOLE, NAME_AND_PORT, NAME],
        "Check" | "Action" | "Identity" | "Secret" | "Region" => &[WHOLE, NAME],
        "Template" => &[WHOLE, DESTINATION],
        _ => &[WHOLE],
    }
}

fn set(label: &str, old: &[Value], new: &[Value], detail: Detail) -> Option<ObjectDiff> {
    let texts = |list: &[Value]| list.iter().filter_map(text).collect::<BTreeSet<String>>();
    let (old, new) = (texts(old), texts(new));
    if old == new {
        return None;
    }
    let changes = old.union(&new).filter_map(|member| {
        let side = |set: &BTreeSet<String>| set.get(member).cloned().unwrap_or_default();
        field(label.to_string(), side(&old), side(&new), detail)
    });
    let mut changes: Vec<FieldDiff> = changes.collect();
    sort(&mut changes);
    let kind = match (old.is_empty(), new.is_empty()) {
        (true, _) => ADDED,
        (_, true) => DELETED,
        _ => EDITED,
    };
    let (kind, name) = (kind.to_string(), label.to_string());
    Some(ObjectDiff { kind, name, fields: changes.into(), objects: Default::default() })
}

fn texts(object: Option<&Object>, ignored: &[&str]) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let entries = object.into_iter().flatten().filter(|(key, _)| !ignored.contains(&key.as_str()));
    for (key, value) in entries {
        match value {
            Value::Object(entries) if MAPS.contains(&key.as_str()) => {
                let named = entries.iter().map(|(name, value)| (format!("{key}[{name}]"), text(value)));
                texts.extend(named.filter_map(|(name, text)| Some((name, text?))));
            }
            Value::Object(_) | Value::Array(_) => {}
            other => texts.extend(text(other).map(|text| (key.clone(), text))),
        }
    }
    texts
}

fn of_texts(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    detail: Detail,
) -> Vec<FieldDiff> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let side = |of: &BTreeMap<String, String>, name: &String| of.get(name).cloned().unwrap_or_default();
    let changes =
        names.into_iter().filter_map(|name| field(name.clone(), side(old, name), side(new, name), detail));
    let mut changes: Vec<FieldDiff> = changes.collect();
    sort(&mut changes);
    changes
}

fn sort(fields: &mut [FieldDiff]) {
    fields.sort_by(|a, b| (&a.name, &a.old, &a.new).cmp(&(&b.name, &b.old, &b.new)));
}

fn field(name: String, old: String, new: String, detail: Detail) -> Option<FieldDiff> {
    let kind = match (old.is_empty(), new.is_empty()) {
        _ if old == new && (detail == Detail::Changes || old.is_empty()) => return None,
        _ if old == new => NONE,
        (true, _) => ADDED,
        (_, true) => DELETED,
        (false, false) => EDITED,
    };
    Some(FieldDiff { kind: kind.to_string(), name, old, new, annotations: Default::default() })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}
