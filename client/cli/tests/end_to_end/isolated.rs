//! A job of isolated processes, as its users run it.

use std::path::{Path, PathBuf};

use crate::end_to_end::support::{AgentConfig, eventually, until};

/// A task that says where it is and stays.
const JOB: &str = r#"job "apart" {
  group "g" {
    task "t" {
      driver = "exec"
      config {
        command  = "sh"
        args     = ["-c", "echo $NOMAD_TASK_DIR $$ $(id -un); wc -c < /etc/shadow; ls /opt/given; trap 'exit 0' INT; while :; do sleep 0.1; done"]
        cap_drop = ["all"]
      }
      resources {
        cpu    = 50
        memory = 64
      }
    }
  }
}
"#;

fn skipped(test: &str) -> bool {
    let skipped = !rustix::process::geteuid().is_root();
    if skipped {
        eprintln!("skipped: {test} needs root");
    }
    skipped
}

/// The first process of the task, by its control group.
fn shell_of(alloc: &str) -> Option<i32> {
    let read =
        |pid: i32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid| read(*pid, "cgroup").contains(alloc) && read(*pid, "cmdline").contains("\0-c\0"))
}

#[test]
fn a_job_of_isolated_processes_is_run_entered_found_again_and_stopped() {
    if skipped("a_job_of_isolated_processes") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let given = directory.path().join("given");
    std::fs::create_dir(&given).unwrap();
    std::fs::write(given.join("file"), "x").unwrap();
    let usual =
        ["/bin", "/etc", "/lib", "/lib64", "/usr"].map(|path| format!("    \"{path}\" = \"{path}\"\n"));
    let block = format!(
        "client {{\n  cgroup_parent = \"sojourn-end-to-end\"\n  chroot_env {{\n{}    \"{}\" = \"/opt/given\"\n  }}\n}}\n\
         plugin \"exec\" {{\n  config {{\n    allow_caps = [\"chown\"]\n  }}\n}}\n",
        usual.concat(),
        given.display()
    );
    let config = AgentConfig::server_and_client(directory.path(), "one").with(&block);
    let agent = config.start();
    agent.wait_for_a_ready_node();
    let file = directory.path().join("apart.nomad.hcl");
    std::fs::write(&file, JOB).unwrap();
    let validated = agent.run(&["job", "validate", file.to_str().unwrap()]).expect_success();
    assert!(!validated.contains("ignored"), "{validated}");
    agent.run(&["job", "run", file.to_str().unwrap()]).expect_success();
    let alloc = agent.running("apart");
    let said = eventually("the task says something", || {
        let said = agent.run(&["alloc", "logs", &alloc[..8]]).expect_success();
        said.ends_with("file\n").then_some(said)
    });
    assert_eq!(said, "/local 1 nobody\n0\nfile\n");

    let script = "echo $(id -un) > /local/who; cat /local/who; grep CapPrm /proc/self/status; exit 7";
    let exec = ["alloc", "exec", "-i=false", "-t=false", &alloc[..8], "sh", "-c", script];
    let ran = agent.run(&exec);
    assert_eq!((ran.code, ran.stdout.as_str()), (7, "nobody\nCapPrm:\t0000000000000000\n"), "{}", ran.stderr);
    let kept = agent.run(&["alloc", "fs", "-stat=false", &alloc[..8], "t/local/who"]);
    assert_eq!(kept.expect_success(), "nobody\n");

    let process = shell_of(&alloc).unwrap();
    let agent = agent.kill().start();
    agent.wait_for_a_ready_node();
    assert_eq!(shell_of(&alloc), Some(process), "a kill of the agent spares the task");
    let again = agent.run(&exec);
    assert_eq!(again.code, 7, "{}", again.stderr);
    agent.run(&["job", "stop", "apart"]).expect_success();
    until("the task has ended", || {
        agent.get(&format!("/v1/allocation/{alloc}"))["ClientStatus"] == "complete"
    });
    assert_eq!(shell_of(&alloc), None);
    drop(agent);
    for tree in ["", "cpu", "cpuset", "freezer", "memory"] {
        let parent = Path::new("/sys/fs/cgroup").join(tree).join("sojourn-end-to-end");
        for group in ["share", "reserve", "share.slice", "reserve.slice", ""] {
            std::fs::remove_dir(parent.join(group)).ok();
        }
    }
}

#[test]
fn the_example_is_run_to_its_end() {
    if skipped("the_example_is_run_to_its_end") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").start();
    agent.wait_for_a_ready_node();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/exec.nomad.hcl");
    agent.run(&["job", "run", example.to_str().unwrap()]).expect_success();
    until("the task has ended well", || {
        agent.allocs("apart").first().is_some_and(|alloc| alloc["ClientStatus"] == "complete")
    });
}
