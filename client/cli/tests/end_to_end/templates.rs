//! Templates, from a job file to a task that is restarted when a variable changes.

use std::path::PathBuf;

use crate::end_to_end::support::*;

#[test]
fn a_task_waits_for_a_variable_and_is_restarted_when_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/templates.nomad.hcl");
    let ran = agent.run(&["job", "run", "-detach", example.to_str().unwrap()]);
    assert!(!ran.stderr.contains("Warning"), "{}", ran.stderr);
    ran.expect_success();
    let alloc = eventually("an allocation", || {
        agent.get("/v1/job/greeter/allocations")[0]["ID"].as_str().map(str::to_string)
    });
    let state = || agent.get(&format!("/v1/allocation/{alloc}"))["TaskStates"]["greet"].clone();
    eventually("an event that names the variable", || {
        let events = state()["Events"].clone();
        let named = events.as_array()?.iter().find(|event| event["Type"] == "Template")?;
        assert_eq!(named["DisplayMessage"], "Missing: nomad.var.block(nomad/jobs/greeter)");
        Some(())
    });
    assert_eq!(state()["State"], "pending");

    agent.run(&["var", "put", "nomad/jobs/greeter", "greeting=hello"]).expect_success();
    let output = || agent.run(&["alloc", "logs", &alloc]).stdout;
    until("the first greeting", || output().starts_with("hello\njob = greeter\n"));
    agent.run(&["var", "put", "-force", "nomad/jobs/greeter", "greeting=good morning"]).expect_success();
    until("the second greeting", || output().contains("good morning\njob = greeter\npeer = "));
    // The output comes from the node, the state by way of the servers.
    until("the restart is reported", || state()["Restarts"] == 1);
    agent.run(&["job", "stop", "-detach", "greeter"]).expect_success();
    until("the task has ended", || {
        agent.get(&format!("/v1/allocation/{alloc}"))["ClientStatus"] == "complete"
    });
}
