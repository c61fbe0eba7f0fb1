//! The files of a bundle: written one by one, listed, and put into an archive.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// What stands for a secret.
const REDACTED: &str = "<redacted>";

/// Keys whose values are secrets, in lower case and without separators. Answers of Nomad's API leave out most of them
/// already; a server of another release may not.
const SECRETS: [&str; 12] = [
    "secretid",
    "secret",
    "secrets",
    "token",
    "password",
    "encrypt",
    "encryptkey",
    "replicationtoken",
    "consultoken",
    "vaulttoken",
    "oidcclientsecret",
    "httpauth",
];

/// A directory that is filled.
pub(super) struct Bundle {
    root: PathBuf,
    /// What failed, by the file that should have held it.
    failed: RefCell<BTreeMap<String, String>>,
    written: RefCell<Vec<String>>,
}

impl Bundle {
    pub(super) fn create(root: &Path) -> anyhow::Result<Bundle> {
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Bundle { root: root.to_path_buf(), failed: RefCell::default(), written: RefCell::default() })
    }

    /// A new file at this path of the bundle.
    pub(super) fn file(&self, path: &str) -> anyhow::Result<File> {
        let whole = self.root.join(path);
        if let Some(folder) = whole.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        self.written.borrow_mut().push(path.to_string());
        File::create(&whole).with_context(|| format!("cannot write {}", whole.display()))
    }

    /// Writes an answer: as it is, or without its secrets if it is JSON.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let mut file = self.file(path)?;
        match serde_json::from_slice::<Value>(bytes) {
            Ok(mut value) => {
                redact(&mut value);
                file.write_all(crate::output::json(&value).as_bytes())?;
            }
            Err(_) => file.write_all(bytes)?,
        }
        Ok(())
    }

    /// Notes in the index that something is not whole.
    pub(super) fn note(&self, path: &str, error: &str) {
        self.failed.borrow_mut().insert(path.to_string(), error.to_string());
    }

    /// Notes where something would be that it is missing.
    pub(super) fn fail(&self, path: &str, error: &str) -> anyhow::Result<()> {
        self.write(path, json!({"error": error}).to_string().as_bytes())
    }

    pub(super) fn failures(&self) -> usize {
        self.failed.borrow().len()
    }

    /// Writes the index of what is there.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let mut files = self.written.borrow().clone();
        files.sort();
        files.dedup();
        let index = json!({"Files": files, "Errors": *self.failed.borrow()});
        let path = self.root.join("index.json");
        fs::write(&path, crate::output::json(&index))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields.iter_mut() {
                let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
                let is_secret = SECRETS.contains(&plain.to_ascii_lowercase().as_str());
                match inner {
                    Value::String(text) if is_secret && !text.is_empty() => *text = REDACTED.to_string(),
                    Value::Object(_) | Value::Array(_) if is_secret => *inner = json!(REDACTED),
                    inner => redact(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// Puts the directory into a compressed archive that nobody but its owner may read.
pub(super) fn archive(root: &Path, name: &str, to: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    archive.append_dir_all(name, root)?;
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_at_any_depth() {
        let mut value = json!({"SecretID": "s", "Name": "n", "stats": [{"Vault": {"Token": "t", "token": ""}}],
            "Secrets": {"a": "b"}, "TokenTTL": "1h", "EncryptKey": "k"});
        redact(&mut value);
        let wanted = json!({"SecretID": REDACTED, "Name": "n", "stats": [{"Vault": {"Token": REDACTED, "token": ""}}],
            "Secrets": REDACTED, "TokenTTL": "1h", "EncryptKey": REDACTED});
        assert_eq!(value, wanted);
    }
}
