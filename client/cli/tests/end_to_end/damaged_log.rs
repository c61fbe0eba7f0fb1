//! A server without peers whose log is damaged.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::end_to_end::support::{AgentConfig, CommandOutput, job, program, sojourn, until};

#[test]
fn a_single_server_with_a_damaged_log_does_not_start_until_it_is_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    agent.register(&job("first", json!({"command": "/bin/true"})));
    let whole = agent.register(&job("second", json!({"command": "/bin/true"})));
    for number in 0..20 {
        agent.register(&job(&format!("later-{number}"), json!({"command": "/bin/true"})));
    }
    agent.kill();
    let data = config.home.join("data");
    let segment = data.join("server/log/00000000000000000001.seg");
    flip_in_the_middle(&segment);

    let refused = config.fail().expect_failure();
    let advice = format!("look what can be kept with: sojourn operator log repair {}", data.display());
    assert!(refused.contains(&advice), "{refused}");
    let repair = |flags: &[&str]| -> CommandOutput {
        let words = ["operator", "log", "repair"];
        program(&sojourn()).args(words).args(flags).arg(&data).output().unwrap().into()
    };
    assert!(repair(&[]).expect_failure().contains("Nothing was changed."));
    repair(&["-accept-loss"]).expect_success();

    let agent = config.start();
    let running = repair(&[]).expect_failure();
    assert!(running.contains("the server has to be stopped first"), "{running}");
    until("it answers", || agent.get("/v1/job/second")["JobModifyIndex"] == json!(whole));
    agent.register(&job("after", json!({"command": "/bin/true"})));
}

/// A byte of what was written; behind that there are zeros, and the mark of the segment's end.
fn flip_in_the_middle(segment: &Path) {
    let mut bytes = fs::read(segment).unwrap();
    let written = bytes[..bytes.len() - 64].iter().rposition(|byte| *byte != 0).unwrap();
    assert!(written < bytes.len() / 2, "this is the end of what was written: {written}");
    bytes[written / 2] ^= 0x20;
    fs::write(segment, bytes).unwrap();
}
