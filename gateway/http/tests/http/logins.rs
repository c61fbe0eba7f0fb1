//! Auth methods, binding rules, and logging in.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use wire::CallerAddress;

use crate::guarded::{Guarded, NOBODY, with_token};
use crate::provider::{CLIENT, CLIENT_SECRET, Provider, TestKey, seconds};
use crate::support::{Cluster, Got, assert_holds};
use crate::variables::{erased, with_key_tree};

const CALLBACK: &str = "http://localhost:4649/oidc/callback";

fn jwt(config: Value) -> Value {
    let mut method = json!({
        "Name": "corp", "Type": "JWT", "TokenLocality": "global", "MaxTokenTTL": "30m",
        "TokenNameFormat": "${auth_method_name}: ${value.user}",
        "Config": {
            "BoundAudiences": ["sojourn"], "ClaimMappings": {"sub": "user", "/org/team": "team"},
            "ListClaimMappings": {"groups": "groups"},
        },
    });
    for (name, value) in config.as_object().unwrap() {
        method["Config"][name] = value.clone();
    }
    method
}

fn oidc(provider: &Provider) -> Value {
    json!({
        "Name": "sso", "Type": "OIDC", "TokenLocality": "local", "MaxTokenTTL": "1h",
        "Config": {
            "OIDCDiscoveryURL": provider.url, "OIDCClientID": CLIENT, "OIDCClientSecret": CLIENT_SECRET,
            "OIDCEnablePKCE": true, "OIDCScopes": ["groups"], "AllowedRedirectURIs": [CALLBACK],
            "ClaimMappings": {"sub": "user"}, "ListClaimMappings": {"groups": "groups"},
        },
    })
}

async fn method(guarded: &Guarded, method: &Value) -> Value {
    let got = guarded.put(&guarded.root, "/v1/acl/auth-method", method).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()
}

async fn rule(guarded: &Guarded, method: &str, selector: &str, kind: &str, name: &str) -> Value {
    let rule = json!({"AuthMethod": method, "Selector": selector, "BindType": kind, "BindName": name, "Description": "d"});
    let got = guarded.put(&guarded.root, "/v1/acl/binding-rule", &rule).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()
}

async fn login(guarded: &Guarded, method: &str, token: &str) -> Got {
    guarded.put(NOBODY, "/v1/acl/login", &json!({"AuthMethodName": method, "LoginToken": token})).await
}

/// No part of the log holds the text.
fn keeps(guarded: &Guarded, secret: &str) {
    for batch in guarded.cluster.journal.batches() {
        assert!(!batch.bytes().windows(secret.len()).any(|part| part == secret.as_bytes()));
    }
}

#[tokio::test]
async fn methods_and_rules_are_made_changed_listed_and_deleted_by_who_manages() {
    let guarded = Guarded::start().await;
    let (root, provider) = (&guarded.root, Provider::start().await);
    let made = method(&guarded, &oidc(&provider)).await;
    let shown = json!({"Name": "sso", "TokenNameFormat": "${auth_method_type}-${auth_method_name}", "MaxTokenTTL": "1h0m0s"});
    assert_holds(&made, &shown);
    assert_eq!(made["Config"]["OIDCClientSecret"], "");
    keeps(&guarded, CLIENT_SECRET);
    guarded
        .put(root, "/v1/acl/auth-method", &oidc(&provider))
        .await
        .refused(400, "auth method with name sso already exists");
    let update = json!({"Name": "sso", "MaxTokenTTL": "2h", "Default": true});
    let updated = guarded.put(root, "/v1/acl/auth-method/sso", &update).await.json();
    assert_holds(
        &updated,
        &json!({"MaxTokenTTL": "2h0m0s", "Default": true, "Type": "OIDC", "Config": made["Config"]}),
    );
    guarded
        .put(root, "/v1/acl/auth-method/x", &update)
        .await
        .refused(400, "ACL auth-method name does not match request path");
    let list = guarded.get(NOBODY, "/v1/acl/auth-methods").await.json();
    assert_holds(&list, &json!([{"Name": "sso", "Type": "OIDC", "Default": true}]));
    assert!(list[0].get("Config").is_none());
    let stale = guarded.get("00000000-0000-0000-0000-0000000000a1", "/v1/acl/auth-methods").await;
    assert_eq!(stale.json(), list, "who logs in again has a token that has expired");
    guarded.get(NOBODY, "/v1/acl/auth-method/sso").await.refused(403, "Permission denied");
    guarded.get(root, "/v1/acl/auth-method/none").await.refused(404, "ACL auth-method not found");
    guarded.delete(root, "/v1/acl/auth-method/none").await.refused(500, "ACL auth-method not found");

    let made = rule(&guarded, "sso", "value.user == alice", "policy", "dev").await;
    let path = format!("/v1/acl/binding-rule/{}", made["ID"].as_str().unwrap());
    assert_eq!(guarded.get(root, &path).await.json(), made);
    let update = json!({"ID": made["ID"], "Description": "other"});
    let updated = guarded.put(root, &path, &update).await.json();
    assert_holds(&updated, &json!({"Description": "other", "BindName": "dev", "AuthMethod": "sso"}));
    guarded
        .put(root, "/v1/acl/binding-rule/x", &update)
        .await
        .refused(400, "ACL binding rule ID does not match request path");
    let list = guarded.get(root, "/v1/acl/binding-rules").await.json();
    assert_holds(&list, &json!([{"ID": made["ID"], "Description": "other", "AuthMethod": "sso"}]));
    guarded.get(NOBODY, "/v1/acl/binding-rules").await.refused(403, "Permission denied");
    assert_eq!(guarded.delete(root, &path).await.status, 200);
    guarded.delete(root, &path).await.refused(500, "ACL binding rule not found");
    guarded.get(root, &path).await.refused(404, "ACL binding rule not found");
    assert_eq!(guarded.delete(root, "/v1/acl/auth-method/sso").await.status, 200);
}

#[tokio::test]
async fn what_cannot_be_understood_is_refused_when_it_is_written() {
    let guarded = Guarded::start().await;
    let key = TestKey::new("k");
    let good = jwt(json!({"JWTValidationPubKeys": [key.public_pem()]}));
    let with = |name: &str, value: Value| {
        let mut changed = good.clone();
        changed[name] = value;
        changed
    };
    let wrong = [
        (
            with("MaxTokenTTL", json!("48h")),
            "invalid MaxTokenTTL value '48h0m0s' (should be between 1m0s and 24h0m0s)",
        ),
        (with("TokenNameFormat", json!("${who}")), "invalid TokenNameFormat: ${who}"),
        (jwt(json!({"JWTValidationPubKeys": ["a key"]})), "invalid JWTValidationPubKeys"),
        (jwt(json!({"JWKSURL": "https://x", "JWKSCACert": "no"})), "invalid JWKSCACert"),
        (jwt(json!({})), "exactly one of JWKSURL"),
    ];
    for (method, why) in wrong {
        let got = guarded.put(&guarded.root, "/v1/acl/auth-method", &method).await;
        assert_eq!(got.status, 400);
        assert!(got.text().contains(why), "{} instead of {why}", got.text());
    }
    method(&guarded, &good).await;
    let rules = [
        (
            json!({"AuthMethod": "corp", "Selector": "value.a ==", "BindType": "management"}),
            "invalid binding rule selector",
        ),
        (json!({"AuthMethod": "corp", "BindType": "policy", "BindName": "${who}"}), "invalid bind name"),
        (
            json!({"AuthMethod": "none", "BindType": "policy", "BindName": "dev"}),
            "ACL auth method none not found",
        ),
    ];
    for (rule, why) in rules {
        let got = guarded.put(&guarded.root, "/v1/acl/binding-rule", &rule).await;
        assert_eq!(got.status, 400);
        assert!(got.text().contains(why), "{} instead of {why}", got.text());
    }
}

#[tokio::test]
async fn a_jwt_is_exchanged_for_a_token_with_what_the_rules_give() {
    let guarded = Guarded::start().await;
    let (key, other) = (TestKey::new("k"), TestKey::new("k"));
    method(&guarded, &jwt(json!({"JWTValidationPubKeys": [key.public_pem()]}))).await;
    let claims = |changes: Value| {
        let mut all = json!({
            "sub": "Alice", "aud": "sojourn", "exp": seconds() + 60, "groups": ["dev"], "org": {"team": "Core"},
        });
        for (name, value) in changes.as_object().unwrap() {
            all[name] = value.clone();
        }
        all
    };
    let good = key.sign(&claims(json!({})));
    login(&guarded, "corp", &good).await.refused(400, "no role or policy bindings matched");
    guarded.policy("core-readers", r#"node { policy = "read" }"#).await;
    rule(&guarded, "corp", "\"dev\" in list.groups", "policy", "${value.team}-readers").await;
    rule(&guarded, "corp", "", "policy", "absent").await;
    let role = json!({"Name": "staff", "Policies": [{"Name": "core-readers"}]});
    let role = guarded.put(&guarded.root, "/v1/acl/role", &role).await.json();
    rule(&guarded, "corp", "value.user == Alice", "role", "staff").await;
    rule(&guarded, "corp", "value.user == root", "management", "").await;

    let got = login(&guarded, "corp", &good).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let token = got.json();
    let made = json!({
        "Name": "corp: Alice", "Type": "client", "Policies": ["core-readers"], "Global": true,
        "Roles": [{"ID": role["ID"], "Name": "staff"}], "ExpirationTTL": "30m0s",
    });
    assert_holds(&token, &made);
    let secret = token["SecretID"].as_str().unwrap();
    assert_eq!(guarded.get(secret, "/v1/nodes").await.status, 200);
    guarded.get(secret, "/v1/acl/tokens").await.refused(403, "Permission denied");
    keeps(&guarded, secret);
    keeps(&guarded, &good);
    // Each login is another token; what is presented besides is not looked at.
    let body = json!({"AuthMethodName": "corp", "LoginToken": good});
    let stale = with_token("00000000-0000-0000-0000-0000000000a1", Method::POST, "/v1/acl/login", &body);
    let again = guarded.cluster.send(stale).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_ne!(again.json()["AccessorID"], token["AccessorID"]);
    let root = login(&guarded, "corp", &key.sign(&claims(json!({"sub": "root"})))).await.json();
    assert_holds(&root, &json!({"Type": "management", "Policies": null, "Roles": null}));

    let before = guarded.cluster.journal.batches().len();
    let refused = [
        (key.sign(&claims(json!({"exp": seconds() - 61}))), "the token has expired"),
        (key.sign(&claims(json!({"aud": "vault"}))), "the token is for vault: expected sojourn"),
        (other.sign(&claims(json!({}))), "no known key has signed the token"),
        ("x.y.z".to_string(), "the token is not a signed JWT"),
    ];
    for (token, why) in refused {
        login(&guarded, "corp", &token).await.refused(401, why);
    }
    login(&guarded, "none", &good).await.refused(400, "ACL auth-method \"none\" not found");
    login(&guarded, "", &good).await.refused(400, "missing AuthMethodName");
    login(&guarded, "corp", "").await.refused(400, "missing LoginToken");
    let nested = key.sign(&claims(json!({"sub": {"a": 1}})));
    login(&guarded, "corp", &nested)
        .await
        .refused(400, "claim \"sub\": expected text, a number, a boolean or a list");
    assert_eq!(guarded.cluster.journal.batches().len(), before);
    guarded
        .put(
            NOBODY,
            "/v1/acl/oidc/auth-url",
            &json!({
                "AuthMethodName": "corp", "RedirectURI": CALLBACK, "ClientNonce": "n",
            }),
        )
        .await
        .refused(400, "auth method corp is of type JWT: expected OIDC");
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_a_key_that_is_new() {
    let guarded = Guarded::start().await;
    let provider = Provider::start().await;
    let url = format!("{}/keys", provider.url);
    method(&guarded, &jwt(json!({"JWKSURL": url, "BoundIssuer": [provider.url]}))).await;
    rule(&guarded, "corp", "", "management", "").await;
    let fetches = || provider.key_fetches.load(Ordering::Relaxed);
    let says = json!({"aud": "sojourn"});
    for _ in 0..3 {
        assert_eq!(login(&guarded, "corp", &provider.sign(&says)).await.status, 200);
    }
    assert_eq!(fetches(), 1);
    // Nobody has the server ask again and again.
    let unknown = TestKey::new("unknown").sign(&json!({"aud": "sojourn", "exp": seconds() + 60}));
    for _ in 0..3 {
        login(&guarded, "corp", &unknown).await.refused(401, "no known key has signed the token");
    }
    assert_eq!(fetches(), 1, "the keys were fetched a moment ago");
    let elsewhere = provider.sign(&json!({"aud": "sojourn", "iss": "https://elsewhere"}));
    let refused = login(&guarded, "corp", &elsewhere).await;
    assert_eq!(refused.status, 401, "{}", refused.text());
    // Through discovery the issuer is the provider, whoever is bound.
    let update = jwt(json!({"OIDCDiscoveryURL": provider.url}));
    assert_eq!(guarded.put(&guarded.root, "/v1/acl/auth-method/corp", &update).await.status, 200);
    assert_eq!(login(&guarded, "corp", &provider.sign(&says)).await.status, 200);
    assert_eq!(login(&guarded, "corp", &elsewhere).await.status, 401);
    let update = jwt(json!({"OIDCDiscoveryURL": format!("{}/nobody", provider.url)}));
    guarded.put(&guarded.root, "/v1/acl/auth-method/corp", &update).await;
    assert_eq!(login(&guarded, "corp", &provider.sign(&says)).await.status, 500);
}

async fn begin(guarded: &Guarded, nonce: &str) -> String {
    let asked = json!({"AuthMethodName": "sso", "RedirectURI": CALLBACK, "ClientNonce": nonce});
    let got = guarded.put(NOBODY, "/v1/acl/oidc/auth-url", &asked).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()["AuthURL"].as_str().unwrap().to_string()
}

fn completion(back: &BTreeMap<String, String>, nonce: &str) -> Value {
    json!({
        "AuthMethodName": "sso", "ClientNonce": nonce, "State": back["state"], "Code": back["code"],
        "Iss": back["iss"], "RedirectURI": CALLBACK,
    })
}

async fn complete(guarded: &Guarded, body: &Value) -> Got {
    guarded.put(NOBODY, "/v1/acl/oidc/complete-auth", body).await
}

#[tokio::test]
async fn who_logs_in_at_the_provider_gets_a_token() {
    let guarded = Guarded::start().await;
    let provider = Provider::start().await;
    method(&guarded, &oidc(&provider)).await;
    guarded.policy("ops", r#"node { policy = "read" }"#).await;
    rule(&guarded, "sso", "\"ops\" in list.groups and value.user == alice", "policy", "ops").await;
    let url = begin(&guarded, "nonce one").await;
    assert!(url.contains("code_challenge=") && url.contains("code_challenge_method=S256"), "{url}");
    assert!(url.contains("scope=openid+groups"), "{url}");
    let back = provider.consent(&url);
    let body = completion(&back, "nonce one");
    let got = complete(&guarded, &body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let token = got.json();
    assert_holds(
        &token,
        &json!({"Name": "OIDC-sso", "Policies": ["ops"], "Global": false, "ExpirationTTL": "1h0m0s"}),
    );
    assert_eq!(guarded.get(token["SecretID"].as_str().unwrap(), "/v1/nodes").await.status, 200);
    // Once: also when the provider would give another token for the code.
    complete(&guarded, &body).await.refused(400, "this login was completed already: begin again");
    let second = provider.consent(&url);
    complete(&guarded, &completion(&second, "nonce one"))
        .await
        .refused(400, "this login was completed already: begin again");
    let path = format!("/v1/acl/token/{}", token["AccessorID"].as_str().unwrap());
    assert_eq!(guarded.delete(&guarded.root, &path).await.status, 200);
    let third = provider.consent(&url);
    complete(&guarded, &completion(&third, "nonce one"))
        .await
        .refused(400, "this login was completed already: begin again");
}

#[tokio::test]
async fn what_comes_back_must_belong_to_what_was_begun() {
    let guarded = Guarded::start().await;
    let provider = Provider::start().await;
    method(&guarded, &oidc(&provider)).await;
    rule(&guarded, "sso", "", "management", "").await;
    let asked = json!({"AuthMethodName": "sso", "RedirectURI": "http://evil", "ClientNonce": "n"});
    guarded
        .put(NOBODY, "/v1/acl/oidc/auth-url", &asked)
        .await
        .refused(400, "unauthorized redirect_uri: http://evil");
    let (one, two) = (begin(&guarded, "n1").await, begin(&guarded, "n2").await);
    let back = provider.consent(&one);
    let changed = |name: &str, value: &str| {
        let mut body = completion(&back, "n1");
        body[name] = json!(value);
        body
    };
    let unknown = "the state is not of a login that this cluster began";
    let other = if back["state"].ends_with('A') { 'Q' } else { 'A' };
    for (body, why) in [
        (changed("State", "AAAA"), unknown),
        (changed("State", &format!("{}{other}", &back["state"][..back["state"].len() - 1])), unknown),
        (changed("ClientNonce", "n2"), "the client nonce is not the one that the login began with"),
        (changed("RedirectURI", "http://evil"), "the redirect URI is not the one that the login began with"),
        (changed("Code", ""), "missing Code"),
        (changed("AuthMethodName", "none"), "ACL auth-method \"none\" not found"),
    ] {
        complete(&guarded, &body).await.refused(400, why);
    }
    let issuer = complete(&guarded, &changed("Iss", "https://evil")).await;
    assert_eq!(issuer.status, 500, "{}", issuer.text());
    // The code of another login: the provider knows that it was made for another verifier, and the nonce is another one.
    let other = provider.consent(&two);
    let mixed = complete(&guarded, &changed("Code", &other["code"])).await;
    assert!(mixed.status == 500 && mixed.text().contains("another verifier"), "{}", mixed.text());
    assert_eq!(complete(&guarded, &completion(&back, "n1")).await.status, 200, "nothing of that used it up");
}

/// Deleted with `forget`: the key of the secret is given up, and what the log has of it opens for nobody who erased that.
#[tokio::test]
async fn tokens_and_methods_can_be_deleted_with_their_secrets() {
    let guarded = Guarded::start().await;
    let (cluster, root, provider) = (&guarded.cluster, &guarded.root, Provider::start().await);
    with_key_tree(cluster).await;
    method(&guarded, &oidc(&provider)).await;
    rule(&guarded, "sso", "", "management", "").await;
    let back = provider.consent(&begin(&guarded, "n").await);
    let token = complete(&guarded, &completion(&back, "n")).await.json();
    let path = format!("/v1/acl/token/{}", token["AccessorID"].as_str().unwrap());
    assert_eq!(guarded.get(root, &path).await.json()["SecretID"], token["SecretID"], "an own key opens it");
    let state = cluster.control.state();
    let sealed = |accessor: &Value| {
        let accessor = accessor.as_str().unwrap().parse().unwrap();
        state.acl.token(accessor).unwrap().secret.sealed.clone()
    };
    let (accessor, kept) = (token["AccessorID"].clone(), sealed(&token["AccessorID"]));
    assert!(!state.keyring.keys().contains_key(&kept.key), "no root key encrypts it");

    let reader = guarded.caller("reader", r#"node { policy = "read" }"#).await;
    guarded.delete(&reader, &format!("{path}?forget")).await.refused(403, "Permission denied");
    guarded.get(&reader, &format!("{path}?forgotten")).await.refused(403, "Permission denied");
    let answer = guarded.delete(root, &format!("{path}?forget")).await;
    let wanted = json!({"Namespace": "", "Path": format!("acl-token/{}", accessor.as_str().unwrap()),
        "ForgottenAt": answer.index(), "Complete": false});
    assert_holds(&answer.json(), &wanted);
    guarded.get(root, &path).await.refused(404, "ACL token not found");
    assert_eq!(guarded.get(token["SecretID"].as_str().unwrap(), "/v1/nodes").await.status, 403);
    erased(cluster).await;
    assert_eq!(guarded.get(root, &format!("{path}?forgotten")).await.json()[0]["Complete"], true);

    let answer = guarded.delete(root, "/v1/acl/auth-method/sso?forget").await;
    assert_holds(&answer.json(), &json!({"Path": "acl-auth-method/sso", "ForgottenAt": answer.index()}));
    let given_up: Vec<_> =
        cluster.control.state().erasure.given_up().into_iter().map(|(key, _)| key).collect();
    assert_eq!((given_up.len(), given_up[0]), (2, kept.key));
    for tree in cluster.signer.trees().without(&given_up) {
        cluster.signer.trees().put(tree);
    }
    let accessor: base::Uuid = accessor.as_str().unwrap().parse().unwrap();
    let opened = cluster.signer.unseal(&state.keyring, &accessor.0, &kept);
    assert_eq!(opened, Err(keyring::KeyError::Erased));
    guarded.delete(root, "/v1/acl/auth-method/sso?forget").await.refused(404, "ACL auth-method not found");
    // The root's own secret is older than the key tree.
    let own =
        guarded.get(root, "/v1/acl/token/self").await.json()["AccessorID"].as_str().unwrap().to_string();
    let old = guarded.delete(root, &format!("/v1/acl/token/{own}?forget")).await;
    assert!(
        old.status == 400 && old.text().contains("has a secret that a root key encrypts"),
        "{}",
        old.text()
    );
}

#[tokio::test]
async fn an_id_token_is_believed_if_it_is_for_this_login() {
    let guarded = Guarded::start().await;
    let provider = Provider::start().await;
    let mut plain = oidc(&provider);
    plain["Config"]["OIDCEnablePKCE"] = json!(false);
    method(&guarded, &plain).await;
    rule(&guarded, "sso", "", "management", "").await;
    let refused = [
        (json!({"nonce": "another"}), "the id token has another nonce: it belongs to another login"),
        (json!({"aud": "vault"}), "the token is for vault: expected sojourn"),
        (json!({"aud": [CLIENT, "vault"]}), "the id token was made for another client"),
        (json!({"azp": "vault"}), "the id token was made for another client"),
        (json!({"iss": "https://evil"}), "the token is of issuer \"https://evil\": expected"),
        (json!({"exp": seconds() - 120}), "the token has expired"),
        (json!({"exp": null}), "the id token does not say when it ends"),
        (json!({"sub": "mallory"}), "the userinfo of the provider is about somebody else"),
    ];
    for (claims, why) in refused {
        let url = begin(&guarded, "n").await;
        assert!(!url.contains("code_challenge"), "{url}");
        provider.behaviour.lock().unwrap().claims = claims;
        let got = complete(&guarded, &completion(&provider.consent(&url), "n")).await;
        assert!(got.status == 500 && got.text().contains(why), "{} instead of {why}", got.text());
    }
    provider.behaviour.lock().unwrap().claims = json!({});
    let got = complete(&guarded, &completion(&provider.consent(&begin(&guarded, "n").await), "n")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    // Who has another secret is not the client.
    let mut other = plain.clone();
    other["Config"]["OIDCClientSecret"] = json!("guessed");
    assert_eq!(guarded.put(&guarded.root, "/v1/acl/auth-method/sso", &other).await.status, 200);
    let got = complete(&guarded, &completion(&provider.consent(&begin(&guarded, "n").await), "n")).await;
    assert!(got.status == 500 && got.text().contains("not the client"), "{}", got.text());
    assert!(!got.text().contains("guessed"));
}

#[tokio::test]
async fn the_cluster_proves_itself_with_its_own_key() {
    let guarded = Guarded::start().await;
    let provider = Provider::start().await;
    let mut signed = oidc(&provider);
    signed["Config"]["OIDCClientSecret"] = json!("");
    signed["Config"]["OIDCClientAssertion"] = json!({"KeySource": "nomad"});
    method(&guarded, &signed).await;
    rule(&guarded, "sso", "", "management", "").await;
    let modulus = {
        let state = guarded.cluster.control.state();
        let (_, key) = state.keyring.active().unwrap();
        key.modulus.clone()
    };
    provider.behaviour.lock().unwrap().assertions = Some(modulus);
    let got = complete(&guarded, &completion(&provider.consent(&begin(&guarded, "n").await), "n")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    provider.behaviour.lock().unwrap().assertions = Some(vec![7; 256]);
    let got = complete(&guarded, &completion(&provider.consent(&begin(&guarded, "n").await), "n")).await;
    assert!(got.text().contains("not the client"), "{}", got.text());
}

/// The same request, from another address.
fn from(address: [u8; 4], mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(CallerAddress(Some(address.into())));
    request
}

#[tokio::test]
async fn an_address_that_guesses_is_refused_and_what_was_good_there_stays_good() {
    const REFUSED: &str =
        "too many failed logins and unknown tokens from this address: 50 within 60 s; try again later";
    let (here, there, proxy) = ([10, 0, 0, 1], [10, 0, 0, 2], [127, 0, 0, 1]);
    let guarded = Guarded::start().await;
    let made = async || {
        let token = guarded.token(&json!({"Type": "management"})).await;
        token["SecretID"].as_str().unwrap().to_string()
    };
    let (token, other) = (made().await, made().await);
    let send = async |address, request| guarded.cluster.send(from(address, request)).await;
    let read = |token: &str| with_token(token, Method::GET, "/v1/nodes", &Value::Null);
    let guess = |nth: u32| read(&format!("5d16e7fe-8a2e-4b44-9c0a-3c7ab13b{nth:04x}"));
    let proofs = [
        ("/v1/acl/login", json!({"AuthMethodName": "ci", "LoginToken": "a.b.c"})),
        (
            "/v1/acl/oidc/complete-auth",
            json!({"AuthMethodName": "ci", "ClientNonce": "n", "State": "s", "Code": "c", "RedirectURI": "u"}),
        ),
        (
            "/v1/acl/token/onetime/exchange",
            json!({"OneTimeSecretID": "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01"}),
        ),
    ];
    let prove = |(path, body): &(&str, Value)| with_token(NOBODY, Method::PUT, path, body);

    assert_eq!(send(here, read(&token)).await.status, 200);
    // Failures of every kind are counted together; what is forbidden or missing is none.
    for proof in &proofs {
        let failed = send(here, prove(proof)).await;
        assert!(failed.status.is_client_error() && failed.status != 429, "{}: {}", proof.0, failed.text());
        assert_eq!(send(here, read(NOBODY)).await.status, 403);
        assert_eq!(send(here, with_token(&token, Method::GET, "/v1/job/x", &Value::Null)).await.status, 404);
    }
    for nth in 3..50 {
        send(here, guess(nth)).await.refused(403, "ACL token not found");
    }
    let refused = send(here, guess(50)).await;
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    refused.refused(429, REFUSED);
    for proof in &proofs {
        send(here, prove(proof)).await.refused(429, REFUSED);
    }
    // The right secret gives itself away no more than a wrong one, unless it was shown there before.
    send(here, read(&other)).await.refused(429, REFUSED);
    assert_eq!(send(here, read(&token)).await.status, 200);
    assert_eq!(send(here, read(NOBODY)).await.status, 403);
    assert_eq!(send(there, read(&other)).await.status, 200);

    for nth in 0..60 {
        send(proxy, guess(nth)).await.refused(403, "ACL token not found");
    }
}

/// One server knows what the other has begun from the log alone.
#[tokio::test]
async fn another_server_goes_on_with_an_attempt_and_knows_when_it_is_over() {
    let guarded = Guarded::start().await;
    let provider = Provider::start().await;
    method(&guarded, &oidc(&provider)).await;
    rule(&guarded, "sso", "", "management", "").await;
    let url = begin(&guarded, "n").await;
    let (first, second) = (provider.consent(&url), provider.consent(&url));
    let other = guarded.cluster.restarted_with(|agent| agent.access.enabled = true).await;
    let complete = async |server: &Cluster, back: &BTreeMap<String, String>| {
        let body = completion(back, "n");
        server.send(with_token(NOBODY, Method::PUT, "/v1/acl/oidc/complete-auth", &body)).await
    };
    let got = complete(&other, &first).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let last = other.restarted_with(|agent| agent.access.enabled = true).await;
    complete(&last, &second).await.refused(400, "this login was completed already: begin again");
}
