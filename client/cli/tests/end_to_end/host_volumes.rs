//! Volumes that are made on nodes while they run.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::end_to_end::support::{AgentConfig, eventually, job, text, until};

/// A plugin that makes directories elsewhere, and writes down what it was asked.
const PLUGIN: &str = "#!/bin/sh\n\
    echo \"$1 $DHV_OPERATION $DHV_VOLUME_NAME $DHV_PARAMETERS $DHV_CREATED_PATH\" >> \"$DHV_PLUGIN_DIR/asked.log\"\n\
    case $1 in\n\
    fingerprint) echo '{\"version\": \"1.2.3\"}' ;;\n\
    create) [ \"$DHV_VOLUME_NAME\" = bad ] && { echo '{\"error\": \"no room\"}'; exit 0; }\n\
      mkdir -p \"$DHV_VOLUMES_DIR/x-$DHV_VOLUME_ID\"\n\
      echo \"{\\\"path\\\": \\\"$DHV_VOLUMES_DIR/x-$DHV_VOLUME_ID\\\", \\\"bytes\\\": 4096}\" ;;\n\
    delete) rm -r \"$DHV_CREATED_PATH\" && echo '{}' ;;\n\
    esac\n";

#[test]
fn host_volumes_are_made_used_found_again_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server_and_client(directory.path(), "agent");
    let plugins = config.home.join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    std::fs::write(plugins.join("shelf"), PLUGIN).unwrap();
    std::fs::set_permissions(plugins.join("shelf"), PermissionsExt::from_mode(0o755)).unwrap();
    let block = format!("client {{\n  host_volume_plugin_dir = \"{}\"\n}}\n", plugins.display());
    let config = config.with(&block);
    let agent = config.start();
    agent.wait_for_a_ready_node();
    let node = text(&agent.get("/v1/nodes")[0]["ID"]);
    let attributes = agent.get(&format!("/v1/node/{node}"))["Attributes"].clone();
    assert_eq!(attributes["plugins.host_volume.mkdir.version"], "0.0.1");
    assert_eq!(attributes["plugins.host_volume.shelf.version"], "1.2.3");

    let file = |name: &str, plugin: &str, more: &str| {
        let path = directory.path().join(format!("{name}.hcl"));
        let text = format!(
            "name = \"{name}\"\ntype = \"host\"\nplugin_id = \"{plugin}\"\n\
             capability {{\n  access_mode = \"single-node-writer\"\n  attachment_mode = \"file-system\"\n}}\n{more}"
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let create = |file: &str| agent.run(&["volume", "create", file]);
    let created = create(&file("data", "mkdir", "parameters {\n  mode = \"0750\"\n}\n")).expect_success();
    assert!(
        created.starts_with("==> Created host volume data with ID ") && created.ends_with(" ready\n"),
        "{created}"
    );
    create(&file("shelf", "shelf", "parameters {\n  depth = \"3\"\n}\n")).expect_success();
    let by_name = |name: &str| -> Option<Value> {
        let volumes = agent.get("/v1/volumes?type=host");
        volumes.as_array().unwrap().iter().find(|volume| volume["Name"] == name).cloned()
    };
    let (data, shelf) = (text(&by_name("data").unwrap()["ID"]), text(&by_name("shelf").unwrap()["ID"]));
    let path = config.home.join("data/client/host_volumes").join(&data);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(by_name("shelf").unwrap()["CapacityBytes"], 4096);

    // What cannot be made says why, and leaves nothing behind.
    for (name, plugin, more, why) in [
        ("bad", "shelf", "", "no room"),
        ("worse", "mkdir", "parameters {\n  mode = \"9\"\n}\n", "expected rights in octal"),
        ("none", "nothing", "", "has no host volume plugin nothing"),
        (
            "far",
            "mkdir",
            "constraint {\n  attribute = \"${attr.kernel.name}\"\n  value = \"plan9\"\n}\n",
            "does not meet",
        ),
        ("data", "mkdir", "", "has a volume data already"),
    ] {
        let refused = create(&file(name, plugin, more)).expect_failure();
        assert!(refused.contains(why), "{name}: {refused}");
    }
    assert_eq!(agent.get("/v1/volumes?type=host").as_array().unwrap().len(), 2);

    // A job uses one; it is not removed under it.
    let mut user = job("user", json!({"command": "/bin/sleep", "args": ["600"]}));
    user["TaskGroups"][0]["Volumes"] = json!({"v": {"Name": "v", "Type": "host", "Source": "data"}});
    agent.register(&user);
    agent.running("user");
    let refused = agent.run(&["volume", "delete", "-type=host", &data]).expect_failure();
    assert!(refused.contains("in use"), "{refused}");
    let shown = agent.run(&["volume", "status", "-type=host", &data[..8]]).expect_success();
    assert!(shown.contains("ready") && shown.contains("user"), "{shown}");

    // The next agent offers them again.
    std::fs::write(path.join("kept"), "1").unwrap();
    agent.kill();
    let agent = config.start();
    let state = |id: &str| agent.get(&format!("/v1/volume/host/{id}"))["State"].clone();
    until("they are there again", || state(&data) == "ready" && state(&shelf) == "ready");
    assert!(path.join("kept").is_file());

    agent.run(&["job", "stop", "-detach", "user"]).expect_success();
    until("nobody uses it", || agent.run(&["volume", "delete", "-type=host", &data]).code == 0);
    agent.run(&["volume", "delete", "-type=host", &shelf]).expect_success();
    assert!(!path.exists() && !path.with_file_name(format!("x-{shelf}")).exists());
    eventually("the node does not offer them", || {
        let offered = agent.get(&format!("/v1/node/{node}"))["HostVolumes"].clone();
        offered.as_object().is_none_or(|offered| offered.is_empty()).then_some(())
    });
    assert_eq!(agent.run(&["volume", "status", "-type=host"]).expect_success(), "No volumes found\n");
    let asked = std::fs::read_to_string(plugins.join("asked.log")).unwrap();
    assert!(asked.contains("create create shelf {\"depth\":\"3\"}"), "{asked}");
    assert!(asked.contains("delete delete shelf"), "{asked}");
}
