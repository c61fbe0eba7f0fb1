//! Keys, services and nodes of Consul.

use super::{ConsulKind, ConsulRead, Dependency, Fetched, Session};
use crate::builtin::Outcome;
use crate::sprig::Given;
use crate::value::Value;

pub const NAMES: [&str; 11] = [
    "key",
    "keyExists",
    "keyOrDefault",
    "ls",
    "node",
    "nodes",
    "safeLs",
    "safeTree",
    "service",
    "services",
    "tree",
];

pub fn call(session: &Session<'_>, name: &str, given: Given<'_>) -> Outcome {
    match name {
        "key" => key(session, &given.text(0)?),
        "keyExists" => Ok(Value::Bool(matches!(fetch(session, &given.text(0)?)?, Some(Fetched::There(_))))),
        "keyOrDefault" => {
            let default = given.text(1)?;
            Ok(match fetch(session, &given.text(0)?)? {
                Some(Fetched::There(pair)) => value_of(&pair),
                _ => Value::text(default),
            })
        }
        "ls" | "safeLs" => keys(session, &given.text(0)?, name == "safeLs", true),
        "tree" | "safeTree" => keys(session, &given.text(0)?, name == "safeTree", false),
        "service" => service(session, given),
        "services" => listed(session, ConsulKind::Services, given),
        "nodes" => listed(session, ConsulKind::Nodes, given),
        "node" => node(session, &given.text(0)?),
        _ => Err("this node does not have the function".to_string()),
    }
}

/// `NAME@DATACENTER~NEAR`, either of which may be left out.
fn located(kind: ConsulKind, text: &str) -> ConsulRead {
    let (text, near) = text.split_once('~').unwrap_or((text, ""));
    let (name, datacenter) = text.split_once('@').unwrap_or((text, ""));
    ConsulRead {
        kind,
        name: name.trim_matches('/').to_string(),
        tag: String::new(),
        datacenter: datacenter.to_string(),
        near: near.to_string(),
        passing_only: true,
    }
}

fn key_at(text: &str) -> Result<Dependency, String> {
    let read = located(ConsulKind::Key, text);
    if read.name.is_empty() { Err(format!("invalid format: {text:?}")) } else { Ok(Dependency::Consul(read)) }
}

fn fetch(session: &Session<'_>, text: &str) -> Result<Option<Fetched>, String> {
    session.fetch(key_at(text)?)
}

/// Waits until there is one.
fn key(session: &Session<'_>, text: &str) -> Outcome {
    match fetch(session, text)? {
        Some(Fetched::There(pair)) => Ok(value_of(&pair)),
        Some(_) => {
            session.wait_for(key_at(text)?);
            Ok(Value::text(""))
        }
        None => Ok(Value::text("")),
    }
}

fn value_of(pair: &serde_json::Value) -> Value {
    Value::text(pair["Value"].as_str().unwrap_or_default())
}

/// The pairs below a prefix, with keys from there on; `top` leaves out what is deeper. The safe form waits until there are
/// some.
fn keys(session: &Session<'_>, text: &str, safe: bool, top: bool) -> Outcome {
    let mut read = located(ConsulKind::Keys, text);
    if !read.name.is_empty() {
        read.name.push('/');
    }
    let (prefix, dependency) = (read.name.clone(), Dependency::Consul(read));
    let found = match session.fetch(dependency.clone())? {
        Some(Fetched::There(serde_json::Value::Array(found))) => found,
        Some(_) => Vec::new(),
        None => return Ok(Value::list(Vec::new())),
    };
    let below = found.into_iter().filter_map(|mut pair| {
        let path = pair["Key"].as_str()?.to_string();
        let key = path.strip_prefix(&prefix)?.to_string();
        // Folders are keys that end in a slash.
        if key.is_empty() || key.ends_with('/') || (top && key.contains('/')) {
            return None;
        }
        (pair["Path"], pair["Key"]) = (path.into(), key.into());
        Some(Value::from(&pair))
    });
    let below: Vec<Value> = below.collect();
    if safe && below.is_empty() {
        session.wait_for(dependency);
    }
    Ok(Value::list(below))
}

/// `TAG.NAME@DATACENTER~NEAR`, and `any` or `passing`.
fn service(session: &Session<'_>, given: Given<'_>) -> Outcome {
    let text = given.text(0)?;
    let mut read = located(ConsulKind::Service, &text);
    if let Some((tag, name)) = read.name.split_once('.') {
        (read.tag, read.name) = (tag.to_string(), name.to_string());
    }
    if read.name.is_empty() {
        return Err(format!("invalid format: {text:?}"));
    }
    if given.0.len() > 1 {
        read.passing_only = match given.text(1)?.as_str() {
            "passing" => true,
            "any" => false,
            other => return Err(format!("{other:?}: expected passing or any")),
        };
    }
    list(session, read)
}

fn listed(session: &Session<'_>, kind: ConsulKind, given: Given<'_>) -> Outcome {
    let text = if given.0.is_empty() { String::new() } else { given.text(0)? };
    let read = located(kind, &text);
    if read.name.is_empty() { list(session, read) } else { Err(format!("invalid format: {text:?}")) }
}

fn list(session: &Session<'_>, read: ConsulRead) -> Outcome {
    match session.fetch(Dependency::Consul(read))? {
        Some(Fetched::There(found @ serde_json::Value::Array(_))) => Ok(Value::from(&found)),
        _ => Ok(Value::list(Vec::new())),
    }
}

fn node(session: &Session<'_>, text: &str) -> Outcome {
    let read = located(ConsulKind::Node, text);
    if read.name.is_empty() {
        return Err(format!("invalid format: {text:?}"));
    }
    match session.fetch(Dependency::Consul(read))? {
        Some(Fetched::There(found)) => Ok(Value::from(&found)),
        _ => Ok(Value::Nil),
    }
}
