//! Tokens of every algorithm, and what is none.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding,
};
use base::{Duration, Time};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use login::{LoginError, Providers, check_jwt};
use model::document::ACLAuthMethodConfig;
use serde_json::{Value, json};

const NOW: Time = Time(1_700_000_000_000_000_000);

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn token(alg: &str, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let content = format!("{}.{}", part(&json!({"alg": alg, "typ": "JWT"})), part(claims));
    let signature = sign(content.as_bytes());
    format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn claims() -> Value {
    json!({"iss": "me", "aud": ["sojourn", "other"], "sub": "alice", "iat": NOW.secs() - 5, "exp": NOW.secs() + 300})
}

fn rsa() -> (KeyPair, String) {
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let public = pem("PUBLIC KEY", public.as_ref());
    (pair, public)
}

fn rsa_signs(pair: &KeyPair, encoding: &'static dyn RsaEncoding) -> impl Fn(&[u8]) -> Vec<u8> {
    move |message| {
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(encoding, &SystemRandom::new(), message, &mut signature).unwrap();
        signature
    }
}

fn config(public: &str, alg: &str) -> ACLAuthMethodConfig {
    ACLAuthMethodConfig {
        jwt_validation_pub_keys: vec![public.to_string()].into(),
        signing_algs: if alg.is_empty() { Vec::new() } else { vec![alg.to_string()] }.into(),
        ..ACLAuthMethodConfig::default()
    }
}

async fn check(config: &ACLAuthMethodConfig, token: &str) -> Result<Value, String> {
    let checked = check_jwt(&Providers::default(), config, token, NOW).await;
    checked.map_err(|error| match error {
        LoginError::Unproven(why) => why,
        other => panic!("{other:?}"),
    })
}

#[tokio::test]
async fn a_token_is_verified_with_a_key_of_its_algorithm() {
    let (pair, public) = rsa();
    let encodings: [(&str, &'static dyn RsaEncoding); 6] = [
        ("RS256", &RSA_PKCS1_SHA256),
        ("RS384", &RSA_PKCS1_SHA384),
        ("RS512", &RSA_PKCS1_SHA512),
        ("PS256", &RSA_PSS_SHA256),
        ("PS384", &RSA_PSS_SHA384),
        ("PS512", &RSA_PSS_SHA512),
    ];
    for (alg, encoding) in encodings {
        let token = token(alg, &claims(), rsa_signs(&pair, encoding));
        assert_eq!(check(&config(&public, alg), &token).await.as_ref(), Ok(&claims()), "{alg}");
        let refused = check(&config(&public, if alg == "RS256" { "ES256" } else { "" }), &token).await;
        assert!(refused.unwrap_err().contains("expected "), "{alg} is not among the allowed ones");
    }
    let curves: [(&str, &'static EcdsaSigningAlgorithm); 3] = [
        ("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING),
        ("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        ("ES512", &ECDSA_P521_SHA512_FIXED_SIGNING),
    ];
    for (alg, curve) in curves {
        let pair = EcdsaKeyPair::generate(curve).unwrap();
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let sign = |message: &[u8]| pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec();
        let token = token(alg, &claims(), sign);
        let public = pem("PUBLIC KEY", public.as_ref());
        assert_eq!(check(&config(&public, alg), &token).await, Ok(claims()), "{alg}");
    }
    let pair = Ed25519KeyPair::generate().unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let token = token("EdDSA", &claims(), |message| pair.sign(message).as_ref().to_vec());
    let public = pem("PUBLIC KEY", public.as_ref());
    assert_eq!(check(&config(&public, "EdDSA"), &token).await, Ok(claims()));
}

#[tokio::test]
async fn what_no_known_key_has_signed_proves_nothing() {
    let ((pair, public), (other, _)) = (rsa(), rsa());
    let config = config(&public, "RS256");
    let good = token("RS256", &claims(), rsa_signs(&pair, &RSA_PKCS1_SHA256));
    assert!(check(&config, &good).await.is_ok());
    let foreign = token("RS256", &claims(), rsa_signs(&other, &RSA_PKCS1_SHA256));
    assert_eq!(check(&config, &foreign).await.unwrap_err(), "no known key has signed the token");
    let unsigned = token("none", &claims(), |_| Vec::new());
    assert_eq!(
        check(&config, &unsigned).await.unwrap_err(),
        "the token is signed with \"none\": expected RS256"
    );
    // The public key is no secret: who takes it for one could sign.
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public.as_bytes());
    let confused = |message: &[u8]| aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec();
    let refused = check(&config, &token("HS256", &claims(), confused)).await.unwrap_err();
    assert_eq!(refused, "the token is signed with \"HS256\": expected RS256");
    // Also if a method lists it, which no rule accepts.
    let listed = ACLAuthMethodConfig {
        signing_algs: vec!["HS256".to_string(), "none".to_string()].into(),
        ..config.clone()
    };
    assert!(check(&listed, &token("HS256", &claims(), confused)).await.is_err());
    assert!(check(&listed, &unsigned).await.is_err());
    let pieces: Vec<&str> = good.split('.').collect();
    let changed = part(&json!({"sub": "root", "exp": NOW.secs() + 300}));
    let changed = format!("{}.{changed}.{}", pieces[0], pieces[2]);
    assert_eq!(check(&config, &changed).await.unwrap_err(), "no known key has signed the token");
    let critical = part(&json!({"alg": "RS256", "crit": ["exp"]}));
    let critical = format!("{critical}.{}.{}", pieces[1], pieces[2]);
    assert!(check(&config, &critical).await.unwrap_err().contains("crit"));
    for malformed in ["", "x", "a.b", "a.b.c", "....", &good[..good.len() - 3], &"x".repeat(100_000)] {
        assert!(check(&config, malformed).await.is_err(), "{malformed:.40}");
    }
}

#[tokio::test]
async fn what_a_token_says_is_held_against_the_method() {
    let (pair, public) = rsa();
    let sign = rsa_signs(&pair, &RSA_PKCS1_SHA256);
    let bound = ACLAuthMethodConfig {
        bound_audiences: vec!["sojourn".to_string()].into(),
        bound_issuer: vec!["me".to_string()].into(),
        ..config(&public, "")
    };
    let saying = |changes: Value| {
        let mut said = claims();
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(said.as_object_mut().unwrap().remove(name)),
                value => said[name] = value.clone(),
            }
        }
        token("RS256", &said, &sign)
    };
    let at = |secs: i64| NOW.secs() + secs;
    let fine = [
        json!({}),
        json!({"aud": "sojourn"}),
        json!({"exp": at(-59)}),
        json!({"nbf": at(59)}),
        json!({"exp": null, "iat": at(-100)}),
        json!({"exp": at(0) as f64 + 0.5}),
    ];
    for changes in fine {
        let checked = check(&bound, &saying(changes.clone())).await;
        assert!(checked.is_ok(), "{changes}: {checked:?}");
    }
    let wrong = [
        (json!({"iss": "you"}), "the token is of issuer \"you\": expected me"),
        (json!({"iss": null}), "the token is of issuer \"\": expected me"),
        (json!({"aud": "vault"}), "the token is for vault: expected sojourn"),
        (json!({"aud": null}), "the token is for nobody: expected sojourn"),
        (json!({"exp": at(-60)}), "the token has expired"),
        (json!({"exp": null, "iat": at(-210)}), "the token has expired"),
        (json!({"nbf": at(61)}), "the token is not valid yet"),
        (json!({"iat": at(61), "nbf": at(0)}), "the token was issued in the future"),
        (json!({"exp": null, "iat": null}), "the token has none of the claims iat, nbf and exp"),
        (json!({"exp": "soon"}), "claim exp: expected a time in seconds"),
        (json!({"exp": -1}), "claim exp: expected a time in seconds"),
    ];
    for (changes, why) in wrong {
        assert_eq!(check(&bound, &saying(changes.clone())).await.unwrap_err(), why, "{changes}");
    }
    let strict = ACLAuthMethodConfig { clock_skew_leeway: Duration(-1).into(), ..bound };
    assert!(check(&strict, &saying(json!({"exp": at(0)}))).await.is_err());
    assert!(check(&strict, &saying(json!({"exp": at(1)}))).await.is_ok());
}

#[test]
fn keys_are_read_when_a_method_is_set_up() {
    let (pair, public) = rsa();
    assert_eq!(login::from_pem(&format!("{public}{public}")).unwrap().len(), 2);
    let private: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let private = pem("PRIVATE KEY", private.as_ref());
    assert_eq!(login::check_private_key(&private), Ok(()));
    for wrong in ["", "a key", &private] {
        assert!(login::from_pem(wrong).is_err());
    }
    for wrong in ["", "a key", &public] {
        assert!(login::check_private_key(wrong).is_err());
    }
}
