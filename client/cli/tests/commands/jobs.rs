//! Jobs: dispatched, scaled, restarted, tagged, shown.

use crate::commands::support::{ALLOC, Cluster, EVAL, job_file, web_cluster, without_times};

/// The only request of this method.
fn sent<'a>(requests: &'a [String], method: &str) -> &'a str {
    let mut found = requests.iter().filter(|request| request.starts_with(method));
    let first = found.next().unwrap_or_else(|| panic!("no {method} in {requests:?}"));
    assert_eq!(found.next(), None, "{requests:?}");
    first
}

#[test]
fn a_job_is_dispatched_with_its_payload() {
    let answer = format!(r#"{{"DispatchedJobID": "web/dispatch-1", "EvalID": "{EVAL}"}}"#);
    let cluster = web_cluster().with("PUT /v1/job/web/dispatch", &answer);
    let payload = job_file();
    std::fs::write(payload.path(), "hi").unwrap();
    let done = cluster.run(&[
        "job",
        "dispatch",
        "-detach",
        "-meta",
        "a=1",
        "-meta=b=2",
        "-idempotency-token=t1",
        "-priority=70",
        "web",
        payload.path().to_str().unwrap(),
    ]);
    let expected = "Dispatched Job ID = web/dispatch-1\nEvaluation ID     = 11111111\n";
    assert_eq!((done.code, done.stdout.as_str()), (0, expected), "{}", done.stderr);
    let request = sent(&done.requests, "PUT");
    assert!(
        request.starts_with("PUT /v1/job/web/dispatch?namespace=default&idempotency_token=t1 "),
        "{request}"
    );
    assert!(request.contains(r#""Payload":"aGk=","Meta":{"a":"1","b":"2"}"#), "{request}");
    assert!(request.contains(r#""Priority":70"#), "{request}");
    let list = sent(&done.requests, "GET /v1/jobs");
    assert!(list.contains("filter=ParentID"), "only what can be dispatched is looked through: {list}");
    let followed = cluster.run(&["job", "dispatch", "web"]);
    assert!(
        without_times(&followed.stdout).contains("\n\n==> T: Monitoring evaluation"),
        "{}",
        followed.stdout
    );
}

#[test]
fn a_group_is_scaled_by_name_or_alone() {
    let job = r#"{"ID": "web", "Namespace": "default", "TaskGroups": [{"Name": "api", "Count": 1}]}"#;
    let cluster = web_cluster()
        .with("GET /v1/job/web", job)
        .with("PUT /v1/job/web/scale", &format!(r#"{{"EvalID": "{EVAL}", "Warnings": "careful"}}"#));
    for words in [&["web", "3"][..], &["web", "api", "3"][..]] {
        let arguments: Vec<&str> =
            ["job", "scale", "-detach", "-check-index=7"].iter().chain(words).copied().collect();
        let scaled = cluster.run(&arguments);
        let expected = format!("Job Warnings:\ncareful\n\nJob scale successful\nEvaluation ID: {EVAL}\n");
        assert_eq!((scaled.code, scaled.stdout), (0, expected), "{words:?}: {}", scaled.stderr);
        let request = sent(&scaled.requests, "PUT");
        assert!(request.contains(r#""Count":3,"Target":{"Group":"api"}"#), "{request}");
        assert!(request.contains(r#""JobModifyIndex":7"#), "{request}");
    }
    for (words, why) in [
        (&["web", "db", "3"][..], "Group \"db\" not found"),
        (&["web", "many"][..], "Failed to convert count string to int"),
        (&["web"][..], "This command requires at least two arguments"),
    ] {
        let arguments: Vec<&str> = ["job", "scale"].iter().chain(words).copied().collect();
        let refused = cluster.run(&arguments);
        assert!(refused.code == 1 && refused.stderr.starts_with(why), "{words:?}: {}", refused.stderr);
    }
}

#[test]
fn an_evaluation_is_created_and_its_id_printed() {
    let answer = format!(r#"{{"EvalID": "{EVAL}"}}"#);
    let cluster = web_cluster().with("PUT /v1/job/web/evaluate", &answer);
    let output = cluster.run(&["job", "eval", "-force-reschedule", "-detach", "web"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "Created eval ID: \"11111111\" \n"));
    assert!(sent(&output.requests, "PUT").contains(r#""ForceReschedule":true"#), "{:?}", output.requests);
    let forced = web_cluster().with("PUT /v1/job/web/periodic/force", &answer);
    let forced = forced.run(&["job", "periodic", "force", "-detach", "web"]);
    assert_eq!(
        forced.stdout,
        format!("Force periodic successful\nEvaluation ID: {EVAL}\n"),
        "{}",
        forced.stderr
    );
}

#[test]
fn only_a_stopped_job_is_started() {
    let stopped = r#"{"ID": "web", "Namespace": "default", "Version": 3, "Stop": true, "Status": "dead"}"#;
    let source = r#"{"Source": "job \"web\" {}", "Format": "hcl2"}"#;
    let cluster = web_cluster().with("GET /v1/job/web", stopped).with("GET /v1/job/web/submission", source);
    let started = cluster.run(&["start", "-detach", "web"]);
    let expected = format!("Job start successful\nEvaluation ID: {EVAL}\n");
    assert_eq!((started.code, started.stdout), (0, expected), "{}", started.stderr);
    let request = sent(&started.requests, "PUT");
    assert!(request.contains(r#""Stop":false"#) && request.contains(r#""Source":"job"#), "{request}");
    let runs = web_cluster().with("GET /v1/job/web", r#"{"ID": "web", "Status": "running"}"#);
    let runs = runs.run(&["job", "start", "web"]);
    let why = "Job \"web\" has not been stopped and has the following status: running\n";
    assert_eq!((runs.code, runs.stderr.as_str()), (1, why));
}

#[test]
fn a_version_is_tagged_and_untagged() {
    let cluster = web_cluster()
        .with("GET /v1/job/web", r#"{"ID": "web", "Version": 4}"#)
        .with("PUT /v1/job/web/versions/gold/tag", "{}")
        .with("DELETE /v1/job/web/versions/gold/tag", "{}");
    let tagged = cluster.run(&["job", "tag", "apply", "-name=gold", "-description=good", "web"]);
    assert_eq!(tagged.stdout, "Job version 4 tagged with name \"gold\"\n", "{}", tagged.stderr);
    assert!(
        sent(&tagged.requests, "PUT").ends_with(r#"{"Version":4,"Description":"good"}"#),
        "{:?}",
        tagged.requests
    );
    let older = cluster.run(&["job", "tag", "apply", "-name=gold", "-version=2", "web"]);
    assert_eq!(older.stdout, "Job version 2 tagged with name \"gold\"\n");
    let gone = cluster.run(&["job", "tag", "unset", "-name", "gold", "web"]);
    assert_eq!(gone.stdout, "Tag \"gold\" removed from job \"web\"\n", "{}", gone.stderr);
    let nameless = cluster.run(&["job", "tag", "apply", "web"]);
    assert!(
        nameless.code == 1 && nameless.stderr.starts_with("A version tag name must be"),
        "{}",
        nameless.stderr
    );
}

#[test]
fn allocations_are_restarted_batch_by_batch() {
    let second = ALLOC.replace("5d16", "6d16");
    let alloc = |id: &str| {
        format!(r#"{{"ID": "{id}", "TaskGroup": "api", "DesiredStatus": "run", "ClientStatus": "running"}}"#)
    };
    let cluster = web_cluster()
        .with("GET /v1/job/web/allocations", &format!("[{},{}]", alloc(ALLOC), alloc(&second)))
        .with(&format!("PUT /v1/client/allocation/{ALLOC}/restart"), "{}")
        .with(&format!("PUT /v1/client/allocation/{second}/restart"), "{}");
    let done = cluster.run(&["job", "restart", "web"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        without_times(&done.stdout),
        "==> T: Restarting 2 allocations\n    \
         T: Restarting running tasks in allocation \"5d16e7fe\" for group \"api\"\n    \
         T: Restarting running tasks in allocation \"6d16e7fe\" for group \"api\"\n\
         ==> T: Job restart finished\n\nJob restarted successfully!\n"
    );
    let batch = cluster.run(&["job", "restart", "-batch-size=100%", "-all-tasks", "web"]);
    assert!(
        without_times(&batch.stdout).contains("==> T: Restarting 1st batch of 2 allocations\n"),
        "{}",
        batch.stdout
    );
    assert!(
        batch.requests.iter().any(|request| request.contains(r#""AllTasks":true"#)),
        "{:?}",
        batch.requests
    );
    let broken = cluster.with(&format!("PUT /v1/client/allocation/{ALLOC}/restart"), "500 Task not running");
    let failed = broken.run(&["job", "restart", "-on-error=fail", "web"]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.ends_with("Job restart stopped: 1 allocation failed\n"), "{}", failed.stderr);
    for (flags, why) in [
        (&["-batch-size=0"][..], "Invalid -batch-size value \"0\""),
        (&["-on-error=cry"][..], "Invalid -on-error option \"cry\""),
        (&["-task=a", "-all-tasks"][..], "The -task option cannot be used"),
        (&["-no-shutdown-delay"][..], "The -no-shutdown-delay option needs -reschedule"),
    ] {
        let arguments: Vec<&str> = ["job", "restart"].iter().chain(flags).chain(&["web"]).copied().collect();
        let refused = broken.run(&arguments);
        assert!(refused.code == 1 && refused.stderr.starts_with(why), "{flags:?}: {}", refused.stderr);
    }
}

#[test]
fn versions_are_shown_with_differences_or_in_full() {
    let versions = r#"{"Versions": [
        {"ID": "web", "Version": 1, "Stable": true, "VersionTag": {"Name": "gold", "Description": "good"}},
        {"ID": "web", "Version": 0}],
        "Diffs": [{"Type": "Edited", "ID": "web", "Fields": [
            {"Type": "Edited", "Name": "Priority", "Old": "50", "New": "60"}]}]}"#;
    let cluster = web_cluster().with("GET /v1/job/web/versions", versions);
    let plain = cluster.run(&["job", "history", "web"]);
    assert_eq!(
        plain.stdout,
        "Version         = 1\nStable          = true\nSubmit Date     = N/A\nTag Name        = gold\n\
         Tag Description = good\n\nVersion     = 0\nStable      = false\nSubmit Date = N/A\n"
    );
    let changed = cluster.run(&["job", "history", "-p", "web"]);
    assert!(changed.stdout.contains("Diff            = \n+/- Job: \"web\"\n"), "{}", changed.stdout);
    assert!(changed.stdout.contains("Priority: \"50\" => \"60\""), "{}", changed.stdout);
    assert!(changed.requests.iter().any(|request| request.contains("diffs=true")), "{:?}", changed.requests);
    let one = cluster.run(&["job", "history", "-full", "-version", "gold", "web"]);
    assert!(one.stdout.contains("Full            = \n{\n"), "{}", one.stdout);
    assert!(!one.stdout.contains("Version     = 0"), "{}", one.stdout);
    let both = cluster.run(&["job", "history", "-diff-tag=a", "-diff-version=1", "web"]);
    assert!(
        both.code == 1 && both.stderr.starts_with("Either -diff-tag or -diff-version"),
        "{}",
        both.stderr
    );
    let none = cluster.run(&["job", "history", "-version=9", "web"]);
    assert!(none.stderr.starts_with("job \"web\" has no version 9"), "{}", none.stderr);
}

#[test]
fn several_jobs_are_stopped_at_once_and_without_a_question() {
    let cluster = web_cluster()
        .with(
            "GET /v1/jobs",
            r#"[{"ID": "db", "Namespace": "default"}, {"ID": "web", "Namespace": "default"}]"#,
        )
        .with("DELETE /v1/job/web", &format!(r#"{{"EvalID": "{EVAL}"}}"#))
        .with("DELETE /v1/job/db", r#"{"EvalID": "22222222-2222-4333-8444-555555555555"}"#);
    let stopped = cluster.run(&["job", "stop", "-detach", "-purge", "-eval-priority=70", "web", "db"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    let mut lines: Vec<&str> = stopped.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [EVAL, "22222222-2222-4333-8444-555555555555"]);
    let deleted = stopped.requests.iter().filter(|request| request.starts_with("DELETE"));
    assert!(
        deleted.clone().all(|request| request.contains("purge=true&eval_priority=70")),
        "{:?}",
        stopped.requests
    );
    assert_eq!(deleted.count(), 2);
    let unsure = web_cluster().run(&["job", "stop", "we"]);
    let question = "Are you sure you want to stop job \"web\"? [y/N] \n";
    assert_eq!((unsure.code, unsure.stdout.as_str()), (1, question));
    assert!(unsure.stderr.contains("no job stop. -yes asks no questions"), "{}", unsure.stderr);
}

#[test]
fn hints_at_the_web_ui_are_printed_if_there_is_one() {
    let with_ui =
        |config: &str| web_cluster().with("GET /v1/agent/self", &format!(r#"{{"config": {config}}}"#));
    let cluster = with_ui(r#"{"UI": {"Enabled": true, "ShowCLIHints": true}}"#);
    let shown = cluster.run(&["job", "status", "web"]);
    let hint = format!("\n==> View this job in the Web UI: {}/ui/jobs/web@default\n", cluster.address);
    assert_eq!((shown.code, shown.stderr), (0, hint));
    let hidden = cluster.run_with(&[("NOMAD_CLI_SHOW_HINTS", "0")], &["job", "status", "web"]);
    assert_eq!(hidden.stderr, "");
    let unwanted = with_ui(r#"{"UI": {"Enabled": true, "ShowCLIHints": false}}"#);
    assert_eq!(unwanted.run(&["job", "status", "web"]).stderr, "");
    let none = with_ui(r#"{"UI": {"Enabled": false}}"#).run(&["job", "status", "-ui", "web"]);
    let why = "The web UI cannot be opened: the agent has none\n";
    assert_eq!((none.code, none.stderr.as_str()), (0, why));
}

#[test]
fn an_allocation_is_rescheduled() {
    let next = ALLOC.replace("5d16", "6d16");
    let cluster = web_cluster()
        .with(&format!("PUT /v1/allocation/{ALLOC}/stop"), &format!(r#"{{"EvalID": "{EVAL}"}}"#))
        .with(
            &format!("GET /v1/allocation/{ALLOC}"),
            &format!(r#"{{"ID": "{ALLOC}", "NextAllocation": "{next}"}}"#),
        )
        .with(
            &format!("GET /v1/allocation/{next}"),
            &format!(r#"{{"ID": "{next}", "ClientStatus": "running"}}"#),
        );
    let done = cluster.run(&["job", "restart", "-reschedule", "-no-shutdown-delay", "web"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let text = without_times(&done.stdout);
    assert!(text.contains("    T: Rescheduling allocation \"5d16e7fe\" for group \"api\"\n"), "{text}");
    assert!(text.contains("    T: Allocation \"5d16e7fe\" replaced by \"6d16e7fe\"\n"), "{text}");
    let stop = sent(&done.requests, "PUT");
    assert!(stop.contains("no_shutdown_delay=true"), "{stop}");
    let broken = cluster.with(
        &format!("GET /v1/allocation/{next}"),
        &format!(r#"{{"ID": "{next}", "ClientStatus": "failed"}}"#),
    );
    assert_eq!(broken.run(&["job", "restart", "-reschedule", "-on-error=fail", "web"]).code, 1);
}

#[test]
fn the_empty_name_is_not_used_as_a_prefix() {
    let refused = web_cluster().run(&["job", "stop", "-yes", ""]);
    assert_eq!((refused.code, refused.requests.len()), (1, 0), "{:?}", refused.requests);
    assert_eq!(refused.stderr, "The name of a job must not be empty\n");
}

#[test]
fn enterprise_flags_are_rejected_if_they_would_change_something() {
    let file = job_file();
    let path = file.path().to_str().unwrap();
    for (command, code) in [("run", 1), ("plan", 255), ("validate", 255)] {
        let refused = web_cluster().run(&["job", command, "-vault-namespace=x", path]);
        let why = "-vault-namespace is a flag of Nomad Enterprise: leave it out\n";
        assert_eq!((refused.code, refused.stderr.as_str()), (code, why), "{command}");
    }
    let harmless = web_cluster().run(&["job", "run", "-policy-override", "-detach", path]);
    assert_eq!(harmless.code, 0, "{}", harmless.stderr);
}

#[test]
fn deployments_of_a_job_are_listed_or_the_latest_shown() {
    let deployment = r#"{"ID": "dddddddd-1111", "JobID": "web", "JobVersion": 2, "Status": "running"}"#;
    let cluster = web_cluster()
        .with("GET /v1/job/web/deployments", &format!("[{deployment}]"))
        .with("GET /v1/job/web/deployment", deployment);
    let list = cluster.run(&["job", "deployments", "web"]);
    assert_eq!(
        list.stdout,
        "ID        Job ID  Job Version  Status   Description\ndddddddd  web     2            running  <none>\n"
    );
    let latest = cluster.run(&["job", "deployments", "-latest", "web"]);
    assert!(latest.stdout.starts_with("ID          = dddddddd\nJob ID      = web\n"), "{}", latest.stdout);
    let none = web_cluster().with("GET /v1/job/web/deployments", "[]").run(&["job", "deployments", "web"]);
    assert_eq!(none.stdout, "No deployments found\n");
}

#[test]
fn an_example_does_not_overwrite_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.nomad.hcl");
    let path = path.to_str().unwrap();
    let cluster = Cluster::answering(&[]);
    let written = cluster.run(&["job", "init", "-short", path]);
    assert_eq!((written.code, written.stdout), (0, format!("Example job file written to {path}\n")));
    let again = cluster.run(&["init", path]);
    assert_eq!((again.code, again.stderr), (1, format!("{path} is there already: name another file\n")));
}

#[test]
fn a_failed_placement_says_what_would_help() {
    let eval = format!(
        r#"{{"ID": "{EVAL}", "Status": "complete", "JobID": "web", "TriggeredBy": "job-register",
            "FailedTGAllocs": {{"api": {{"NodesEvaluated": 1}}}}}}"#
    );
    let why = r#"{"Groups": {"api": {"Failed": {}, "Missing": 1, "Nodes": 1, "WouldFitIf": ["memory were 64 MiB"]}}}"#;
    let file = job_file();
    let run = |cluster: Cluster| cluster.run(&["job", "run", file.path().to_str().unwrap()]);
    let cluster = || web_cluster().with(&format!("GET /v1/evaluation/{EVAL}"), &eval);
    let explained = run(cluster().with(&format!("GET /v1/evaluation/{EVAL}/explain"), why));
    assert_eq!(explained.code, 2, "{}", explained.stderr);
    let after = explained.stdout.split("failed to place all allocations:").nth(1).unwrap();
    assert!(after.contains("    Task Group \"api\" has no place for 1 allocation:\n"), "{after}");
    assert!(after.contains("        * memory were 64 MiB\n"), "{after}");
    let silent = run(cluster());
    assert_eq!((silent.code, silent.stderr.as_str()), (2, ""), "servers of Nomad do not know");
}

#[test]
fn a_job_is_waited_for_until_it_is_what_was_asked() {
    let job = |status: &str, count: u32| {
        format!(
            r#"{{"ID": "web", "Type": "service", "Status": "{status}", "Version": 1, "Update": {{}},
                "TaskGroups": [{{"Name": "api", "Count": {count}}}]}}"#
        )
    };
    let running = web_cluster().with("GET /v1/job/web", &job("running", 1));
    let waited = running.run(&["job", "wait", "-for=running", "web"]);
    assert_eq!((waited.code, waited.stdout.as_str()), (0, "Job \"web\" is running\n"), "{}", waited.stderr);
    let few = web_cluster().with("GET /v1/job/web", &job("running", 2));
    let late = few.run(&["job", "wait", "-for=running", "-timeout=300ms", "web"]);
    assert_eq!(late.code, 2, "{}{}", late.stdout, late.stderr);
    let ended = web_cluster().with("GET /v1/job/web", &job("dead", 1));
    assert_eq!(ended.run(&["job", "wait", "web"]).code, 0);
    let never = ended.run(&["job", "wait", "-for=running", "web"]);
    assert_eq!((never.code, never.stderr.as_str()), (1, "Job \"web\" has ended\n"));
    let failed = web_cluster()
        .with("GET /v1/job/web", &job("dead", 1))
        .with("GET /v1/job/web/summary", r#"{"JobID": "web", "Summary": {"api": {"Failed": 2}}}"#);
    let failed = failed.run(&["job", "wait", "web"]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("2 of its allocations failed"), "{}", failed.stderr);
    for (status, version, code) in
        [("successful", 1, 0), ("failed", 1, 1), ("successful", 0, 2), ("running", 1, 2)]
    {
        let deployment = format!(r#"{{"ID": "d", "JobVersion": {version}, "Status": "{status}"}}"#);
        let cluster = web_cluster()
            .with("GET /v1/job/web", &job("running", 1))
            .with("GET /v1/job/web/deployment", &deployment);
        let waited = cluster.run(&["job", "wait", "-for=healthy", "-timeout=300ms", "web"]);
        assert_eq!(waited.code, code, "{status} {version}: {}{}", waited.stdout, waited.stderr);
    }
    let wrong = running.run(&["job", "wait", "-for=ever", "web"]);
    assert_eq!((wrong.code, wrong.requests.len()), (1, 0), "{}", wrong.stderr);
}
