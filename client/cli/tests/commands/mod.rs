//! The commands of the program against a fake HTTP API that answers from a table.

mod acl;
mod allocs;
mod command_line;
mod jobs;
mod login;
mod nodes;
mod other_objects;
mod support;
mod variables;

use std::process::Command;

use support::{ALLOC, Cluster, EVAL, job_file, run, web_cluster, without_times};

#[test]
fn jobs_are_listed_and_one_is_shown() {
    let cluster = web_cluster();
    let list = cluster.run(&["status"]);
    assert_eq!(
        list.stdout,
        "ID   Type     Priority  Status   Submit Date\nweb  service  50        running  2026-01-02T03:04:05Z\n"
    );
    let shown = cluster.run(&["job", "status", "web"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.starts_with("ID            = web\nName          = web\n"), "{}", shown.stdout);
    let summary = "\nSummary\nTask Group  Queued  Starting  Running  Failed  Complete  Lost  Unknown\n\
                   api         0       0         1        0       0         0     0\n";
    assert!(shown.stdout.contains(summary), "{}", shown.stdout);
    let allocs = "\nAllocations\nID        Node ID   Task Group  Version  Desired  Status   Created";
    assert!(shown.stdout.contains(allocs), "{}", shown.stdout);
}

#[test]
fn json_is_the_objects_as_the_api_names_them() {
    let json = web_cluster().run(&["job", "status", "-json", "web"]);
    assert!(json.stdout.starts_with("[\n    {\n        \"Summary\": {"), "{}", json.stdout);
    for key in ["Allocations", "LatestDeployment", "Evaluations"] {
        assert!(json.stdout.contains(&format!("\n        \"{key}\": ")), "{key}: {}", json.stdout);
    }
}

#[test]
fn missing_and_ambiguous_objects_exit_with_one() {
    let cluster = Cluster::answering(&[("GET /v1/jobs", "[]")]);
    let none = cluster.run(&["job", "status", "nope"]);
    assert_eq!((none.code, none.stderr.as_str()), (1, "No job(s) with prefix or ID \"nope\" found\n"));
    let cluster = Cluster::answering(&[("GET /v1/jobs", r#"[{"ID": "web-1"}, {"ID": "web-2"}]"#)]);
    let many = cluster.run(&["job", "status", "web"]);
    assert_eq!(many.code, 1);
    assert!(
        many.stderr.starts_with("Prefix \"web\" matched multiple jobs\n\nID     Type"),
        "{}",
        many.stderr
    );
    let short = cluster.run(&["alloc", "status", "a"]);
    assert_eq!((short.code, short.stderr.as_str()), (1, "Alloc ID must contain at least two characters.\n"));
}

#[test]
fn a_job_is_registered_and_followed_to_its_end() {
    let cluster = web_cluster();
    let file = job_file();
    let run = cluster.run(&["run", file.path().to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    for line in [
        "==> T: Monitoring evaluation \"11111111\"",
        "    T: Evaluation triggered by job \"web\"",
        "    T: Allocation \"5d16e7fe\" created: node \"0badcafe\", group \"api\"",
        "    T: Evaluation status changed: \"pending\" -> \"complete\"",
        "==> T: Evaluation \"11111111\" finished with status \"complete\"",
    ] {
        assert!(without_times(&run.stdout).lines().any(|found| found == line), "{line}: {}", run.stdout);
    }
    let detached = cluster.run(&["job", "run", "-detach", file.path().to_str().unwrap()]);
    assert_eq!(detached.stdout, format!("Job registration successful\nEvaluation ID: {EVAL}\n"));
}

#[test]
fn a_failed_placement_exits_with_two() {
    let failed = format!(
        r#"{{"ID": "{EVAL}", "Status": "complete", "JobID": "web", "BlockedEval": "{ALLOC}",
            "FailedTGAllocs": {{"api": {{"NodesEvaluated": 1, "NodesExhausted": 1, "CoalescedFailures": 1}}}}}}"#
    );
    let cluster = web_cluster().with(&format!("GET /v1/evaluation/{EVAL}"), &failed);
    let run = cluster.run(&["run", job_file().path().to_str().unwrap()]);
    assert_eq!(run.code, 2, "{}{}", run.stdout, run.stderr);
    let text = without_times(&run.stdout);
    assert!(
        text.contains("finished with status \"complete\" but failed to place all allocations:\n"),
        "{text}"
    );
    assert!(text.contains("    T: Task Group \"api\" (failed to place 2 allocations):\n"), "{text}");
    assert!(text.contains("\n      * Resources exhausted on 1 node\n"), "{text}");
    assert!(
        text.contains("Evaluation \"5d16e7fe\" waiting for additional capacity to place remainder\n"),
        "{text}"
    );
}

#[test]
fn a_job_at_another_index_is_not_updated() {
    let refusal = "500 Enforcing job modify index 7: job exists with conflicting job modify index: 9";
    let cluster = web_cluster().with("PUT /v1/jobs", refusal);
    let run = cluster.run(&["run", "-check-index", "7", job_file().path().to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.starts_with("Enforcing job modify index 7: "), "{}", run.stderr);
    assert!(run.stderr.ends_with("\nJob not updated\n"), "{}", run.stderr);
}

#[test]
fn a_job_file_that_is_wrong_is_shown_where() {
    let file = tempfile::Builder::new().suffix(".nomad.hcl").tempfile().unwrap();
    std::fs::write(file.path(), "job \"web\" {\n  gruop \"api\" {}\n}\n").unwrap();
    let run = Cluster::answering(&[]).run(&["validate", file.path().to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains(":2:3: "), "{}", run.stderr);
}

#[test]
fn a_valid_job_is_validated_without_a_cluster() {
    let validated = run(&["-address", "http://127.0.0.1:1", job_file().path().to_str().unwrap()], "validate");
    assert_eq!(validated.code, 0, "{}", validated.stderr);
    assert!(validated.stdout.ends_with("Job validation successful\n"), "{}", validated.stdout);
    assert!(validated.stderr.starts_with("The servers could not be reached: "), "{}", validated.stderr);
}

#[test]
fn a_job_is_stopped_and_its_evaluation_named() {
    let answer = format!(r#"{{"EvalID": "{EVAL}"}}"#);
    let cluster = web_cluster().with("DELETE /v1/job/web", &answer);
    assert_eq!(cluster.run(&["stop", "-detach", "web"]).stdout, format!("{EVAL}\n"));
    let stopped_before = web_cluster().with("DELETE /v1/job/web", r#"{"EvalID": ""}"#);
    let nothing = stopped_before.run(&["stop", "web"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, ""));
}

#[test]
fn the_history_of_an_allocation_is_a_line_a_transition() {
    let history = format!(
        r#"{{"ID": "{ALLOC}", "Transitions": [
            {{"Index": 4, "Ordinal": 1, "Time": "2026-01-02T03:04:05Z", "NewDesired": "run", "NewClient": "pending",
              "Actor": "scheduler", "Cause": "eval"}},
            {{"Index": 9, "Ordinal": 0, "Time": "2026-01-02T03:04:06Z", "OldDesired": "run", "NewDesired": "run",
              "OldClient": "pending", "NewClient": "running", "Actor": "node", "Cause": "report"}}]}}"#
    );
    let cluster = Cluster::answering(&[(&format!("GET /v1/allocation/{ALLOC}/history"), &history)]);
    let shown = cluster.run(&["history", "alloc", ALLOC]);
    assert_eq!(
        shown.stdout,
        "Index  Time                  Desired  Client              Actor      Cause   Description\n\
         4      2026-01-02T03:04:05Z  run      pending             scheduler  eval    <none>\n\
         9      2026-01-02T03:04:06Z  run      pending -> running  node       report  <none>\n"
    );
    assert!(cluster.run(&["history", "alloc", "-json", ALLOC]).stdout.contains("\"NewClient\": \"running\""));
}

#[test]
fn logs_are_printed_byte_for_byte() {
    let alloc = format!(
        r#"{{"ID": "{ALLOC}", "TaskGroup": "api", "Job": {{"TaskGroups": [{{"Name": "api", "Tasks": [{{"Name": "main"}}]}}]}}}}"#
    );
    let cluster = web_cluster()
        .with(&format!("GET /v1/allocation/{ALLOC}"), &alloc)
        .with(&format!("GET /v1/client/fs/logs/{ALLOC}"), r#"{"Data":"b25lCnR3bwo="}{}{"Data":"dGhyZWUK"}"#);
    let logs = cluster.run(&["logs", "5d16"]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, "one\ntwo\nthree\n"), "{}", logs.stderr);
}

#[test]
fn any_path_can_be_called() {
    let cluster = Cluster::answering(&[("GET /v1/status/leader", "\"127.0.0.1:4647\"")]);
    let leader = cluster.run(&["operator", "api", "status/leader"]);
    assert_eq!((leader.code, leader.stdout.as_str()), (0, "\"127.0.0.1:4647\""), "{}", leader.stderr);
    let missing = cluster.run(&["operator", "api", "/v1/nothing"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (1, "no such route"));
    assert!(missing.stderr.ends_with("Unexpected response code: 404\n"), "{}", missing.stderr);
}

#[test]
fn events_are_printed_as_they_come() {
    let data =
        r#"{"Topic":"Job","Type":"JobRegistered","Key":"web","Namespace":"default","Index":7,"Payload":{}}"#;
    let stream = format!("sse id: 7.0\nevent: Job\ntime: 1767323045000000000\ndata: {data}\n\n");
    let gone = "410 index 8 is no longer kept: the oldest is 9";
    let cluster = Cluster::answering(&[("GET /v1/event/stream", &format!("{stream}|{gone}"))]);
    let events = cluster.run(&["events", "-topic", "Job"]);
    assert_eq!(events.stdout, "7.0         2026-01-02T03:04:05Z  Job         web JobRegistered\n");
    assert_eq!(events.code, 1);
    assert!(events.stderr.contains("trying again in 1 s"), "{}", events.stderr);
    assert!(events.stderr.contains("no longer kept"), "{}", events.stderr);
}

#[test]
fn templates_are_applied_to_the_objects_that_json_prints() {
    let cluster = web_cluster();
    let shown = cluster.run(&["job", "status", "-t", "{{range .}}{{len .Allocations}}{{end}}", "web"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "1\n"), "{}", shown.stderr);
    let inspected = cluster.run(&["inspect", "-t", "{{.ID | sprig_upper}} {{.Datacenters}}", "web"]);
    assert_eq!((inspected.code, inspected.stdout.as_str()), (0, "WEB [dc1]\n"), "{}", inspected.stderr);
    let both = cluster.run(&["job", "status", "-json", "-t", "x", "web"]);
    assert_eq!((both.code, both.stderr.as_str()), (1, "Both json and template formatting are not allowed\n"));
    let wrong = cluster.run(&["job", "status", "-t", "{{if}}", "web"]);
    assert!(wrong.stderr.starts_with("Error parsing the template: line 1: "), "{}", wrong.stderr);
}

#[test]
fn a_link_named_nomad_is_nomad() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("nomad");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sojourn"), &link).unwrap();
    for argument in ["-version", "--version", "-v", "version"] {
        let output = Command::new(&link).arg(argument).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.starts_with("Nomad v"), "{argument}: {text}");
    }
    let help = Command::new(&link).args(["job", "run", "-help"]).output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().starts_with("Usage: nomad job run [flags] <path>\n"));
}

#[test]
fn an_agent_that_cannot_start_prints_the_reason() {
    let refused = run(&["-server", "-data-dir=relative"], "agent");
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert_eq!(refused.stderr, "data_dir must be absolute: \"relative\" is not\n");
}

#[test]
fn an_upgrade_is_checked_and_finished() {
    let behind = r#"{"Epoch": 3, "Next": 3, "Newest": 4, "Finished": false, "Problems": ["b is behind"], "Servers": [
        {"ID": "1", "Name": "a", "Address": "10.0.0.1:4647", "Version": "0.2.0", "Epoch": 4, "Status": "alive", "Voter": true},
        {"ID": "2", "Name": "b", "Address": "10.0.0.2:4647", "Version": "", "Epoch": 0, "Status": "none", "Voter": true}]}"#;
    let ready = r#"{"Epoch": 3, "Next": 4, "Newest": 4, "Finished": false}"#;
    let done = r#"{"Epoch": 4, "Next": 4, "Newest": 4, "Finished": true}"#;
    let check = |status: &str| {
        Cluster::answering(&[("GET /v1/operator/upgrade", status)]).run(&["operator", "upgrade", "check"])
    };
    let first = check(behind);
    assert_eq!(first.code, 2, "{first:?}");
    assert!(first.stdout.starts_with("Epoch: 3\n\nName  Address "), "{}", first.stdout);
    assert!(first.stdout.contains("\nb     10.0.0.2:4647  unknown  unknown  none "), "{}", first.stdout);
    assert!(
        first.stdout.contains("\nb is behind\nUpgrade these servers, one at a time."),
        "{}",
        first.stdout
    );
    let second = check(ready);
    assert!(second.code == 2 && second.stdout.contains("Every server knows epoch 4: "), "{second:?}");
    let third = check(done);
    assert!(third.code == 0 && third.stdout.contains("is of this release"), "{third:?}");
    let finish = |raised: &str| {
        let cluster = Cluster::answering(&[("PUT /v1/operator/upgrade", raised)]);
        cluster.run(&["operator", "upgrade", "finish"]).stdout
    };
    assert_eq!(finish(r#"{"Epoch": 4, "Raised": true}"#), "The cluster is at epoch 4 now\n");
    assert_eq!(finish(r#"{"Epoch": 4, "Raised": false}"#), "The cluster is at epoch 4 already\n");
}

#[test]
fn servers_join_and_leave() {
    let raft = r#"{"Index": 7, "Servers": [
        {"ID": "id-a", "Node": "a", "Address": "10.0.0.1:4647", "Leader": true, "Voter": true, "RaftProtocol": "3"}]}"#;
    let cluster = Cluster::answering(&[
        ("PUT /v1/agent/join", r#"{"num_joined": 2, "error": "no server answers at 10.0.0.9:4648"}"#),
        ("PUT /v1/agent/force-leave", ""),
        ("GET /v1/operator/raft/configuration", raft),
        ("DELETE /v1/operator/raft/peer", ""),
        ("PUT /v1/operator/raft/transfer-leadership", r#"{"Noop": false}|{"Noop": true}"#),
    ]);
    let joined = cluster.run(&["server", "join", "a", "b", "10.0.0.9"]);
    assert_eq!((joined.code, joined.stdout.as_str()), (0, "Joined 2 servers successfully\n"));
    assert_eq!(joined.stderr, "Not all could be joined: no server answers at 10.0.0.9:4648\n");
    let left = cluster.run(&["server", "force-leave", "-prune", "s2.global"]);
    assert_eq!((left.code, left.stdout.as_str(), left.stderr.as_str()), (0, "", ""));
    let peers = cluster.run(&["operator", "raft", "list-peers", "-stale"]);
    assert!(peers.stdout.ends_with("\na     id-a  10.0.0.1:4647  leader  true   3\n"), "{}", peers.stdout);
    let removed = cluster.run(&["operator", "raft", "remove-peer", "-peer-id=x"]);
    assert_eq!(removed.stdout, "Removed peer with id \"x\"\n");
    let moved = cluster.run(&["operator", "raft", "transfer-leadership", "-peer-address=10.0.0.2:4647"]);
    assert_eq!(moved.stdout, "Transferred leadership to peer with address \"10.0.0.2:4647\"\n");
    for (arguments, why) in [
        (vec!["server", "join"], "This command takes at least one argument: <addr> [<addr>...]"),
        (vec!["server", "force-leave"], "This command takes one argument: <node>"),
        (vec!["operator", "raft", "remove-peer"], "This command needs -peer-id or -peer-address"),
        (
            vec!["operator", "raft", "remove-peer", "-peer-id=a", "-peer-address=b"],
            "This command takes -peer-id or -peer-address, not both",
        ),
    ] {
        let refused = cluster.run(&arguments);
        assert_eq!(refused.code, 1, "{arguments:?}");
        assert!(refused.stderr.starts_with(why), "{arguments:?}: {}", refused.stderr);
    }
    let nobody = Cluster::answering(&[("PUT /v1/agent/join", r#"{"num_joined": 0, "error": "silence"}"#)]);
    let nobody = nobody.run(&["server", "join", "a"]);
    assert_eq!((nobody.code, nobody.stderr.as_str()), (1, "Error joining: silence\n"));
}

#[test]
fn a_plan_ends_with_what_it_would_do() {
    let answer = |desired: &str| {
        format!(r#"{{"JobModifyIndex": 7, "Annotations": {{"DesiredTGUpdates": {{"api": {desired}}}}}}}"#)
    };
    let file = job_file();
    let plan = |body: &str| {
        let cluster = Cluster::answering(&[("PUT /v1/job/web/plan", body)]);
        cluster.run(&["job", "plan", file.path().to_str().unwrap()])
    };
    let moved = plan(&answer(r#"{"Place": 1, "Ignore": 2}"#));
    assert_eq!(moved.code, 1, "{}", moved.stderr);
    assert!(moved.stdout.starts_with("Scheduler dry-run:\n- All tasks"), "{}", moved.stdout);
    assert!(moved.stdout.contains("job run -check-index 7 "), "{}", moved.stdout);
    assert_eq!(plan(&answer(r#"{"InPlaceUpdate": 3}"#)).code, 0, "nothing is made or ended");
    let failed = plan("500 No cluster leader");
    assert_eq!(failed.code, 255);
}

#[test]
fn a_job_in_several_regions_is_planned_in_each() {
    let file = tempfile::Builder::new().suffix(".nomad.hcl").tempfile().unwrap();
    let text = r#"
job "web" {
  multiregion {
    region "eu" { count = 2 }
    region "us" { count = 1 }
  }
  group "api" {
    task "main" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}"#;
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let cluster = Cluster::answering(&[
        ("PUT /v1/job/web/plan?region=eu", r#"{"JobModifyIndex": 7}"#),
        (
            "PUT /v1/job/web/plan?region=us",
            r#"{"JobModifyIndex": 9, "Annotations": {"DesiredTGUpdates": {"api": {"Place": 1}}}}"#,
        ),
    ]);
    let all = cluster.run(&["job", "plan", "-diff=false", path]);
    assert_eq!(all.code, 1, "one region places: {}", all.stderr);
    let [eu, us] = ["Region: \"eu\"\nScheduler dry-run:\n", "Region: \"us\"\nScheduler dry-run:\n"]
        .map(|heading| all.stdout.find(heading).unwrap_or_else(|| panic!("{}", all.stdout)));
    assert!(eu < us);
    assert!(
        all.stdout.ends_with(&format!("To submit the job run:\n\nsojourn job run {path}\n")),
        "{}",
        all.stdout
    );
    let json = cluster.run(&["job", "plan", "-json-output", path]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["eu"]["JobModifyIndex"], &json["us"]["JobModifyIndex"]), (&7.into(), &9.into()));

    let one = cluster.run(&["job", "plan", "-region=eu", path]);
    assert_eq!(one.code, 0, "{}", one.stderr);
    assert!(one.stdout.contains("job run -check-index 7 "), "{}", one.stdout);
    let cluster = cluster.with("PUT /v1/job/web/plan?region=us", "500 No path to region");
    let failed = cluster.run(&["job", "plan", path]);
    assert_eq!(failed.code, 255);
    assert!(failed.stderr.contains("Error during plan in region \"us\": "), "{}", failed.stderr);
}

#[test]
fn why_resolves_ids_and_prints_the_explanation() {
    let cluster = web_cluster();
    let why = r#"{"ID": "web", "Status": "running", "Groups": {"api": {"Wanted": 1, "Running": 1}}}"#;
    let cluster = cluster.with("GET /v1/job/web/explain", why);
    let output = cluster.run(&["why", "job", "we"]);
    let expected =
        "Job \"web\" is running\n  api: 1 wanted, 1 running\n\nNo scheduler has looked at it yet.\n";
    assert_eq!((output.code, output.stdout.as_str()), (0, expected), "{}", output.stderr);
    let eval =
        format!(r#"{{"ID": "{EVAL}", "JobID": "web", "Status": "complete", "TriggeredBy": "job-register"}}"#);
    let cluster = web_cluster()
        .with("GET /v1/evaluations", &format!("[{eval}]"))
        .with(&format!("GET /v1/evaluation/{EVAL}/explain"), &eval);
    let output = cluster.run(&["why", "eval", &EVAL[..8]]);
    assert!(
        output.stdout.contains("of job \"web\" is complete\n  triggered by: job-register\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_autopilot_is_shown_and_changed() {
    let config = r#"{"CleanupDeadServers": true, "LastContactThreshold": "200ms", "MaxTrailingLogs": 250,
        "MinQuorum": 0, "ServerStabilizationTime": "10s", "ModifyIndex": 9}"#;
    let cluster = Cluster::answering(&[
        ("GET /v1/operator/autopilot/configuration", config),
        ("PUT /v1/operator/autopilot/configuration", "true"),
        (
            "GET /v1/operator/autopilot/health",
            r#"429 {"Healthy": false, "FailureTolerance": 0, "Leader": "x"}"#,
        ),
    ]);
    let shown = cluster.run(&["operator", "autopilot", "get-config"]);
    assert!(
        shown.stdout.starts_with("CleanupDeadServers = true\nLastContactThreshold = 200ms\n"),
        "{}",
        shown.stdout
    );
    let set =
        cluster.run(&["operator", "autopilot", "set-config", "-min-quorum=3", "-cleanup-dead-servers=false"]);
    assert_eq!((set.code, set.stdout.as_str()), (0, "Configuration updated!\n"));
    for wrong in
        ["-min-quorum=x", "-cleanup-dead-servers=x", "-last-contact-threshold=x", "-max-trailing-logs=-1"]
    {
        let refused = cluster.run(&["operator", "autopilot", "set-config", wrong]);
        let (flag, value) = wrong.split_once('=').unwrap();
        assert_eq!(refused.code, 1);
        let start = format!("invalid value \"{value}\" for flag {flag}: expected ");
        assert!(refused.stderr.starts_with(&start), "{}", refused.stderr);
    }
    let health = cluster.run(&["operator", "autopilot", "health"]);
    assert!(
        health.stdout.starts_with("Healthy: false\nFailureTolerance: 0\nLeader: x\nVoters:\n"),
        "{}",
        health.stderr
    );
    let late = cluster.with("PUT /v1/operator/autopilot/configuration", "false");
    let late = late.run(&["operator", "autopilot", "set-config", "-min-quorum=3"]);
    let why = "Configuration could not be atomically updated, please try again\n";
    assert_eq!((late.code, late.stderr.as_str()), (1, why));
}

#[test]
fn the_schedulers_configuration_is_shown_and_changed() {
    let config = r#"{"SchedulerConfig": {"SchedulerAlgorithm": "binpack", "ModifyIndex": 9,
        "PreemptionConfig": {"SystemSchedulerEnabled": true}}, "Index": 9}"#;
    let path = "/v1/operator/scheduler/configuration";
    let (get, put) = (format!("GET {path}"), format!("PUT {path}"));
    let cluster = Cluster::answering(&[
        (&get, config),
        (&put, r#"{"Updated": true, "Index": 10}"#),
        ("GET /v1/operator/scheduler/scan", r#"{"Scan": "all"}"#),
    ]);
    let shown = cluster.run(&["operator", "scheduler", "get-config"]);
    let head = "Scheduler Algorithm               = binpack\nMemory Oversubscription           = false\n";
    assert!(shown.stdout.starts_with(head), "{}", shown.stdout);
    let set = cluster.run(&["operator", "scheduler", "set-config", "-scheduler-algorithm=spread"]);
    assert_eq!((set.code, set.stdout.as_str()), (0, "Scheduler configuration updated!\n"));
    let limited = ["operator", "scheduler", "set-config", "-node-limit-for-feasibility-checks=20"];
    let limited = cluster.run(&limited);
    assert!(limited.stderr.contains("has no effect while all nodes are scored"), "{}", limited.stderr);
    let refused = cluster.run(&["operator", "scheduler", "set-config", "-pause-eval-broker=x"]);
    let why = "invalid value \"x\" for flag -pause-eval-broker: expected true or false";
    assert!(refused.code == 1 && refused.stderr.starts_with(why), "{}", refused.stderr);
    let late = cluster.with(&put, r#"{"Updated": false, "Index": 9}"#);
    let late = late.run(&["operator", "scheduler", "set-config", "-check-index=3"]);
    assert_eq!(late.code, 1);
}

#[test]
fn a_snapshot_file_is_checked_without_a_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.snap");
    let meta = server::snapshot_file::Meta {
        created: base::Time::from_secs(1_767_323_045),
        cluster: base::Uuid::from(7),
        index: base::Index(42),
        term: base::Term(3),
        release: "0.1.0".to_string(),
        contents: Vec::new(),
    };
    let image = model::Image { index: meta.index, chunks: vec![model::Chunk::new(b"rows"[..].into())] };
    let file = server::snapshot_file::encode(&meta, &image).unwrap();
    let bytes: Vec<u8> = file.parts.concat();
    std::fs::write(&path, &bytes).unwrap();
    let name = path.to_str().unwrap();
    let shown = run(&["snapshot", "inspect", name], "operator");
    assert!(
        shown.stdout.starts_with("Created = 2026-01-02T03:04:05Z\nID      = 3-42-1767323045000\n"),
        "{}",
        shown.stderr
    );
    let json = run(&["snapshot", "inspect", "-json", name], "operator");
    assert!(json.stdout.contains("\"Index\": 42,"), "{}", json.stdout);
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let expected =
        format!("Error reading snapshot file {name}: the file is damaged: it does not match its checksum\n");
    for command in ["inspect", "restore"] {
        let refused = run(&["snapshot", command, name], "operator");
        assert_eq!((refused.code, refused.stderr.as_str()), (1, expected.as_str()));
    }
    // What arrives is checked before it gets its name, and nothing is written over.
    let cluster = Cluster::answering(&[("GET /v1/operator/snapshot", "no snapshot")]);
    let there = cluster.run(&["operator", "snapshot", "save", name]);
    assert!(there.stderr.ends_with("state.snap is there already\n"), "{}", there.stderr);
    let other = directory.path().join("other.snap");
    let broken = cluster.run(&["operator", "snapshot", "save", other.to_str().unwrap()]);
    assert!(broken.stderr.contains("the file is cut off: it ends after 11 bytes"), "{}", broken.stderr);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_gossip_key_is_drawn_without_a_cluster() {
    let [one, other] = [0, 1].map(|_| run(&["gossip", "keyring", "generate"], "operator").stdout);
    assert_ne!(one, other);
    assert!(server::gossip::Key::parse(&one).is_ok(), "{one}");
}
