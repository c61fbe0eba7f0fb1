//! Encodings, digests, and texts that are read as values.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE};
use md5::Md5;
use sha2::{Digest, Sha256};

use super::{write, yaml};
use crate::builtin::Outcome;
use crate::sprig::Given;
use crate::value::Value;

pub fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let given = Given(arguments);
    Some(match name {
        "base64Encode" => bytes(given, 0).map(|bytes| Value::text(STANDARD.encode(bytes))),
        "base64URLEncode" => bytes(given, 0).map(|bytes| Value::text(URL_SAFE.encode(bytes))),
        "base64Decode" => decoded(given, &STANDARD),
        "base64URLDecode" => decoded(given, &URL_SAFE),
        "sha256Hex" => bytes(given, 0).map(|bytes| Value::text(hex(&Sha256::digest(bytes)))),
        "md5sum" => bytes(given, 0).map(|bytes| Value::text(hex(&Md5::digest(bytes)))),
        "hmacSHA256Hex" => hmac(given),
        "toJSON" => given.value(0).map(|value| Value::text(write::json(value, true, false))),
        "toJSONPretty" => given.value(0).map(|value| Value::text(write::json(value, true, true))),
        "toUnescapedJSON" => given.value(0).map(|value| Value::text(write::json(value, false, false))),
        "toUnescapedJSONPretty" => given.value(0).map(|value| Value::text(write::json(value, false, true))),
        "toYAML" => given.value(0).map(|value| Value::text(write::yaml(value))),
        "toTOML" => given.value(0).and_then(write::toml).map(Value::text),
        "parseJSON" => parse_json(given),
        "parseYAML" => given.text(0).and_then(|text| yaml::parse(&text)),
        "parseBool" => parse_bool(given),
        "parseInt" => parsed(given, |text| text.parse().ok().map(Value::Int), "an integer", Value::Int(0)),
        "parseUint" => parsed(given, parse_uint, "an unsigned integer", Value::Int(0)),
        "parseFloat" => {
            parsed(given, |text| text.parse().ok().map(Value::Float), "a number", Value::Float(0.0))
        }
        _ => return None,
    })
}

fn bytes(given: Given<'_>, at: usize) -> Result<Vec<u8>, String> {
    match given.value(at)? {
        Value::Bytes(bytes) => Ok(bytes.to_vec()),
        _ => given.text(at).map(String::into_bytes),
    }
}

/// Line breaks within are no part of it.
fn decoded(given: Given<'_>, engine: &GeneralPurpose) -> Outcome {
    let text: String = given.text(0)?.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    engine.decode(text).map(Value::from_bytes).map_err(|error| error.to_string())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 2104 over SHA-256, whose blocks have 64 bytes: of a message, and then the key.
fn hmac(given: Given<'_>) -> Outcome {
    const BLOCK: usize = 64;
    let (message, mut key) = (bytes(given, 0)?, bytes(given, 1)?);
    if key.len() > BLOCK {
        key = Sha256::digest(&key).to_vec();
    }
    key.resize(BLOCK, 0);
    let padded = |pad: u8| key.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = Sha256::digest([padded(0x36), message].concat());
    Ok(Value::text(hex(&Sha256::digest([padded(0x5c), inner.to_vec()].concat()))))
}

fn parse_json(given: Given<'_>) -> Outcome {
    let text = given.text(0)?;
    if text.is_empty() {
        return Ok(Value::map(Default::default()));
    }
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(floats(Value::from(&json)))
}

/// All numbers of JSON are floats in Go.
fn floats(value: Value) -> Value {
    match value {
        Value::List(items) => Value::list(items.iter().cloned().map(floats).collect()),
        Value::Map(entries) => {
            Value::map(entries.iter().map(|(key, value)| (key.clone(), floats(value.clone()))).collect())
        }
        Value::Int(_) | Value::Uint(_) => Value::Float(value.as_float().unwrap_or_default()),
        other => other,
    }
}

fn parse_bool(given: Given<'_>) -> Outcome {
    match given.text(0)?.as_str() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        other => Err(format!("{other:?} is not a bool")),
    }
}

fn parse_uint(text: &str) -> Option<Value> {
    let number: u64 = text.parse().ok()?;
    Some(i64::try_from(number).map_or(Value::Uint(number), Value::Int))
}

fn parsed(given: Given<'_>, parse: fn(&str) -> Option<Value>, kind: &str, empty: Value) -> Outcome {
    match given.text(0)?.as_str() {
        "" => Ok(empty),
        text => parse(text).ok_or_else(|| format!("{text:?} is not {kind}")),
    }
}
