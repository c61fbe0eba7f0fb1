//! Variables as their users meet them, with access control on: written, conflicted, locked, gone back to, and read by a
//! task with nothing but its identity.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::{AgentConfig, CommandOutput, eventually, files_with, sojourn, text};

fn run_as(config: &AgentConfig, token: &str, words: &[&str]) -> CommandOutput {
    let mut command = config.user(&sojourn());
    command.env("NOMAD_TOKEN", token).env("NOMAD_CLI_SHOW_HINTS", "0").args(words).output().unwrap().into()
}

fn json(output: CommandOutput) -> Value {
    serde_json::from_str(&output.expect_success()).unwrap()
}

/// A batch job whose one task writes down what it gets to see: over the socket that its node makes for it, and of what its
/// node fetches for it.
fn reading_job(seen: &std::path::Path) -> String {
    let program = sojourn();
    let (program, seen) = (program.display(), seen.display());
    let script = format!(
        "export NOMAD_ADDR=$NOMAD_UNIX_ADDR; exec > {seen}.part 2>&1; \
         {program} var get -item=password nomad/jobs/reader; echo $PASSWORD $0; {program} var get app/db; \
         NOMAD_TOKEN= {program} var list; NOMAD_TOKEN=no.such.token {program} var list; \
         {program} var list -out=terse; mv {seen}.part {seen}"
    );
    format!(
        "job \"reader\" {{\n  type = \"batch\"\n  group \"g\" {{\n    task \"t\" {{\n      driver = \"raw_exec\"\n      \
         identity {{\n        env = true\n      }}\n      secret \"own\" {{\n        provider = \"nomad\"\n        \
         path = \"nomad/jobs/reader\"\n      }}\n      env {{\n        PASSWORD = \"${{secret.own.password}}\"\n        \
         NOMAD_CLI_SHOW_HINTS = \"0\"\n      }}\n      config {{\n        command = \"/bin/sh\"\n        \
         args = [\"-c\", \"{script}\", \"${{secret.own.password}}\"]\n      }}\n    }}\n  }}\n}}\n"
    )
}

#[test]
fn variables_are_kept_for_who_may_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server_and_client(directory.path(), "agent");
    let file = config.home.join("agent.hcl");
    let words = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, words + "acl {\n  enabled = true\n}\n").unwrap();
    let agent = config.start();
    let root = eventually("the cluster has a key to seal secrets with", || {
        let made = run_as(&config, "", &["acl", "bootstrap", "-json"]);
        (made.code == 0).then(|| text(&json(made)["SecretID"]))
    });
    let root = |words: &[&str]| run_as(&config, &root, words);

    root(&["var", "put", "app/db", "password=one"]).expect_success();
    assert_eq!(root(&["var", "get", "-item=password", "app/db"]).expect_success(), "one\n");
    assert_eq!(root(&["var", "list", "-out=terse"]).expect_success(), "app/db\n");
    let index = json(root(&["var", "get", "-out=json", "app/db"]))["ModifyIndex"].to_string();
    let check = format!("-check-index={index}");
    root(&["var", "put", &check, "app/db", "password=two"]).expect_success();
    let late = root(&["var", "put", &check, "app/db", "password=three"]).expect_failure();
    assert!(late.contains("Check-and-Set conflict"), "{late}");

    let history = json(root(&["var", "history", "-json", "app/db"]));
    assert_eq!(
        (&history[0]["Version"], text(&history[1]["Author"]).as_str()),
        (&Value::from(1), "Bootstrap Token")
    );
    root(&["var", "revert", "app/db", "0"]).expect_success();
    assert_eq!(root(&["var", "get", "-item=password", "app/db"]).expect_success(), "one\n");
    assert_eq!(root(&["var", "get", "-version=1", "-item=password", "app/db"]).expect_success(), "two\n");

    // Without a right, and with one elsewhere.
    let rules = directory.path().join("other.hcl");
    std::fs::write(&rules, "namespace \"default\" {\n  variables {\n    path \"other/*\" {\n      capabilities = [\"write\", \"read\"]\n    }\n  }\n}\n").unwrap();
    root(&["acl", "policy", "apply", "other", rules.to_str().unwrap()]).expect_success();
    let other = text(&json(root(&["acl", "token", "create", "-json", "-policy=other"]))["SecretID"]);
    for (token, words) in [
        ("", &["var", "list"][..]),
        ("", &["var", "get", "app/db"]),
        (&other, &["var", "get", "app/db"]),
        (&other, &["var", "put", "app/db", "a=b"]),
        (&other, &["var", "history", "app/db"]),
        (&other, &["var", "lock", "app/db", "true"]),
    ] {
        let refused = run_as(&config, token, words).expect_failure();
        assert!(refused.contains("Permission denied"), "{words:?}: {refused}");
    }
    run_as(&config, &other, &["var", "put", "other/x", "a=b"]).expect_success();

    // A task reads what its job keeps for it, and nothing else.
    root(&["var", "put", "nomad/jobs/reader", "password=for-the-task"]).expect_success();
    let (job, seen) = (directory.path().join("reader.hcl"), directory.path().join("seen"));
    std::fs::write(&job, reading_job(&seen)).unwrap();
    eventually("the node takes the job", || {
        let ran = root(&["job", "run", "-detach", job.to_str().unwrap()]);
        (ran.code == 0).then_some(())
    });
    let seen = eventually("the task has read it", || std::fs::read_to_string(&seen).ok());
    assert!(seen.starts_with("for-the-task\nfor-the-task for-the-task\n"), "{seen}");
    for refused in ["Permission denied", "401", "Unauthorized", "403", "Forbidden"] {
        assert!(seen.contains(refused), "{refused}: {seen}");
    }
    assert!(seen.ends_with("\nnomad/jobs/reader\n"), "{seen}");

    a_lock_is_held_while_a_command_runs(&config, &root);
    // No secret is on the disk of the server.
    drop(agent);
    assert_eq!(files_with(&config.home.join("data/server"), "for-the-task"), [""; 0]);
}

fn a_lock_is_held_while_a_command_runs(config: &AgentConfig, root: &dyn Fn(&[&str]) -> CommandOutput) {
    let code = root(&["var", "lock", "-ttl=10s", "app/lock", "exit 7"]).code;
    assert_eq!(code, 7, "that of the command");
    let token = text(&json(root(&["acl", "token", "create", "-json", "-type=management"]))["SecretID"]);
    let mut command = config.user(&sojourn());
    command.env("NOMAD_TOKEN", token).args(["var", "lock", "app/lock", "echo held; exec sleep 600"]);
    let mut holder = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    let refused = root(&["var", "put", "app/lock", "a=b"]).expect_failure();
    assert!(refused.contains("is locked"), "{refused}");
    root(&["var", "lock", "-early-return", "app/lock", "true"]).expect_failure();
    kill_process(Pid::from_raw(holder.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert_eq!(holder.wait().unwrap().code(), Some(1), "a signal ended the command, and is no exit code");
    // It was released at once, and not only when it would have been lost.
    root(&["var", "lock", "-early-return", "app/lock", "true"]).expect_success();
}
