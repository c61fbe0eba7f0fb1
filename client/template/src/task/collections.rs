//! Maps, loops, and the scratch.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::builtin::Outcome;
use crate::sprig::Given;
use crate::value::Value;

/// Longest loop.
const COUNT_MAX: i64 = 1 << 20;

type Entries = BTreeMap<String, Value>;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    Some(match name {
        "loop" => counted(given),
        "byTag" => by_tag(given),
        "explodeMap" => given.map(0).and_then(exploded),
        "mergeMap" => merged(given, false),
        "mergeMapWithOverride" => merged(given, true),
        _ => return None,
    })
}

fn counted(given: Given<'_>) -> Outcome {
    let (from, to) = match given.0 {
        [_] => (0, given.int(0)?),
        [_, _] => (given.int(0)?, given.int(1)?),
        other => return Err(format!("wrong number of arguments, expected 1 or 2, but got {}", other.len())),
    };
    if to.saturating_sub(from) > COUNT_MAX {
        return Err(format!("more than {COUNT_MAX} numbers"));
    }
    Ok(Value::list((from..to).map(Value::Int).collect()))
}

/// The items by each of their `Tags`.
fn by_tag(given: Given<'_>) -> Outcome {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for item in given.list(0)? {
        let Value::Map(fields) = item.clone().plain() else {
            return Err(format!("expected services, not {}", item.kind()));
        };
        let Some(Value::List(tags)) = fields.get("Tags") else { continue };
        for tag in tags.iter() {
            found.entry(tag.shown()).or_default().push(item.clone());
        }
    }
    Ok(Value::map(found.into_iter().map(|(tag, items)| (tag, Value::list(items))).collect()))
}

/// Keys with slashes become maps in maps.
fn exploded(flat: &Entries) -> Outcome {
    let mut out = Entries::new();
    for (path, value) in flat {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        put(&mut out, &parts, value).map_err(|()| format!("{path:?} stands below a value"))?;
    }
    Ok(Value::map(out))
}

fn put(map: &mut Entries, parts: &[&str], value: &Value) -> Result<(), ()> {
    match parts {
        [] => Ok(()),
        [name] => {
            map.insert((*name).to_string(), value.clone());
            Ok(())
        }
        [name, rest @ ..] => {
            let inner = map.entry((*name).to_string()).or_insert_with(|| Value::map(Entries::new()));
            let Value::Map(entries) = inner else { return Err(()) };
            put(std::rc::Rc::make_mut(entries), rest, value)
        }
    }
}

fn merged(given: Given<'_>, overrides: bool) -> Outcome {
    Ok(Value::map(merge(given.map(0)?, given.map(1)?, overrides)))
}

/// Maps in both are merged too. Empty values count as none.
fn merge(into: &Entries, from: &Entries, overrides: bool) -> Entries {
    let mut out = into.clone();
    for (key, value) in from {
        let merged = match (out.get(key), value) {
            (Some(Value::Map(old)), Value::Map(new)) => Value::map(merge(old, new, overrides)),
            (Some(old), new) if old.is_true() && !(overrides && new.is_true()) => old.clone(),
            (_, new) => new.clone(),
        };
        out.insert(key.clone(), merged);
    }
    out
}

pub fn scratch(values: &RefCell<Entries>, method: &str, given: Given<'_>) -> Outcome {
    let nothing = Ok(Value::text(""));
    match method {
        "Key" => Ok(Value::Bool(values.borrow().contains_key(&given.text(0)?))),
        "Get" => Ok(values.borrow().get(&given.text(0)?).cloned().unwrap_or(Value::Missing)),
        "Set" => {
            values.borrow_mut().insert(given.text(0)?, given.value(1)?.clone());
            nothing
        }
        "SetX" => {
            values.borrow_mut().entry(given.text(0)?).or_insert(given.value(1)?.clone());
            nothing
        }
        "MapSet" | "MapSetX" => {
            let (name, key, value) = (given.text(0)?, given.text(1)?, given.value(2)?.clone());
            let mut values = values.borrow_mut();
            let map = values.entry(name.clone()).or_insert_with(|| Value::map(Entries::new()));
            let Value::Map(entries) = map else { return Err(format!("{name:?} is not a map")) };
            let entries = std::rc::Rc::make_mut(entries);
            if method == "MapSet" || !entries.contains_key(&key) {
                entries.insert(key, value);
            }
            nothing
        }
        "MapValues" => {
            let name = given.text(0)?;
            match values.borrow().get(&name) {
                Some(Value::Map(entries)) => Ok(Value::list(entries.values().cloned().collect())),
                Some(_) => Err(format!("{name:?} is not a map")),
                None => Ok(Value::list(Vec::new())),
            }
        }
        other => Err(format!("scratch has no {other}")),
    }
}
