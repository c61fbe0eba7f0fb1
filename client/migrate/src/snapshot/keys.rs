use std::collections::BTreeMap;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use model::document::Bytes;
use serde::Deserialize;

/// A root key as servers keep it: sealed by each of the providers that they are configured with. Only the one called
/// `aead` has its own key beside it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct RootKey {
    #[serde(rename = "KeyID")]
    key_id: String,
    wrapped_keys: Vec<WrappedKey>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct WrappedKey {
    provider: String,
    wrapped_data_encryption_key: Option<Sealed>,
    key_encryption_key: Bytes,
}

/// AES-256-GCM, the nonce in front of it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Sealed {
    ciphertext: Bytes,
}

/// What opens variables, by the id of the key; or why a key does not.
#[derive(Default)]
pub(super) struct Keys(BTreeMap<String, Result<Vec<u8>, String>>);

impl Keys {
    pub(super) fn add(&mut self, key: RootKey) {
        self.0.insert(key.key_id.clone(), unwrap(&key));
    }

    /// Opens what was sealed with a root key.
    pub(super) fn open(&self, id: &str, sealed: &[u8]) -> Result<Vec<u8>, String> {
        let key = match self.0.get(id) {
            Some(key) => key.as_ref().map_err(Clone::clone)?,
            None => return Err(format!("the key {id} that it is sealed with is not in the snapshot")),
        };
        open(key, sealed, id.as_bytes()).ok_or_else(|| format!("the key {id} does not open it"))
    }
}

fn unwrap(key: &RootKey) -> Result<Vec<u8>, String> {
    let id = &key.key_id;
    let own = key.wrapped_keys.iter().find(|wrapped| !wrapped.key_encryption_key.0.is_empty());
    let Some(own) = own else {
        let providers: Vec<&str> = key.wrapped_keys.iter().map(|wrapped| wrapped.provider.as_str()).collect();
        return Err(format!(
            "the key {id} that it is sealed with can only be opened by {}: read the running servers with import nomad-api",
            if providers.is_empty() { "nobody".to_string() } else { providers.join(" or ") }
        ));
    };
    let sealed = own.wrapped_data_encryption_key.as_ref().map_or(&[][..], |sealed| &sealed.ciphertext.0);
    open(&own.key_encryption_key.0, sealed, b"").ok_or_else(|| {
        format!("the key {id} that it is sealed with is not opened by what is stored beside it")
    })
}

fn open(key: &[u8], sealed: &[u8], associated: &[u8]) -> Option<Vec<u8>> {
    let (nonce, content) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?);
    let mut content = content.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let opened = key.open_in_place(nonce, Aad::from(associated), &mut content).ok()?.len();
    content.truncate(opened);
    Some(content)
}
