//! Secrets of Vault.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Dependency, Fetched, Session, VaultKind, VaultRead};
use crate::builtin::Outcome;
use crate::sprig::Given;
use crate::value::{Object, Value};

pub const NAMES: [&str; 3] = ["pkiCert", "secret", "secrets"];

pub fn call(session: &Session<'_>, name: &str, given: Given<'_>) -> Outcome {
    match name {
        "secrets" => secrets(session, given),
        "secret" if given.0.len() < 2 => one(session, read(VaultKind::Read, given)?),
        "secret" => one(session, read(VaultKind::Write, given)?),
        _ => one(session, read(VaultKind::Certificate, given)?),
    }
}

/// `PATH` and `KEY=VALUE` …
fn read(kind: VaultKind, given: Given<'_>) -> Result<VaultRead, String> {
    let text = given.text(0)?;
    let path = text.trim().trim_matches('/').to_string();
    if path.is_empty() || path.contains("//") {
        return Err(format!("invalid format: {text:?}"));
    }
    let mut data = BTreeMap::new();
    for at in 1..given.0.len() {
        let pair = given.text(at)?;
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("not k=v pair {pair:?}"))?;
        data.insert(key.trim().to_string(), value.trim().to_string());
    }
    Ok(VaultRead { kind, path, data })
}

/// Waits until it is there. Meanwhile it is empty: `with` leaves its block out.
fn one(session: &Session<'_>, read: VaultRead) -> Outcome {
    let dependency = Dependency::Vault(read);
    match session.fetch(dependency.clone())? {
        Some(Fetched::There(found)) => return Ok(Value::from(&found)),
        Some(_) => session.wait_for(dependency),
        None => {}
    }
    let empty = || Value::map(BTreeMap::new());
    // What is read of it without `with` is empty too: the text is thrown away anyway.
    let nothing =
        |methods| Value::Object(Rc::new(Object { plain: empty(), methods, absent: Value::text("") }));
    let data = nothing(BTreeMap::from([("data", nothing(BTreeMap::new()))]));
    Ok(nothing(BTreeMap::from([("Data", data)])))
}

/// The names below a path; none is no reason to wait.
fn secrets(session: &Session<'_>, given: Given<'_>) -> Outcome {
    let read = read(VaultKind::List, given)?;
    match session.fetch(Dependency::Vault(read))? {
        Some(Fetched::There(found)) if found.is_array() => Ok(Value::from(&found)),
        _ => Ok(Value::list(Vec::new())),
    }
}
