//! Templates of tasks, from what the servers have to files, and to what happens when that changes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::document::Allocation;
use node::NodeSettings;
use node::templates::{Retry, Wait};
use serde_json::{Value, json};

use crate::support::*;

/// With short waits, so that tests are quick.
fn quick(base: &Path) -> NodeSettings {
    let mut settings = settings(base);
    settings.templates.wait = Wait { min: Duration::from_millis(20), max: Duration::from_millis(200) };
    let backoff = Duration::from_millis(10);
    settings.templates.retry = Retry { attempts: 3, backoff, max_backoff: backoff };
    settings
}

fn with_templates(mut task: Value, templates: &[Value]) -> Value {
    task["Templates"] = templates
        .iter()
        .map(|template| {
            let mut whole = json!({"Splay": "0s"});
            whole.as_object_mut().unwrap().extend(template.as_object().unwrap().clone());
            whole
        })
        .collect();
    task
}

/// An allocation of a task that does nothing for an hour.
fn templated(templates: &[Value]) -> Allocation {
    alloc(1, "service", json!([with_templates(mock("t", json!({"run_for": "1h"})), templates)]))
}

fn file(base: &Path, path: &str) -> PathBuf {
    base.join("alloc").join(alloc_id(1)).join("t").join(path)
}

fn await_file(base: &Path, path: &str, expected: &str) {
    eventually(&format!("{path} with {expected:?}"), || {
        (std::fs::read_to_string(file(base, path)).ok()? == expected).then_some(())
    });
}

fn set(servers: &FakeServers, path: &str, items: Value) {
    servers.change(|cluster| {
        let document = json!({"Namespace": "default", "Path": path, "Items": items});
        cluster.variables.insert(path.to_string(), document);
    });
}

/// How often a dependency was asked for from the beginning.
fn begun(servers: &FakeServers, dependency: &str) -> usize {
    let cluster = servers.cluster.lock().unwrap();
    cluster
        .reads
        .iter()
        .filter(|read| read.dependency.to_string() == dependency && read.min_index == 0)
        .count()
}

const READS_VARIABLE: &str = "{{ with nomadVar \"app\" }}{{ .user }}{{ end }}";

#[tokio::test(flavor = "multi_thread")]
async fn files_and_variables_are_there_when_the_task_starts() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "app", json!({"user": "bob"}));
    servers.change(|cluster| {
        let instance = json!({"ID": "_1", "ServiceName": "db", "Namespace": "default", "Address": "10.0.0.1", "Port": 5432});
        cluster.services.insert("_1".to_string(), serde_json::from_value(instance).unwrap());
    });
    let services = "{{ range nomadService \"db\" }}{{ .Address }}:{{ .Port }}{{ end }} [[ {{ env \"NOMAD_JOB_ID\" }} {{ env \"node.unique.name\" }}";
    let task = with_templates(
        shell(
            "t",
            "cat $NOMAD_TASK_DIR/conf $NOMAD_TASK_DIR/deep/other; echo; echo $USER_NAME; exec tail -f /dev/null",
        ),
        &[
            json!({"EmbeddedTmpl": format!("user={READS_VARIABLE}\n"), "DestPath": "local/conf", "Perms": "0600"}),
            json!({"EmbeddedTmpl": services, "DestPath": "${NOMAD_TASK_DIR}/deep/other"}),
            json!({"EmbeddedTmpl": format!("# who\nUSER_NAME=\"{READS_VARIABLE}\"\n"), "DestPath": "secrets/env", "Envvars": true}),
        ],
    );
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(quick(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let expected = "user=bob\n10.0.0.1:5432 [[ job alpha\nbob\n";
    eventually("the output", || (log(base.path(), 1, "t.stdout.0") == expected).then_some(()));
    let mode = |path| file(base.path(), path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("local/conf"), mode("local/deep/other")), (0o600, 0o644));
    assert_eq!(begun(&servers, "nomad.var.block(app)"), 1, "two templates, one query");
    assert!(
        servers
            .cluster
            .lock()
            .unwrap()
            .reads
            .iter()
            .all(|read| read.token.as_deref() == Some("token-of-default"))
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_for_what_is_missing_and_says_so() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let templates = [json!({"EmbeddedTmpl": READS_VARIABLE, "DestPath": "local/conf"})];
    servers.assign(templated(&templates));
    let agent = start(quick(base.path()), &servers).await;
    let state = servers.await_task(&alloc_id(1), "t", |state| kinds(state).contains(&"Template"));
    let event = state.events.iter().find(|event| event.kind == "Template").unwrap();
    assert_eq!(event.display_message, "Missing: nomad.var.block(app)");
    assert_eq!(state.state, "pending");
    set(&servers, "app", json!({"user": "bob"}));
    servers.await_status(&alloc_id(1), "running");
    await_file(base.path(), "local/conf", "bob");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_another_template_waits_is_in_the_text_at_the_start() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "early", json!({"user": "one"}));
    let early = "{{ with nomadVar \"early\" }}{{ .user }}{{ end }}";
    let templates = [
        json!({"EmbeddedTmpl": READS_VARIABLE, "DestPath": "local/conf"}),
        json!({"EmbeddedTmpl": early, "DestPath": "local/early"}),
    ];
    servers.assign(templated(&templates));
    let agent = start(quick(base.path()), &servers).await;
    await_file(base.path(), "local/early", "one");
    set(&servers, "early", json!({"user": "two"}));
    await_file(base.path(), "local/early", "two");
    set(&servers, "app", json!({"user": "bob"}));
    servers.await_status(&alloc_id(1), "running");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_can_be_stopped() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let templates = [json!({"EmbeddedTmpl": READS_VARIABLE, "DestPath": "local/conf"})];
    servers.assign(templated(&templates));
    let agent = start(quick(base.path()), &servers).await;
    eventually("a query", || (begun(&servers, "nomad.var.block(app)") > 0).then_some(()));
    servers.stop(&alloc_id(1));
    let update = servers.await_status(&alloc_id(1), "complete");
    assert_eq!(kinds(&update.task_states["t"]).last(), Some(&"Killed"));
    eventually("the end of the query", || (agent.local().context.watches.count() == 0).then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_restarts_the_task_with_the_new_environment() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "app", json!({"user": "bob"}));
    let task = with_templates(
        shell("t", "echo $USER_NAME; exec tail -f /dev/null"),
        &[
            json!({"EmbeddedTmpl": format!("USER_NAME={READS_VARIABLE}"), "DestPath": "local/env", "Envvars": true}),
            // Restarts win over signals.
            json!({"EmbeddedTmpl": READS_VARIABLE, "DestPath": "local/conf", "ChangeMode": "signal", "ChangeSignal": "SIGUSR1"}),
        ],
    );
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(quick(base.path()), &servers).await;
    let output = |expected: &str| {
        eventually(expected, || (log(base.path(), 1, "t.stdout.0") == expected).then_some(()));
    };
    output("bob\n");
    set(&servers, "app", json!({"user": "eve"}));
    output("bob\neve\n");
    let state =
        servers.await_task(&alloc_id(1), "t", |state| state.restarts == 1 && state.state == "running");
    let signaled = state.events.iter().find(|event| event.kind == "Restart Signaled").unwrap();
    assert_eq!(signaled.display_message, "Template with change_mode restart re-rendered");
    assert!(!state.failed && !kinds(&state).contains(&"Signaling"));
    await_file(base.path(), "local/conf", "eve");

    // What changes nothing in the text changes nothing at all.
    set(&servers, "app", json!({"user": "eve", "other": "1"}));
    set(&servers, "app", json!({"user": "zoe"}));
    output("bob\neve\nzoe\n");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_sends_a_signal_or_runs_a_script_or_does_nothing() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "app", json!({"user": "bob"}));
    let template = |name: &str, mode: &str| json!({"EmbeddedTmpl": READS_VARIABLE, "DestPath": format!("local/{name}"), "ChangeMode": mode});
    let mut signal = template("signal", "signal");
    signal["ChangeSignal"] = json!("SIGUSR1");
    let mut script = template("script", "script");
    script["ChangeScript"] = json!({
        "Command": "/bin/sh", "Args": ["-c", "echo ran >> $NOMAD_TASK_DIR/ran"], "Timeout": "20s", "RunOnFirstRender": true,
    });
    let mut once = template("once", "restart");
    once["Once"] = json!(true);
    let waits = "trap 'echo signalled' USR1; echo ready; while true; do sleep 0.05; done";
    let task = with_templates(shell("t", waits), &[signal, script, template("noop", "noop"), once]);
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(quick(base.path()), &servers).await;
    await_file(base.path(), "local/ran", "ran\n");
    eventually("a trap", || (log(base.path(), 1, "t.stdout.0") == "ready\n").then_some(()));
    set(&servers, "app", json!({"user": "eve"}));
    await_file(base.path(), "local/ran", "ran\nran\n");
    await_file(base.path(), "local/noop", "eve");
    eventually("a signal", || (log(base.path(), 1, "t.stdout.0") == "ready\nsignalled\n").then_some(()));
    await_file(base.path(), "local/once", "bob");
    let state = servers.await_task(&alloc_id(1), "t", |state| {
        kinds(state).iter().filter(|kind| **kind == "Task hook message").count() == 2
    });
    let said = state.events.iter().rfind(|event| event.kind == "Task hook message").unwrap();
    let expected = "Template successfully ran script /bin/sh with arguments: [-c echo ran >> $NOMAD_TASK_DIR/ran]. Exit code: 0";
    assert_eq!(said.display_message, expected);
    assert_eq!((state.restarts, state.state.as_str()), (0, "running"));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_rendered_fails_the_task() {
    for (template, expected) in [
        (
            json!({"EmbeddedTmpl": "{{ nope }}", "DestPath": "local/a"}),
            "Template failed: template \"local/a\": line 1: function \"nope\" not defined",
        ),
        (
            json!({"EmbeddedTmpl": "{{ key \"a\" }}", "DestPath": "local/a"}),
            "Template failed: template \"local/a\": kv.block(a): needs Consul, which this node has not",
        ),
        (
            json!({"EmbeddedTmpl": "x", "DestPath": "../../a"}),
            "Template failed: template \"../../a\": path \"../../a\" escapes the directory of the allocation",
        ),
        (
            json!({"EmbeddedTmpl": "{{ file \"/etc/passwd\" }}", "DestPath": "local/a"}),
            "Template failed: template \"local/a\": line 1: error calling file: path \"/etc/passwd\" escapes the directory \
             of the allocation",
        ),
        (
            json!({"EmbeddedTmpl": "{{ nomadVar \"closed\" }}", "DestPath": "local/a"}),
            "Template failed: template \"local/a\": line 1: error calling nomadVar: nomad.var.block(closed): Permission denied",
        ),
    ] {
        let (base, servers) = (Base::new(), FakeServers::new());
        let task = with_templates(mock("t", json!({"run_for": "1h"})), &[template]);
        servers.assign(alloc(1, "service", json!([task])));
        let agent = start(quick(base.path()), &servers).await;
        let update = servers.await_status(&alloc_id(1), "failed");
        let state = &update.task_states["t"];
        let killing = state.events.iter().find(|event| event.kind == "Killing").unwrap();
        assert_eq!(killing.display_message, expected);
        assert!(state.failed && state.restarts == 0);
        agent.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_fails_later_ends_the_task() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "app", json!({"user": "1"}));
    let text = "{{ with nomadVar \"app\" }}{{ .user.Value | parseInt }}{{ end }}";
    let templates = [json!({"EmbeddedTmpl": text, "DestPath": "local/a"})];
    servers.assign(templated(&templates));
    let agent = start(quick(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    set(&servers, "app", json!({"user": "x"}));
    let update = servers.await_status(&alloc_id(1), "failed");
    let state = &update.task_states["t"];
    let killing = state.events.iter().find(|event| event.kind == "Killing").unwrap();
    assert!(killing.display_message.starts_with("Template failed: template \"local/a\": "), "{killing:?}");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_templates_share_one_query() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "app", json!({"user": "bob"}));
    let template = |at: usize| json!({"EmbeddedTmpl": READS_VARIABLE, "DestPath": format!("local/{at}"), "ChangeMode": "noop"});
    let templates: Vec<Value> = (0..500).map(template).collect();
    servers.assign(templated(&templates));
    let agent = start(quick(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    assert_eq!(agent.local().context.watches.count(), 1);
    set(&servers, "app", json!({"user": "eve"}));
    for at in [0, 250, 499] {
        await_file(base.path(), &format!("local/{at}"), "eve");
    }
    assert_eq!(begun(&servers, "nomad.var.block(app)"), 1);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_agent_sees_what_changed_in_between() {
    let (base, servers) = (Base::new(), FakeServers::new());
    set(&servers, "app", json!({"user": "bob"}));
    let task = with_templates(
        shell("t", "echo $USER_NAME; exec tail -f /dev/null"),
        &[
            json!({"EmbeddedTmpl": format!("USER_NAME={READS_VARIABLE}"), "DestPath": "local/env", "Envvars": true}),
        ],
    );
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(quick(base.path()), &servers).await;
    eventually("bob", || (log(base.path(), 1, "t.stdout.0") == "bob\n").then_some(()));
    servers.await_status(&alloc_id(1), "running");
    agent.shutdown().await;
    let agent = start(quick(base.path()), &servers).await;
    eventually("a query", || (begun(&servers, "nomad.var.block(app)") == 2).then_some(()));
    agent.shutdown().await;
    set(&servers, "app", json!({"user": "eve"}));
    let agent = start(quick(base.path()), &servers).await;
    eventually("eve", || (log(base.path(), 1, "t.stdout.0") == "bob\neve\n").then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_waited_for_and_filled_in() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut task = shell("t", "echo $ONE $0; exec tail -f /dev/null");
    task["Config"]["args"].as_array_mut().unwrap().push(json!("${secret.app.user}-${secret.app.none}"));
    task["Env"] = json!({"ONE": "<${secret.app.user}>"});
    task["Secrets"] = json!([{"Name": "app", "Provider": "nomad", "Path": "app"}]);
    servers.assign(alloc(1, "service", json!([task])));
    let mut closed = mock("t", json!({"run_for": "1h"}));
    closed["Secrets"] = json!([{"Name": "x", "Provider": "nomad", "Path": "closed"}]);
    servers.assign(alloc(2, "service", json!([closed])));
    let mut vault = mock("t", json!({"run_for": "1h"}));
    vault["Secrets"] = json!([{"Name": "x", "Provider": "vault", "Path": "kv"}]);
    servers.assign(alloc(3, "service", json!([vault])));
    let agent = start(quick(base.path()), &servers).await;
    let state = servers.await_task(&alloc_id(1), "t", |state| kinds(state).contains(&"Template"));
    let event = state.events.iter().find(|event| event.kind == "Template").unwrap();
    assert_eq!(event.display_message, "Missing: nomad.var.block(app)");
    set(&servers, "app", json!({"user": "bob"}));
    let expected = "<bob> bob-${secret.app.none}\n";
    eventually("the output", || (log(base.path(), 1, "t.stdout.0") == expected).then_some(()));
    for (n, why) in [
        (2, "secrets: secret \"x\": nomad.var.block(closed): Permission denied"),
        (3, "secrets: secret \"x\": the task has no vault block"),
    ] {
        servers.await_task(&alloc_id(n), "t", |state| {
            state.events.iter().any(|event| event.kind == "Task hook failed" && event.display_message == why)
        });
    }
    agent.shutdown().await;
}
