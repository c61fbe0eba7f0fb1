//! Allocations: their files, logs, tasks and checks.

use crate::commands::support::{ALLOC, Cluster, NODE, web_cluster};

fn cluster(status: &str, task: &str) -> Cluster {
    let alloc = format!(
        r#"{{"ID": "{ALLOC}", "Namespace": "default", "NodeID": "{NODE}", "TaskGroup": "api",
            "ClientStatus": "{status}", "TaskStates": {{"main": {{"State": "{task}"}}}},
            "Job": {{"TaskGroups": [{{"Name": "api", "Tasks": [{{"Name": "main"}}]}}]}}}}"#
    );
    web_cluster().with(&format!("GET /v1/allocation/{ALLOC}"), &alloc)
}

#[test]
fn a_directory_is_listed_and_a_file_is_printed() {
    let file = r#"{"Name": "a.txt", "Size": 6, "FileMode": "-rw-r--r--", "ContentType": "text/plain"}"#;
    let folder = r#"{"Name": "alloc", "IsDir": true, "Size": 4096, "FileMode": "drwxr-xr-x"}"#;
    let (stat, list) = (format!("GET /v1/client/fs/stat/{ALLOC}"), format!("GET /v1/client/fs/ls/{ALLOC}"));
    let tree = cluster("running", "running").with(&stat, folder).with(&list, &format!("[{file}]"));
    let listed = tree.run(&["alloc", "fs", "5d16", "alloc/"]);
    let expected = "Mode        Size  Modified Time  Name\n-rw-r--r--  6     N/A            a.txt\n";
    assert_eq!((listed.code, listed.stdout.as_str()), (0, expected), "{}", listed.stderr);
    let leaf = cluster("running", "running")
        .with(&stat, file)
        .with(&format!("GET /v1/client/fs/cat/{ALLOC}"), "abc\ndef")
        .with(&format!("GET /v1/client/fs/stream/{ALLOC}"), r#"{"Data":"ZGVm"}"#);
    assert_eq!(leaf.run(&["fs", "5d16", "a.txt"]).stdout, "abc\ndef");
    let end = leaf.run(&["alloc", "fs", "-c", "3", "5d16", "a.txt"]);
    assert_eq!(end.stdout, "def", "{}", end.stderr);
    let stream = end.requests.iter().find(|request| request.contains("fs/stream")).unwrap();
    assert!(stream.contains("follow=false&offset=3&origin=end"), "{stream}");
    let output = leaf.run(&["alloc", "fs", "-stat", "-H", "5d16", "a.txt"]);
    let expected = "Mode        Size  Modified Time  Content Type  Name\n\
                    -rw-r--r--  6 B   N/A            text/plain    a.txt\n";
    assert_eq!(output.stdout, expected);
    let both = leaf.run(&["alloc", "fs", "-n=1", "-c=1", "5d16", "a.txt"]);
    assert!(both.code == 1 && both.stderr.starts_with("Both -n and -c are not allowed"), "{}", both.stderr);
}

#[test]
fn a_followed_log_ends_with_its_task() {
    let cluster = cluster("complete", "dead")
        .with(&format!("GET /v1/client/fs/logs/{ALLOC}"), r#"{"Data":"b25lCg=="}"#);
    let logs = cluster.run(&["alloc", "logs", "-f", "-stdout", "5d16"]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, "one\n"), "{}", logs.stderr);
}

#[test]
fn tasks_are_restarted_and_signalled() {
    let (restart, signal) = (
        format!("PUT /v1/client/allocation/{ALLOC}/restart"),
        format!("PUT /v1/client/allocation/{ALLOC}/signal"),
    );
    let cluster = cluster("running", "running").with(&restart, "{}").with(&signal, "{}");
    for (words, body) in [
        (&["restart", "5d16"][..], r#"{"TaskName":"","AllTasks":false}"#),
        (&["restart", "5d16", "main"][..], r#"{"TaskName":"main","AllTasks":false}"#),
        (&["restart", "-task=main", "5d16"][..], r#"{"TaskName":"main","AllTasks":false}"#),
        (&["restart", "-all-tasks", "5d16"][..], r#"{"TaskName":"","AllTasks":true}"#),
        (&["signal", "5d16"][..], r#"{"Task":"","Signal":"SIGKILL"}"#),
        (&["signal", "-s=SIGHUP", "5d16", "main"][..], r#"{"Task":"main","Signal":"SIGHUP"}"#),
    ] {
        let arguments: Vec<&str> = ["alloc"].iter().chain(words).copied().collect();
        let done = cluster.run(&arguments);
        assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{words:?}: {}", done.stderr);
        assert!(done.requests.last().unwrap().ends_with(body), "{words:?}: {:?}", done.requests);
    }
    let both = cluster.run(&["alloc", "restart", "-all-tasks", "5d16", "main"]);
    assert!(
        both.code == 1 && both.stderr.starts_with("The -all-tasks option is not allowed"),
        "{}",
        both.stderr
    );
    let unknown = cluster.run(&["alloc", "restart", "5d16", "nope"]);
    assert_eq!(unknown.stderr, "Could not find task named: nope, found:\n* main\n");
}

#[test]
fn checks_are_listed_one_by_one() {
    let checks = r#"{"c1": {"ID": "c1", "Check": "alive", "Group": "web.api[0]", "Task": "main", "Service": "web",
        "Mode": "healthiness", "Status": "success", "Output": "fine"}}"#;
    let cluster =
        cluster("running", "running").with(&format!("GET /v1/client/allocation/{ALLOC}/checks"), checks);
    let output = cluster.run(&["alloc", "checks", "5d16"]);
    assert_eq!(
        output.stdout,
        "Status of 1 Nomad Service Checks\n\n\
         ID        = c1\nName      = alive\nGroup     = web.api[0]\nTask      = main\nService   = web\n\
         Status    = success\nMode      = healthiness\nTimestamp = N/A\nOutput    = fine\n",
        "{}",
        output.stderr
    );
    let counted = cluster.run(&["alloc", "checks", "-t", "{{len .}}", "5d16"]);
    assert_eq!(counted.stdout, "1\n");
}

#[test]
fn all_allocations_are_printed_as_json() {
    let all = web_cluster().run(&["alloc", "status", "-t", "{{range .}}{{.TaskGroup}} {{.Name}}|{{end}}"]);
    assert_eq!((all.code, all.stdout.as_str()), (0, "api |\n"), "{}", all.stderr);
    let nothing = web_cluster().run(&["alloc", "status"]);
    assert!(
        nothing.stderr.starts_with("This command takes one argument: <allocation>\n"),
        "{}",
        nothing.stderr
    );
}
