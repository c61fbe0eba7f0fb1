//! Plugins that fetch secrets: programs in `<common_plugin_dir>/secrets`, one call each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;

use crate::programs;

/// Where plugins find their programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How long a plugin may take to say what it is, and to fetch a secret.
const FINGERPRINT_WITHIN: Duration = Duration::from_secs(5);
const FETCH_WITHIN: Duration = Duration::from_secs(60);

/// Plugins of one node; further files are not looked at.
const PLUGINS_MAX: usize = 64;

#[derive(Deserialize)]
struct Fingerprint {
    #[serde(rename = "type")]
    kind: String,
    version: String,
}

#[derive(Deserialize)]
struct Fetched {
    #[serde(default)]
    result: Option<BTreeMap<String, String>>,
    #[serde(default)]
    error: Option<String>,
}

/// One call of a plugin for a secret.
#[derive(Debug)]
pub(crate) struct Fetch<'a> {
    pub provider: &'a str,
    pub path: &'a str,
    /// That of the block, and what the job is called.
    pub env: BTreeMap<String, String>,
}

/// The program of a provider.
///
/// # Errors
/// When its name could lead elsewhere.
fn program(plugins: &Path, provider: &str) -> Result<PathBuf, String> {
    if !programs::is_plain_name(provider) {
        return Err(format!("provider {provider:?} cannot be the name of a plugin"));
    }
    Ok(plugins.join("secrets").join(provider))
}

/// The attributes of the node about what fetches secrets: what is built in, and each plugin that answers.
pub(crate) async fn fingerprint(plugins: &Path) -> BTreeMap<String, String> {
    let attribute = |name: &str| format!("plugins.secrets.{name}.version");
    let mut found = BTreeMap::from([(attribute("nomad"), "1.0.0".to_string())]);
    let entries = std::fs::read_dir(plugins.join("secrets")).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| programs::is_program(&entry.path())).take(PLUGINS_MAX) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if matches!(name.as_str(), "nomad" | "vault") {
            tracing::warn!(name, "a plugin for secrets has the name of a provider that is built in");
            continue;
        }
        let asked: Result<Fingerprint, String> = async {
            let mut command = Command::new(program(plugins, &name)?);
            command.arg("fingerprint").env_clear().env("CPI_OPERATION", "fingerprint");
            call(command, FINGERPRINT_WITHIN).await
        }
        .await;
        match asked {
            Ok(print) if print.kind == "secrets" && !print.version.is_empty() => {
                found.insert(attribute(&name), print.version);
            }
            Ok(print) => tracing::warn!(name, print.kind, "a plugin is not one for secrets"),
            Err(why) => tracing::warn!(name, why, "a plugin for secrets does not say what it is"),
        }
    }
    found
}

/// What the plugin has under the path.
///
/// # Errors
/// What the plugin says, or why it says nothing.
pub(crate) async fn fetch(plugins: &Path, fetch: &Fetch<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut command = Command::new(program(plugins, fetch.provider)?);
    command.arg("fetch").arg(fetch.path).env_clear().envs(&fetch.env).env("CPI_OPERATION", "fetch");
    let answer: Fetched = call(command, FETCH_WITHIN).await?;
    match (answer.result, answer.error.filter(|error| !error.is_empty())) {
        (_, Some(error)) => Err(error),
        (Some(result), None) => Ok(result),
        (None, None) => Err("the plugin gives neither a result nor an error".to_string()),
    }
}

async fn call<T: DeserializeOwned>(mut command: Command, within: Duration) -> Result<T, String> {
    command.env("PATH", PATH);
    let ran = programs::run(command, within).await.map_err(|error| error.to_string())?;
    // One that fails may still say why in its answer.
    match serde_json::from_slice(&ran.output) {
        Ok(answer) => Ok(answer),
        Err(_) if !ran.status.success() => {
            let said = String::from_utf8_lossy(&ran.errors);
            Err(format!("the plugin ended with {}: {}", ran.status, said.trim()))
        }
        // Not the answer itself: it may hold secrets.
        Err(error) => Err(format!("the answer of the plugin is not as expected: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(plugins: &Path, name: &str, script: &str) {
        let directory = plugins.join("secrets");
        std::fs::create_dir_all(&directory).unwrap();
        // Written by another process: one of ours that starts at the same moment would inherit the open file.
        let status = std::process::Command::new("sh")
            .args(["-c", "printf '#!/bin/sh\n%s\n' \"$1\" > \"$0\" && chmod 755 \"$0\""])
            .arg(directory.join(name))
            .arg(script)
            .status();
        assert!(status.unwrap().success());
    }

    async fn fetched(plugins: &Path, provider: &str) -> Result<BTreeMap<String, String>, String> {
        let env = BTreeMap::from([("WHO".to_string(), "me".to_string())]);
        fetch(plugins, &Fetch { provider, path: "a/b", env }).await
    }

    #[tokio::test]
    async fn plugins_say_what_they_are_and_fetch() {
        let base = tempfile::tempdir().unwrap();
        let answer = r#"case $1 in
            fingerprint) echo '{"type": "secrets", "version": "1.2.3"}';;
            fetch) echo "{\"result\": {\"said\": \"$WHO $2 $CPI_OPERATION\"}, \"error\": null}";; esac"#;
        plugin(base.path(), "good", answer);
        plugin(base.path(), "refusing", r#"echo '{"result": null, "error": "no such secret"}'; exit 1"#);
        plugin(base.path(), "broken", "echo sorry >&2; exit 3");
        plugin(base.path(), "vague", "echo hello");
        let found = fingerprint(base.path()).await;
        let expected =
            [("plugins.secrets.good.version", "1.2.3"), ("plugins.secrets.nomad.version", "1.0.0")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_string(), value.to_string())).into());
        assert_eq!(fetched(base.path(), "good").await.unwrap()["said"], "me a/b fetch");
        assert_eq!(fetched(base.path(), "refusing").await.unwrap_err(), "no such secret");
        let broken = fetched(base.path(), "broken").await.unwrap_err();
        assert_eq!(broken, "the plugin ended with exit status: 3: sorry");
        assert!(fetched(base.path(), "vague").await.unwrap_err().starts_with("the answer of the plugin is "));
        assert!(fetched(base.path(), "../good").await.unwrap_err().contains("cannot be the name"));
    }
}
