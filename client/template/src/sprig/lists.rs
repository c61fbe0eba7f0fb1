use std::rc::Rc;

use super::{Given, as_list, as_text};
use crate::builtin::{Outcome, equal};
use crate::value::Value;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    let name = name.strip_prefix("must").map_or(name.to_string(), |rest| {
        rest.chars().take(1).flat_map(char::to_lowercase).chain(rest.chars().skip(1)).collect()
    });
    Some(match name.as_str() {
        "list" | "tuple" => Ok(Value::list(arguments.to_vec())),
        "first" => given.list(0).map(|items| items.first().cloned().unwrap_or(Value::Missing)),
        "last" => given.list(0).map(|items| items.last().cloned().unwrap_or(Value::Missing)),
        "rest" => given.list(0).map(|items| Value::list(items.into_iter().skip(1).collect())),
        "initial" => given.list(0).map(|mut items| {
            items.pop();
            Value::list(items)
        }),
        "append" | "push" => with(given, |items, value| items.push(value)),
        "prepend" => with(given, |items, value| items.insert(0, value)),
        "concat" => {
            let lists = arguments.iter().map(as_list).collect::<Result<Vec<_>, _>>();
            lists.map(|lists| Value::list(lists.concat()))
        }
        "reverse" => given.list(0).map(|items| Value::list(items.into_iter().rev().collect())),
        "uniq" => given.list(0).map(|items| Value::list(unique(items))),
        "compact" => {
            given.list(0).map(|items| Value::list(items.into_iter().filter(Value::is_true).collect()))
        }
        "without" => given.list(0).map(|items| {
            let kept = |item: &Value| !arguments[1..].iter().any(|cut| same(cut, item));
            Value::list(items.into_iter().filter(kept).collect())
        }),
        "has" => has(given),
        "slice" => slice(given),
        "chunk" => chunks(given),
        "sortAlpha" => given.list(0).map(|items| {
            let mut texts: Vec<String> = items.iter().map(as_text).collect();
            texts.sort();
            texts_in(texts)
        }),
        "toStrings" => given.list(0).map(|items| texts_in(items.iter().map(as_text).collect())),
        "join" => join(given),
        "splitList" => split_list(given),
        "split" => split(given, usize::MAX, 1),
        "splitn" => match given.size(1) {
            Ok(most) => split(given, most, 2),
            Err(wrong) => Err(wrong),
        },
        _ => return None,
    })
}

fn texts_in(texts: Vec<String>) -> Value {
    Value::list(texts.iter().map(Value::text).collect())
}

fn same(one: &Value, other: &Value) -> bool {
    equal(one, other).unwrap_or(false)
}

fn with(given: Given, add: impl Fn(&mut Vec<Value>, Value)) -> Outcome {
    let (mut items, value) = (given.list(0)?, given.value(1)?.clone());
    add(&mut items, value);
    Ok(Value::list(items))
}

fn unique(items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.iter().any(|known| same(known, &item)) {
            kept.push(item);
        }
    }
    kept
}

fn has(given: Given) -> Outcome {
    let (wanted, items) = (given.value(0)?, given.list(1)?);
    Ok(Value::Bool(items.iter().any(|item| same(item, wanted))))
}

fn slice(given: Given) -> Outcome {
    let items = given.list(0)?;
    let bound = |at: usize, default: usize| if given.0.len() > at { given.size(at) } else { Ok(default) };
    let (from, to) = (bound(1, 0)?, bound(2, items.len())?);
    let part = items.get(from..to).ok_or("index out of range")?;
    Ok(Value::list(part.to_vec()))
}

fn chunks(given: Given) -> Outcome {
    let (size, items) = (given.size(0)?, given.list(1)?);
    if size == 0 {
        return Err("chunks of nothing".to_string());
    }
    Ok(Value::list(items.chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect()))
}

fn join(given: Given) -> Outcome {
    let (between, last) = (given.text(0)?, given.value(1)?);
    let texts: Vec<String> = match last {
        Value::List(items) => items.iter().map(as_text).collect(),
        value => vec![as_text(value)],
    };
    Ok(Value::text(texts.join(&between)))
}

fn split_list(given: Given) -> Outcome {
    let (between, text) = (given.text(0)?, given.text(1)?);
    Ok(texts_in(text.split(&between).map(str::to_string).collect()))
}

/// A map of the parts: `_0`, `_1` and so on.
fn split(given: Given, most: usize, at: usize) -> Outcome {
    let (between, text) = (given.text(0)?, given.text(at)?);
    let parts = text.splitn(most, &between).enumerate();
    Ok(Value::Map(Rc::new(parts.map(|(at, part)| (format!("_{at}"), Value::text(part))).collect())))
}
