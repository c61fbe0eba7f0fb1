//! The keys that the cluster signs with.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use axum::http::{Method, StatusCode};
use base::{Time, Uuid};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keyring::ServerSecret;
use model::Command;
use serde_json::{Value, json};

use crate::support::{Cluster, SECRET, assert_holds};

const KEYS: &str = "/v1/operator/keyring/keys";
const ROTATE: &str = "/v1/operator/keyring/rotate";
const WEB_KEYS: &str = "/.well-known/jwks.json";

/// A cluster whose one server has announced its key.
async fn announced() -> Cluster {
    let cluster = Cluster::start().await;
    let secret = ServerSecret::new(Uuid::from(1), &[1; 32]).unwrap();
    cluster.submit(Command::AnnounceServerKey { server: secret.server(), public: secret.public() }).await;
    cluster
}

fn id(key: &Value) -> &str {
    key["KeyID"].as_str().unwrap()
}

#[tokio::test]
async fn a_new_node_is_given_a_token_to_introduce_itself_with() {
    const INTRODUCTIONS: &str = "/v1/acl/identity/client-introduction-token";
    let cluster = Cluster::start().await;
    cluster
        .put(INTRODUCTIONS, &json!({}))
        .await
        .refused(500, "the cluster has no key to sign with yet: try again in a moment");
    let secret = ServerSecret::new(Uuid::from(7), &SECRET).unwrap();
    cluster.submit(Command::AnnounceServerKey { server: secret.server(), public: secret.public() }).await;
    cluster.put(ROTATE, &json!({})).await;
    let claims = async |request: Value| {
        let token = cluster.put(INTRODUCTIONS, &request).await.json()["JWT"].as_str().unwrap().to_string();
        keyring::verify(&cluster.control.state().keyring, &token, Time(i64::MAX)).unwrap()
    };
    let of_any = claims(json!({})).await;
    assert_eq!(of_any.subject, "node-introduction:global:default::default");
    assert_eq!(of_any.expires.unwrap() - of_any.issued, 5 * 60);
    let hour = 3_600_000_000_000_u64;
    let of_one = claims(json!({"TTL": hour, "NodeName": "n1", "NodePool": "gpu"})).await;
    assert_eq!(of_one.subject, "node-introduction:global:gpu:n1:default");
    assert_eq!(of_one.expires.unwrap() - of_one.issued, 30 * 60, "no longer than the servers allow");
    cluster.put(INTRODUCTIONS, &json!({"TTL": -1})).await.refused(400, "TTL: expected a positive duration");
}

#[tokio::test]
async fn keys_are_rotated_listed_published_and_removed() {
    let cluster = announced().await;
    assert_eq!(cluster.get(KEYS).await.json(), json!([]));
    let first = cluster.put(ROTATE, &json!({})).await;
    let rotated = first.json();
    assert_holds(
        &rotated,
        &json!({"Key": {"State": "active", "Algorithm": "aes256-gcm", "CreateIndex": 0}, "Index": first.index()}),
    );
    let second = cluster.put(ROTATE, &json!({})).await.json();
    let list = cluster.get(KEYS).await;
    assert_eq!(list.index(), second["Index"].as_u64().unwrap());
    let state = |wanted: &Value| {
        let keys = list.json();
        let found = keys.as_array().unwrap().iter().find(|key| id(key) == id(wanted));
        found.unwrap()["State"].as_str().unwrap().to_string()
    };
    assert_eq!((state(&rotated["Key"]), state(&second["Key"])), ("inactive".into(), "active".into()));

    let web = cluster.get(WEB_KEYS).await;
    assert_eq!(web.header("cache-control"), "max-age=3600");
    let web = web.json();
    assert_eq!(web["keys"].as_array().unwrap().len(), 2, "what the first one signed is still to be verified");
    for key in web["keys"].as_array().unwrap() {
        assert_holds(key, &json!({"use": "sig", "kty": "RSA", "alg": "RS256", "e": "AQAB"}));
        assert_eq!(key["n"].as_str().unwrap().len(), 342, "2,048 bits");
    }

    let active = format!("/v1/operator/keyring/key/{}", id(&second["Key"]));
    cluster.delete(&active).await.refused(409, "the active root key cannot be removed: rotate first");
    let old = format!("/v1/operator/keyring/key/{}", id(&rotated["Key"]));
    cluster.delete(&old).await.refused(
        409,
        "root key in use, cannot delete: identities that it signed are still valid, or it seals secrets (`force` takes them back)",
    );
    let removed = cluster.delete(&format!("{old}?force=true")).await;
    assert_eq!(removed.json(), json!({"Index": removed.index()}));
    cluster.delete(&old).await.refused(404, &format!("root key {} not found", id(&rotated["Key"])));
    assert_eq!(cluster.get(WEB_KEYS).await.json()["keys"].as_array().unwrap().len(), 1);
    assert_eq!(cluster.restarted().await.get(KEYS).await.json(), cluster.get(KEYS).await.json());
}

/// A signed token of this cluster, its header, and the published key that it names.
async fn introduced(cluster: &Cluster) -> (String, Value, Value) {
    let answer = cluster.put("/v1/acl/identity/client-introduction-token", &json!({})).await.json();
    let token = answer["JWT"].as_str().unwrap().to_string();
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let keys = cluster.get(WEB_KEYS).await.json();
    let key = keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == header["kid"]).unwrap();
    (token, header, key.clone())
}

#[tokio::test]
async fn a_key_signs_as_the_operator_has_chosen_and_others_verify_it_by_what_is_published() {
    let cluster = Cluster::start().await;
    let secret = ServerSecret::new(Uuid::from(7), &SECRET).unwrap();
    cluster.submit(Command::AnnounceServerKey { server: secret.server(), public: secret.public() }).await;
    let rotated = cluster.put(&format!("{ROTATE}?algo=eddsa"), &json!({})).await.json();
    assert_holds(&rotated["Key"], &json!({"Algorithm": "aes256-gcm", "SigningAlgorithm": "EdDSA"}));

    let (token, header, key) = introduced(&cluster).await;
    assert_eq!(header, json!({"alg": "EdDSA", "kid": rotated["Key"]["KeyID"], "typ": "JWT"}));
    let x = key["x"].as_str().unwrap();
    let expected = json!({
        "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": header["kid"], "x": x,
    });
    assert_eq!(key, expected, "nothing of an RSA key");
    let (content, signature) = token.rsplit_once('.').unwrap();
    let point = URL_SAFE_NO_PAD.decode(x).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ED25519, &point).verify(content.as_bytes(), &signature).unwrap();

    // Who does not say how gets a key like the one before, as the leader does.
    for query in ["", "?algo=aes256-gcm"] {
        let next = cluster.put(&format!("{ROTATE}{query}"), &json!({})).await.json();
        assert_eq!(next["Key"]["SigningAlgorithm"], "EdDSA", "{query}");
    }
    let back = cluster.put(&format!("{ROTATE}?algo=RS256"), &json!({})).await.json();
    assert_eq!(back["Key"]["SigningAlgorithm"], "RS256");
    let (_, header, key) = introduced(&cluster).await;
    assert_eq!((&header["alg"], &key["kty"], &key["x"]), (&json!("RS256"), &json!("RSA"), &Value::Null));
    let after = cluster.restarted().await;
    for cluster in [&cluster, &after] {
        keyring::verify(&cluster.control.state().keyring, &token, Time(i64::MAX)).unwrap();
    }
    assert_eq!(after.get(WEB_KEYS).await.json(), cluster.get(WEB_KEYS).await.json());

    let former = format!("/v1/operator/keyring/key/{}?force=true", id(&rotated["Key"]));
    assert_eq!(cluster.delete(&former).await.status, StatusCode::OK);
    let gone = keyring::verify(&cluster.control.state().keyring, &token, Time(i64::MAX));
    assert_eq!(gone, Err(keyring::TokenError::UnknownKey));
}

#[tokio::test]
async fn what_a_rotation_cannot_do_is_refused() {
    let cluster = announced().await;
    let index = cluster.control.state().index;
    let cases = [
        (
            "publish_time=1",
            501,
            "publishing a root key ahead of its use (`publish_time`) is not supported by this release",
        ),
        ("algo=xor", 400, "invalid algo \"xor\": expected rs256, eddsa or aes256-gcm"),
        ("algo=ES256&full=true", 400, "invalid algo \"ES256\": expected rs256, eddsa or aes256-gcm"),
    ];
    for (query, status, text) in cases {
        cluster.put(&format!("{ROTATE}?{query}"), &json!({})).await.refused(status, text);
    }
    cluster.delete("/v1/operator/keyring/key/1").await.refused(400, "\"1\" is not a UUID");
    let forced = format!("/v1/operator/keyring/key/{}?force=maybe", Uuid::from(7));
    cluster.delete(&forced).await.refused(422, "invalid force parameter");
    let posted = crate::support::request(Method::DELETE, ROTATE, axum::body::Body::empty());
    assert_eq!(cluster.send(posted).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(cluster.control.state().index, index);
}
