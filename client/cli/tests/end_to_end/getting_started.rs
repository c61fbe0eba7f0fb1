//! What a new user does first.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::end_to_end::support::{AgentConfig, eventually, job, processes_of, sojourn, text, until};

fn example(name: &str) -> String {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name).to_str().unwrap().to_string()
}

#[test]
fn a_job_is_run_inspected_and_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").start();
    agent.wait_for_a_ready_node();

    let ran = agent.run(&["job", "run", &example("hello.nomad.hcl")]).expect_success();
    assert!(ran.contains("finished with status \"complete\""), "{ran}");
    let alloc = agent.running("hello");

    let job = agent.run(&["job", "status", "hello"]).expect_success();
    for line in ["ID            = hello", "Status        = running"] {
        assert!(job.lines().any(|found| found == line), "{job}");
    }
    assert!(job.contains(&alloc[..8]), "{job}");

    let shown = agent.run(&["alloc", "status", &alloc[..8]]).expect_success();
    assert!(shown.starts_with(&format!("ID                  = {}", &alloc[..8])), "{shown}");
    assert!(shown.contains("Task \"say\" is \"running\""), "{shown}");

    let said = eventually("the task says hello", || {
        let said = agent.run(&["alloc", "logs", &alloc[..8]]).expect_success();
        (!said.is_empty()).then_some(said)
    });
    assert_eq!(said, "hello from hello.hello[0] on one\n");

    // A log without content is an answer too.
    assert_eq!(agent.run(&["alloc", "logs", "-stderr", &alloc[..8]]).expect_success(), "");

    let history = agent.run(&["history", "alloc", &alloc[..8]]).expect_success();
    let lines: Vec<_> = history.lines().collect();
    assert!(lines[0].starts_with("Index") && lines[1].contains("pending"), "{history}");
    assert!(lines[1].contains(" for anonymous at 127.0.0.1 "), "who asked for the job: {history}");
    // The stream goes on after any index that is printed, and refuses one that has not come yet.
    let index = lines[1].split_whitespace().next().unwrap();
    let mut events = agent.follow(&["events", "-after", index]);
    let first = events.line();
    let at: u64 = first.split('.').next().unwrap().parse().unwrap();
    assert!(at > index.parse().unwrap(), "{first}");
    let ahead = agent.run(&["events", "-after", "999999.0"]).expect_failure();
    assert!(ahead.contains("is ahead of the log: the newest is"), "{ahead}");
    let foreign = agent.run(&["events", "-after", "1.0@00000000"]).expect_failure();
    assert!(foreign.contains("another cluster"), "{foreign}");
    // A slow start may be reported on the way.
    assert_eq!(history.matches("pending -> running").count(), 1, "{history}");

    let evals: Vec<Value> = serde_json::from_value(agent.get("/v1/job/hello/evaluations")).unwrap();
    let eval = agent.run(&["eval", "status", &text(&evals[0]["ID"])]).expect_success();
    assert!(eval.contains("Status             = complete"), "{eval}");

    let nodes = agent.run(&["node", "status"]).expect_success();
    assert!(nodes.lines().count() == 2 && nodes.contains("one") && nodes.contains("ready"), "{nodes}");
    let node = text(&agent.get("/v1/nodes")[0]["ID"]);
    let node = agent.run(&["node", "status", &node[..8]]).expect_success();
    assert!(node.contains("raw_exec") && node.contains(&alloc[..8]), "{node}");

    let members = agent.run(&["server", "members"]).expect_success();
    assert!(members.lines().nth(1).unwrap().starts_with("one.global  127.0.0.1"), "{members}");

    agent.run(&["job", "stop", "hello"]).expect_success();
    until("the task has ended", || {
        agent.get(&format!("/v1/allocation/{alloc}"))["ClientStatus"] == "complete"
    });
    assert_eq!(agent.get("/v1/job/hello")["Status"], "dead");
    agent.run(&["job", "stop", "-purge", "hello"]).expect_success();
    let gone = agent.run(&["job", "status", "hello"]).expect_failure();
    assert_eq!(gone, "No job(s) with prefix or ID \"hello\" found\n");
}

/// As large as a payload may be, to the byte.
#[test]
fn a_dispatched_job_reads_its_payload() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "dispatch").start();
    agent.wait_for_a_ready_node();
    let mut model = job("model", json!({"command": "/bin/sh", "args": ["-c", "cat local/in/put"]}));
    model["Type"] = "batch".into();
    model["ParameterizedJob"] = json!({"Payload": "required"});
    model["TaskGroups"][0]["Tasks"][0]["DispatchPayload"] = json!({"File": "in/put"});
    agent.register(&model);

    let payload: String = (0..16 * 1024).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    let file = directory.path().join("payload");
    std::fs::write(&file, &payload).unwrap();
    agent.run(&["job", "dispatch", "-detach", "model", file.to_str().unwrap()]).expect_success();
    let child = text(&agent.get("/v1/jobs?prefix=model/")[0]["ID"]);
    let path = format!("/v1/job/{}", child.replace('/', "%2F"));
    let stored = text(&agent.get(&path)["Payload"]);
    assert_eq!(BASE64_STANDARD.decode(stored).unwrap(), payload.as_bytes());
    until("the payload is printed", || {
        let allocs = agent.get(&format!("{path}/allocations"));
        allocs[0]["ClientStatus"] == "complete"
    });
    let alloc = text(&agent.get(&format!("{path}/allocations"))[0]["ID"]);
    assert_eq!(agent.run(&["alloc", "logs", &alloc]).expect_success(), payload);

    std::fs::write(&file, payload + "x").unwrap();
    let refused = agent.run(&["job", "dispatch", "model", file.to_str().unwrap()]).expect_failure();
    assert!(refused.contains("Payload exceeds maximum size; 16385 > 16384"), "{refused}");
}

#[test]
fn whoever_waits_for_a_job_sees_its_output_and_ends_as_it_did() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "waiting").start();
    agent.wait_for_a_ready_node();
    let file = directory.path().join("job.json");
    let path = file.to_str().unwrap();
    let write = |script: &str, count: u32| {
        let mut batch = job("once", json!({"command": "/bin/sh", "args": ["-c", script]}));
        batch["Type"] = "batch".into();
        batch["TaskGroups"][0]["Count"] = count.into();
        batch["TaskGroups"][0]["RestartPolicy"] = json!({"Attempts": 0, "Mode": "fail"});
        batch["TaskGroups"][0]["ReschedulePolicy"] = json!({"Attempts": 0, "Unlimited": false});
        std::fs::write(&file, json!({ "Job": batch }).to_string()).unwrap();
    };
    write("echo result; echo trouble >&2; exit 7", 1);
    let failed = agent.run(&["job", "run", "-json", "-wait", path]);
    assert_eq!(failed.code, 7, "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stdout.ends_with("result\n"), "{}", failed.stdout);
    assert!(failed.stderr.ends_with("trouble\n"), "{}", failed.stderr);

    write("echo again", 2);
    let done = agent.run(&["job", "run", "-json", "-wait", path]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let mut lines: Vec<&str> = done.stdout.lines().filter(|line| line.contains(" | ")).collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "what ran before is not shown again: {}", done.stdout);
    assert!(lines[0].starts_with("once.") && lines[0].ends_with("[0]/main | again"), "{lines:?}");
    for flag in ["-detach", "-output"] {
        let refused = agent.run(&["job", "run", "-json", "-wait", flag, path]).expect_failure();
        assert!(refused.contains("-wait cannot be given with"), "{refused}");
    }
}

#[test]
fn every_example_runs() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "examples").start();
    agent.wait_for_a_ready_node();
    let variables = format!("-var-file={}", example("variables.vars"));
    let files = [
        ("hello", vec!["hello.nomad.hcl"]),
        ("web", vec!["web.nomad.hcl"]),
        ("watch", vec!["system.nomad.hcl"]),
        ("hello-json", vec!["-json", "hello.json"]),
        ("greet", vec![variables.as_str(), "variables.nomad.hcl"]),
    ];
    for (_, words) in &files {
        let (file, flags) = words.split_last().unwrap();
        let file = example(file);
        let validated = agent.run(&[&["job", "validate"], flags, &[&file]].concat()).expect_success();
        assert_eq!(validated, "Job validation successful\n", "{file}");
        agent.run(&[&["job", "run", "-detach"], flags, &[&file]].concat()).expect_success();
    }
    let written = directory.path().join("example.nomad.hcl").display().to_string();
    agent.run(&["job", "init", &written]).expect_success();
    let run = agent.run(&["job", "run", &written]);
    assert!(!run.stderr.contains("Warning"), "{}", run.stderr);
    run.expect_success();
    agent.running("example");
    for (job, _) in &files {
        until(&format!("{job} does what it is for"), || {
            let allocs = agent.allocs(job);
            let does =
                |alloc: &Value| alloc["ClientStatus"] == "running" || alloc["ClientStatus"] == "complete";
            !allocs.is_empty() && allocs.iter().all(does)
        });
    }
    let greeting = agent.run(&["logs", &text(&agent.allocs("greet")[0]["ID"])]).expect_success();
    assert!(greeting.starts_with("hello, WORLD from "), "{greeting}");
    assert!(greeting.ends_with("team is platform, tier is test\n"), "{greeting}");
}

#[test]
fn a_development_agent_ends_soon_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::development(directory.path(), "dev");
    let mut agent = config.start();
    agent.wait_for_a_ready_node();
    let health = agent.get("/v1/agent/health");
    assert_eq!((&health["server"]["ok"], &health["client"]["ok"]), (&true.into(), &true.into()), "{health}");
    agent.run(&["run", "-detach", &example("hello.nomad.hcl")]).expect_success();
    agent.running("hello");

    let refused = config.fail().expect_failure();
    let taken = format!("cannot listen on {}: is another agent running there?", config.http);
    assert!(refused.starts_with(&taken), "{refused}");

    let interrupted = Instant::now();
    assert!(agent.interrupt().success(), "{}", agent.log());
    assert!(interrupted.elapsed() < Duration::from_secs(10), "it ended after {:?}", interrupted.elapsed());
    assert_eq!(processes_of(&config.home), []);
    let mut left: Vec<_> = config.home.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["agent.hcl", "log"]);
}

#[test]
fn two_agents_cannot_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let first = AgentConfig::server_and_client(directory.path(), "one").start();
    let mut second = AgentConfig::server_and_client(directory.path(), "two");
    let text = std::fs::read_to_string(second.home.join("agent.hcl")).unwrap();
    let shared = text.replace("/two/data", "/one/data");
    second.home = directory.path().join("third");
    std::fs::create_dir(&second.home).unwrap();
    std::fs::write(second.home.join("agent.hcl"), shared).unwrap();
    let refused = second.fail().expect_failure();
    assert!(refused.contains("one/data") && refused.contains("another"), "{refused}");
    assert_eq!(refused.matches("another").count(), 1, "said once: {refused}");
    first.wait_for_a_ready_node();
}

#[test]
fn called_nomad_it_does_the_same_under_that_name() {
    let directory = tempfile::tempdir().unwrap();
    let nomad = directory.path().join("nomad");
    std::os::unix::fs::symlink(sojourn(), &nomad).unwrap();
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let run = |arguments: &[&str]| agent.run_as(Path::new(&nomad), arguments);
    run(&["job", "run", "-detach", &example("hello.nomad.hcl")]).expect_success();
    agent.running("hello");
    assert!(run(&["node", "status"]).expect_success().contains("ready"));
    assert!(run(&["status"]).expect_success().contains("hello"));
    assert!(run(&["job", "frob"]).expect_failure().contains("nomad job has no subcommand \"frob\"\n"));
    assert!(run(&["job", "stauts"]).expect_failure().contains("did you mean \"status\"?"));
    assert!(run(&["nodes"]).stderr.contains("did you mean \"node\"?"));
    assert_eq!(run(&["frob"]).code, 127);
    run(&["job", "stop", "-purge", "-detach", "hello"]).expect_success();
}
