//! A job of containers, as its users run it.

use std::path::PathBuf;

use crate::end_to_end::support::engine::{self, IMAGE};
use crate::end_to_end::support::{AgentConfig, eventually, until};

/// A container that says where its files are, and stays.
fn job() -> String {
    format!(
        r#"job "boxed" {{
  group "g" {{
    network {{
      port "http" {{ to = 80 }}
    }}
    task "t" {{
      driver       = "docker"
      kill_timeout = "2s"
      config {{
        image        = "{IMAGE}"
        network_mode = "none"
        command      = "/bin/sh"
        args         = ["-c", "echo $NOMAD_TASK_DIR on ${{node.unique.name}} $COLOUR; trap 'exit 0' TERM; while :; do sleep 0.1; done"]
        ports        = ["http"]
        labels {{
          colour = "${{NOMAD_META_colour}}"
        }}
        mount {{
          type   = "tmpfs"
          target = "/fast"
          tmpfs_options {{ size = 65536 }}
        }}
        mount {{
          type   = "bind"
          source = "local"
          target = "/own"
        }}
      }}
      env {{ COLOUR = "red" }}
      meta {{ colour = "blue" }}
      resources {{
        cpu    = 50
        memory = 32
      }}
    }}
  }}
}}
"#
    )
}

#[test]
fn a_job_of_containers_is_run_entered_and_stopped() {
    let Some(engine) = engine::shared("a_job_of_containers") else { return };
    let directory = tempfile::tempdir().unwrap();
    let block = format!(
        "plugin \"docker\" {{\n  config {{\n    endpoint = \"{}\"\n    extra_labels = [\"job_name\"]\n    \
         gc {{\n      image = false\n      dangling_containers {{\n        period = \"1m\"\n      }}\n    }}\n  }}\n}}\n",
        engine.endpoint()
    );
    let agent = AgentConfig::server_and_client(directory.path(), "one").with(&block).start();
    agent.wait_for_a_ready_node();
    let node = agent.get("/v1/nodes")[0]["ID"].as_str().unwrap().to_string();
    let shown = agent.run(&["node", "status", "-verbose", &node[..8]]).expect_success();
    assert!(shown.contains("driver.docker.version"), "{shown}");

    let file = directory.path().join("boxed.nomad.hcl");
    std::fs::write(&file, job()).unwrap();
    agent.run(&["job", "validate", file.to_str().unwrap()]).expect_success();
    agent.run(&["job", "run", file.to_str().unwrap()]).expect_success();
    let alloc = agent.running("boxed");
    let said = eventually("the task says something", || {
        let said = agent.run(&["alloc", "logs", &alloc[..8]]).expect_success();
        (!said.is_empty()).then_some(said)
    });
    assert_eq!(said, "/local on one red\n");
    let found = engine.containers(&alloc);
    let labels = found[0].labels.clone().unwrap();
    assert_eq!(
        (labels["colour"].as_str(), labels["com.hashicorp.nomad.job_name"].as_str()),
        ("blue", "boxed")
    );
    assert_eq!(found[0].names.as_ref().unwrap(), &[format!("/t-{alloc}")]);

    let script = "echo hello > /own/file; cat /local/file; ls -d /fast; exit 7";
    let ran = agent.run(&["alloc", "exec", "-i=false", &alloc[..8], "/bin/sh", "-c", script]);
    assert_eq!((ran.code, ran.stdout.as_str()), (7, "hello\n/fast\n"), "{}", ran.stderr);
    let kept = agent.run(&["alloc", "fs", "-stat=false", &alloc[..8], "t/local/file"]);
    assert_eq!(kept.expect_success(), "hello\n");

    agent.run(&["alloc", "restart", &alloc[..8]]).expect_success();
    until("another container", || {
        let now = engine.containers(&alloc);
        now.len() == 1 && now[0].id != found[0].id
    });
    agent.run(&["job", "stop", "boxed"]).expect_success();
    until("the task has ended", || {
        agent.get(&format!("/v1/allocation/{alloc}"))["ClientStatus"] == "complete"
    });
    assert!(engine.containers(&alloc).is_empty());
}

#[test]
fn the_example_is_a_valid_job() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").start();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/docker.nomad.hcl");
    agent.run(&["job", "validate", example.to_str().unwrap()]).expect_success();
}
