//! A server with access control, and callers with tokens.

use axum::body::Body;
use axum::http::{Method, Request};
use base::Uuid;
use http_gateway::AgentInfo;
use keyring::{ServerSecret, SigningKey};
use model::{Command, SigningAlgorithm};
use serde_json::{Value, json};

use crate::support::{Cluster, Got, SECRET, request};

pub struct Guarded {
    pub cluster: Cluster,
    /// The secret of the first token, which may do everything.
    pub root: String,
}

/// Without a token.
pub const NOBODY: &str = "";

impl Guarded {
    pub async fn start() -> Guarded {
        Guarded::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut AgentInfo)) -> Guarded {
        let cluster = empty_with(change).await;
        let root = bootstrap(&cluster).await.json()["SecretID"].as_str().unwrap().to_string();
        Guarded { cluster, root }
    }

    pub async fn send(&self, token: &str, method: Method, path: &str, body: &Value) -> Got {
        self.cluster.send(with_token(token, method, path, body)).await
    }

    pub async fn get(&self, token: &str, path: &str) -> Got {
        self.send(token, Method::GET, path, &Value::Null).await
    }

    pub async fn put(&self, token: &str, path: &str, body: &Value) -> Got {
        self.send(token, Method::PUT, path, body).await
    }

    pub async fn delete(&self, token: &str, path: &str) -> Got {
        self.send(token, Method::DELETE, path, &Value::Null).await
    }

    pub async fn policy(&self, name: &str, rules: &str) {
        let policy = json!({"Name": name, "Rules": rules});
        let got = self.put(&self.root, &format!("/v1/acl/policy/{name}"), &policy).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }

    /// The secret of a new token with a policy of its own.
    pub async fn caller(&self, name: &str, rules: &str) -> String {
        self.policy(name, rules).await;
        self.token(&json!({"Name": name, "Type": "client", "Policies": [name]})).await["SecretID"]
            .as_str()
            .unwrap()
            .to_string()
    }

    pub async fn token(&self, wanted: &Value) -> Value {
        let got = self.put(&self.root, "/v1/acl/token", wanted).await;
        assert_eq!(got.status, 200, "{}", got.text());
        got.json()
    }
}

/// A cluster with access control that nobody has a token for yet.
pub async fn empty() -> Cluster {
    empty_with(|_| {}).await
}

async fn empty_with(change: impl FnOnce(&mut AgentInfo)) -> Cluster {
    let enabled = |agent: &mut AgentInfo| {
        agent.access.enabled = true;
        change(agent);
    };
    with_root_key(Cluster::start_with(enabled).await).await
}

/// Secrets of tokens can be sealed.
pub async fn with_root_key(cluster: Cluster) -> Cluster {
    draw_root_key(&cluster).await;
    cluster
}

pub async fn draw_root_key(cluster: &Cluster) {
    let secret = ServerSecret::new(Uuid::from(7), &SECRET).unwrap();
    cluster.submit(Command::AnnounceServerKey { server: secret.server(), public: secret.public() }).await;
    let keyring = cluster.control.state().keyring.clone();
    let activation =
        SigningKey::generate(SigningAlgorithm::Rs256).unwrap().activation(&keyring, None).unwrap();
    cluster.submit(Command::ActivateRootKey(Box::new(activation))).await;
}

pub async fn bootstrap(cluster: &Cluster) -> Got {
    cluster.send(with_token(NOBODY, Method::PUT, "/v1/acl/bootstrap", &Value::Null)).await
}

pub fn with_token(token: &str, method: Method, path: &str, body: &Value) -> Request<Body> {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let mut request = request(method, path, body);
    if !token.is_empty() {
        request.headers_mut().insert("x-nomad-token", token.parse().unwrap());
    }
    request
}
