//! A driver and devices that are plugins, as their users install them.

use std::path::{Path, PathBuf};

use crate::end_to_end::support::{AgentConfig, eventually};

/// The example, which is built with the tests of the node agent.
fn example() -> Option<PathBuf> {
    let example = Path::new(env!("CARGO_BIN_EXE_sojourn")).with_file_name("hello-plugin");
    if !example.is_file() {
        println!(
            "SKIPPED a_job_runs_with_a_driver_and_a_device_of_plugins: build it with cargo build -p node --bins"
        );
    }
    Some(example).filter(|example| example.is_file())
}

const JOB: &str = r#"job "plugged" {
  group "g" {
    task "greeter" {
      driver       = "hello"
      kill_timeout = "2s"
      config {
        command = "echo $ACME_VISIBLE_DEVICES; exec tail -f /dev/null"
        labels { colour = "red" }
      }
      resources {
        cpu    = 50
        memory = 32
        device "acme/greeter/g1" {
          count = 2
          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "4 GiB"
          }
        }
      }
    }
  }
}
"#;

#[test]
fn a_job_runs_with_a_driver_and_a_device_of_plugins() {
    let Some(example) = example() else { return };
    let directory = tempfile::tempdir().unwrap();
    // Where they are looked for unless the configuration says otherwise.
    let plugins = directory.path().join("one/data/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    for name in ["hello-plugin", "hello-device"] {
        std::os::unix::fs::symlink(&example, plugins.join(name)).unwrap();
    }
    let devices = directory.path().join("one/devices");
    std::fs::write(&devices, "d1\nd2\nd3 sick\nd4\nd5\n").unwrap();
    let block = format!(
        "plugin \"hello-plugin\" {{\n  config {{\n    greeting = \"hi\"\n  }}\n}}\n\
         plugin \"hello-device\" {{\n  args = [\"device\", \"{}\"]\n}}\n",
        devices.display()
    );
    let agent = AgentConfig::server_and_client(directory.path(), "one").with(&block).start();
    agent.wait_for_a_ready_node();
    let node = agent.get("/v1/nodes")[0]["ID"].as_str().unwrap().to_string();
    let shown = agent.run(&["node", "status", "-verbose", &node[..8]]).expect_success();
    assert!(shown.contains("driver.hello.greeting") && shown.contains("acme/greeter/g1"), "{shown}");

    let file = directory.path().join("plugged.nomad.hcl");
    std::fs::write(&file, JOB).unwrap();
    agent.run(&["job", "run", "-detach", file.to_str().unwrap()]).expect_success();
    let alloc = agent.running("plugged");
    let said = eventually("the task says something", || {
        let said = agent.run(&["alloc", "logs", &alloc[..8]]).expect_success();
        (!said.is_empty()).then_some(said)
    });
    let given: Vec<&str> = said.trim().split(',').collect();
    assert!(given.len() == 2 && !given.contains(&"d3"), "the sick one is not given away: {said}");
    let run = ["alloc", "exec", "-task", "greeter", &alloc[..8], "/bin/sh", "-c", "echo in $NOMAD_TASK_NAME"];
    assert_eq!(agent.run(&run).expect_success(), "in greeter\n");
    let stats = agent.get(&format!("/v1/client/stats?node_id={node}"));
    assert_eq!(stats["DeviceStats"][0]["InstanceStats"]["d1"]["Summary"]["IntNumeratorVal"], 3, "{stats}");

    let wrong = JOB.replace("labels {", "label {").replace("plugged", "wrong");
    std::fs::write(&file, wrong).unwrap();
    agent.run(&["job", "run", "-detach", file.to_str().unwrap()]).expect_success();
    eventually("what is wrong with it", || {
        let allocs = agent.get("/v1/job/wrong/allocations").to_string();
        allocs.contains("driver hello has no config key \\\"label\\\"").then_some(())
    });
}
