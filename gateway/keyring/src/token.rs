//! Claims as signed web tokens (RFC 7519): RS256 or EdDSA, as the key is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::{Time, Uuid};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use state::keyring::Keyring;

use crate::claims::{AUDIENCE, Claims, Holder, text};
use crate::signing::has_signed;
use crate::{KeyError, KeyTrees, ServerSecret, SigningKey};

/// Longest token that is looked at; ours have some hundred bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// How far the clocks of servers may be apart, in seconds.
const LEEWAY: i64 = 60;

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(with = "text")]
    kid: Uuid,
    typ: String,
}

/// Why a token proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("it is not a signed token of this cluster")]
    Malformed,
    #[error("the key that signed it is not known")]
    UnknownKey,
    #[error("its signature is invalid")]
    Signature,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it is for somebody else")]
    Audience,
}

/// What a server signs with. Each key is opened once.
#[derive(Debug)]
pub struct Signer {
    secret: ServerSecret,
    /// Who signs, in the tokens of workloads.
    issuer: Option<String>,
    /// At most as many as the keyring has.
    opened: Mutex<BTreeMap<Uuid, Arc<SigningKey>>>,
    /// What variables are encrypted with.
    trees: KeyTrees,
}

impl Signer {
    pub fn new(secret: ServerSecret) -> Signer {
        Signer { secret, issuer: None, opened: Mutex::default(), trees: KeyTrees::default() }
    }

    /// Tokens of workloads say that they are from this address, where others find what verifies them.
    pub fn with_issuer(self, issuer: Option<String>) -> Signer {
        Signer { issuer, ..self }
    }

    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    pub fn trees(&self) -> &KeyTrees {
        &self.trees
    }

    pub fn secret(&self) -> &ServerSecret {
        &self.secret
    }

    /// Signs claims with a key of the keyring. Takes about a millisecond with RSA.
    ///
    /// # Errors
    /// [`KeyError::Open`]: this server has no copy of the key, or none yet.
    pub fn sign(&self, keyring: &Keyring, key: Uuid, claims: &Claims) -> Result<String, KeyError> {
        let key = self.key(keyring, key)?;
        let header =
            Header { alg: key.algorithm().name().to_string(), kid: key.id(), typ: "JWT".to_string() };
        let content = format!("{}.{}", part(&header), self.content(claims));
        let signature = key.sign(content.as_bytes())?;
        Ok(format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The signature of a message that is no token of this cluster, with a key of the keyring.
    ///
    /// # Errors
    /// As [`Signer::sign`].
    pub fn sign_message(&self, keyring: &Keyring, key: Uuid, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key(keyring, key)?.sign(message)
    }

    fn content(&self, claims: &Claims) -> String {
        match &claims.holder {
            Holder::Workload(_) if self.issuer.is_some() => {
                part(&Claims { issuer: self.issuer.clone(), ..claims.clone() })
            }
            _ => part(claims),
        }
    }

    /// Nothing is signed with a key that was removed, also while this server still has it open.
    pub(crate) fn key(&self, keyring: &Keyring, id: Uuid) -> Result<Arc<SigningKey>, KeyError> {
        let sealed = keyring.keys().get(&id).and_then(|key| key.sealed.get(&self.secret.server()));
        let sealed = sealed.ok_or(KeyError::Open(id))?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = opened.get(&id) {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(self.secret.open(id, sealed)?);
        opened.retain(|known, _| keyring.keys().contains_key(known));
        opened.insert(id, Arc::clone(&key));
        Ok(key)
    }
}

fn part<T: Serialize>(value: &T) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).expect("claims have a JSON form"))
}

/// What a token says, if a key of the keyring has signed it for this cluster. Whether it has expired is for the caller
/// to say: [`is_expired`].
///
/// # Errors
/// [`TokenError`].
pub fn verify(keyring: &Keyring, token: &str, now: Time) -> Result<Claims, TokenError> {
    verify_with(keyring, token, now).map(|(claims, _)| claims)
}

/// The same, and the key that has signed it.
pub(crate) fn verify_with(keyring: &Keyring, token: &str, now: Time) -> Result<(Claims, Uuid), TokenError> {
    let (header, signature, content) = parts(token).ok_or(TokenError::Malformed)?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| TokenError::Malformed)?;
    let key = keyring.keys().get(&header.kid).ok_or(TokenError::UnknownKey)?;
    // Whoever forged a token wrote its header, so the algorithm is that of the key.
    if header.alg != key.algorithm().name() {
        return Err(TokenError::Malformed);
    }
    if !has_signed(key, content.as_bytes(), &signature) {
        return Err(TokenError::Signature);
    }
    let claims = said(token).ok_or(TokenError::Malformed)?;
    if claims.not_before > now.secs().saturating_add(LEEWAY) {
        return Err(TokenError::NotYet);
    }
    if !claims.audience.iter().any(|audience| audience == AUDIENCE) {
        return Err(TokenError::Audience);
    }
    Ok((claims, header.kid))
}

pub fn is_expired(claims: &Claims, now: Time) -> bool {
    claims.expires.is_some_and(|at| at.saturating_add(LEEWAY) < now.secs())
}

/// What a token says, proven or not. For its holder.
pub fn said(token: &str) -> Option<Claims> {
    let (_, rest) = token.split_once('.')?;
    let (claims, _) = rest.split_once('.')?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// Header, signature, and what is signed.
fn parts(token: &str) -> Option<(Vec<u8>, Vec<u8>, &str)> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (content, signature) = token.rsplit_once('.')?;
    let (header, _) = content.split_once('.')?;
    Some((URL_SAFE_NO_PAD.decode(header).ok()?, URL_SAFE_NO_PAD.decode(signature).ok()?, content))
}

#[cfg(test)]
pub(crate) mod tests {
    use aws_lc_rs::hmac;
    use base::{Duration, Index};
    use model::event::RootKeyActivated;
    use model::{Actor, CommandRecord, Event, RequestId, SigningAlgorithm};
    use state::{Delta, Moment, State};

    use super::*;
    use crate::claims::{NodeClaims, WorkloadClaims};

    pub(crate) const NOW: Time = Time(1_700_000_000_000_000_000);

    pub(crate) fn signer(server: u128) -> Signer {
        Signer::new(ServerSecret::new(server.into(), &[server as u8; 32]).unwrap())
    }

    /// A keyring with these keys, sealed for these servers.
    pub(crate) fn keyring(keys: &[&SigningKey], servers: &[&Signer]) -> Keyring {
        let mut state = State::default();
        for (index, key) in (1..).zip(keys) {
            let (modulus, exponent) = key.public();
            let sealed = servers.iter().map(|signer| {
                let secret = signer.secret();
                key.seal_for(secret.server(), &secret.public()).unwrap()
            });
            let event: Event =
                RootKeyActivated { key: key.id(), modulus, exponent, sealed: sealed.collect() }.into();
            let at = Moment { index: Index(index), time: Time::ZERO, epoch: model::EPOCH };
            let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
            state.absorb(at, &record, [event].iter(), &mut Delta::default());
        }
        state.keyring
    }

    /// An RSA key and an Ed25519 key.
    pub(crate) fn keys() -> [SigningKey; 2] {
        SigningAlgorithm::ALL.map(|algorithm| SigningKey::generate(algorithm).unwrap())
    }

    fn header(alg: &str, kid: Uuid) -> String {
        part(&Header { alg: alg.to_string(), kid, typ: "JWT".to_string() })
    }

    pub(crate) fn node() -> NodeClaims {
        let text = str::to_string;
        NodeClaims { id: 7.into(), pool: text("gpu"), class: String::new(), datacenter: text("dc1") }
    }

    #[test]
    fn a_token_says_who_holds_it_and_every_server_signs_the_same() {
        let (one, two) = (signer(1), signer(2));
        for key in keys() {
            let keyring = keyring(&[&key], &[&one, &two]);
            let claims = Claims::of_node("global", node(), NOW, Duration::from_secs(90));
            let token = one.sign(&keyring, key.id(), &claims).unwrap();
            assert_eq!(two.sign(&keyring, key.id(), &claims).unwrap(), token);
            assert!(token.starts_with(&header(key.algorithm().name(), key.id())));
            assert_eq!(verify(&keyring, &token, NOW), Ok(claims.clone()));
            assert_eq!(said(&token), Some(claims.clone()));
            assert_eq!(claims.subject, "node:global:gpu:00000000-0000-0000-0000-000000000007:default");

            let ends = NOW.plus(Duration::from_secs(90));
            assert!(!is_expired(&claims, ends));
            assert!(is_expired(&claims, ends.plus(Duration::from_secs(61))), "clocks may be a minute apart");
            let early = NOW.plus(Duration::from_secs(-61));
            assert_eq!(verify(&keyring, &token, early), Err(TokenError::NotYet));
        }
    }

    #[test]
    fn what_this_cluster_has_not_signed_proves_nothing() {
        let (one, other, foreign) = (signer(1), signer(3), keys());
        for (key, foreign) in keys().into_iter().zip(&foreign) {
            let keyring = keyring(&[&key], &[&one]);
            let claims = Claims::of_node("global", node(), NOW, Duration::ZERO);
            let token = one.sign(&keyring, key.id(), &claims).unwrap();
            let check = |token: &str| verify(&keyring, token, NOW);

            let pieces: Vec<&str> = token.split('.').collect();
            let changed = part(&Claims { subject: "node:global:x:y:default".to_string(), ..claims.clone() });
            assert_eq!(check(&format!("{}.{changed}.{}", pieces[0], pieces[2])), Err(TokenError::Signature));
            for malformed in ["", "x", "a.b", "a.b.c", &token[..token.len() - 2], &"x".repeat(20_000)] {
                assert!(check(malformed).is_err(), "{malformed}");
            }
            assert_eq!(other.sign(&keyring, key.id(), &claims), Err(KeyError::Open(key.id())));
            assert_eq!(one.sign(&keyring, foreign.id(), &claims), Err(KeyError::Open(foreign.id())));
            let unknown = format!("{}.{}.{}", header("EdDSA", foreign.id()), pieces[1], pieces[2]);
            assert_eq!(check(&unknown), Err(TokenError::UnknownKey));
            let elsewhere = Claims { audience: vec!["vault.io".to_string()], ..claims };
            let token = one.sign(&keyring, key.id(), &elsewhere).unwrap();
            assert_eq!(check(&token), Err(TokenError::Audience));
        }
    }

    /// Whoever could choose the algorithm would sign with the public key, which everybody has.
    #[test]
    fn the_key_says_how_a_token_is_signed_and_never_its_header() {
        let (one, [rsa, ed]) = (signer(1), keys());
        let keyring = keyring(&[&rsa, &ed], &[&one]);
        let claims = Claims::of_node("global", node(), NOW, Duration::ZERO);
        for (key, other) in [(&rsa, &ed), (&ed, &rsa)] {
            let names =
                ["none", "HS256", "RS512", "PS256", "ES256", "eddsa", "rs256", "", other.algorithm().name()];
            for name in names {
                let content = format!("{}.{}", header(name, key.id()), part(&claims));
                let (public, _) = key.public();
                let with_public = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), content.as_bytes());
                let signatures = [
                    Vec::new(),
                    with_public.as_ref().to_vec(),
                    key.sign(content.as_bytes()).unwrap(),
                    other.sign(content.as_bytes()).unwrap(),
                ];
                for signature in signatures {
                    let token = format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature));
                    assert_eq!(verify(&keyring, &token, NOW), Err(TokenError::Malformed), "{name:?}");
                }
            }
            // The right name, and the signature of another key.
            let content = format!("{}.{}", header(key.algorithm().name(), key.id()), part(&claims));
            for signature in [vec![], vec![0; 64], other.sign(content.as_bytes()).unwrap()] {
                let token = format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature));
                assert_eq!(verify(&keyring, &token, NOW), Err(TokenError::Signature));
            }
        }
    }

    #[test]
    fn tokens_of_workloads_name_the_issuer_and_those_of_nodes_do_not() {
        let (plain, [_, key]) = (signer(1), keys());
        let issuing = signer(1).with_issuer(Some("https://cluster.example".to_string()));
        let keyring = keyring(&[&key], &[&plain]);
        let node = Claims::of_node("global", node(), NOW, Duration::ZERO);
        let workload = Claims {
            holder: Holder::Workload(WorkloadClaims {
                namespace: "default".to_string(),
                job: "web".to_string(),
                alloc: 9.into(),
                task: "main".to_string(),
                service: String::new(),
            }),
            ..node.clone()
        };
        let issuer = |signer: &Signer, claims: &Claims| {
            let token = signer.sign(&keyring, key.id(), claims).unwrap();
            verify(&keyring, &token, NOW).unwrap().issuer
        };
        assert_eq!(issuer(&issuing, &workload).as_deref(), Some("https://cluster.example"));
        assert_eq!((issuer(&issuing, &node), issuer(&plain, &workload)), (None, None));
    }

    #[test]
    fn a_node_needs_another_token_when_it_says_what_is_no_longer_so() {
        let ttl = Duration::from_secs(90);
        let claims = Claims::of_node("global", node(), NOW, ttl);
        assert!(!claims.is_outdated(&node(), NOW.plus(Duration::from_secs(60)), ttl));
        assert!(
            claims.is_outdated(&node(), NOW.plus(Duration::from_secs(61)), ttl),
            "less than a third is left"
        );
        assert!(claims.is_outdated(&NodeClaims { pool: "cpu".to_string(), ..node() }, NOW, ttl));
    }
}
