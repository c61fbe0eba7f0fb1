//! `vault`: the Vaults that tasks log in to, and the identities that servers add to jobs for that.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jobspec::ImpliedIdentity;
use jobspec::config::Section;
use node::vault::{DEFAULT, VaultSettings};

use super::unsupported::{Refusal, Refused};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VaultConfig {
    pub enabled: bool,
    pub address: String,
    pub namespace: String,
    pub jwt_auth_backend_path: String,
    pub create_from_role: String,
    pub ca_file: PathBuf,
    pub ca_path: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub tls_server_name: String,
    pub tls_skip_verify: bool,
    /// What the servers give tasks that name no identity of their own.
    pub default_identity: Option<ImpliedIdentity>,
}

/// By name.
pub(crate) type VaultConfigs = BTreeMap<String, VaultConfig>;

/// Keys of releases whose servers made the tokens themselves.
const GONE: [Refusal; 4] = [
    ("allow_unauthenticated", "true", LOGS_IN),
    ("policies", "", LOGS_IN),
    ("task_token_ttl", "", LOGS_IN),
    ("token", "", LOGS_IN),
];

const LOGS_IN: &str = "tasks log in with their identity, as roles of Vault allow it";

impl VaultConfig {
    pub(super) fn usual() -> VaultConfig {
        VaultConfig {
            enabled: false,
            address: "https://vault.service.consul:8200".to_string(),
            namespace: String::new(),
            jwt_auth_backend_path: "jwt-nomad".to_string(),
            create_from_role: String::new(),
            ca_file: PathBuf::new(),
            ca_path: PathBuf::new(),
            cert_file: PathBuf::new(),
            key_file: PathBuf::new(),
            tls_server_name: String::new(),
            tls_skip_verify: false,
            default_identity: None,
        }
    }

    pub(crate) fn settings(&self, name: &str) -> VaultSettings {
        VaultSettings {
            name: name.to_string(),
            address: self.address.clone(),
            namespace: self.namespace.clone(),
            auth_path: self.jwt_auth_backend_path.clone(),
            role: self.create_from_role.clone(),
            ca_file: self.ca_file.clone(),
            ca_path: self.ca_path.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
            server_name: self.tls_server_name.clone(),
            skip_verify: self.tls_skip_verify,
        }
    }
}

/// The name of a block: its label, or its key `name`.
pub(super) fn name_of(section: &mut Section, refused: &mut Refused) -> String {
    let mut name = section.labels.first().cloned().unwrap_or_default();
    refused.set(section, "name", &mut name);
    if name.is_empty() { DEFAULT.to_string() } else { name }
}

/// A later file adds to an earlier one.
pub(super) fn read(settings: &mut VaultConfigs, mut section: Section, refused: &mut Refused) {
    let name = name_of(&mut section, refused);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.chars().all(plain) {
        refused.also(Err(section.wrong(format!("name = \"{name}\": expected letters, digits, - and _"))));
    }
    let vault = settings.entry(name).or_insert_with(VaultConfig::usual);
    refused.set(&mut section, "enabled", &mut vault.enabled);
    for (key, field) in [
        ("address", &mut vault.address),
        ("namespace", &mut vault.namespace),
        ("jwt_auth_backend_path", &mut vault.jwt_auth_backend_path),
        ("create_from_role", &mut vault.create_from_role),
        ("tls_server_name", &mut vault.tls_server_name),
    ] {
        refused.set(&mut section, key, field);
    }
    for (key, field) in [
        ("ca_file", &mut vault.ca_file),
        ("ca_path", &mut vault.ca_path),
        ("cert_file", &mut vault.cert_file),
        ("key_file", &mut vault.key_file),
    ] {
        refused.set(&mut section, key, field);
    }
    refused.set(&mut section, "tls_skip_verify", &mut vault.tls_skip_verify);
    for block in refused.sections(&mut section, "default_identity") {
        vault.default_identity = Some(identity(block, refused));
    }
    refused.keys(&mut section, &GONE);
    refused.done(section);
}

/// What servers sign for whoever names nothing else.
pub(super) fn identity(mut section: Section, refused: &mut Refused) -> ImpliedIdentity {
    let mut identity = ImpliedIdentity::default();
    match section.take::<Vec<String>>("aud") {
        Ok(aud) => identity.audience = aud.unwrap_or_default(),
        Err(wrong) => refused.also(Err(wrong)),
    }
    refused.set(&mut section, "env", &mut identity.env);
    refused.set(&mut section, "file", &mut identity.file);
    refused.set(&mut section, "ttl", &mut identity.ttl);
    if identity.audience.is_empty() {
        refused.also(Err(section.wrong("aud: expected who accepts the identity, like [\"vault.io\"]")));
    }
    refused.keys(&mut section, &[("extra_claims", "", "identities of jobs alone have further claims")]);
    refused.done(section);
    identity
}
