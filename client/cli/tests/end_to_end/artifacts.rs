//! Artifacts, from a job file to a task that runs what was fetched.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use crate::end_to_end::support::*;

/// Serves one file under every path, and returns the address.
fn web_server(content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(Result::ok).find(String::is_empty);
            let length = content.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content)).ok();
        }
    });
    format!("http://{address}")
}

#[test]
fn a_killed_agent_takes_its_downloads_along() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("source=http://{}/file", listener.local_addr().unwrap());
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/artifact.nomad.hcl");
    let checksum = format!("checksum=md5:{}", "0".repeat(32));
    let arguments = ["job", "run", "-detach", "-var", &source, "-var", &checksum, example.to_str().unwrap()];
    agent.run(&arguments).expect_success();
    let (mut stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    lines.find(|line| line.as_ref().is_ok_and(String::is_empty)).unwrap().unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc").unwrap();
    agent.kill();
    // Whoever downloads goes away, and nobody else does that.
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    assert!(
        lines.next().is_none_or(
            |line| line.is_err_and(|error| { error.kind() == std::io::ErrorKind::ConnectionReset })
        )
    );
}

#[test]
fn a_task_runs_what_was_fetched_and_a_wrong_digest_keeps_it_from_that() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("hello.sh"), "echo hello from the archive\n").unwrap();
    let archive = directory.path().join("hello.tgz");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(directory.path()).arg("-czf").arg(&archive).arg("hello.sh");
    assert!(tar.status().unwrap().success());
    let content = std::fs::read(&archive).unwrap();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &content);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let source = format!("source={}/hello.tgz", web_server(content));

    let agent = AgentConfig::development(directory.path(), "dev")
        .with(
            "client {\n  artifact {\n    http_max_size = \"1MB\"\n    http_read_timeout = \"20s\"\n  }\n}\n",
        )
        .start();
    agent.wait_for_a_ready_node();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/artifact.nomad.hcl");
    let run = |checksum: &str| {
        let checksum = format!("checksum=sha256:{checksum}");
        let example = example.to_str().unwrap();
        let ran = agent.run(&["job", "run", "-detach", "-var", &source, "-var", &checksum, example]);
        assert!(!ran.stderr.contains("Warning"), "{}", ran.stderr);
        ran.expect_success();
    };
    let alloc_with = |status: &str| {
        eventually(&format!("an allocation that is {status}"), || {
            let allocs = agent.get("/v1/job/artifact/allocations");
            let found = allocs.as_array()?.iter().find(|alloc| alloc["ClientStatus"] == status)?;
            Some(found["ID"].as_str().unwrap().to_string())
        })
    };
    run(&digest);
    let alloc = alloc_with("complete");
    assert_eq!(agent.run(&["alloc", "logs", &alloc]).stdout, "hello from the archive\n");

    agent.run(&["job", "stop", "-purge", "-detach", "artifact"]).expect_success();
    run(&"0".repeat(64));
    let event = eventually("the failed download", || {
        let allocs = agent.get("/v1/job/artifact/allocations");
        let states = allocs.as_array()?.iter().map(|alloc| alloc["TaskStates"]["hello"]["Events"].clone());
        let mut events = states.flat_map(|events| events.as_array().cloned().unwrap_or_default());
        events.find(|event| event["Type"] == "Failed Artifact Download")
    });
    let text = event["DisplayMessage"].as_str().unwrap();
    assert!(text.contains("checksums did not match: expected sha256:0000"), "{text}");
}
