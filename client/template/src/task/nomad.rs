//! Variables and services.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Dependency, Fetched, Place, Session};
use crate::builtin::Outcome;
use crate::sprig::Given;
use crate::value::{Object, Value};

pub const NAMES: [&str; 6] =
    ["nomadService", "nomadServices", "nomadVar", "nomadVarExists", "nomadVarList", "nomadVarListSafe"];

/// Most instances of a service that a template chooses.
const CHOICE_MAX: i64 = 10_000;

type Entries = BTreeMap<String, Value>;

pub fn call(session: &Session<'_>, name: &str, given: Given<'_>) -> Outcome {
    match name {
        "nomadVar" => variable(session, &given.text(0)?),
        "nomadVarExists" => exists(session, &given.text(0)?),
        "nomadVarList" => variables(session, given, false),
        "nomadVarListSafe" => variables(session, given, true),
        "nomadService" => service(session, given),
        _ => services(session, given),
    }
}

/// `path`, `path@namespace` or `path@namespace.region`.
fn located(text: &str) -> Result<(String, Place), String> {
    let (path, place) = text.split_once('@').map_or((text, None), |(path, place)| (path, Some(place)));
    let part = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let place = match place.map(|place| place.split_once('.').unwrap_or((place, ""))) {
        Some((namespace, region)) => Place { namespace: part(namespace), region: part(region) },
        None => Place::default(),
    };
    let path = path.trim_matches('/');
    if path.contains("//") {
        return Err(format!("invalid format: {text:?}"));
    }
    Ok((path.to_string(), place))
}

fn variable_at(text: &str) -> Result<Dependency, String> {
    match located(text)? {
        (path, _) if path.is_empty() => Err(format!("invalid format: {text:?}")),
        (path, place) => Ok(Dependency::Variable { path, place }),
    }
}

/// Waits until there is one.
fn variable(session: &Session<'_>, text: &str) -> Outcome {
    let dependency = variable_at(text)?;
    match session.fetch(dependency.clone())? {
        Some(Fetched::There(document)) => Ok(items(&document)),
        Some(_) => {
            session.wait_for(dependency);
            Ok(items(&serde_json::Value::Null))
        }
        None => Ok(items(&serde_json::Value::Null)),
    }
}

fn exists(session: &Session<'_>, text: &str) -> Outcome {
    Ok(Value::Bool(matches!(session.fetch(variable_at(text)?)?, Some(Fetched::There(_)))))
}

/// The items of a variable: a map of what prints as the value of an item, and knows where it is from.
fn items(document: &serde_json::Value) -> Value {
    let texts: BTreeMap<String, String> = match &document["Items"] {
        serde_json::Value::Object(items) => {
            items.iter().map(|(key, item)| (key.clone(), item.as_str().unwrap_or_default().into())).collect()
        }
        _ => BTreeMap::new(),
    };
    let metadata = metadata(document);
    let plain = Value::map(texts.iter().map(|(key, text)| (key.clone(), Value::text(text))).collect());
    let keys = Value::list(texts.keys().map(Value::text).collect());
    let values = Value::list(texts.values().map(Value::text).collect());
    let methods = |items: Value| {
        BTreeMap::from([
            ("Items", items),
            ("Keys", keys.clone()),
            ("Metadata", metadata.clone()),
            ("Values", values.clone()),
        ])
    };
    let parent = Value::Object(Rc::new(Object {
        plain: plain.clone(),
        methods: methods(plain),
        absent: Value::text(""),
    }));
    let item = |(key, text): (&String, &String)| {
        let mut methods = methods(parent.clone());
        methods.insert("Key", Value::text(key));
        methods.insert("Value", Value::text(text));
        methods.insert("Parent", parent.clone());
        let item = Object { plain: Value::text(text), methods, absent: Value::Missing };
        (key.clone(), Value::Object(Rc::new(item)))
    };
    let items = Value::map(texts.iter().map(item).collect());
    let mut methods = methods(items.clone());
    methods.insert("Parent", parent.clone());
    Value::Object(Rc::new(Object { plain: items, methods, absent: Value::text("") }))
}

/// Where a variable is and how it changed; it prints as its path.
fn metadata(document: &serde_json::Value) -> Value {
    const FIELDS: [&str; 6] = ["CreateIndex", "CreateTime", "ModifyIndex", "ModifyTime", "Namespace", "Path"];
    let methods = FIELDS.map(|name| (name, Value::from(&document[name]))).into();
    let plain = Value::text(document["Path"].as_str().unwrap_or_default());
    Value::Object(Rc::new(Object { plain, methods, absent: Value::Missing }))
}

/// The safe form waits until there is at least one.
fn variables(session: &Session<'_>, given: Given<'_>, safe: bool) -> Outcome {
    let text = if given.0.is_empty() { String::new() } else { given.text(0)? };
    let (prefix, place) = located(&text)?;
    let dependency = Dependency::Variables { prefix, place };
    let found = match session.fetch(dependency.clone())? {
        Some(Fetched::There(serde_json::Value::Array(found))) => found,
        Some(_) => Vec::new(),
        None => return Ok(Value::list(Vec::new())),
    };
    if safe && found.is_empty() {
        session.wait_for(dependency);
    }
    Ok(Value::list(found.iter().map(metadata).collect()))
}

/// `name`, `tag.name` or `tag.name@region`; or how many, for which key, and then that.
fn service(session: &Session<'_>, given: Given<'_>) -> Outcome {
    let (choose, text) = match given.0 {
        [_] => (None, given.text(0)?),
        [_, _, _] => {
            let count = given.int(0)?;
            let count = u32::try_from(count).ok().filter(|_| (1..=CHOICE_MAX).contains(&count));
            let count = count.ok_or_else(|| format!("the count is from 1 to {CHOICE_MAX}"))?;
            (Some((count, given.text(1)?)), given.text(2)?)
        }
        other => return Err(format!("expected arguments 1 or 3 but got {}", other.len())),
    };
    let (name, region) =
        text.split_once('@').map_or((text.as_str(), None), |(name, region)| (name, Some(region)));
    let (tag, name) = name.rsplit_once('.').map_or((None, name), |(tag, name)| (Some(tag), name));
    if name.is_empty() || region == Some("") {
        return Err(format!("invalid format: {text:?}"));
    }
    let place = Place { namespace: None, region: region.map(str::to_string) };
    let dependency = Dependency::Service { name: name.to_string(), choose, place };
    let Some(Fetched::There(serde_json::Value::Array(found))) = session.fetch(dependency)? else {
        return Ok(Value::list(Vec::new()));
    };
    let instances = found.iter().map(instance).filter(|instance| match (tag, instance.get("Tags")) {
        (Some(tag), Some(Value::List(tags))) => tags.contains(&Value::text(tag)),
        (tag, _) => tag.is_none(),
    });
    Ok(Value::list(instances.map(Value::map).collect()))
}

fn instance(registration: &serde_json::Value) -> Entries {
    const FIELDS: [(&str, &str); 9] = [
        ("ID", "ID"),
        ("Name", "ServiceName"),
        ("Node", "NodeID"),
        ("Address", "Address"),
        ("Port", "Port"),
        ("Datacenter", "Datacenter"),
        ("Tags", "Tags"),
        ("JobID", "JobID"),
        ("AllocID", "AllocID"),
    ];
    FIELDS.map(|(name, own)| (name.to_string(), list_or(&registration[own], name))).into()
}

/// A list that is not there is an empty one.
fn list_or(value: &serde_json::Value, name: &str) -> Value {
    if name == "Tags" && value.is_null() { Value::list(Vec::new()) } else { Value::from(value) }
}

/// The name and the tags of every service, by name.
fn services(session: &Session<'_>, given: Given<'_>) -> Outcome {
    let text = if given.0.is_empty() { String::new() } else { given.text(0)? };
    let region = text.strip_prefix('@').map(str::to_string);
    if !text.is_empty() && region.as_deref().is_none_or(str::is_empty) {
        return Err(format!("invalid format: {text:?}"));
    }
    let place = Place { namespace: None, region };
    let Some(Fetched::There(serde_json::Value::Array(spaces))) =
        session.fetch(Dependency::Services { place })?
    else {
        return Ok(Value::list(Vec::new()));
    };
    let mut found: Entries = BTreeMap::new();
    for service in spaces.iter().filter_map(|space| space["Services"].as_array()).flatten() {
        let name = service["ServiceName"].as_str().unwrap_or_default();
        let fields = [("Name", Value::text(name)), ("Tags", list_or(&service["Tags"], "Tags"))];
        found.insert(
            name.to_string(),
            Value::map(fields.map(|(name, value)| (name.to_string(), value)).into()),
        );
    }
    Ok(Value::list(found.into_values().collect()))
}
