//! With which credentials an image is pulled.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;

use super::settings::AuthSettings;
use crate::driver::Values;

/// Where images are whose names have no registry.
const DEFAULT_REGISTRY: &str = "https://index.docker.io/v1/";

/// How long a program that holds credentials may take.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);

/// As `docker login` writes it. What else stands there is not for us.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConfigFile {
    auths: BTreeMap<String, FileEntry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FileEntry {
    /// `user:password` in base64.
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// What a program that holds credentials answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

/// The task's own credentials, else those of the operator's file, else those of the operator's program.
///
/// # Errors
/// When a file or a program that should hold them cannot be read or run.
pub async fn find(
    repository: &str,
    task: Option<&Values>,
    settings: &AuthSettings,
) -> Result<Option<DockerCredentials>, String> {
    if let Some(given) = task.and_then(of_task) {
        return Ok(Some(given));
    }
    let registry = registry(repository);
    if let Some(path) = &settings.config
        && let Some(found) = in_file(path, registry).await?
    {
        return Ok(Some(found));
    }
    match &settings.helper {
        Some(helper) => of_helper(helper, registry).await,
        None => Ok(None),
    }
}

fn of_task(block: &Values) -> Option<DockerCredentials> {
    let text = |key: &str| block.text(key).map(str::to_string);
    let (username, password) = (text("username"), text("password"));
    (username.is_some() || password.is_some()).then(|| DockerCredentials {
        username,
        password,
        serveraddress: text("server_address"),
        ..DockerCredentials::default()
    })
}

/// The registry that a repository's name begins with.
fn registry(repository: &str) -> &str {
    match repository.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => DEFAULT_REGISTRY,
    }
}

/// The host of a registry, however it is written.
fn host(registry: &str) -> &str {
    let bare = registry.trim_start_matches("https://").trim_start_matches("http://");
    let host = bare.split('/').next().unwrap_or(bare);
    if host == "docker.io" { "index.docker.io" } else { host }
}

async fn in_file(path: &Path, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("auth config {}: {error}", path.display());
    let bytes = tokio::fs::read(path).await.map_err(|error| wrong(&error))?;
    let file: ConfigFile = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    let same = |name: &&String| host(name) == host(registry);
    if let Some(helper) = file.cred_helpers.keys().find(same).map(|name| &file.cred_helpers[name]) {
        return of_helper(helper, registry).await;
    }
    if let Some(entry) = file.auths.keys().find(same).map(|name| &file.auths[name])
        && let Some(found) = of_entry(entry, registry).map_err(|error| wrong(&error))?
    {
        return Ok(Some(found));
    }
    match file.creds_store.as_str() {
        "" => Ok(None),
        store => of_helper(store, registry).await,
    }
}

/// None for an entry that only says that a program holds the credentials.
fn of_entry(entry: &FileEntry, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let (mut username, mut password) = (entry.username.clone(), entry.password.clone());
    if !entry.auth.is_empty() {
        let decoded = STANDARD.decode(&entry.auth).map_err(|error| error.to_string())?;
        let decoded = String::from_utf8(decoded).map_err(|error| error.to_string())?;
        let (user, secret) = decoded.split_once(':').ok_or("auth is not \"user:password\" in base64")?;
        (username, password) = (user.to_string(), secret.trim_end_matches('\0').to_string());
    }
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    if username.is_empty() && entry.identitytoken.is_empty() {
        return Ok(None);
    }
    Ok(Some(DockerCredentials {
        username: some(username),
        password: some(password),
        identitytoken: some(entry.identitytoken.clone()),
        serveraddress: Some(registry.to_string()),
        ..DockerCredentials::default()
    }))
}

/// Asks the program `docker-credential-NAME`. One that has none for the registry is no error.
async fn of_helper(name: &str, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let program = format!("docker-credential-{name}");
    let wrong = |error: &dyn std::fmt::Display| format!("{program}: {error}");
    let ask = async {
        let mut command = tokio::process::Command::new(&program);
        command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn()?;
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        stdin.write_all(registry.as_bytes()).await?;
        drop(stdin);
        child.wait_with_output().await
    };
    let late = |_| format!("{program} did not answer in time");
    let output = tokio::time::timeout(HELPER_TIMEOUT, ask).await.map_err(late)?;
    let output = output.map_err(|error| wrong(&error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).trim().to_string();
        return if said.contains("credentials not found") { Ok(None) } else { Err(wrong(&said)) };
    }
    let answer: HelperAnswer = serde_json::from_slice(&output.stdout).map_err(|error| wrong(&error))?;
    // This name says that the secret is a token.
    let is_token = answer.username == "<token>";
    Ok(Some(DockerCredentials {
        username: Some(answer.username).filter(|_| !is_token),
        password: Some(answer.secret.clone()).filter(|_| !is_token),
        identitytoken: Some(answer.secret).filter(|_| is_token),
        serveraddress: Some(registry.to_string()),
        ..DockerCredentials::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_the_first_part_of_a_name() {
        for (repository, expected) in [
            ("redis", "index.docker.io"),
            ("library/redis", "index.docker.io"),
            ("localhost/redis", "localhost"),
            ("127.0.0.1:5000/redis", "127.0.0.1:5000"),
            ("registry.lan/a/b", "registry.lan"),
            ("docker.io/a/b", "index.docker.io"),
        ] {
            assert_eq!(host(registry(repository)), expected, "{repository}");
        }
    }

    #[tokio::test]
    async fn files_are_read_as_they_are_written_by_a_login() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let auth = STANDARD.encode("me:se:cret");
        let text = format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {{}}, "https://r.lan/v2/": {{"auth": "{auth}"}},
                "t.lan": {{"identitytoken": "tok"}}}}, "HttpHeaders": {{}}}}"#
        );
        std::fs::write(&path, text).unwrap();
        let settings = AuthSettings { config: Some(path.clone()), helper: None };
        let found = find("r.lan/a", None, &settings).await.unwrap().unwrap();
        assert_eq!((found.username.as_deref(), found.password.as_deref()), (Some("me"), Some("se:cret")));
        let found = find("t.lan/a", None, &settings).await.unwrap().unwrap();
        assert_eq!((found.username, found.identitytoken.as_deref()), (None, Some("tok")));
        assert!(find("redis", None, &settings).await.unwrap().is_none());
        std::fs::write(&path, "{").unwrap();
        let error = find("r.lan/a", None, &settings).await.unwrap_err();
        assert!(error.starts_with("auth config "), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_is_missing_is_named() {
        let settings = AuthSettings { config: None, helper: Some("no-such-thing".into()) };
        let error = find("r.lan/a", None, &settings).await.unwrap_err();
        assert!(error.starts_with("docker-credential-no-such-thing: "), "{error}");
    }
}
