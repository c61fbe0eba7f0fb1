use serde_json::{Value as Json, json};

use super::schema::FieldKind;
use crate::eval::{Value, ValueError, to_bool, to_int, to_text};

/// The JSON of a value in the shape its field asks for; null stays null.
pub(super) fn decode(kind: FieldKind, value: Value) -> Result<Json, ValueError> {
    if value == Value::Null {
        return Ok(Json::Null);
    }
    match kind {
        FieldKind::Text => text(&value),
        FieldKind::Bool => to_bool(&value).map(Json::from),
        FieldKind::Int(least, most) => int(&value, least, most),
        FieldKind::Duration => duration(&value),
        FieldKind::Texts => list(value, |item| text(&item)),
        FieldKind::Ints(least, most) => list(value, |item| int(&item, least, most)),
        FieldKind::TextMap => map(value, |item| text(&item)),
        FieldKind::TextsMap => map(value, |item| list(item, |item| text(&item))),
        FieldKind::Free => match value {
            Value::Object(_) => Ok(value.into_json()),
            other => Err(format!("expected an object, found {}", other.describe()).into()),
        },
    }
}

fn text(value: &Value) -> Result<Json, ValueError> {
    to_text(value).map(Json::String)
}

fn int(value: &Value, least: i64, most: i64) -> Result<Json, ValueError> {
    let whole = to_int(value)?;
    match (least..=most).contains(&whole) {
        true => Ok(json!(whole)),
        false => Err(format!("{whole} is not between {least} and {most}").into()),
    }
}

/// Go's duration text, or a number of nanoseconds.
fn duration(value: &Value) -> Result<Json, ValueError> {
    match value {
        Value::Text(text) => {
            text.parse().map(|span: base::Duration| json!(span.0)).map_err(|why| why.to_string().into())
        }
        Value::Int(_) => to_int(value).map(|nanos| json!(nanos)),
        other => Err(format!("expected a duration such as \"30s\", found {}", other.describe()).into()),
    }
}

fn list(value: Value, item: impl Fn(Value) -> Result<Json, ValueError>) -> Result<Json, ValueError> {
    let Value::List(items) = value else {
        return Err(format!("expected a list, found {}", value.describe()).into());
    };
    let decoded = items
        .into_iter()
        .enumerate()
        .map(|(at, value)| item(value).map_err(|why| why.within(format!("[{at}]"))));
    decoded.collect::<Result<_, _>>().map(Json::Array)
}

/// Entries that are null are left out.
fn map(value: Value, item: impl Fn(Value) -> Result<Json, ValueError>) -> Result<Json, ValueError> {
    let Value::Object(entries) = value else {
        return Err(format!("expected an object, found {}", value.describe()).into());
    };
    let set = entries.into_iter().filter(|(_, value)| *value != Value::Null);
    let decoded = set.map(|(key, value)| match item(value) {
        Ok(value) => Ok((key, value)),
        Err(why) => Err(why.within(key)),
    });
    decoded.collect::<Result<_, _>>().map(Json::Object)
}
