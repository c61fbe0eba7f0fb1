//! Services and templates with a Consul agent beside the node; see [`crate::support::consul`] for what that is here.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use node::NodeSettings;
use node::services::consul::{Consul, ConsulSettings, Registration};
use node::templates::Wait;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::consul::FakeConsul;
use crate::support::*;

fn with_consul(base: &Path, fake: &FakeConsul) -> (NodeSettings, Arc<Consul>, JoinHandle<()>) {
    with_consul_that(base, fake, consul_settings())
}

fn with_consul_that(
    base: &Path,
    fake: &FakeConsul,
    consul: ConsulSettings,
) -> (NodeSettings, Arc<Consul>, JoinHandle<()>) {
    let consul =
        Consul::new(ConsulSettings { address: format!("http://{}", fake.address), ..consul }).unwrap();
    let running = Arc::clone(&consul);
    let running = tokio::spawn(async move { running.run().await });
    let mut settings = settings(base);
    settings.templates.wait = Wait { min: Duration::from_millis(20), max: Duration::from_millis(200) };
    settings.consul = Some(Arc::clone(&consul));
    (settings, consul, running)
}

fn consul_settings() -> ConsulSettings {
    ConsulSettings {
        address: String::new(),
        token: "agent-token".into(),
        auth: String::new(),
        namespace: String::new(),
        timeout: Duration::from_secs(5),
        task_auth_method: "nomad-workloads".into(),
        ca_file: Default::default(),
        cert_file: Default::default(),
        key_file: Default::default(),
        skip_verify: false,
        own: Vec::new(),
        service_auth_method: "nomad-workloads".into(),
        unknown_for: Duration::from_millis(300),
    }
}

fn check(extra: Value) -> Value {
    let mut check = json!({"Interval": "1s", "Timeout": "1s"});
    check.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    check
}

#[tokio::test(flavor = "multi_thread")]
async fn services_and_checks_are_registered_followed_and_removed() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeConsul::start());
    let foreign = json!({"ID": "web-1", "Name": "web", "Service": "web"});
    fake.change(|state| state.services.insert("web-1".into(), foreign));
    fake.change(|state| state.is_down = true);
    let (settings, consul, running) = with_consul(base.path(), &fake);
    let mut task = shell("t", "exec tail -f /dev/null");
    task["Services"] = json!([{
        "Name": "web", "Provider": "consul", "PortLabel": "8080", "Tags": ["v1"], "Meta": {"a": "b"},
        "EnableTagOverride": true, "TaggedAddresses": {"wan": "192.0.2.1:80"}, "Kind": "api-gateway",
        "Weights": {"Passing": 3, "Warning": 1},
        "Checks": [
            check(json!({"Name": "s", "Type": "script", "Command": "/bin/sh", "Args": ["-c", "echo fine; test -e $NOMAD_TASK_DIR/up || exit 2"]})),
            check(json!({"Name": "g", "Type": "grpc", "GRPCService": "api", "InitialStatus": "passing", "CheckRestart": {"Limit": 1, "Grace": "0s"}})),
        ],
    }]);
    let group = json!({"Tasks": [task], "Update": {"HealthCheck": "checks", "MinHealthyTime": "0s"}});
    let mut alloc = group_alloc(1, "service", group);
    alloc.deployment_id = "d".into();
    servers.assign(alloc);
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "running");
    assert!(fake.look(|state| state.changes.is_empty()), "Consul is away, and the task runs");

    fake.change(|state| state.is_down = false);
    let id = format!("_nomad-task-{}-t-web-8080", alloc_id(1));
    let found = eventually("the service", || fake.look(|state| state.services.get(&id).cloned()));
    let expected = json!({"a": "b", "external-source": "nomad"});
    assert_eq!((&found["Meta"], &found["Tags"], &found["Port"]), (&expected, &json!(["v1"]), &json!(8080)));
    assert_eq!(
        (&found["Kind"], &found["Weights"]),
        (&json!("api-gateway"), &json!({"Passing": 3, "Warning": 1}))
    );
    assert_eq!(found["TaggedAddresses"]["wan"], json!({"Address": "192.0.2.1", "Port": 80}));
    assert_eq!(found["Checks"][0]["TTL"], "32s");
    assert_eq!(
        (&found["Checks"][1]["GRPC"], &found["Checks"][1]["Interval"]),
        (&json!("127.0.0.1:8080/api"), &json!("1s"))
    );
    let [script, grpc] = [0, 1].map(|at| found["Checks"][at]["CheckID"].as_str().unwrap().to_string());
    let status = |id: &str| fake.look(|state| state.checks[id]["Status"].clone());
    let output = || fake.look(|state| state.checks[&script]["Output"].clone());
    eventually("the script has run", || (output() == "fine\n").then_some(()));
    assert_eq!(status(&script), "critical");
    let version = || agent.local().context.node().attributes.get("consul.version").cloned();
    eventually("the node says that it has one", || (version()? == "1.20.1").then_some(()));

    // Healthy once both pass: one here, one there.
    let up = base.path().join("alloc").join(alloc_id(1)).join("t/local/up");
    std::fs::write(up, "").unwrap();
    eventually("health", || {
        let status = servers.update(&alloc_id(1))?.deployment_status?;
        (status.healthy? && fake.look(|state| state.checks[&script]["Status"] == "passing")).then_some(())
    });
    // Consul was restarted without its state, and an operator has changed the tags.
    fake.change(|state| state.services.remove(&id));
    // A change here has the node look there at once.
    let mut other = shell("t", "exec tail -f /dev/null");
    other["Services"] = json!([{"Name": "db", "Provider": "consul", "PortLabel": "5432"}]);
    servers.assign(group_alloc(2, "service", json!({"Tasks": [other]})));
    eventually("it is registered again", || {
        fake.look(|state| state.services.contains_key(&id).then_some(()))
    });

    // A check that Consul finds critical restarts the task.
    fake.change(|state| state.checks.get_mut(&grpc).unwrap()["Status"] = json!("critical"));
    servers.await_task(&alloc_id(1), "t", |state| {
        state.events.iter().any(|event| event.display_message.contains("healthcheck: check \"g\" unhealthy"))
    });
    servers.stop(&alloc_id(1));
    servers.stop(&alloc_id(2));
    eventually("both are gone, and what is not ours stays", || {
        fake.look(|state| state.services.keys().eq(["web-1"]).then_some(()))
    });
    assert!(fake.look(|state| state.tokens.iter().all(|token| token == "agent-token")));
    agent.shutdown().await;
    consul.leave().await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_follow_keys_and_services_of_consul() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeConsul::start());
    let service = json!({"ID": "db-1", "Name": "db", "Service": "db", "Address": "", "Port": 5432});
    fake.change(|state| {
        state.services.insert("db-1".into(), service);
        state.keys.insert("app/a".into(), "one".into());
        state.keys.insert("app/deep/b".into(), "two".into());
    });
    let (settings, _, running) = with_consul(base.path(), &fake);
    let text = "{{ key \"wanted\" }} {{ keyOrDefault \"none\" \"dflt\" }} {{ keyExists \"app/a\" }} \
                {{ range ls \"app\" }}{{ .Key }}={{ .Value }};{{ end }} {{ range tree \"app\" }}{{ .Key }};{{ end }} \
                {{ range service \"db\" }}{{ .Address }}:{{ .Port }}{{ end }}";
    let mut task = mock("t", json!({"run_for": "1h"}));
    task["Templates"] =
        json!([{"EmbeddedTmpl": text, "DestPath": "local/conf", "ChangeMode": "noop", "Splay": "0s"}]);
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings, &servers).await;
    let state = servers.await_task(&alloc_id(1), "t", |state| kinds(state).contains(&"Template"));
    let event = state.events.iter().find(|event| event.kind == "Template").unwrap();
    assert_eq!(event.display_message, "Missing: kv.block(wanted)");
    let file = base.path().join("alloc").join(alloc_id(1)).join("t/local/conf");
    for value in ["first", "second"] {
        fake.change(|state| state.keys.insert("wanted".into(), value.into()));
        let expected = format!("{value} dflt true a=one; a;deep/b; 10.0.0.9:5432");
        eventually(&expected, || (std::fs::read_to_string(&file).ok()? == expected).then_some(()));
    }
    agent.shutdown().await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_logs_in_with_its_identity_and_the_token_is_given_back() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeConsul::start());
    fake.change(|state| state.keys.insert("app/a".into(), "one".into()));
    let (settings, _, running) = with_consul(base.path(), &fake);
    let mut task =
        shell("t", "echo $CONSUL_HTTP_TOKEN $(cat $NOMAD_SECRETS_DIR/consul_token); exec tail -f /dev/null");
    task["Identities"] = json!([{"Name": "consul_default", "Audience": ["consul.io"]}]);
    task["Templates"] = json!([{"EmbeddedTmpl": "{{ key \"app/a\" }}", "DestPath": "local/conf"}]);
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings.clone(), &servers).await;
    let expected = "secret-of-token-of-consul_default secret-of-token-of-consul_default\n";
    eventually("the output", || (log(base.path(), 1, "t.stdout.0") == expected).then_some(()));
    assert!(fake.look(|state| state.tokens.contains(&"secret-of-token-of-consul_default".to_string())));
    // The next agent knows the token, and gives it back when the task ends.
    agent.shutdown().await;
    let agent = start(settings, &servers).await;
    assert!(fake.look(|state| !state.changes.contains(&"/v1/acl/logout".to_string())));
    servers.stop(&alloc_id(1));
    eventually("the logout", || {
        fake.look(|state| state.changes.contains(&"/v1/acl/logout".to_string()).then_some(()))
    });
    // The agent's own calls go on meanwhile.
    let said = fake.look(|state| state.said.clone());
    let logouts = said.iter().filter(|(path, _)| path == "/v1/acl/logout").map(|(_, token)| token.as_str());
    assert_eq!(logouts.collect::<Vec<_>>(), ["secret-of-token-of-consul_default"]);
    assert_eq!(fake.look(|state| state.logins), 1);
    agent.shutdown().await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn services_with_an_identity_are_registered_with_a_token_of_their_own() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeConsul::start());
    // What another agent has left, and what is none of ours.
    for id in ["_nomad-task-gone-t-web-", "web-1"] {
        let service = json!({"ID": id, "Name": "web", "Service": "web"});
        fake.change(|state| state.services.insert(id.into(), service));
    }
    let (settings, consul, running) = with_consul(base.path(), &fake);
    let mut task = shell("t", "exec tail -f /dev/null");
    task["Services"] = json!([{
        "Name": "web", "Provider": "consul", "PortLabel": "8080",
        "Identity": {"Name": "consul-service_t-web-8080", "Audience": ["consul.io"]},
    }]);
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings.clone(), &servers).await;
    let id = format!("_nomad-task-{}-t-web-8080", alloc_id(1));
    eventually("the service", || fake.look(|state| state.services.contains_key(&id).then_some(())));
    let token = "secret-of-token-of-consul-service_t-web-8080".to_string();
    let said_with = |what: &str| fake.look(|state| state.said.contains(&(what.to_string(), token.clone())));
    assert!(said_with("/v1/agent/service/register"));
    eventually("what nobody knows is removed, later", || {
        fake.look(|state| state.services.keys().eq([&id, "web-1"]).then_some(()))
    });
    agent.shutdown().await;
    running.abort();
    drop((settings, consul));

    // The next agent has the token too. However long it takes to know its allocation, the service is not removed before.
    let patient = ConsulSettings { unknown_for: Duration::from_secs(600), ..consul_settings() };
    let (settings, consul, running) = with_consul_that(base.path(), &fake, patient);
    let agent = start(settings.clone(), &servers).await;
    servers.stop(&alloc_id(1));
    let removed = format!("/v1/agent/service/deregister/{id}");
    eventually("the removal", || said_with(&removed).then_some(()));
    eventually("the logout", || said_with("/v1/acl/logout").then_some(()));
    assert_eq!(fake.look(|state| state.logins), 1);
    agent.shutdown().await;
    running.abort();
    drop((settings, consul));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_not_logged_out_is_logged_out_by_the_next_agent() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeConsul::start());
    let (settings, consul, running) = with_consul(base.path(), &fake);
    let mut task = shell("t", "exec tail -f /dev/null");
    task["Identities"] = json!([{"Name": "consul_default", "Audience": ["consul.io"]}]);
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings.clone(), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    fake.change(|state| state.is_down = true);
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
    running.abort();
    drop((settings, consul));
    fake.change(|state| state.is_down = false);
    let (settings, _, running) = with_consul(base.path(), &fake);
    let agent = start(settings, &servers).await;
    let logout = ("/v1/acl/logout".to_string(), "secret-of-token-of-consul_default".to_string());
    eventually("the logout", || fake.look(|state| state.said.contains(&logout).then_some(())));
    agent.shutdown().await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn consul_is_spoken_to_over_tls_if_its_certificate_is_good() {
    let (base, fake) = (Base::new(), FakeConsul::start());
    let (address, certificate, mut failures) = in_front_of(fake.address).await;
    let ca_file = base.path().join("ca.pem");
    std::fs::write(&ca_file, certificate).unwrap();
    let service = Registration {
        id: "own".into(),
        check_ids: Vec::new(),
        login: None,
        document: json!({"ID": "own", "Name": "own"}),
    };
    let secure = ConsulSettings { address, own: vec![service], ..consul_settings() };
    let strangers = Consul::new(secure.clone()).unwrap();
    let running = tokio::spawn(async move { strangers.run().await });
    failures.wait_for(|failures| *failures > 0).await.unwrap();
    running.abort();
    assert!(fake.look(|state| state.said.is_empty()), "nothing was said to a stranger");
    let friend = Consul::new(ConsulSettings { ca_file, ..secure }).unwrap();
    let running = tokio::spawn(async move { friend.run().await });
    eventually("the registration", || fake.look(|state| state.services.contains_key("own").then_some(())));
    running.abort();
}

/// What speaks TLS and passes everything on: its address, the certificate to trust, and how many did not trust it.
async fn in_front_of(inner: std::net::SocketAddr) -> (String, String, tokio::sync::watch::Receiver<usize>) {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_string()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let (failed, failures) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, failed) = (acceptor.clone(), failed.clone());
            tokio::spawn(async move {
                match acceptor.accept(stream).await {
                    Ok(mut outside) => {
                        let mut inside = tokio::net::TcpStream::connect(inner).await.unwrap();
                        tokio::io::copy_bidirectional(&mut outside, &mut inside).await.ok();
                    }
                    Err(_) => failed.send_modify(|failed| *failed += 1),
                }
            });
        }
    });
    (address, own.cert.pem(), failures)
}
