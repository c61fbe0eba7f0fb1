use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Given, as_text};
use crate::builtin::{Outcome, equal};
use crate::value::Value;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    Some(match name {
        "default" => default(given),
        "empty" => given.value(0).map(|value| Value::Bool(!value.is_true())),
        "coalesce" => Ok(arguments.iter().find(|value| value.is_true()).cloned().unwrap_or(Value::Nil)),
        "all" => Ok(Value::Bool(arguments.iter().all(Value::is_true))),
        "any" => Ok(Value::Bool(arguments.iter().any(Value::is_true))),
        "ternary" => ternary(given),
        "fail" => given.text(0).and_then(Err),
        "toJson" | "toRawJson" | "mustToJson" | "mustToRawJson" => {
            given.value(0).map(|value| Value::text(value.json().to_string()))
        }
        "toPrettyJson" | "mustToPrettyJson" => pretty(given),
        "fromJson" | "mustFromJson" => from_json(given),
        "dict" => Ok(dict(arguments)),
        "get" => get(given),
        "hasKey" => has_key(given),
        "keys" => keys(given),
        "values" => given.map(0).map(|map| Value::list(map.values().cloned().collect())),
        "pick" => chosen(given, true),
        "omit" => chosen(given, false),
        "pluck" => pluck(given),
        "merge" => merged(given, false),
        "mergeOverwrite" => merged(given, true),
        "dig" => dig(given),
        "deepCopy" => given.value(0).cloned(),
        "deepEqual" => deep_equal(given),
        "kindOf" | "typeOf" => given.value(0).map(|value| Value::text(kind(name, value))),
        "kindIs" | "typeIs" => kind_is(given, &name.replace("Is", "Of")),
        _ => return None,
    })
}

fn default(given: Given) -> Outcome {
    let default = given.value(0)?;
    Ok(given.0.get(1).filter(|value| value.is_true()).unwrap_or(default).clone())
}

fn ternary(given: Given) -> Outcome {
    let (yes, no, test) = (given.value(0)?, given.value(1)?, given.value(2)?);
    Ok(if test.is_true() { yes } else { no }.clone())
}

fn pretty(given: Given) -> Outcome {
    let json = given.value(0)?.json();
    serde_json::to_string_pretty(&json).map(Value::text).map_err(|error| error.to_string())
}

fn from_json(given: Given) -> Outcome {
    let json: serde_json::Value = serde_json::from_str(&given.text(0)?).map_err(|error| error.to_string())?;
    Ok(Value::from(&json))
}

fn dict(arguments: &[Value]) -> Value {
    let pairs = arguments.chunks(2);
    let entry = |pair: &[Value]| (as_text(&pair[0]), pair.get(1).cloned().unwrap_or(Value::text("")));
    Value::Map(Rc::new(pairs.map(entry).collect()))
}

fn get(given: Given) -> Outcome {
    let (map, key) = (given.map(0)?, given.text(1)?);
    Ok(map.get(&key).cloned().unwrap_or(Value::text("")))
}

fn has_key(given: Given) -> Outcome {
    let (map, key) = (given.map(0)?, given.text(1)?);
    Ok(Value::Bool(map.contains_key(&key)))
}

fn keys(given: Given) -> Outcome {
    let mut keys = Vec::new();
    for at in 0..given.0.len().max(1) {
        keys.extend(given.map(at)?.keys().map(Value::text));
    }
    Ok(Value::list(keys))
}

fn chosen(given: Given, named: bool) -> Outcome {
    let map = given.map(0)?;
    let names: Vec<String> = given.0[1..].iter().map(as_text).collect();
    let kept = map.iter().filter(|(key, _)| names.contains(key) == named);
    Ok(Value::Map(Rc::new(kept.map(|(key, value)| (key.clone(), value.clone())).collect())))
}

fn pluck(given: Given) -> Outcome {
    let name = given.text(0)?;
    let mut found = Vec::new();
    for at in 1..given.0.len() {
        found.extend(given.map(at)?.get(&name).cloned());
    }
    Ok(Value::list(found))
}

fn merged(given: Given, later_wins: bool) -> Outcome {
    let mut out: BTreeMap<String, Value> = given.map(0)?.clone();
    for at in 1..given.0.len() {
        for (key, value) in given.map(at)? {
            if later_wins || !out.contains_key(key) {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(Value::Map(Rc::new(out)))
}

/// Keys one below the other, then what to take if there is no such thing, then the map.
fn dig(given: Given) -> Outcome {
    let mut value = given.last()?.clone();
    let [keys @ .., default, _] = given.0 else { return Err("wrong number of args".to_string()) };
    for key in keys {
        value = match &value {
            Value::Map(map) => map.get(&as_text(key)).cloned().unwrap_or(Value::Missing),
            _ => Value::Missing,
        };
    }
    Ok(if matches!(value, Value::Missing) { default.clone() } else { value })
}

fn deep_equal(given: Given) -> Outcome {
    equal(given.value(0)?, given.value(1)?).or(Ok(false)).map(Value::Bool)
}

fn kind(name: &str, value: &Value) -> &'static str {
    match (name, value) {
        ("kindOf", Value::List(_)) => "slice",
        ("kindOf", Value::Map(_)) => "map",
        ("kindOf", Value::Missing | Value::Nil) => "invalid",
        (_, value) => value.kind(),
    }
}

fn kind_is(given: Given, name: &str) -> Outcome {
    let (wanted, value) = (given.text(0)?, given.value(1)?);
    Ok(Value::Bool(wanted == kind(name, value)))
}
