use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use blake2::Blake2bMac512;
use blake2::digest::Mac;

/// What a node is shown by another one that wants what an allocation has left. `key` is known to the servers and to that
/// node only: Nomad's servers take the node's secret, ours its digest, since the log holds nothing else of it.
///
/// `None` for what cannot be a key: it has at most 64 bytes, and some.
pub fn migrate_token(key: &[u8], alloc_id: &str) -> Option<String> {
    Some(URL_SAFE.encode(mac(key, alloc_id)?.finalize().into_bytes()))
}

/// Whether servers, ours or Nomad's, have made the token for this allocation of the node that has this secret.
pub fn is_migrate_token(token: &str, node_secret: &str, alloc_id: &str) -> bool {
    let Ok(token) = URL_SAFE.decode(token) else { return false };
    let digest = blake3::hash(node_secret.as_bytes());
    let keys = [digest.as_bytes().as_slice(), node_secret.as_bytes()];
    // In the same time for any token of this length: how far it is right does not show.
    let fits = |key: &[u8]| mac(key, alloc_id).is_some_and(|mac| mac.verify_slice(&token).is_ok());
    !node_secret.is_empty() && keys.into_iter().any(fits)
}

fn mac(key: &[u8], alloc_id: &str) -> Option<Blake2bMac512> {
    if key.is_empty() {
        return None;
    }
    Some(Blake2bMac512::new_from_slice(key).ok()?.chain_update(alloc_id.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_node_and_one_allocation() {
        let (one, other) = ("5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01", "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f02");
        let digest = *blake3::hash(one.as_bytes()).as_bytes();
        for key in [one.as_bytes(), &digest] {
            let token = migrate_token(key, "a").unwrap();
            assert_eq!(token.len(), 88);
            assert!(is_migrate_token(&token, one, "a"));
            assert!(!is_migrate_token(&token, one, "b") && !is_migrate_token(&token, other, "a"));
            assert!(!is_migrate_token(&token[..84], one, "a"));
        }
        assert!(!is_migrate_token("", one, "a") && !is_migrate_token("?", one, "a"));
        assert_eq!((migrate_token(b"", "a"), migrate_token(&[1; 65], "a")), (None, None));
        assert!(!is_migrate_token(&migrate_token(blake3::hash(b"").as_bytes(), "a").unwrap(), "", "a"));
    }
}
