//! What the cluster proves itself to a provider with, instead of a secret (RFC 7523).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512};
use base::{Duration, Time, Uuid};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::document::{OIDCClientAssertion, OIDCClientAssertionKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value, json};

use crate::LoginError;
use crate::http::failed;
use crate::keys::private_from_pem;

/// How long an assertion is good for.
const LIFETIME: Duration = Duration::from_secs(300);

/// Signs with the key of the cluster.
pub type Sign<'a> = &'a (dyn Fn(&[u8]) -> Result<Vec<u8>, String> + Send + Sync);

/// The key of the cluster.
#[derive(Clone, Copy)]
pub struct ClusterKey<'a> {
    pub id: Uuid,
    /// As tokens name it.
    pub algorithm: &'static str,
    pub sign: Sign<'a>,
}

/// What an assertion is made with.
pub(crate) struct Signing<'a> {
    pub client_secret: Option<&'a str>,
    pub private_key: Option<&'a str>,
    pub cluster_key: Option<ClusterKey<'a>>,
}

/// A signed assertion that this is the client.
pub(crate) fn signed(
    assertion: &OIDCClientAssertion,
    client: &str,
    token_endpoint: &str,
    signing: &Signing<'_>,
    now: Time,
) -> Result<String, LoginError> {
    let audience = match assertion.audience.as_slice() {
        [] => json!(token_endpoint),
        [one] => json!(one),
        several => json!(several),
    };
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| wrong("the system has no entropy"))?;
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": audience,
        "jti": Uuid::from_random(id).to_string(),
        "iat": now.secs(),
        "nbf": now.secs(),
        "exp": now.plus(LIFETIME).secs(),
    });
    let (own, sign) = signer(assertion, signing)?;
    let extra = assertion.extra_headers.iter().map(|(name, value)| (name.clone(), json!(value)));
    let own = own.into_iter().map(|(name, value)| (name.to_string(), json!(value)));
    let header: Map<String, Value> = extra.chain(own).collect();
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let content = format!("{}.{}", part(&Value::Object(header)), part(&claims));
    let signature = sign(content.as_bytes()).map_err(wrong)?;
    Ok(format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn wrong(why: impl std::fmt::Display) -> LoginError {
    failed("client assertion", why)
}

type Headers<'a> = Vec<(&'a str, String)>;
type Signs<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<u8>, String> + Send + Sync + 'a>;

/// What signs, and the headers that say how.
fn signer<'a>(
    assertion: &'a OIDCClientAssertion,
    signing: &Signing<'a>,
) -> Result<(Headers<'a>, Signs<'a>), LoginError> {
    let missing = |what: &str| wrong(format!("{what} cannot be opened"));
    let named = |default: &str| match assertion.key_algorithm.as_str() {
        "" => default.to_string(),
        given => given.to_string(),
    };
    let headers = |alg: String| vec![("typ", "JWT".to_string()), ("alg", alg)];
    match assertion.key_source.as_str() {
        OIDCClientAssertion::CLIENT_SECRET => {
            let name = named("HS256");
            let algorithm = match name.as_str() {
                "HS384" => hmac::HMAC_SHA384,
                "HS512" => hmac::HMAC_SHA512,
                _ => hmac::HMAC_SHA256,
            };
            let secret = signing.client_secret.ok_or_else(|| missing("the client secret"))?;
            let key = hmac::Key::new(algorithm, secret.as_bytes());
            let sign = move |message: &[u8]| Ok(hmac::sign(&key, message).as_ref().to_vec());
            Ok((headers(name), Box::new(sign)))
        }
        OIDCClientAssertion::PRIVATE_KEY => {
            let name = named("RS256");
            let padding = match name.as_str() {
                "RS384" => &RSA_PKCS1_SHA384,
                "RS512" => &RSA_PKCS1_SHA512,
                _ => &RSA_PKCS1_SHA256,
            };
            let mut headers = headers(name);
            headers.extend(assertion.private_key.as_ref().map(key_id).transpose().map_err(wrong)?);
            let pem = signing.private_key.ok_or_else(|| missing("the private key"))?;
            let pair = private_from_pem(pem).map_err(wrong)?;
            let sign = move |message: &[u8]| {
                let mut signature = vec![0; pair.public_modulus_len()];
                let signed = pair.sign(padding, &SystemRandom::new(), message, &mut signature);
                signed.map(|()| signature).map_err(|_| "the key cannot sign".to_string())
            };
            Ok((headers, Box::new(sign)))
        }
        _ => {
            let key = signing.cluster_key.ok_or_else(|| missing("the key of the cluster"))?;
            let name = named(key.algorithm);
            if name != key.algorithm {
                return Err(wrong(format!(
                    "KeyAlgorithm is {name}, and the cluster signs with {}",
                    key.algorithm
                )));
            }
            let mut headers = headers(name);
            headers.push(("kid", key.id.to_string()));
            Ok((headers, Box::new(key.sign)))
        }
    }
}

/// The header that says which key it is, and what it says.
fn key_id(key: &OIDCClientAssertionKey) -> Result<(&str, String), String> {
    let algorithm = match key.key_id_header.as_str() {
        "x5t" => &SHA1_FOR_LEGACY_USE_ONLY,
        "x5t#S256" => &SHA256,
        _ => return Ok(("kid", key.key_id.clone())),
    };
    let certificate = CertificateDer::from_pem_slice(key.pem_cert.as_bytes())
        .map_err(|_| "invalid PemCert: expected a certificate in PEM".to_string())?;
    Ok((&key.key_id_header, URL_SAFE_NO_PAD.encode(digest(algorithm, &certificate))))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA512};
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const NOW: Time = Time(1_700_000_000_000_000_000);

    fn decoded(part: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    fn none() -> Signing<'static> {
        Signing { client_secret: None, private_key: None, cluster_key: None }
    }

    #[test]
    fn a_private_key_signs_with_its_name_in_the_header() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        let key = OIDCClientAssertionKey { key_id: "k1".into(), ..OIDCClientAssertionKey::default() };
        let assertion = OIDCClientAssertion {
            key_source: OIDCClientAssertion::PRIVATE_KEY.into(),
            key_algorithm: "RS512".into(),
            private_key: Some(key),
            ..OIDCClientAssertion::default()
        };
        let signing = Signing { private_key: Some(&pem), ..none() };
        let text = signed(&assertion, "me", "https://id/token", &signing, NOW).unwrap();
        let parts: Vec<&str> = text.split('.').collect();
        assert_eq!(decoded(parts[0]), json!({"alg": "RS512", "typ": "JWT", "kid": "k1"}));
        let said = decoded(parts[1]);
        assert_eq!(
            (&said["iss"], &said["sub"], &said["aud"]),
            (&json!("me"), &json!("me"), &json!("https://id/token"))
        );
        assert_eq!(said["exp"], NOW.secs() + 300);
        let public = pair.public_key();
        let modulus = public.modulus().big_endian_without_leading_zero().to_vec();
        let public = aws_lc_rs::rsa::PublicKeyComponents { n: modulus, e: vec![1, 0, 1] };
        let content = format!("{}.{}", parts[0], parts[1]);
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        assert!(public.verify(&RSA_PKCS1_2048_8192_SHA512, content.as_bytes(), &signature).is_ok());
        let again = signed(&assertion, "me", "https://id/token", &signing, NOW).unwrap();
        assert_ne!(text, again, "each has an id of its own");
        let missing = signed(&assertion, "me", "https://id/token", &none(), NOW).unwrap_err();
        assert_eq!(missing.to_string(), "client assertion: the private key cannot be opened");
    }

    #[test]
    fn the_key_of_the_cluster_signs_as_it_can_and_not_as_somebody_would_like() {
        let sign = |message: &[u8]| Ok(message[..3].to_vec());
        let key = ClusterKey { id: Uuid::from(7), algorithm: "EdDSA", sign: &sign };
        let signing = Signing { cluster_key: Some(key), ..none() };
        let mut assertion =
            OIDCClientAssertion { key_source: OIDCClientAssertion::NOMAD.into(), ..Default::default() };
        let text = signed(&assertion, "me", "https://id/token", &signing, NOW).unwrap();
        let header = decoded(text.split('.').next().unwrap());
        assert_eq!(header, json!({"alg": "EdDSA", "typ": "JWT", "kid": Uuid::from(7).to_string()}));
        assertion.key_algorithm = "RS256".into();
        let refused = signed(&assertion, "me", "https://id/token", &signing, NOW).unwrap_err();
        let expected = "client assertion: KeyAlgorithm is RS256, and the cluster signs with EdDSA";
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn a_client_secret_signs_with_a_hash() {
        let assertion = OIDCClientAssertion {
            audience: vec!["one".to_string(), "two".to_string()].into(),
            key_source: OIDCClientAssertion::CLIENT_SECRET.into(),
            ..OIDCClientAssertion::default()
        };
        let signing = Signing { client_secret: Some("hunter2"), ..none() };
        let text = signed(&assertion, "me", "https://id/token", &signing, NOW).unwrap();
        let (content, signature) = text.rsplit_once('.').unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"hunter2");
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(hmac::verify(&key, content.as_bytes(), &signature).is_ok());
        assert_eq!(decoded(content.split_once('.').unwrap().1)["aud"], json!(["one", "two"]));
    }
}
