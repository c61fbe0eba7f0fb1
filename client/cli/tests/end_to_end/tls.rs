//! Agents with certificates that `sojourn tls` made, and agents that say what they lack.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cluster::{Host, Hosts};
use super::support::{Agent, AgentConfig, CommandOutput, eventually, program, sojourn, staying, text, until};

/// Runs `sojourn tls …` in a directory.
fn tls(directory: &Path, words: &[&str]) -> CommandOutput {
    program(&sojourn()).arg("tls").args(words).current_dir(directory).output().unwrap().into()
}

/// An authority, and certificates for servers, nodes and users.
fn make_certificates(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    tls(directory, &["ca", "create"]).expect_success();
    for role in ["-server", "-client", "-cli"] {
        tls(directory, &["cert", "create", role]).expect_success();
    }
}

/// What the API says, asked as a user does who has a certificate.
fn api(agent: &Agent, path: &str) -> Option<Value> {
    let answer = agent.run(&["operator", "api", path]);
    (answer.code == 0).then(|| serde_json::from_str(&answer.stdout).unwrap())
}

#[test]
fn three_servers_and_a_node_prove_themselves_to_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().join("certificates");
    make_certificates(&certificates);
    let hosts = [Host::local(), Host::local(), Host::local()];
    let configs = [0, 1, 2].map(|nth: usize| {
        let config = AgentConfig::member(directory.path(), &format!("server-{nth}"), &hosts[nth], &hosts);
        config.certified(&certificates, "server")
    });
    let servers = configs.each_ref().map(AgentConfig::launch);
    let node = AgentConfig::client(directory.path(), "node", &configs[0]).certified(&certificates, "client");
    let node = node.launch();
    until("a node is ready", || {
        let nodes = api(&servers[1], "/v1/nodes").unwrap_or_default();
        nodes.as_array().is_some_and(|nodes| nodes.iter().any(|node| node["Status"] == "ready"))
    });
    let stub = &api(&servers[1], "/v1/nodes").unwrap()[0];
    let whole = api(&servers[2], &format!("/v1/node/{}", text(&stub["ID"]))).unwrap();
    assert_eq!(whole["TLSEnabled"], json!(true));
    let peers = servers[0].run(&["operator", "raft", "list-peers"]).expect_success();
    assert_eq!(peers.matches("true").count(), 3, "{peers}");
    let shown = api(&servers[0], "/v1/agent/self").unwrap()["config"]["TLSConfig"].clone();
    assert_eq!((&shown["EnableRPC"], &shown["VerifyHTTPSClient"]), (&json!(true), &json!(true)), "{shown}");

    // A task, reached through a server that its node is not connected to, and through the agent of the node.
    let file = directory.path().join("stay.json");
    std::fs::write(&file, json!({"Job": staying("stay")}).to_string()).unwrap();
    servers[2].run(&["job", "run", "-detach", "-json", file.to_str().unwrap()]).expect_success();
    let alloc = eventually("it runs", || {
        let allocs = api(&servers[1], "/v1/job/stay/allocations")?;
        let found = allocs.as_array()?.iter().find(|alloc| alloc["ClientStatus"] == "running")?.clone();
        Some(text(&found["ID"]))
    });
    for agent in [&servers[0], &servers[1], &servers[2], &node] {
        let ran =
            agent.run(&["alloc", "exec", "-i=false", "-t=false", &alloc, "sh", "-c", "echo through; exit 3"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, "through\n"), "{}", ran.stderr);
    }
    let mut log = servers[1].follow(&["monitor", "-json", "-node-id", &text(&stub["ID"])[..8]]);
    log.until("\"kind\":\"Started\"", || {
        servers[0].run(&["alloc", "restart", &alloc]);
    });

    // Whoever has no certificate, none that is trusted, or no TLS at all.
    let address = format!("-address=https://{}", configs[0].http);
    let ask = |words: &[&str]| -> CommandOutput { program(&sojourn()).args(words).output().unwrap().into() };
    let authority = format!("-ca-cert={}", certificates.join("nomad-agent-ca.pem").display());
    let refused = ask(&["server", "members", &address, &authority]).expect_failure();
    assert!(refused.contains("-client-cert and -client-key"), "{refused}");
    let refused = ask(&["server", "members", &address]).expect_failure();
    assert!(refused.contains("-ca-cert"), "{refused}");
    let refused = ask(&["server", "members", &address.replace("https", "http")]).expect_failure();
    assert!(refused.contains("400 (Client sent an HTTP request to an HTTPS server.)"), "{refused}");
    let certificate = format!("-client-cert={}", certificates.join("global-cli-nomad.pem").display());
    let key = format!("-client-key={}", certificates.join("global-cli-nomad-key.pem").display());
    let known = ["server", "members", &address, &certificate, &key];
    ask(&[&known[..], &["-tls-skip-verify"]].concat()).expect_success();
    ask(&[&known[..], &[&authority, "-tls-server-name=server.global.nomad"]].concat()).expect_success();
    let refused =
        ask(&[&known[..], &[&authority, "-tls-server-name=server.eu.nomad"]].concat()).expect_failure();
    assert!(refused.contains("-tls-server-name names what the certificate is for"), "{refused}");
    let refused = ask(&["server", "members", &address, "-ca-cert=/none.pem"]).expect_failure();
    assert!(refused.contains("-ca-cert: cannot read /none.pem: No such file"), "{refused}");
}

#[test]
fn servers_on_two_hosts_that_cannot_prove_themselves_are_told_what_to_set() {
    let Some(hosts) = Hosts::make(2) else {
        eprintln!("this machine gives no network namespaces: servers are not on other hosts");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let all = [hosts.host(0), hosts.host(1)];
    let agents = [0, 1].map(|nth: usize| {
        let config = AgentConfig::member(directory.path(), &format!("server-{nth}"), &all[nth], &all);
        let file = config.home.join("agent.hcl");
        let text = std::fs::read_to_string(&file).unwrap();
        let (before, after) = text.split_once("  encrypt").expect("members on other hosts have a key");
        let (_, after) = after.split_once('\n').unwrap();
        std::fs::write(file, format!("{before}{after}")).unwrap();
        config.launch()
    });
    let refusal =
        "servers on other hosts must prove themselves: set server.encrypt or tls.rpc on every server";
    until("a call is refused", || agents.iter().any(|agent| agent.log().contains(refusal)));
    for agent in &agents {
        assert!(
            agent.log().contains("Warning: neither server.encrypt nor tls.rpc is set"),
            "{}",
            agent.log()
        );
        assert!(!agent.log().contains("the cluster is founded"), "{}", agent.log());
    }
}

#[test]
fn certificates_are_replaced_while_an_agent_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (certificates, new) = (directory.path().join("certificates"), directory.path().join("new"));
    make_certificates(&certificates);
    make_certificates(&new);
    let config = AgentConfig::server(directory.path(), "server").certified(&certificates, "server");
    let agent = config.start();
    let newly = |words: &[&str]| -> CommandOutput {
        let mut command = program(&sojourn());
        command.env("NOMAD_ADDR", format!("https://{}", config.http)).args(words);
        command.env("NOMAD_CAPATH", new.join("trusted"));
        command.env("NOMAD_CLIENT_CERT", new.join("global-cli-nomad.pem"));
        command.env("NOMAD_CLIENT_KEY", new.join("global-cli-nomad-key.pem")).output().unwrap().into()
    };
    std::fs::create_dir(new.join("trusted")).unwrap();
    std::fs::copy(new.join("nomad-agent-ca.pem"), new.join("trusted/ca.pem")).unwrap();
    assert!(newly(&["server", "members"]).expect_failure().contains("UnknownIssuer"));
    let mut open = agent.follow(&["monitor", "-log-level=debug"]);
    open.until("path=/v1/jobs", || {
        agent.run(&["operator", "api", "/v1/jobs"]).expect_success();
    });

    for file in ["nomad-agent-ca.pem", "global-server-nomad.pem", "global-server-nomad-key.pem"] {
        std::fs::copy(new.join(file), certificates.join(file)).unwrap();
    }
    agent.signal(Signal::HUP);
    until("the new certificate is shown", || newly(&["server", "members"]).code == 0);
    open.until("path=/v1/nodes", || {
        newly(&["operator", "api", "/v1/nodes"]).expect_success();
    });

    std::fs::write(certificates.join("global-server-nomad-key.pem"), "no key").unwrap();
    let refused = newly(&["operator", "api", "-X", "PUT", "/v1/agent/reload"]);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("tls.key_file") && said.contains("agent.hcl:"), "{said}");
    newly(&["server", "members"]).expect_success();
}

#[test]
fn certificates_that_cannot_be_used_are_refused_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().join("certificates");
    make_certificates(&certificates);
    let config = AgentConfig::server(directory.path(), "server").certified(&certificates, "client");
    let refused = config.fail().expect_failure();
    assert!(refused.contains("agent.hcl:") && refused.contains("tls.cert_file: "), "{refused}");
    assert!(refused.contains("server.global.nomad"), "{refused}");
}

#[test]
fn certificates_are_made_for_their_owner_alone_and_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let made = tls(here, &["ca", "create", "-name-constraint", "-additional-domain=lan", "-days=10"]);
    let expected = "==> CA certificate saved to: nomad-agent-ca.pem\n\
                    ==> CA certificate key saved to: nomad-agent-ca-key.pem\n";
    assert_eq!(made.expect_success(), expected);
    let words = ["cert", "create", "-server", "-additional-dnsname=a.lan", "-additional-ipaddress=10.0.0.1"];
    let expected = "==> Server Certificate saved to global-server-nomad.pem\n\
                    ==> Server Certificate key saved to global-server-nomad-key.pem\n";
    assert_eq!(tls(here, &words).expect_success(), expected);
    for entry in here.read_dir().unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    let before = std::fs::read(here.join("global-server-nomad-key.pem")).unwrap();
    std::fs::remove_file(here.join("global-server-nomad.pem")).unwrap();
    let refused = tls(here, &words).expect_failure();
    assert!(refused.contains("global-server-nomad-key.pem is there already"), "{refused}");
    assert_eq!(std::fs::read(here.join("global-server-nomad-key.pem")).unwrap(), before);
    assert!(tls(here, &["ca", "create"]).expect_failure().contains("nomad-agent-ca.pem is there already"));

    std::fs::remove_file(here.join("global-server-nomad-key.pem")).unwrap();
    tls(here, &words).expect_success();
    let shown = tls(here, &["cert", "info", "global-server-nomad.pem"]).expect_success();
    for words in ["server.global.nomad, localhost, a.lan", "127.0.0.1, 10.0.0.1", "Nomad Agent CA "] {
        assert!(shown.contains(words), "{shown}");
    }
    let shown = tls(here, &["ca", "info", "nomad-agent-ca.pem"]).expect_success();
    assert!(shown.contains("nomad, localhost, lan"), "{shown}");
    let other =
        tls(here, &["cert", "create", "-cli", "-region=eu", "-domain=corp", "-ca=nomad-agent-ca.pem"]);
    assert!(other.expect_failure().contains("cannot read corp-agent-ca-key.pem"));
    tls(here, &["cert", "create"]).expect_failure();
    tls(here, &["cert", "info", "nomad-agent-ca-key.pem"]).expect_failure();
}

#[test]
fn an_agent_says_what_it_leaves_open() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "server");
    let file = config.home.join("agent.hcl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("127.0.0.1", "0.0.0.0")).unwrap();
    let agent = config.start();
    let info = agent.run(&["agent-info"]).expect_success();
    for what in ["the HTTP API is open on 0.0.0.0", "the node RPC is open on 0.0.0.0", "may do everything"] {
        assert!(
            agent.log().contains(&format!("Warning: {what}")) || agent.log().contains(what),
            "{}",
            agent.log()
        );
        assert!(info.contains(what), "{info}");
    }
}
