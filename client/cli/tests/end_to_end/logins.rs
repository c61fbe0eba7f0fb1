//! Logging in from the command line: with a JWT, and at a provider as with a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{AgentConfig, CommandOutput, eventually, free_port, http, sojourn, text};
use provider::{CLIENT, CLIENT_SECRET, Provider};

/// The one of the tests of routes.
#[path = "../../../../gateway/http/tests/http/provider.rs"]
#[allow(dead_code, reason = "the tests of routes use all of it")]
mod provider;

fn run_as(config: &AgentConfig, token: &str, words: &[&str]) -> CommandOutput {
    config.user(&sojourn()).env("NOMAD_TOKEN", token).args(words).output().unwrap().into()
}

fn json(output: CommandOutput) -> Value {
    serde_json::from_str(&output.expect_success()).unwrap()
}

/// Where a browser is sent that follows the URL.
fn redirect(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    socket.write_all(format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let location = answer.lines().find_map(|line| line.strip_prefix("location: "));
    location.unwrap_or_else(|| panic!("{answer}")).to_string()
}

#[test]
fn people_and_programs_log_in() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server");
    let file = server.home.join("agent.hcl");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config + "acl {\n  enabled = true\n}\n").unwrap();
    let _running = server.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let provider = runtime.block_on(Provider::start());
    let root = eventually("the cluster has a key to seal secrets with", || {
        let made = run_as(&server, "", &["acl", "bootstrap", "-json"]);
        (made.code == 0).then(|| json(made))
    });
    let root = text(&root["SecretID"]);
    let rules = directory.path().join("readers.hcl");
    std::fs::write(&rules, "agent { policy = \"read\" }\n").unwrap();
    run_as(&server, &root, &["acl", "policy", "apply", "readers", rules.to_str().unwrap()]).expect_success();

    let port = free_port();
    let claims = json!({"ClaimMappings": {"sub": "user"}, "ListClaimMappings": {"groups": "groups"}});
    let method = |name: &str, kind: &str, own: Value| {
        let mut config = claims.clone();
        for (field, value) in own.as_object().unwrap() {
            config[field] = value.clone();
        }
        let path = directory.path().join(format!("{name}.json"));
        std::fs::write(&path, config.to_string()).unwrap();
        let (name, kind) = (format!("-name={name}"), format!("-type={kind}"));
        let config = format!("-config=@{}", path.display());
        let words = [
            "acl",
            "auth-method",
            "create",
            &name,
            &kind,
            "-token-locality=local",
            "-max-token-ttl=10m",
            &config,
        ];
        run_as(&server, &root, &words).expect_success()
    };
    method("ci", "JWT", json!({"OIDCDiscoveryURL": provider.url, "BoundAudiences": ["ci"]}));
    let shown = method(
        "sso",
        "OIDC",
        json!({
            "OIDCDiscoveryURL": provider.url, "OIDCClientID": CLIENT, "OIDCClientSecret": CLIENT_SECRET,
            "OIDCEnablePKCE": true, "AllowedRedirectURIs": [format!("http://127.0.0.1:{port}/oidc/callback")],
        }),
    );
    assert!(shown.contains(&provider.url) && !shown.contains(CLIENT_SECRET), "{shown}");
    for (name, selector) in [("ci", "value.user == robot"), ("sso", "\"ops\" in list.groups")] {
        let (method, selector) = (format!("-auth-method={name}"), format!("-selector={selector}"));
        let words =
            ["acl", "binding-rule", "create", &method, &selector, "-bind-type=policy", "-bind-name=readers"];
        run_as(&server, &root, &words).expect_success();
    }

    let signed = provider.sign(&json!({"sub": "robot", "aud": "ci"}));
    let login = |jwt: &str| run_as(&server, "", &["login", "-method=ci", &format!("-login-token={jwt}")]);
    let shown = login(&signed).expect_success();
    assert!(shown.starts_with("Successfully logged in via JWT and ci\n\nAccessor ID  = "), "{shown}");
    assert!(shown.contains("Policies     = [readers]"), "{shown}");
    let secret = shown.lines().find_map(|line| line.strip_prefix("Secret ID    = ")).unwrap();
    run_as(&server, secret, &["agent-info"]).expect_success();
    let refused = run_as(&server, secret, &["acl", "token", "list"]).expect_failure();
    assert!(refused.contains("Permission denied"), "{refused}");
    let refused = login(&provider.sign(&json!({"sub": "robot", "aud": "other"}))).expect_failure();
    assert!(refused.contains("401") && refused.contains("the token is for other: expected ci"), "{refused}");
    let refused = login(&provider.sign(&json!({"sub": "alice", "aud": "ci"}))).expect_failure();
    assert!(refused.contains("no role or policy bindings matched"), "{refused}");

    let mut login = server.user(&sojourn());
    let address = format!("-oidc-callback-addr=127.0.0.1:{port}");
    login.args(["login", "-json", "-method=sso", &address]).env("PATH", "");
    let mut login = login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let begins = format!("{}/authorize?", provider.url);
    let url = lines.map(Result::unwrap).find(|line| line.trim().starts_with(&begins));
    let back = redirect(url.expect("the address of the provider is printed").trim());
    let back = back.strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap();
    let page = http::get(([127, 0, 0, 1], port).into(), back).unwrap();
    assert!(page.status == 200 && page.body.contains("can be closed"), "{page:?}");
    let token = json(login.wait_with_output().unwrap().into());
    assert_eq!((&token["Policies"], &token["Name"]), (&json!(["readers"]), &json!("OIDC-sso")));
    run_as(&server, &text(&token["SecretID"]), &["agent-info"]).expect_success();
}
