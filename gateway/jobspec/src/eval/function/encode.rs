use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::eval::convert::{to_bool, to_number, to_text};
use crate::eval::{Value, ValueError};

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn base64encode(a: &[Value]) -> Result<Value, ValueError> {
    Ok(Value::Text(base64(to_text(&a[0])?.as_bytes())))
}

pub(super) fn base64decode(a: &[Value]) -> Result<Value, ValueError> {
    let bytes = STANDARD.decode(to_text(&a[0])?).map_err(|why| format!("not base64: {why}"))?;
    String::from_utf8(bytes).map(Value::Text).map_err(|_| "the decoded bytes are not UTF-8 text".into())
}

pub(super) fn jsonencode(a: &[Value]) -> Result<Value, ValueError> {
    let json = a[0].clone().into_json().to_string();
    // These five never stand outside strings; escaped, the text is also safe inside HTML and scripts.
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    Ok(Value::Text(escapes.iter().fold(json, |json, (c, escape)| json.replace(*c, escape))))
}

pub(super) fn jsondecode(a: &[Value]) -> Result<Value, ValueError> {
    let json = serde_json::from_str(&to_text(&a[0])?).map_err(|why| format!("not JSON: {why}"))?;
    Ok(Value::from_json(json))
}

pub(super) fn urlencode(a: &[Value]) -> Result<Value, ValueError> {
    let mut encoded = String::new();
    for byte in to_text(&a[0])?.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte))
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(Value::Text(encoded))
}

pub(super) fn tostring(a: &[Value]) -> Result<Value, ValueError> {
    to_text(&a[0]).map(Value::Text)
}

pub(super) fn tonumber(a: &[Value]) -> Result<Value, ValueError> {
    to_number(&a[0])
}

pub(super) fn tobool(a: &[Value]) -> Result<Value, ValueError> {
    to_bool(&a[0]).map(Value::Bool)
}
