use std::collections::BTreeMap;

use crate::eval::access;
use crate::eval::convert::{to_f64, to_int, to_text, wanted};
use crate::eval::{RESULT_MAX, Value, ValueError, set};

/// Most elements `range` makes, as in the language.
const RANGE_MAX: usize = 1024;

fn list(value: &Value) -> Result<&[Value], ValueError> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(wanted("a list", other)),
    }
}

fn object(value: &Value) -> Result<&BTreeMap<String, Value>, ValueError> {
    match value {
        Value::Object(entries) => Ok(entries),
        other => Err(wanted("an object", other)),
    }
}

fn is_empty_scalar(value: &Value) -> bool {
    matches!(value, Value::Null) || matches!(value, Value::Text(text) if text.is_empty())
}

pub(super) fn chunklist(a: &[Value]) -> Result<Value, ValueError> {
    let size = usize::try_from(to_int(&a[1])?).map_err(|_| "the size must not be negative")?;
    let items = list(&a[0])?;
    let size = if size == 0 { items.len().max(1) } else { size };
    Ok(Value::List(items.chunks(size).map(|chunk| Value::List(chunk.to_vec())).collect()))
}

/// The first argument that is not null; empty text is a value.
pub(super) fn coalesce(a: &[Value]) -> Result<Value, ValueError> {
    let found = a.iter().find(|value| **value != Value::Null);
    found.cloned().ok_or_else(|| "every argument is null".into())
}

pub(super) fn coalescelist(a: &[Value]) -> Result<Value, ValueError> {
    for value in a {
        if !list(value)?.is_empty() {
            return Ok(value.clone());
        }
    }
    Err("every list is empty".into())
}

pub(super) fn compact(a: &[Value]) -> Result<Value, ValueError> {
    let kept = list(&a[0])?.iter().filter(|item| !is_empty_scalar(item));
    kept.map(|item| to_text(item).map(Value::Text)).collect::<Result<_, _>>().map(Value::List)
}

pub(super) fn concat(a: &[Value]) -> Result<Value, ValueError> {
    let lists = a.iter().map(list).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::List(lists.concat()))
}

pub(super) fn contains(a: &[Value]) -> Result<Value, ValueError> {
    Ok(Value::Bool(list(&a[0])?.contains(&a[1])))
}

pub(super) fn distinct(a: &[Value]) -> Result<Value, ValueError> {
    // Quadratic by nature of the comparison: the size is bounded so that the time is.
    const DISTINCT_MAX: usize = 4096;
    let items = list(&a[0])?;
    if items.len() > DISTINCT_MAX {
        return Err(format!("a list of more than {DISTINCT_MAX} elements").into());
    }
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.contains(item) {
            kept.push(item.clone());
        }
    }
    Ok(Value::List(kept))
}

/// The element at a position, counted around the end.
pub(super) fn element(a: &[Value]) -> Result<Value, ValueError> {
    let (items, at) = (list(&a[0])?, to_int(&a[1])?);
    if items.is_empty() {
        return Err("the list is empty".into());
    }
    Ok(items[at.rem_euclid(items.len() as i64) as usize].clone())
}

pub(super) fn index(a: &[Value]) -> Result<Value, ValueError> {
    access::element(a[0].clone(), &a[1])
}

pub(super) fn flatten(a: &[Value]) -> Result<Value, ValueError> {
    fn into(flat: &mut Vec<Value>, items: &[Value]) {
        for item in items {
            match item {
                Value::List(inner) => into(flat, inner),
                other => flat.push(other.clone()),
            }
        }
    }
    let mut flat = Vec::new();
    into(&mut flat, list(&a[0])?);
    Ok(Value::List(flat))
}

pub(super) fn keys(a: &[Value]) -> Result<Value, ValueError> {
    Ok(Value::List(object(&a[0])?.keys().cloned().map(Value::Text).collect()))
}

pub(super) fn values(a: &[Value]) -> Result<Value, ValueError> {
    Ok(Value::List(object(&a[0])?.values().cloned().collect()))
}

pub(super) fn length(a: &[Value]) -> Result<Value, ValueError> {
    let length = match &a[0] {
        Value::List(items) => items.len(),
        Value::Object(entries) => entries.len(),
        Value::Text(text) => text.chars().count(),
        other => return Err(wanted("a list, an object or text", other)),
    };
    Ok(Value::Int(length as i128))
}

pub(super) fn lookup(a: &[Value]) -> Result<Value, ValueError> {
    let key = to_text(&a[1])?;
    let found = object(&a[0])?.get(&key).or(a.get(2));
    found.cloned().ok_or_else(|| format!("this object has no \"{key}\" and no default was given").into())
}

pub(super) fn merge(a: &[Value]) -> Result<Value, ValueError> {
    let mut merged = BTreeMap::new();
    for value in a.iter().filter(|value| **value != Value::Null) {
        merged.extend(object(value)?.clone());
    }
    Ok(Value::Object(merged))
}

pub(super) fn range(a: &[Value]) -> Result<Value, ValueError> {
    let numbers = a.iter().map(to_f64).collect::<Result<Vec<_>, _>>()?;
    let (start, end) = if numbers.len() == 1 { (0.0, numbers[0]) } else { (numbers[0], numbers[1]) };
    let step = numbers.get(2).copied().unwrap_or(if end < start { -1.0 } else { 1.0 });
    if step == 0.0 || (step > 0.0 && end < start) || (step < 0.0 && end > start) {
        return Err("the step leads away from the end".into());
    }
    let mut items = Vec::new();
    let mut at = start;
    while if step > 0.0 { at < end } else { at > end } {
        if items.len() == RANGE_MAX {
            return Err(format!("more than {RANGE_MAX} elements").into());
        }
        items.extend(Value::from_f64(at));
        at += step;
    }
    Ok(Value::List(items))
}

pub(super) fn slice(a: &[Value]) -> Result<Value, ValueError> {
    let items = list(&a[0])?;
    let bound = |value: &Value| -> Result<usize, ValueError> {
        let at = usize::try_from(to_int(value)?).ok().filter(|at| *at <= items.len());
        at.ok_or_else(|| format!("a bound lies outside the list of {}", items.len()).into())
    };
    let (start, end) = (bound(&a[1])?, bound(&a[2])?);
    items
        .get(start..end)
        .map(|part| Value::List(part.to_vec()))
        .ok_or_else(|| "the end lies before the start".into())
}

pub(super) fn sort(a: &[Value]) -> Result<Value, ValueError> {
    let mut texts = list(&a[0])?.iter().map(to_text).collect::<Result<Vec<_>, _>>()?;
    texts.sort();
    Ok(Value::List(texts.into_iter().map(Value::Text).collect()))
}

pub(super) fn tolist(a: &[Value]) -> Result<Value, ValueError> {
    list(&a[0]).map(|items| Value::List(items.to_vec()))
}

pub(super) fn toset(a: &[Value]) -> Result<Value, ValueError> {
    set(list(&a[0])?.to_vec()).map(Value::List)
}

pub(super) fn setunion(a: &[Value]) -> Result<Value, ValueError> {
    toset(&[concat(a)?])
}

pub(super) fn setintersection(a: &[Value]) -> Result<Value, ValueError> {
    let Value::List(mut common) = toset(&a[..1])? else { return Err(wanted("a list", &a[0])) };
    for other in &a[1..] {
        let Value::List(other) = toset(std::slice::from_ref(other))? else {
            return Err(wanted("a list", other));
        };
        common.retain(|item| other.contains(item));
    }
    Ok(Value::List(common))
}

pub(super) fn setproduct(a: &[Value]) -> Result<Value, ValueError> {
    let lists = a.iter().map(list).collect::<Result<Vec<_>, _>>()?;
    let weight: usize = a.iter().filter_map(|value| value.weigh(usize::MAX)).fold(1, usize::saturating_mul);
    if weight > RESULT_MAX {
        return Err("the product is too large".into());
    }
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for items in lists {
        let extended = rows
            .iter()
            .flat_map(|row| items.iter().map(|item| [row.as_slice(), std::slice::from_ref(item)].concat()));
        rows = extended.collect();
    }
    Ok(Value::List(rows.into_iter().map(Value::List).collect()))
}

pub(super) fn zipmap(a: &[Value]) -> Result<Value, ValueError> {
    let (keys, values) = (list(&a[0])?, list(&a[1])?);
    if keys.len() != values.len() {
        return Err(format!("{} keys for {} values", keys.len(), values.len()).into());
    }
    let keys = keys.iter().map(to_text).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::Object(keys.into_iter().zip(values.iter().cloned()).collect()))
}
