//! Tasks with a Vault; see [`crate::support::vault`] for what that is here.

use std::path::Path;
use std::time::{Duration, Instant};

use node::NodeSettings;
use node::templates::{Retry, Wait};
use node::vault::VaultSettings;
use serde_json::{Value, json};

use crate::support::vault::FakeVault;
use crate::support::*;

fn with_vault(base: &Path, fake: &FakeVault) -> NodeSettings {
    let mut settings = settings(base);
    let templates = &mut settings.templates;
    templates.wait = Wait { min: Duration::from_millis(20), max: Duration::from_millis(200) };
    templates.vault_retry =
        Retry { attempts: 2, backoff: Duration::from_millis(50), max_backoff: Duration::from_millis(100) };
    templates.vault_lease = Duration::from_millis(200);
    settings.vaults = vec![VaultSettings {
        name: "default".into(),
        address: format!("http://{}", fake.address),
        namespace: String::new(),
        auth_path: "jwt-nomad".into(),
        role: "nomad".into(),
        ca_file: Default::default(),
        ca_path: Default::default(),
        cert_file: Default::default(),
        key_file: Default::default(),
        server_name: String::new(),
        skip_verify: false,
    }];
    settings
}

/// A task with a `vault` block and the identity for it.
fn with_block(mut task: Value, block: Value) -> Value {
    task["Vault"] = block;
    task["Identities"] = json!([{"Name": "vault_default", "Audience": ["vault.io"]}]);
    task
}

fn template(text: &str) -> Value {
    json!([{"EmbeddedTmpl": text, "DestPath": "local/conf", "ChangeMode": "noop", "Splay": "0s"}])
}

fn told(servers: &FakeServers, at: u8, text: &str) {
    servers.await_task(&alloc_id(at), "t", |state| {
        state.events.iter().any(|event| event.display_message.contains(text))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_gets_a_token_that_is_renewed_replaced_and_revoked() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeVault::start());
    fake.change(|state| state.is_sealed = true);
    fake.change(|state| state.token_lease = Some(Duration::from_secs(1)));
    let line = "echo $VAULT_TOKEN $(cat $NOMAD_SECRETS_DIR/vault_token) $VAULT_NAMESPACE $VAULT_ADDR; exec tail -f /dev/null";
    let block = json!({"Role": "web", "Namespace": "team", "ChangeMode": "restart"});
    servers.assign(alloc(1, "service", json!([with_block(shell("t", line), block)])));
    let agent = start(with_vault(base.path(), &fake), &servers).await;
    told(
        &servers,
        1,
        "Vault: no token yet, asking again: Vault is not reached: it answers 503: Vault is sealed",
    );

    fake.change(|state| state.is_sealed = false);
    let address = format!("http://{}", fake.address);
    let first = format!("hvs.1 hvs.1 team {address}\n");
    eventually("the output", || (log(base.path(), 1, "t.stdout.0") == first).then_some(()));
    let login = ("web".to_string(), "team".to_string(), "token-of-vault_default".to_string());
    assert!(fake.change(|state| state.logins.iter().all(|own| *own == login)));
    eventually("renewals", || fake.change(|state| (state.renewals >= 2).then_some(())));
    assert_eq!(log(base.path(), 1, "t.stdout.0"), first, "a renewal restarts nothing");
    let version = || agent.local().context.node().attributes.get("vault.version").cloned();
    eventually("the node says that it has one", || (version()? == "1.18.3").then_some(()));

    // Somebody has revoked it.
    fake.change(|state| state.tokens.clear());
    let second = format!("{first}hvs.2 hvs.2 team {address}\n");
    eventually("a restart with another token", || {
        (log(base.path(), 1, "t.stdout.0") == second).then_some(())
    });
    told(&servers, 1, "Vault: new Vault token acquired");

    // Nobody answers when the task ends, and the next agent gives the token back.
    fake.change(|state| state.token_lease = None);
    let renewed = fake.change(|state| state.renewals);
    eventually("a long lease", || fake.change(|state| (state.renewals > renewed).then_some(())));
    fake.change(|state| state.is_sealed = true);
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
    assert!(fake.change(|state| state.revoked.is_empty()));
    fake.change(|state| state.is_sealed = false);
    let agent = start(with_vault(base.path(), &fake), &servers).await;
    eventually("the revocation", || fake.change(|state| (state.revoked == ["hvs.2"]).then_some(())));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_survive_the_agent_and_a_job_says_what_it_gets() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeVault::start());
    let line = "echo \"$VAULT_TOKEN.$VAULT_ADDR.$(ls $NOMAD_SECRETS_DIR | grep -c vault)\"; trap 'echo usr1' USR1; while true; do sleep 0.05; done";
    let block = json!({"Env": false, "DisableFile": true, "ChangeMode": "signal", "ChangeSignal": "SIGUSR1"});
    servers.assign(alloc(1, "service", json!([with_block(shell("t", line), block)])));
    let unknown = with_block(shell("t", "true"), json!({"Cluster": "west"}));
    servers.assign(alloc(2, "batch", json!([unknown])));
    let mut nameless = with_block(shell("t", "true"), json!({}));
    nameless["Identities"] = json!([]);
    servers.assign(alloc(3, "batch", json!([nameless])));
    fake.change(|state| state.refused_role = Some("nobody".into()));
    servers.assign(alloc(4, "service", json!([with_block(shell("t", "true"), json!({"Role": "nobody"}))])));
    let agent = start(with_vault(base.path(), &fake), &servers).await;
    told(&servers, 2, "vault: this node has no Vault \"west\"");
    told(&servers, 3, "vault: the task has no identity \"vault_default\"");
    told(
        &servers,
        4,
        "Vault: failed to derive vault token: Vault answers 400: role \"nobody\" could not be found",
    );
    servers.await_status(&alloc_id(4), "failed");
    eventually("the output", || (log(base.path(), 1, "t.stdout.0") == "..0\n").then_some(()));
    let token = fake.change(|state| state.tokens.keys().next().cloned().unwrap());
    let logins = fake.change(|state| state.logins.len());
    agent.shutdown().await;

    let agent = start(with_vault(base.path(), &fake), &servers).await;
    eventually("it is renewed at once", || fake.change(|state| (state.renewals > 0).then_some(())));
    assert_eq!(fake.change(|state| state.logins.len()), logins);
    agent.shutdown().await;
    // It was revoked while no agent ran.
    fake.change(|state| state.tokens.clear());
    let agent = start(with_vault(base.path(), &fake), &servers).await;
    eventually("a signal", || (log(base.path(), 1, "t.stdout.0") == "..0\nusr1\n").then_some(()));
    let newer = fake.change(|state| state.tokens.keys().next().cloned().unwrap());
    assert_ne!(newer, token);
    servers.stop(&alloc_id(1));
    eventually("the revocation", || fake.change(|state| state.revoked.contains(&newer).then_some(())));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_and_secret_blocks_read_secrets_and_follow_them() {
    let (base, servers, fake) = (Base::new(), FakeServers::new(), FakeVault::start());
    fake.change(|state| {
        state.secret_lease = Some(Duration::from_secs(1));
        state.old.insert("app".into(), json!({"user": "bob", "port": 80}));
    });
    let text = "{{ with secret \"kv/app\" }}{{ .Data.data.key }}{{ end }} {{ with secret \"old/app\" }}{{ .Data.user }}:{{ .Data.port }}{{ end }} \
                {{ range secrets \"old\" }}{{ . }};{{ end }} {{ with secret \"database/creds/app\" }}{{ .Data.username }}{{ end }} \
                {{ with pkiCert \"pki/issue/web\" \"common_name=a.b\" }}{{ .Cert }},{{ .Key }},{{ .CA }},{{ .Data.Cert }}{{ end }}";
    let mut task = with_block(mock("t", json!({"run_for": "1h"})), json!({}));
    task["Templates"] = template(text);
    servers.assign(alloc(1, "service", json!([task])));
    let mut closed = with_block(mock("t", json!({"run_for": "1h"})), json!({}));
    closed["Templates"] = template("{{ with secret \"closed/a\" }}{{ .Data.x }}{{ end }}");
    servers.assign(alloc(2, "batch", json!([closed])));
    let mut blocks = with_block(shell("t", "echo $KEY $USER_NAME"), json!({}));
    blocks["Secrets"] = json!([
        {"Name": "a", "Provider": "vault", "Path": "kv/data/app", "Config": {"engine": "kv_v2"}},
        {"Name": "b", "Provider": "vault", "Path": "old/app"},
    ]);
    blocks["Env"] = json!({"KEY": "${secret.a.key}", "USER_NAME": "${secret.b.user}"});
    servers.assign(alloc(3, "batch", json!([blocks])));
    let mut without = mock("t", json!({"run_for": "1h"}));
    without["Templates"] = template("{{ with secret \"kv/app\" }}{{ end }}");
    servers.assign(alloc(4, "batch", json!([without])));
    let agent = start(with_vault(base.path(), &fake), &servers).await;
    told(&servers, 1, "Missing: vault.read(kv/app)");
    told(&servers, 2, "vault.read(closed/a): Vault answers 403: 1 error occurred: * permission denied");
    told(&servers, 4, "vault.read(kv/app): the task has no vault block");

    let file = base.path().join("alloc").join(alloc_id(1)).join("t/local/conf");
    let content = || std::fs::read_to_string(&file).unwrap_or_default();
    fake.change(|state| state.kv.insert("app".into(), json!({"key": "one"})));
    let certificate = "cert of a.b,key,ca,cert of a.b\n".trim();
    let user = eventually("the text", || {
        let content = content();
        let user = content.strip_prefix("one bob:80 app; ")?.strip_suffix(&format!(" {certificate}"))?;
        Some(user.to_string())
    });
    eventually("the output", || (log(base.path(), 3, "t.stdout.0") == "one bob\n").then_some(()));
    fake.change(|state| state.kv.insert("app".into(), json!({"key": "two"})));
    eventually("a change in a store", || content().starts_with("two bob:80").then_some(()));
    // The lease is renewed, and the user stays, until it is refused: then there is another one.
    eventually("renewals", || fake.change(|state| (state.lease_renewals >= 2).then_some(())));
    assert!(content().contains(&format!(" {user} ")), "{}", content());
    fake.change(|state| state.leases.clear());
    eventually("another user", || (!content().contains(&format!(" {user} "))).then_some(()));

    // What is away changes nothing, and the text follows when it is back.
    fake.change(|state| state.is_sealed = true);
    let asked = fake.change(|state| state.requests.len());
    eventually("tries", || fake.change(|state| (state.requests.len() > asked + 3).then_some(())));
    assert!(content().starts_with("two "));
    fake.change(|state| state.is_sealed = false);
    fake.change(|state| state.kv.insert("app".into(), json!({"key": "three"})));
    let since = Instant::now();
    eventually("it is read again", || content().starts_with("three ").then_some(()));
    assert!(since.elapsed() < Duration::from_secs(20));
    agent.shutdown().await;
}
