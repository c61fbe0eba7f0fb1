//! Single values of a configuration file. As in HCL 1, numbers and booleans may be quoted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use base::Duration;
use ipnet::IpNet;
use jobspec::Diagnostics;
use jobspec::config::Section;
use keyring::Enforcement;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// A value that is written as a single text, number or boolean.
pub(super) trait ConfigValue: Sized {
    /// Completes the message "expected …".
    const EXPECTED: &'static str;

    fn from_text(text: &str) -> Option<Self>;
}

/// Sets a field from a key, if the key is present.
///
/// # Errors
/// When the value is invalid, with its position.
pub(super) fn set<T: ConfigValue>(
    section: &mut Section,
    key: &str,
    field: &mut T,
) -> Result<(), Diagnostics> {
    if let Some(Unquoted(value)) = section.take(key)? {
        *field = value;
    }
    Ok(())
}

/// As [`set`], for optional fields.
///
/// # Errors
/// When the value is invalid, with its position.
pub(super) fn set_option<T: ConfigValue>(
    section: &mut Section,
    key: &str,
    field: &mut Option<T>,
) -> Result<(), Diagnostics> {
    if let Some(Unquoted(value)) = section.take(key)? {
        *field = Some(value);
    }
    Ok(())
}

/// As [`set`], for lists.
///
/// # Errors
/// When one of the values is invalid, with its position.
pub(super) fn set_list<T: ConfigValue>(
    section: &mut Section,
    key: &str,
    field: &mut Vec<T>,
) -> Result<(), Diagnostics> {
    if let Some(values) = section.take::<Vec<Unquoted<T>>>(key)? {
        *field = values.into_iter().map(|Unquoted(value)| value).collect();
    }
    Ok(())
}

/// Reads every key of a section as text, for sections whose keys are free.
///
/// # Errors
/// When a value is not a single value, with its position.
pub(super) fn set_map(
    section: &mut Section,
    field: &mut BTreeMap<String, String>,
) -> Result<(), Diagnostics> {
    for key in section.names() {
        let mut value = String::new();
        set(section, &key, &mut value)?;
        field.insert(key, value);
    }
    Ok(())
}

/// A value that may be quoted or not.
struct Unquoted<T>(T);

impl<'de, T: ConfigValue> Deserialize<'de> for Unquoted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => Some(text),
            value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let value = text.as_deref().and_then(T::from_text);
        value.map(Unquoted).ok_or_else(|| D::Error::custom(format!("expected {}", T::EXPECTED)))
    }
}

macro_rules! config_values {
    ($($kind:ty, $what:literal;)*) => {
        $(impl ConfigValue for $kind {
            const EXPECTED: &'static str = $what;

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        })*
    };
}

config_values! {
    u8, "a whole number up to 255";
    u16, "a whole number up to 65535";
    u32, "a whole number";
    u64, "a whole number";
    i64, "a whole number, negative ones too";
    String, "text";
    PathBuf, "a path";
    IpAddr, "an IP address";
    Duration, "a duration, like \"30s\"";
}

impl ConfigValue for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_text(text: &str) -> Option<Self> {
        api::go_bool(text)
    }
}

impl ConfigValue for Vec<u16> {
    const EXPECTED: &'static str = "numbers and ranges, like \"0-3,6\"";

    fn from_text(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            numbers.extend(first..=last);
        }
        Some(numbers)
    }
}

impl ConfigValue for IpNet {
    const EXPECTED: &'static str = "an address or a network, like \"10.0.0.0/8\"";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().or_else(|| Some(IpNet::from(text.parse::<IpAddr>().ok()?)))
    }
}

impl ConfigValue for tracing::Level {
    const EXPECTED: &'static str = "TRACE, DEBUG, INFO, WARN or ERROR";

    fn from_text(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "TRACE" => Some(tracing::Level::TRACE),
            "DEBUG" => Some(tracing::Level::DEBUG),
            "INFO" => Some(tracing::Level::INFO),
            "WARN" => Some(tracing::Level::WARN),
            "ERROR" => Some(tracing::Level::ERROR),
            _ => None,
        }
    }
}

impl ConfigValue for Enforcement {
    const EXPECTED: &'static str = "none, warn or strict";

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Enforcement::None),
            "warn" => Some(Enforcement::Warn),
            "strict" => Some(Enforcement::Strict),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_numbers_are_spelled_out() {
        let read = |text| <Vec<u16> as ConfigValue>::from_text(text);
        assert_eq!(read("0-3, 6"), Some(vec![0, 1, 2, 3, 6]));
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(read("a-3"), None);
    }
}
