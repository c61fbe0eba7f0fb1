//! What a plugin says of itself, and how it gets its configuration.

use std::time::Duration;

use crate::call::{CallError, Caller};
use crate::hclspec;
use crate::proto::base::{self, ConfigSchema, Empty, NomadConfig, PluginInfo, PluginType, SetConfig};
use crate::proto::hclspec::Spec;

/// The one version of the services that there is.
pub const API_VERSION: &str = "v0.1.0";

/// For what a plugin can answer at once.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Who a plugin is.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    pub kind: PluginType,
    /// What jobs call it, if it is a driver.
    pub name: String,
    pub version: String,
    /// Of its configuration; `None` if it takes none.
    pub schema: Option<Spec>,
}

/// Asks a plugin who it is.
///
/// # Errors
/// When it does not answer, is of no type that is known here, or speaks another version of the services.
pub async fn identify(caller: &Caller) -> Result<Identity, String> {
    let failed = |error: CallError| error.to_string();
    let info: PluginInfo =
        caller.call(base::SERVICE, "PluginInfo", Empty {}, ANSWER_TIMEOUT).await.map_err(failed)?;
    let kind = PluginType::try_from(info.kind).unwrap_or(PluginType::Unknown);
    if kind == PluginType::Unknown {
        return Err(format!("it is of type {}: expected a driver (2) or a device (3)", info.kind));
    }
    if !info.api_versions.iter().any(|version| version == API_VERSION) {
        let versions = info.api_versions.join(", ");
        return Err(format!("it has the API versions {versions}: expected {API_VERSION}"));
    }
    if info.name.is_empty() {
        return Err("it has no name".to_string());
    }
    let schema: ConfigSchema =
        caller.call(base::SERVICE, "ConfigSchema", Empty {}, ANSWER_TIMEOUT).await.map_err(failed)?;
    if let Some(spec) = &schema.spec {
        hclspec::check(spec)?;
    }
    let schema = schema.spec.filter(|spec| spec.block.is_some());
    Ok(Identity { kind, name: info.name, version: info.version, schema })
}

/// Gives a plugin its configuration, [`hclspec::encode`]d.
///
/// # Errors
/// What the plugin says against it.
pub async fn configure(
    caller: &Caller,
    msgpack_config: Vec<u8>,
    nomad_config: Option<NomadConfig>,
) -> Result<(), CallError> {
    let plugin_api_version = API_VERSION.to_string();
    let request = SetConfig { msgpack_config, nomad_config, plugin_api_version };
    let _: Empty = caller.call(base::SERVICE, "SetConfig", request, ANSWER_TIMEOUT).await?;
    Ok(())
}

/// Whether the version `one` is higher than `other`: number by number, and a release is higher than what leads to it.
pub fn is_newer(one: &str, other: &str) -> bool {
    let key = |text: &str| {
        let text = text.trim_start_matches('v');
        let text = text.split('+').next().unwrap_or_default();
        let (numbers, before) =
            text.split_once('-').map_or((text, None), |(numbers, rest)| (numbers, Some(rest)));
        let numbers: Vec<u64> = numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        (numbers, before.is_none(), before.unwrap_or_default().to_string())
    };
    key(one) > key(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        for (one, other) in
            [("0.10.0", "0.9.9"), ("v1.0.0", "0.1.0"), ("1.0.0", "1.0.0-beta"), ("1.0.0-b", "1.0.0-a")]
        {
            assert!(is_newer(one, other) && !is_newer(other, one), "{one} {other}");
        }
        assert!(!is_newer("1.0.0", "v1.0.0+build"));
    }
}
