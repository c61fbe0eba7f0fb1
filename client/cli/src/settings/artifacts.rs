//! `client.artifact`: what artifacts may cost, and what the children that fetch them see.

use std::collections::BTreeMap;

use artifact::Limits;
use base::Duration;
use jobspec::config::Section;
use node::artifacts::ArtifactSettings;

use super::unsupported::Refused;
use super::value::ConfigValue;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactConfig {
    pub limits: Limits,
    /// Names of variables of the agent that children get too, separated by commas.
    pub set_environment_variables: String,
}

impl ArtifactConfig {
    pub(crate) fn usual() -> ArtifactConfig {
        ArtifactConfig { limits: Limits::usual(), set_environment_variables: String::new() }
    }

    /// With the values of the variables; `HOME` is always one of them, for keys of ssh, `.netrc` and `.gitconfig`.
    pub(crate) fn with_environment(&self, value: impl Fn(&str) -> Option<String>) -> ArtifactSettings {
        let named = self.set_environment_variables.split(',').map(str::trim).filter(|name| !name.is_empty());
        let given = named.chain(["HOME"]).filter_map(|name| Some((name.to_string(), value(name)?)));
        let environment: BTreeMap<String, String> = given.collect();
        ArtifactSettings { limits: self.limits.clone(), environment }
    }
}

pub(super) fn artifacts(config: &mut ArtifactConfig, mut section: Section, refused: &mut Refused) {
    let limits = &mut config.limits;
    for (key, timeout) in [
        ("http_read_timeout", &mut limits.http_read_timeout),
        ("gcs_timeout", &mut limits.gcs_timeout),
        ("git_timeout", &mut limits.git_timeout),
        ("hg_timeout", &mut limits.hg_timeout),
        ("s3_timeout", &mut limits.s3_timeout),
    ] {
        let mut given = Duration::from(*timeout);
        refused.set(&mut section, key, &mut given);
        if given <= Duration::default() {
            refused.also(Err(section.wrong(format!("{key} = {given}: expected more than 0s"))));
        }
        *timeout = given.to_std();
    }
    for (key, size) in [
        ("http_max_size", &mut limits.http_max_size),
        ("decompression_size_limit", &mut limits.decompression_size_limit),
    ] {
        let mut given = Bytes(*size);
        refused.set(&mut section, key, &mut given);
        *size = given.0;
    }
    refused.set(&mut section, "decompression_file_count_limit", &mut limits.decompression_file_count_limit);
    refused.set(&mut section, "disable_artifact_inspection", &mut limits.disable_artifact_inspection);
    refused.set(&mut section, "disable_filesystem_isolation", &mut limits.disable_filesystem_isolation);
    refused.set(&mut section, "set_environment_variables", &mut config.set_environment_variables);
    let mut extra = Vec::new();
    refused.list(&mut section, "filesystem_isolation_extra_paths", &mut extra);
    for given in extra {
        match given.parse() {
            Ok(path) => limits.extra_paths.push(path),
            Err(why) => {
                let text = format!("filesystem_isolation_extra_paths: \"{given}\": {why}");
                refused.also(Err(section.wrong(text)));
            }
        }
    }
    refused.done(section);
}

/// A size as people write it.
pub(super) struct Bytes(pub u64);

impl ConfigValue for Bytes {
    const EXPECTED: &'static str = "a size, like \"100GB\" or \"512MiB\"";

    fn from_text(text: &str) -> Option<Bytes> {
        let text = text.trim();
        let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1000,
            "m" | "mb" => 1000 * 1000,
            "g" | "gb" => 1000 * 1000 * 1000,
            "t" | "tb" => 1000 * 1000 * 1000 * 1000,
            "ki" | "kib" => 1 << 10,
            "mi" | "mib" => 1 << 20,
            "gi" | "gib" => 1 << 30,
            "ti" | "tib" => 1 << 40,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(factor).map(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let read = |text| Bytes::from_text(text).map(|bytes| bytes.0);
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("100GB", Some(100_000_000_000)),
            ("1 MiB", Some(1 << 20)),
            ("2k", Some(2000)),
            ("GB", None),
            ("1.5GB", None),
            ("-1", None),
            ("99999999999TB", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn children_get_the_home_and_the_variables_that_are_named() {
        let config =
            ArtifactConfig { set_environment_variables: "A, B,".to_string(), ..ArtifactConfig::usual() };
        let settings = config.with_environment(|name| (name != "B").then(|| format!("<{name}>")));
        let expected = [("A", "<A>"), ("HOME", "<HOME>")];
        let expected = expected.map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(settings.environment, expected.into());
    }
}
