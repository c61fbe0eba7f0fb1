//! A server that answers as Consul's HTTP API is documented to, as far as this program uses it. It is not Consul: it runs no
//! checks, and a test says how they went.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

#[derive(Default)]
pub struct State {
    pub services: BTreeMap<String, Value>,
    pub checks: BTreeMap<String, Value>,
    pub keys: BTreeMap<String, String>,
    pub tokens: Vec<String>,
    /// What was changed, and with whose token.
    pub said: Vec<(String, String)>,
    pub logins: usize,
    /// Requests by method and path, without those that only look.
    pub changes: Vec<String>,
    /// Nothing is answered but errors.
    pub is_down: bool,
    /// Rights, by the paths they are read at; rules by their ids.
    pub acl: BTreeMap<String, Value>,
    /// What may change them.
    pub management: String,
    index: u64,
}

#[derive(Clone)]
pub struct FakeConsul {
    pub address: SocketAddr,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl FakeConsul {
    pub fn start() -> FakeConsul {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new((Mutex::new(State { index: 1, ..State::default() }), Condvar::new()));
        let consul = FakeConsul { address, shared };
        let serving = consul.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let consul = serving.clone();
                std::thread::spawn(move || consul.serve(stream).ok());
            }
        });
        consul
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.shared.0.lock().unwrap();
        state.index += 1;
        let changed = change(&mut state);
        self.shared.1.notify_all();
        changed
    }

    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.0.lock().unwrap())
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut line, mut length, mut token) = (String::new(), 0, String::new());
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let (method, target) =
            (words.next().unwrap_or("").to_string(), words.next().unwrap_or("").to_string());
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "x-consul-token" => token = value.trim().to_string(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        self.look_mut(|state| {
            if !token.is_empty() {
                state.tokens.push(token.clone());
            }
            if method == "PUT" && !state.is_down {
                state.said.push((path.to_string(), token.clone()));
            }
        });
        let (status, answer, index) =
            match path.strip_prefix("/v1/acl/").filter(|path| !["login", "logout"].contains(path)) {
                Some(path) => {
                    let (status, answer) =
                        self.change(|state| state.rights(&method, path, (&token, query), body));
                    (status, Some(answer), 0)
                }
                None => self.answer(&method, path, query, body),
            };
        let answer = answer.map(|answer| answer.to_string()).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status} x\r\nConnection: close\r\nX-Consul-Index: {index}\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        (&stream).write_all(format!("{head}{answer}").as_bytes())
    }

    fn look_mut(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.0.lock().unwrap());
    }

    fn answer(&self, method: &str, path: &str, query: &str, body: Value) -> (u16, Option<Value>, u64) {
        let param = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.clone().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        };
        let mut state = self.shared.0.lock().unwrap();
        if state.is_down {
            return (500, Some(json!("down")), 0);
        }
        if let Some(seen) = param("index").and_then(|index| index.parse::<u64>().ok()) {
            let waits = |state: &mut State| state.index <= seen;
            state = self.shared.1.wait_timeout_while(state, Duration::from_secs(20), waits).unwrap().0;
        }
        if (method, path) == ("POST", "/v1/acl/login") {
            state.logins += 1;
            let bearer = body["BearerToken"].as_str().unwrap_or_default();
            let known = body["AuthMethod"] == "nomad-workloads";
            let token = json!({"SecretID": format!("secret-of-{bearer}"), "AccessorID": "a"});
            return if known { (200, Some(token), 0) } else { (403, Some(json!("no such method")), 0) };
        }
        if method == "PUT" {
            let status = state.put(path, body);
            state.index += 1;
            self.shared.1.notify_all();
            return (status, None, state.index);
        }
        let answer = state.get(path.strip_prefix("/v1/").unwrap_or(path), param("recurse").is_some());
        (if answer.is_some() { 200 } else { 404 }, answer, state.index)
    }
}

impl State {
    /// Auth methods, policies, roles and binding rules.
    fn rights(
        &mut self,
        method: &str,
        path: &str,
        (token, query): (&str, &str),
        mut body: Value,
    ) -> (u16, Value) {
        if token != self.management {
            return (403, json!("Permission denied: token lacks permission 'acl:write'"));
        }
        let name = body["Name"].as_str().unwrap_or_default().to_string();
        let id = format!("id-{}", self.acl.len());
        let key = match (method, path) {
            ("GET", "binding-rules") => {
                let wanted = query.strip_prefix("authmethod=").unwrap_or_default();
                let rules = self.acl.iter().filter(|(key, _)| key.starts_with("binding-rule/"));
                let rules = rules.map(|(_, rule)| rule).filter(|rule| rule["AuthMethod"] == wanted);
                return (200, rules.cloned().collect());
            }
            ("GET", _) => {
                return self.acl.get(path).map_or((404, json!("not found")), |found| (200, found.clone()));
            }
            ("DELETE", _) => {
                let wanted = path.strip_prefix("auth-method/").unwrap_or("none");
                let (kind, id) = path.split_once('/').unwrap();
                self.acl.retain(|key, known| {
                    let is_rule = key.starts_with("binding-rule/") && known["AuthMethod"] == wanted;
                    let is_it = key == path || (key.starts_with(kind) && known["ID"] == id);
                    !(is_it || is_rule)
                });
                return (200, json!(true));
            }
            (_, "auth-method") if body["Config"]["JWKSURL"].is_null() => {
                return (
                    400,
                    json!(
                        "exactly one of 'JWTValidationPubKeys', 'JWKSURL', or 'OIDCDiscoveryURL' must be set"
                    ),
                );
            }
            (_, "auth-method") => format!("auth-method/{name}"),
            (_, "policy") => format!("policy/name/{name}"),
            (_, "role") => {
                for policy in body["Policies"].as_array().into_iter().flatten() {
                    let policy = policy["Name"].as_str().unwrap();
                    if !self.acl.contains_key(&format!("policy/name/{policy}")) {
                        return (500, json!(format!("No such ACL policy with name {policy:?}")));
                    }
                }
                format!("role/name/{name}")
            }
            (_, "binding-rule") => {
                let method = body["AuthMethod"].as_str().unwrap_or_default();
                if !self.acl.contains_key(&format!("auth-method/{method}")) {
                    return (500, json!("Invalid Binding Rule: auth method not found"));
                }
                format!("binding-rule/{id}")
            }
            _ => return (404, json!("no such path")),
        };
        if self.acl.contains_key(&key) {
            return (500, json!(format!("{key} already exists")));
        }
        body["ID"] = id.into();
        self.acl.insert(key, body.clone());
        (200, body)
    }

    fn put(&mut self, path: &str, body: Value) -> u16 {
        self.changes.push(path.to_string());
        let Some(path) = path.strip_prefix("/v1/agent/") else { return 200 };
        if path == "service/register" {
            let id = body["ID"].as_str().unwrap().to_string();
            for check in body["Checks"].as_array().into_iter().flatten() {
                let check_id = check["CheckID"].as_str().unwrap().to_string();
                let initial = check["Status"].as_str().unwrap_or("critical");
                let known = self.checks.get(&check_id).and_then(|known| known["Status"].as_str());
                let status = known.unwrap_or(initial).to_string();
                let check =
                    json!({"CheckID": check_id, "ServiceID": id, "Status": status, "Definition": check});
                self.checks.insert(check_id, check);
            }
            let mut service = body.clone();
            service["Service"] = body["Name"].clone();
            self.services.insert(id, service);
            return 200;
        }
        if let Some(id) = path.strip_prefix("service/deregister/") {
            self.checks.retain(|_, check| check["ServiceID"] != id);
            return if self.services.remove(id).is_some() { 200 } else { 404 };
        }
        let id = path.strip_prefix("check/update/").unwrap();
        match self.checks.get_mut(id) {
            Some(check) => {
                (check["Status"], check["Output"]) = (body["Status"].clone(), body["Output"].clone());
                200
            }
            None => 404,
        }
    }

    fn get(&self, path: &str, recurse: bool) -> Option<Value> {
        let pair = |(key, value): (&String, &String)| json!({"Key": key, "Value": STANDARD.encode(value)});
        if let Some(key) = path.strip_prefix("kv/") {
            let found: Vec<Value> = match recurse {
                true => self.keys.iter().filter(|(own, _)| own.starts_with(key)).map(pair).collect(),
                false => self.keys.get_key_value(key).map(pair).into_iter().collect(),
            };
            return (!found.is_empty()).then(|| found.into());
        }
        if let Some(name) = path.strip_prefix("health/service/") {
            let named = self.services.values().filter(|service| service["Name"] == name);
            let node = json!({"Node": "n", "Address": "10.0.0.9"});
            return Some(
                named.map(|service| json!({"Node": node, "Service": service, "Checks": []})).collect(),
            );
        }
        match path {
            "agent/self" => {
                let config =
                    json!({"Version": "1.20.1", "Datacenter": "dc1", "NodeName": "n", "Server": true});
                Some(json!({"Config": config, "DebugConfig": {"ConnectEnabled": true}}))
            }
            "agent/services" => Some(json!(self.services)),
            "agent/checks" => Some(json!(self.checks)),
            _ => None,
        }
    }
}
