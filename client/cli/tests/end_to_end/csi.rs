//! A storage plugin and its volumes, as their users run them.

use serde_json::Value;

use crate::end_to_end::support::{AgentConfig, eventually, until};

#[path = "../../../csi/tests/all/plugin.rs"]
mod plugin;

/// This program, called again by a task: the plugin.
#[test]
#[ignore = "a task's process, no test"]
fn serve() {
    let (Ok(endpoint), Ok(dir)) = (std::env::var("CSI_ENDPOINT"), std::env::var("CSI_TEST_DIR")) else {
        return;
    };
    let socket = endpoint.strip_prefix("unix://").unwrap().to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(plugin::serve(socket.as_ref(), dir.as_ref()));
}

#[test]
fn a_volume_of_a_plugin_is_made_used_kept_as_a_snapshot_and_deleted() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a_volume_of_a_plugin needs root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let storage = directory.path().join("storage");
    std::fs::create_dir(&storage).unwrap();
    let agent = AgentConfig::development(directory.path(), "agent").start();
    agent.wait_for_a_ready_node();
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let program = std::env::current_exe().unwrap();
    let plugin =
        file("plugin.nomad.hcl", plugin_job(&program.display().to_string(), &storage.display().to_string()));
    agent.run(&["job", "run", "-detach", &plugin]).expect_success();
    let seen = |path: &str| agent.get(path);
    until("the plugin is healthy", || {
        let known = seen("/v1/plugins?type=csi");
        known[0]["NodesHealthy"] == 1 && known[0]["ControllersHealthy"] == 1
    });
    let shown = agent.run(&["plugin", "status", "dirs"]).expect_success();
    assert!(shown.contains("dirs.test") && shown.contains("plugin"), "{shown}");

    let volume = file("volume.hcl", VOLUME.to_string());
    let made = agent.run(&["volume", "create", &volume]).expect_success();
    assert_eq!(made, "Created external volume ext-data with ID data\n");
    // They are a variable, and nowhere else.
    assert_eq!(seen("/v1/volume/csi/data")["Secrets"], Value::Null);
    assert_eq!(seen("/v1/var/csi/data")["Items"]["key"], plugin::SECRET);
    let events = agent.run(&["events", "-since", "1h", "-to", "now", "-json"]).expect_success();
    assert!(events.contains("CSIVolumeRegistered") && !events.contains(plugin::SECRET), "{events}");
    let snapshot = agent.run(&["volume", "snapshot", "create", "data", "monday"]).expect_success();
    assert!(snapshot.contains("snap-monday"), "{snapshot}");
    let listed = agent.run(&["volume", "snapshot", "list", "-plugin=dirs"]).expect_success();
    assert!(listed.contains("ext-data"), "{listed}");
    agent.run(&["volume", "snapshot", "delete", "dirs", "snap-monday"]).expect_success();
    let external = seen("/v1/volumes/external?plugin_id=dirs");
    assert_eq!(external["Volumes"][0]["ExternalID"], "ext-data");

    let user = file("user.nomad.hcl", USER.to_string());
    agent.run(&["job", "run", "-detach", &user]).expect_success();
    let greeting = storage.join("volumes/ext-data/greeting");
    eventually("the task has written to its volume", || {
        std::fs::read_to_string(&greeting).ok().filter(|text| !text.is_empty())
    });
    let attached = storage.join(format!("attached/ext-data@{}", plugin::NODE_ID));
    assert!(attached.exists(), "the controller has attached it");
    let volume = seen("/v1/volume/csi/data");
    assert_eq!(volume["WriteAllocs"].as_object().map(|allocs| allocs.len()), Some(1), "{volume}");
    let refused = agent.run(&["volume", "delete", "data"]).expect_failure();
    assert!(refused.contains("in use"), "{refused}");
    let node = seen("/v1/nodes")[0]["ID"].as_str().unwrap().to_string();
    let refused = agent.run(&["volume", "detach", "data", &node]).expect_failure();
    assert!(refused.contains("stop it first"), "{refused}");

    // Made larger while it is in use.
    let larger = file("larger.hcl", VOLUME.replace("capacity_min = \"1MiB\"", "capacity_min = \"2MiB\""));
    agent.run(&["volume", "create", &larger]).expect_success();
    assert_eq!(seen("/v1/volume/csi/data")["Capacity"], 2 << 20);

    let runs = || {
        let allocs = seen("/v1/job/user/allocations");
        allocs.as_array().is_some_and(|all| all.iter().any(|alloc| alloc["ClientStatus"] == "running"))
    };
    agent.run(&["job", "stop", "-detach", "user"]).expect_success();
    until("it is detached", || !runs() && !attached.exists());

    // Made larger while nobody has it: the next one to mount it expands it, and no other.
    let largest = file("largest.hcl", VOLUME.replace("capacity_min = \"1MiB\"", "capacity_min = \"3MiB\""));
    agent.run(&["volume", "create", &largest]).expect_success();
    for _ in 0..2 {
        agent.run(&["job", "run", "-detach", &user]).expect_success();
        until("it runs again", runs);
        agent.run(&["job", "stop", "-detach", "user"]).expect_success();
        until("it is detached", || !runs() && !attached.exists());
    }
    until("nobody has it", || agent.run(&["volume", "delete", "data"]).code == 0);
    assert!(!greeting.exists(), "what was stored is gone");
    assert_eq!(seen("/v1/volumes?type=csi"), Value::Array(vec![]));
    let calls = std::fs::read_to_string(storage.join("calls")).unwrap();
    let order = [
        "CreateVolume ext-data",
        "CreateSnapshot snap-monday of ext-data",
        "DeleteSnapshot snap-monday",
        "ControllerPublishVolume ext-data",
        "NodeStageVolume ext-data",
        "NodePublishVolume ext-data",
        "ControllerExpandVolume ext-data 2097152",
        "NodeExpandVolume ext-data 2097152",
        "NodeUnpublishVolume ext-data",
        "NodeUnstageVolume ext-data",
        "ControllerUnpublishVolume ext-data",
        "ControllerExpandVolume ext-data 3145728",
        "NodeStageVolume ext-data",
        "NodePublishVolume ext-data",
        "NodeExpandVolume ext-data 3145728",
        "NodeUnpublishVolume ext-data",
        "ControllerUnpublishVolume ext-data",
        "NodePublishVolume ext-data",
        "DeleteVolume ext-data",
    ];
    let mut lines = calls.lines();
    for wanted in order {
        assert!(lines.any(|line| line.starts_with(wanted)), "{wanted} is missing or late:\n{calls}");
    }
    let expanded = calls.lines().filter(|line| line.starts_with("NodeExpandVolume"));
    assert_eq!(expanded.count(), 2, "{calls}");
}

fn plugin_job(program: &str, storage: &str) -> String {
    format!(
        r#"job "plugin" {{
  type = "system"
  group "g" {{
    task "t" {{
      driver = "raw_exec"
      config {{
        command = "{program}"
        args    = ["--exact", "end_to_end::csi::serve", "--ignored", "--nocapture"]
      }}
      env {{
        CSI_TEST_DIR = "{storage}"
      }}
      csi_plugin {{
        id   = "dirs"
        type = "monolith"
      }}
      resources {{
        cpu    = 50
        memory = 64
      }}
    }}
  }}
}}
"#
    )
}

const VOLUME: &str = r#"id        = "data"
name      = "data"
type      = "csi"
plugin_id = "dirs"

capacity_min = "1MiB"

# The plugin makes no volume without its secret.
parameters = {
  secret = "yes"
}
secrets = {
  key = "opensesame"
}

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
"#;

const USER: &str = r#"job "user" {
  group "g" {
    volume "v" {
      type            = "csi"
      source          = "data"
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }
    task "t" {
      driver = "exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo hello > /data/greeting; trap 'exit 0' INT TERM; while :; do sleep 0.1; done"]
      }
      volume_mount {
        volume      = "v"
        destination = "/data"
      }
      resources {
        cpu    = 50
        memory = 64
      }
    }
  }
}
"#;
