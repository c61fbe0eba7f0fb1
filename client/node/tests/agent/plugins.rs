//! Plugins: drivers and devices that are programs of their own, launched by a whole agent. The program is the example.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use executor::process::{self, ProcessIdentity};
use futures_util::StreamExt;
use model::document::TaskState;
use nix::sys::signal::Signal;
use node::NodeSettings;
use node::driver::exec::run_once;
use node::settings::ExternalPlugin;
use serde_json::{Value, json};

use crate::support::*;

/// A directory for one node, whose plugins end with it.
struct PluginBase(Base);

impl PluginBase {
    fn new() -> PluginBase {
        PluginBase(Base::new())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where a plugin runs, as the agent has written it down.
    fn process(&self, plugin: &str) -> Option<ProcessIdentity> {
        let path = self.path().join("client/plugins").join(plugin).join("process.json");
        let record: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        serde_json::from_value(record["address"]["process"].clone()).ok()
    }

    /// What copies a plugin's output.
    fn copier(&self, plugin: &str) -> Option<ProcessIdentity> {
        let path = self.path().join("client/plugins").join(plugin).join("state.json");
        let state: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        serde_json::from_value(state["executor"].clone()).ok()
    }

    /// A program in the plugin directory.
    fn script(&self, name: &str, script: &str) {
        let path = self.path().join("driver_plugins").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Settings of a node with the example as a plugin.
    fn settings(&self, name: &str, args: &[&str], config: Value) -> NodeSettings {
        self.script(name, &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_hello-plugin")));
        let block = ExternalPlugin {
            args: args.iter().map(|arg| arg.to_string()).collect(),
            config: config.as_object().unwrap().clone(),
        };
        NodeSettings {
            external_plugins: BTreeMap::from([(name.to_string(), block)]),
            // Registered again at once when the node has changed; what runs is left, as in production.
            ..settings(self.path())
        }
    }
}

impl Drop for PluginBase {
    fn drop(&mut self) {
        let outputs = std::fs::read_dir(self.path().join("client/plugin_outputs"));
        let plugins = std::fs::read_dir(self.path().join("client/plugins"));
        for directory in outputs.into_iter().chain(plugins).flatten().flatten() {
            for name in ["process.json", "state.json"] {
                let Ok(text) = std::fs::read_to_string(directory.path().join(name)) else { continue };
                let found: Value = serde_json::from_str(&text).unwrap_or_default();
                for process in [&found["address"]["process"], &found["executor"]] {
                    if let Ok(process) = serde_json::from_value::<ProcessIdentity>(process.clone()) {
                        plugin::launch::kill(&process);
                    }
                }
            }
        }
    }
}

fn hello(command: &str) -> Value {
    json!({"Name": "t", "Driver": "hello", "Config": {"command": command}})
}

fn said(state: &TaskState, text: &str) -> bool {
    state.events.iter().any(|event| event.display_message.contains(text))
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_plugin_run_as_those_of_other_drivers() {
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let agent = start(base.settings("hello-plugin", &[], json!({"greeting": "hi"})), &servers).await;
    let script =
        "echo out $NOMAD_TASK_NAME; echo err >&2; trap 'echo got; exit 5' USR1; while :; do sleep 0.05; done";
    servers.assign(alloc(1, "service", json!([hello(script)])));
    let state = servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("out t\n").then_some(()));
    eventually("errors", || (log(base.path(), 1, "t.stderr.0") == "err\n").then_some(()));
    assert!(kinds(&state).contains(&"Started"), "{state:?}");
    servers.await_task(&alloc_id(1), "t", |task| said(task, "hello from the plugin"));

    let node = servers.cluster.lock().unwrap().registered.last().cloned().unwrap();
    assert!(node.drivers["hello"].healthy && node.drivers["hello"].detected);
    assert_eq!(node.attributes["driver.hello"], "1");
    assert_eq!(node.attributes["driver.hello.greeting"], "hi", "its configuration reached the plugin");

    let task = agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.running("t").unwrap();
    assert!(task.inspect().await.attributes["pid"].parse::<i32>().is_ok());
    let usage = eventually_async(async || {
        let usage = task.stats(Duration::from_millis(10)).next().await?;
        (usage.resident_bytes > 0).then_some(usage)
    })
    .await;
    assert_eq!(usage.resident_bytes, 4096);
    let command =
        ["/bin/sh", "-c", "echo $NOMAD_TASK_NAME; echo oops >&2; exit 3"].map(String::from).to_vec();
    let output = run_once(&*task, command, Duration::from_secs(20)).await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"t\n"[..], &b"oops\n"[..]));
    assert_eq!(output.exit.code, 3);

    task.signal(Signal::SIGUSR1).await.unwrap();
    let ended = servers.await_status(&alloc_id(1), "failed");
    assert!(said(&ended.task_states["t"], "Exit Code: 5"), "{:?}", ended.task_states["t"].events);
    assert!(log(base.path(), 1, "t.stdout.0").ends_with("got\n"));
    let left = std::fs::read_dir(base.path().join("client/plugin_outputs")).unwrap().count();
    assert_eq!(left, 0, "nothing copies what nobody writes");

    servers.assign(alloc(2, "service", json!([hello("exec tail -f /dev/null")])));
    servers.await_status(&alloc_id(2), "running");
    servers.stop(&alloc_id(2));
    servers.await_status(&alloc_id(2), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_refuses_is_said_as_it_says_it() {
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let agent = start(base.settings("hello-plugin", &[], json!({})), &servers).await;
    let unknown = json!({"Name": "t", "Driver": "hello", "Config": {"command": "x", "comand": "y"}});
    for (id, task, text) in [
        (1, unknown, "driver hello has no config key \"comand\""),
        (2, json!({"Name": "t", "Driver": "hello", "Config": {}}), "config key \"command\" is required"),
        (3, hello("refuse"), "this cannot be started"),
        (4, hello("retry"), "not now"),
    ] {
        servers.assign(alloc(id, "service", json!([task])));
        let failed = servers.await_status(&alloc_id(id), "failed");
        assert!(said(&failed.task_states["t"], text), "{text}: {:?}", failed.task_states["t"].events);
    }
    let left = std::fs::read_dir(base.path().join("client/plugin_outputs")).unwrap().count();
    assert_eq!(left, 0);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_on_when_its_plugin_is_killed_and_when_its_agent_is_restarted() {
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let settings = base.settings("hello-plugin", &[], json!({}));
    let agent = start(settings.clone(), &servers).await;
    let script = "echo begun; trap 'echo term; exit 0' TERM; while :; do echo tick; sleep 0.02; done";
    servers.assign(alloc(1, "service", json!([hello(script)])));
    servers.await_status(&alloc_id(1), "running");
    let first = base.process("hello-plugin").unwrap();
    process::signal(first.pid, Signal::SIGKILL).unwrap();
    let second =
        eventually("another plugin", || base.process("hello-plugin").filter(|found| *found != first));
    let ticks = || log(base.path(), 1, "t.stdout.0").lines().count();
    let before = ticks();
    eventually("more output", || (ticks() > before + 5).then_some(()));
    let task = agent.local().allocs.get(&alloc_id(1)).unwrap();
    // Found again: the new plugin knows it.
    eventually_async(async || {
        let running = task.tasks.running("t")?;
        running.inspect().await.attributes.contains_key("pid").then_some(())
    })
    .await;
    drop(task);
    agent.shutdown().await;

    assert!(second.is_alive(), "a plugin outlives its agent");
    let before = ticks();
    eventually("output without an agent", || (ticks() > before + 5).then_some(()));
    let agent = start(settings.clone(), &servers).await;
    assert_eq!(base.process("hello-plugin"), Some(second.clone()), "it was found again");
    eventually("the task is found again", || {
        agent.local().allocs.get(&alloc_id(1))?.tasks.running("t").map(drop)
    });
    let state = servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    assert_eq!((state.restarts, kinds(&state).contains(&"Terminated")), (0, false), "{state:?}");
    assert!(log(base.path(), 1, "t.stdout.0").matches("begun").count() == 1);
    agent.shutdown().await;

    // While there is no agent, the plugin dies; and its configuration changes.
    process::signal(second.pid, Signal::SIGKILL).unwrap();
    let mut settings = settings;
    settings.external_plugins.get_mut("hello-plugin").unwrap().config.insert("greeting".into(), json!("new"));
    let agent = start(settings, &servers).await;
    eventually("the task is found again", || {
        agent.local().allocs.get(&alloc_id(1))?.tasks.running("t").map(drop)
    });
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    let output = log(base.path(), 1, "t.stdout.0");
    assert!(output.ends_with("term\n") && output.matches("begun").count() == 1, "it was never started anew");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_with_another_configuration_is_started_anew() {
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let mut settings = base.settings("hello-plugin", &[], json!({}));
    let agent = start(settings.clone(), &servers).await;
    let first = base.process("hello-plugin").unwrap();
    agent.shutdown().await;
    settings.external_plugins.get_mut("hello-plugin").unwrap().config.insert("greeting".into(), json!("new"));
    let agent = start(settings, &servers).await;
    assert!(base.process("hello-plugin") != Some(first.clone()) && !first.is_alive());
    eventually("its new configuration", || {
        let registered = servers.cluster.lock().unwrap().registered.last().cloned()?;
        (registered.attributes.get("driver.hello.greeting")? == "new").then_some(())
    });
    agent.shutdown().await;
    let second = base.process("hello-plugin").unwrap();
    assert!(second.is_alive());
    let agent = start(crate::support::settings(base.path()), &servers).await;
    assert!(!second.is_alive() && base.process("hello-plugin").is_none(), "no block names it any more");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_cannot_be_used_stops_the_agent_and_is_named() {
    let failed = async |base: &PluginBase, settings: NodeSettings| {
        let error = node::Agent::start(settings, |_| FakeServers::new()).await.unwrap_err().to_string();
        let left = [base.process("hello-plugin"), base.copier("hello-plugin")];
        assert!(!left.iter().flatten().any(ProcessIdentity::is_alive), "nothing is left of it");
        error
    };
    let base = PluginBase::new();
    let unknown = base.settings("hello-plugin", &[], json!({"greting": "x"}));
    let error = failed(&base, unknown).await;
    assert_eq!(error, "plugin \"hello-plugin\": plugin hello-plugin has no config key \"greting\"");

    let base = PluginBase::new();
    let wrong = base.settings("hello-plugin", &[], json!({}));
    base.script("hello-plugin", "echo 'usage: hello' ; exit 1");
    let error = failed(&base, wrong).await;
    assert!(error.contains("expected a handshake like 1|2|unix|/path|grpc, not \"usage: hello\""), "{error}");

    let base = PluginBase::new();
    let mut missing = base.settings("hello-plugin", &[], json!({}));
    missing.external_plugins.insert("lxc".into(), ExternalPlugin::default());
    let error = failed(&base, missing).await;
    assert!(error.starts_with("plugin \"lxc\": no driver of this program has that name"), "{error}");
}

/// What the servers know of the first device group of the node.
fn devices(servers: &FakeServers) -> Vec<(String, bool)> {
    let node = servers.cluster.lock().unwrap().registered.last().cloned().unwrap_or_default();
    let groups = node.node_resources.map(|resources| resources.devices).unwrap_or_default();
    let devices = groups.iter().flat_map(|group| group.instances.iter());
    devices.map(|device| (device.id.clone(), device.healthy)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_of_a_plugin_are_of_the_node_and_its_tasks() {
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let file = base.path().join("devices");
    std::fs::write(&file, "d1\nd2\n").unwrap();
    let mut settings = base.settings("hello-device", &["device", file.to_str().unwrap()], json!({}));
    settings.dev = true;
    let agent = start(settings, &servers).await;
    let healthy = |ids: &[(&str, bool)]| ids.iter().map(|(id, ok)| (id.to_string(), *ok)).collect::<Vec<_>>();
    let first = servers.cluster.lock().unwrap().registered.first().cloned();
    eventually("devices", || (devices(&servers) == healthy(&[("d1", true), ("d2", true)])).then_some(()));
    if let Some(first) = first {
        assert_eq!(first.node_resources.unwrap().devices.len(), 1, "the first registration has them");
    }
    let node = servers.cluster.lock().unwrap().registered.last().cloned().unwrap();
    let group = node.node_resources.unwrap().devices[0].clone();
    assert_eq!((group.vendor.as_str(), group.kind.as_str(), group.name.as_str()), ("acme", "greeter", "g1"));
    assert_eq!((group.attributes["memory"].int, group.attributes["memory"].unit.as_str()), (Some(8), "GiB"));

    let given = |id: u8, devices: Value, task: Value| {
        let mut alloc = alloc(id, "batch", json!([task]));
        let granted = json!({"Vendor": "acme", "Type": "greeter", "Name": "g1", "DeviceIDs": devices});
        let granted = json!({"Tasks": {"t": {"Cpu": {}, "Memory": {}, "Devices": [granted]}}, "Shared": {}});
        alloc.allocated_resources = serde_json::from_value(granted).unwrap();
        alloc
    };
    let mut task = shell("t", "echo $ACME_VISIBLE_DEVICES");
    task["Resources"] = json!({"Devices": [{"Name": "greeter", "Count": 2}]});
    servers.assign(given(1, json!(["d1", "d2"]), task));
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "d1,d2\n");
    servers.assign(given(2, json!(["d9"]), shell("t", "true")));
    let failed = servers.await_status(&alloc_id(2), "failed");
    assert!(said(&failed.task_states["t"], "no device d9"), "{:?}", failed.task_states["t"].events);

    if nix::unistd::geteuid().is_root() {
        let script = "cat /etc/acme; echo $ACME_VISIBLE_DEVICES; test -c /dev/acme0 && echo x > /dev/acme0 && echo device";
        let isolated = json!({
            "Name": "t", "Driver": "exec", "Config": {"command": "/bin/sh", "args": ["-c", script]}
        });
        servers.assign(given(3, json!(["d2"]), isolated));
        servers.await_status(&alloc_id(3), "complete");
        assert_eq!(log(base.path(), 3, "t.stdout.0"), "d1\nd2\nd2\ndevice\n");
    } else {
        println!("SKIPPED: device files of isolated tasks need root");
    }

    std::fs::write(&file, "d1\nd2 sick\n").unwrap();
    eventually("a sick device", || {
        (devices(&servers) == healthy(&[("d1", true), ("d2", false)])).then_some(())
    });
    let stats = eventually_async(async || {
        let stats = agent.local().context.plugins.devices.stats();
        stats.first().is_some_and(|group| group.instance_stats.len() == 2).then_some(stats)
    })
    .await;
    let summary = stats[0].instance_stats["d1"].summary.clone().unwrap();
    assert_eq!((summary.int_numerator_val, summary.unit.as_str()), (Some(3), "greetings"));

    let first = base.process("hello-device").unwrap();
    process::signal(first.pid, Signal::SIGKILL).unwrap();
    std::fs::write(&file, "d3\n").unwrap();
    eventually("the devices of the next plugin", || {
        (devices(&servers) == healthy(&[("d3", true)])).then_some(())
    });
    let last = base.process("hello-device").unwrap();
    let copier = base.copier("hello-device").unwrap();
    assert!(last != first && copier.is_alive());
    agent.shutdown().await;
    assert!(!last.is_alive() && !copier.is_alive(), "in development nothing is left");
}

/// Where the gate keeps what it has brought from elsewhere.
fn foreign() -> std::path::PathBuf {
    Path::new(env!("CARGO_BIN_EXE_hello-plugin")).ancestors().nth(2).unwrap().join("foreign")
}

/// A Python that has what the plugin in Python needs: that of the gate's clients, or the host's.
fn python() -> Option<std::path::PathBuf> {
    let candidates = [foreign().join("bin/python"), "python3".into()];
    candidates.into_iter().find(|python| {
        let mut command = std::process::Command::new(python);
        command.args(["-c", "import grpc, grpc_tools"]).stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_shares_no_code_with_the_agent_is_understood() {
    let Some(python) = python() else {
        println!(
            "SKIPPED a_plugin_that_shares_no_code_with_the_agent_is_understood: no Python with grpcio-tools"
        );
        return;
    };
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let settings = base.settings("hello-python", &[], json!({"greeting": "ciao"}));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugin/hello.py");
    base.script("hello-python", &format!("exec {} {}", python.display(), program.display()));
    let agent = start(settings, &servers).await;
    let node = eventually("a registration", || servers.cluster.lock().unwrap().registered.last().cloned());
    assert!(node.drivers["hello-python"].healthy);
    assert_eq!(node.attributes["driver.hello-python.greeting"], "ciao");
    let task = |config: Value| json!({"Name": "t", "Driver": "hello-python", "Config": config});
    let config = json!({"command": "echo $CONFIG; echo err >&2; exit 4", "labels": [{"a": "b"}, {"c": 1}]});
    servers.assign(alloc(1, "batch", json!([task(config)])));
    let failed = servers.await_status(&alloc_id(1), "failed");
    assert!(said(&failed.task_states["t"], "Exit Code: 4"), "{:?}", failed.task_states["t"].events);
    let config = "{\"command\": \"echo $CONFIG; echo err >&2; exit 4\", \"labels\": [{\"a\": \"b\"}, {\"c\": \"1\"}], \
                  \"volume\": {\"level\": 7}}\n";
    assert_eq!(log(base.path(), 1, "t.stdout.0"), config);
    assert_eq!(log(base.path(), 1, "t.stderr.0"), "err\n");
    let wrong = json!({"command": "x", "volume": {"level": "high"}});
    servers.assign(alloc(2, "batch", json!([task(wrong)])));
    let failed = servers.await_status(&alloc_id(2), "failed");
    let text = "config key \"volume.level\" must be a number, not \"high\"";
    assert!(said(&failed.task_states["t"], text), "{:?}", failed.task_states["t"].events);
    servers.assign(alloc(3, "service", json!([task(json!({"command": "exec tail -f /dev/null"}))])));
    servers.await_status(&alloc_id(3), "running");
    servers.stop(&alloc_id(3));
    servers.await_status(&alloc_id(3), "complete");
    agent.shutdown().await;
}

/// The library of stock plugins.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_on_go_plugin_is_understood() {
    let program = foreign().join("hello-go");
    if !program.is_file() {
        println!(
            "SKIPPED a_plugin_on_go_plugin_is_understood: client/foreign/run builds it where there is Go"
        );
        return;
    }
    let (base, servers) = (PluginBase::new(), FakeServers::new());
    let settings = base.settings("hello-go", &[], json!({"greeting": "hoi"}));
    let messages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugin/proto");
    base.script("hello-go", &format!("exec {} {}", program.display(), messages.display()));
    let agent = start(settings.clone(), &servers).await;
    let task = |config: Value| json!({"Name": "t", "Driver": "hello-go", "Config": config});
    servers.assign(alloc(1, "batch", json!([task(json!({"command": "echo $CONFIG; exit 4"}))])));
    let failed = servers.await_status(&alloc_id(1), "failed");
    assert!(said(&failed.task_states["t"], "Exit Code: 4"), "{:?}", failed.task_states["t"].events);
    let expected = "{\"args\":null,\"command\":\"echo $CONFIG; exit 4\"}\n";
    assert_eq!(log(base.path(), 1, "t.stdout.0"), expected);
    let written = base.path().join("client/plugins/hello-go/stderr.0");
    eventually("its log", || {
        let written = std::fs::read_to_string(&written).unwrap_or_default();
        (written.contains("\"@message\":\"configured\"") && written.contains("hoi")).then_some(())
    });

    servers.assign(alloc(2, "service", json!([task(json!({"command": "exec tail -f /dev/null"}))])));
    servers.await_status(&alloc_id(2), "running");
    agent.shutdown().await;
    let running = base.process("hello-go").unwrap();
    assert!(running.is_alive(), "a plugin outlives its agent");
    let agent = start(settings, &servers).await;
    assert_eq!(base.process("hello-go"), Some(running), "it was found again");
    eventually("the task is found again", || {
        agent.local().allocs.get(&alloc_id(2))?.tasks.running("t").map(drop)
    });
    servers.stop(&alloc_id(2));
    servers.await_status(&alloc_id(2), "complete");
    agent.shutdown().await;
}
