//! A server that answers as Vault's HTTP API is documented to, as far as this program uses it: an auth method for JWTs, tokens
//! and leases that end, key-value stores of both versions, users of a database, certificates. It is not Vault: nothing in it is secret.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

#[derive(Default)]
pub struct State {
    /// How long tokens and leases last.
    pub token_lease: Option<Duration>,
    pub secret_lease: Option<Duration>,
    /// Tokens that are good, and until when.
    pub tokens: BTreeMap<String, Instant>,
    /// Logins: the role, the namespace and the JWT.
    pub logins: Vec<(String, String, String)>,
    pub renewals: usize,
    /// Leases that are good.
    pub leases: BTreeMap<String, Instant>,
    pub lease_renewals: usize,
    pub revoked: Vec<String>,
    /// Values by path, without the mount `old` (version 1) or `kv` (version 2).
    pub old: BTreeMap<String, Value>,
    pub kv: BTreeMap<String, Value>,
    /// Nothing is answered but errors.
    pub is_sealed: bool,
    /// A role that nobody may have.
    pub refused_role: Option<String>,
    /// What is set up, by path: the auth method, its configuration and roles, policies.
    pub set_up: BTreeMap<String, Value>,
    /// Every request, by method, path, namespace and token.
    pub requests: Vec<String>,
    made: usize,
}

#[derive(Clone)]
pub struct FakeVault {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: String,
    token: String,
    namespace: String,
    body: Value,
}

type Reply = (u16, Value);

impl FakeVault {
    pub fn start() -> FakeVault {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let vault = FakeVault { address: listener.local_addr().unwrap(), state: Arc::default() };
        let serving = vault.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let vault = serving.clone();
                std::thread::spawn(move || vault.serve(&stream).ok());
            }
        });
        vault
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let method = words.next().unwrap_or("").to_string();
        let target = words.next().unwrap_or("");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (mut token, mut namespace) = (String::new(), String::new());
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            let value = value.trim().to_string();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "x-vault-token" => token = value,
                "x-vault-namespace" => namespace = value,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let request = Request {
            method,
            path: path.trim_start_matches("/v1/").to_string(),
            query: query.to_string(),
            token,
            namespace,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let (status, answer) = self.change(|state| state.answer(&request));
        let text = if answer.is_null() { String::new() } else { answer.to_string() };
        let head = format!(
            "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        let mut stream = stream;
        stream.write_all(head.as_bytes())
    }
}

fn refused(status: u16, why: &str) -> Reply {
    (status, json!({"errors": [why]}))
}

fn absent() -> Reply {
    (404, json!({"errors": []}))
}

impl State {
    fn answer(&mut self, request: &Request) -> Reply {
        let Request { method, path, namespace, token, .. } = request;
        self.requests.push(format!("{method} {path} {namespace} {token}"));
        if path == "sys/seal-status" {
            let status = json!({"sealed": self.is_sealed, "version": "1.18.3", "cluster_name": "v", "cluster_id": "1"});
            return (200, status);
        }
        if self.is_sealed {
            return refused(503, "Vault is sealed");
        }
        if path == "auth/jwt-nomad/login" {
            return self.login(request);
        }
        if self.tokens.get(&request.token).is_none_or(|ends| *ends < Instant::now()) {
            return refused(403, "permission denied");
        }
        match path.as_str() {
            "auth/token/renew-self" => {
                self.renewals += 1;
                (200, self.token(request.token.clone()))
            }
            "auth/token/revoke-self" => {
                self.tokens.remove(&request.token);
                self.revoked.push(request.token.clone());
                (204, Value::Null)
            }
            "sys/leases/renew" => self.renew_lease(request),
            "sys/auth" => {
                let mounts = self.set_up.iter().filter_map(|(path, mount)| {
                    Some((format!("{}/", path.strip_prefix("sys/auth/")?), mount.clone()))
                });
                (200, json!({"data": mounts.collect::<BTreeMap<_, _>>()}))
            }
            path if ["sys/auth/", "sys/policies/acl/", "auth/jwt-nomad/"]
                .iter()
                .any(|of| path.starts_with(of)) =>
            {
                self.set_up(request)
            }
            _ => self.read(request),
        }
    }

    fn set_up(&mut self, request: &Request) -> Reply {
        let (method, path) = (request.method.as_str(), request.path.as_str());
        let has = |of: &str| self.set_up.contains_key(of);
        if path.starts_with("auth/") && !has("sys/auth/jwt-nomad") {
            return refused(404, "no handler for route");
        }
        let mut stored = request.body.clone();
        match method {
            "GET" => {
                let found = self.set_up.get(path);
                return found.map_or_else(absent, |data| (200, json!({"data": data})));
            }
            "DELETE" => {
                let below = format!("{}/", path.trim_start_matches("sys/"));
                self.set_up.retain(|known, _| known != path && !known.starts_with(&below));
                return (204, Value::Null);
            }
            _ if path.starts_with("sys/auth/") && has(path) => {
                return refused(400, "path is already in use at jwt-nomad/");
            }
            _ if path.starts_with("sys/auth/") => stored["accessor"] = "auth_jwt_1".into(),
            _ if path.contains("/role/") && !has("auth/jwt-nomad/config") => {
                return refused(400, "could not load configuration");
            }
            _ if path.contains("/role/") && stored["user_claim"].is_null() => {
                return refused(400, "a user claim must be defined on the role");
            }
            _ => {}
        }
        self.set_up.insert(path.to_string(), stored);
        (204, Value::Null)
    }

    fn login(&mut self, request: &Request) -> Reply {
        let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_string();
        let role = text("role");
        self.logins.push((role.clone(), request.namespace.clone(), text("jwt")));
        if self.refused_role.as_ref() == Some(&role) {
            return refused(400, &format!("role {role:?} could not be found"));
        }
        self.made += 1;
        let token = format!("hvs.{}", self.made);
        (200, self.token(token))
    }

    fn token(&mut self, token: String) -> Value {
        let lease = self.token_lease.unwrap_or(Duration::from_secs(3600));
        self.tokens.insert(token.clone(), Instant::now() + lease);
        json!({"auth": {"client_token": token, "accessor": "a", "renewable": true, "lease_duration": lease.as_secs()}})
    }

    fn renew_lease(&mut self, request: &Request) -> Reply {
        let id = request.body["lease_id"].as_str().unwrap_or_default();
        let lease = self.secret_lease.unwrap_or(Duration::from_secs(3600));
        match self.leases.get_mut(id) {
            Some(ends) => {
                *ends = Instant::now() + lease;
                self.lease_renewals += 1;
                (200, json!({"lease_id": id, "lease_duration": lease.as_secs(), "renewable": true}))
            }
            None => refused(400, "lease not found"),
        }
    }

    fn read(&mut self, request: &Request) -> Reply {
        let path = request.path.as_str();
        if let Some(inner) = path.strip_prefix("sys/internal/ui/mounts/") {
            return match inner.split('/').next() {
                Some("kv") => {
                    (200, json!({"data": {"path": "kv/", "type": "kv", "options": {"version": "2"}}}))
                }
                Some("old") => (200, json!({"data": {"path": "old/", "type": "kv", "options": null}})),
                _ => refused(403, "preflight capability check returned 403"),
            };
        }
        if request.query.contains("list=true") {
            let below = path.trim_start_matches("old");
            let keys: Vec<&String> = self.old.keys().collect();
            return if below.is_empty() { (200, json!({"data": {"keys": keys}})) } else { absent() };
        }
        if let Some(name) = path.strip_prefix("old/") {
            let found = self.old.get(name);
            return found
                .map_or_else(absent, |data| (200, json!({"lease_duration": 2_764_800, "data": data})));
        }
        if let Some(name) = path.strip_prefix("kv/data/") {
            let found = self.kv.get(name);
            let shown =
                |data| json!({"lease_duration": 0, "data": {"data": data, "metadata": {"version": 1}}});
            return found.map_or_else(absent, |data| (200, shown(data)));
        }
        self.made += 1;
        match path {
            "database/creds/app" => {
                let (id, lease) = (format!("database/creds/app/{}", self.made), self.secret_lease);
                let lease = lease.unwrap_or(Duration::from_secs(3600));
                self.leases.insert(id.clone(), Instant::now() + lease);
                let data = json!({"username": format!("user-{}", self.made), "password": "p"});
                let answer = json!({"lease_id": id, "lease_duration": lease.as_secs(), "renewable": true, "data": data});
                (200, answer)
            }
            "pki/issue/web" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                let name = request.body["common_name"].as_str().unwrap_or_default();
                let data = json!({
                    "certificate": format!("cert of {name}"), "private_key": "key", "issuing_ca": "ca",
                    "ca_chain": ["ca"], "expiration": now + 3600,
                });
                (200, json!({"data": data}))
            }
            _ => refused(403, "1 error occurred:\n\t* permission denied\n\n"),
        }
    }
}
