//! Namespaces, services, policies, the agent, and what finds a thing by its name.

use crate::commands::support::{ALLOC, Cluster, EVAL, NODE, web_cluster};

#[test]
fn namespaces_are_made_shown_and_deleted() {
    let ops = r#"{"Name": "ops", "Description": "Ours"}"#;
    let cluster = Cluster::answering(&[
        ("GET /v1/namespaces", &format!("[{ops}]")),
        ("GET /v1/namespace/ops", ops),
        ("PUT /v1/namespace", ""),
        ("DELETE /v1/namespace/ops", ""),
    ]);
    assert_eq!(cluster.run(&["namespace", "list"]).stdout, "Name  Description\nops   Ours\n");
    let applied = cluster.run(&["namespace", "apply", "-description", "Mine", "ops"]);
    assert_eq!(applied.stdout, "Successfully applied namespace \"ops\"!\n", "{}", applied.stderr);
    let request = applied.requests.last().unwrap();
    assert!(request.contains(r#""Name":"ops","Description":"Mine""#), "{request}");
    let new = cluster.run(&["namespace", "apply", "fresh"]);
    assert!(new.requests.last().unwrap().contains(r#""Name":"fresh""#), "{:?}", new.requests);
    let status = cluster.run(&["namespace", "status", "op"]);
    assert!(
        status.stdout.starts_with("Name                   = ops\nDescription            = Ours\n"),
        "{}",
        status.stdout
    );
    let inspected = cluster.run(&["namespace", "inspect", "-t", "{{.Name}}", "ops"]);
    assert_eq!(inspected.stdout, "ops\n");
    assert_eq!(
        cluster.run(&["namespace", "delete", "ops"]).stdout,
        "Successfully deleted namespace \"ops\"!\n"
    );
    let file = tempfile::Builder::new().suffix(".hcl").tempfile().unwrap();
    std::fs::write(file.path(), "name = \"filed\"\nmeta {\n  a = \"1\"\n}\n").unwrap();
    let filed = cluster.run(&["namespace", "apply", file.path().to_str().unwrap()]);
    assert_eq!(filed.stdout, "Successfully applied namespace \"filed\"!\n", "{}", filed.stderr);
}

#[test]
fn services_are_listed_and_found() {
    let instance = format!(
        r#"{{"ID": "s1", "ServiceName": "web", "JobID": "web", "Address": "10.0.0.7", "Port": 80, "Tags": ["a"],
            "NodeID": "{NODE}", "AllocID": "{ALLOC}"}}"#
    );
    let cluster = Cluster::answering(&[
        (
            "GET /v1/services",
            r#"[{"Namespace": "default", "Services": [{"ServiceName": "web", "Tags": ["b", "a"]}]}]"#,
        ),
        ("GET /v1/service/web", &format!("[{instance}]")),
        ("GET /v1/service/nope", "[]"),
        ("DELETE /v1/service/web/s1", ""),
    ]);
    assert_eq!(cluster.run(&["service", "list"]).stdout, "Service Name  Tags\nweb           [a,b]\n");
    let all = cluster.run(&["service", "list", "-namespace=*"]);
    assert_eq!(all.stdout, "Service Name  Namespace  Tags\nweb           default    [a,b]\n");
    let info = cluster.run(&["service", "info", "web"]);
    let expected =
        "Job ID  Address      Tags  Node ID   Alloc ID\nweb     10.0.0.7:80  [a]   0badcafe  5d16e7fe\n";
    assert_eq!(info.stdout, expected, "{}", info.stderr);
    assert_eq!(cluster.run(&["service", "info", "nope"]).stdout, "No service registrations found\n");
    let gone = cluster.run(&["service", "delete", "web", "s1"]);
    assert_eq!(gone.stdout, "Successfully deleted service registration\n", "{}", gone.stderr);
}

#[test]
fn status_shows_the_object_with_the_name() {
    let found = |matches: &str| web_cluster().with("PUT /v1/search", &format!(r#"{{"Matches": {matches}}}"#));
    let job = found(r#"{"jobs": ["web"], "nodes": []}"#).run(&["status", "we"]);
    assert!(job.stdout.starts_with("ID            = web\n"), "{}{}", job.stdout, job.stderr);
    assert!(job.requests[0].ends_with(r#"{"Prefix":"we","Context":"all"}"#), "{:?}", job.requests);
    let eval = found(&format!(r#"{{"evals": ["{EVAL}"]}}"#))
        .with("GET /v1/evaluations", &format!(r#"[{{"ID": "{EVAL}", "JobID": "web"}}]"#));
    let eval = eval.run(&["status", "-verbose", &EVAL[..8]]);
    assert!(
        eval.stdout.starts_with(&format!("ID                 = {EVAL}\n")),
        "{}{}",
        eval.stdout,
        eval.stderr
    );
    let many = found(r#"{"jobs": ["we1"], "nodes": ["we2"]}"#).run(&["status", "we"]);
    let expected = "Multiple matches found for id \"we\"\n\nJobs:\nwe1\n\nNodes:\nwe2\n";
    assert_eq!((many.code, many.stderr.as_str()), (1, expected));
    let none = found("{}").run(&["status", "x"]);
    assert_eq!((none.code, none.stderr.as_str()), (1, "Unable to resolve ID: \"x\"\n"));
}

#[test]
fn the_agent_and_its_metadata_are_shown_and_changed() {
    let stats = r#"{"stats": {"client": {"node_id": "n1"}, "raft": {"state": "Leader"}}}"#;
    let cluster = Cluster::answering(&[
        ("GET /v1/agent/self", stats),
        ("GET /v1/agent/servers", r#"["10.0.0.1:4647"]"#),
        ("PUT /v1/agent/servers", ""),
        ("PUT /v1/system/gc", ""),
        ("PUT /v1/system/reconcile/summaries", ""),
        ("GET /v1/agent/monitor", r#"{"Data":"YSBsaW5lCg=="}{}"#),
        (
            "GET /v1/client/metadata",
            r#"{"Meta": {"a": "1"}, "Dynamic": {"a": "1", "b": null}, "Static": {}}"#,
        ),
        ("POST /v1/client/metadata", "{}"),
    ]);
    for (words, expected) in [
        (&["agent-info"][..], "client\n  node_id = n1\nraft\n  state = Leader\n"),
        (&["agent-info", "-t", "{{.stats.raft.state}}"][..], "Leader\n"),
        (&["node", "config", "-servers"][..], "10.0.0.1:4647\n"),
        (&["client-config", "-update-servers", "10.0.0.2"][..], "Updated server list\n"),
        (&["system", "gc"][..], ""),
        (&["system", "reconcile", "summaries"][..], ""),
        (&["monitor", "-log-level=debug"][..], "a line\n"),
        (
            &["node", "meta", "read"][..],
            "All Meta\na = 1\n\nDynamic Meta\na = 1\nb = <unset>\n\nStatic Meta\n",
        ),
        (&["node", "meta", "apply", "-unset=b", "a=2"][..], ""),
    ] {
        let done = cluster.run(words);
        assert_eq!((done.code, done.stdout.as_str()), (0, expected), "{words:?}: {}", done.stderr);
    }
    let applied = cluster.run(&["node", "meta", "apply", "-unset=b", "a=2"]);
    assert!(applied.requests[0].ends_with(r#""Meta":{"a":"2","b":null}}"#), "{:?}", applied.requests);
    let monitored = cluster.run(&["monitor", "-log-level=debug", "-json"]);
    assert!(monitored.requests[0].contains("log_level=debug&log_json=true"), "{:?}", monitored.requests);
}

#[test]
fn policies_are_listed_and_shown() {
    let stub =
        format!(r#"{{"ID": "{EVAL}", "Enabled": true, "Type": "horizontal", "Target": {{"Job": "web"}}}}"#);
    let policy =
        format!(r#"{{"ID": "{EVAL}", "Enabled": true, "Min": 1, "Max": 5, "Target": {{"Job": "web"}}}}"#);
    let cluster = Cluster::answering(&[
        ("GET /v1/scaling/policies", &format!("[{stub}]")),
        (&format!("GET /v1/scaling/policy/{EVAL}"), &policy),
    ]);
    let list = cluster.run(&["scaling", "policy", "list"]);
    assert_eq!(
        list.stdout,
        "ID        Enabled  Type        Target\n11111111  true     horizontal  Job:web\n"
    );
    let info = cluster.run(&["scaling", "policy", "info", "1111"]);
    let head = "ID      = 11111111\nEnabled = true\nTarget  = Job:web\nMin     = 1\nMax     = 5\n\nPolicy\n";
    assert!(info.stdout.starts_with(head), "{}{}", info.stdout, info.stderr);
}

#[test]
fn evaluations_are_listed_page_by_page_and_deleted() {
    let eval = format!(r#"{{"ID": "{EVAL}", "JobID": "web", "Status": "complete", "Priority": 50}}"#);
    let cluster = Cluster::answering(&[
        ("GET /v1/evaluations", &format!("[{eval}]")),
        ("GET /v1/evaluations/count", r#"{"Count": 2}"#),
        ("DELETE /v1/evaluations", r#"{"Count": 2}"#),
    ]);
    let list = cluster.run(&["eval", "list", "-job=web", "-status", "complete", "-per-page", "1"]);
    assert!(list.stdout.starts_with("ID        Priority  Triggered By  Job ID"), "{}", list.stdout);
    assert!(list.requests[0].contains("per_page=1&job=web&status=complete"), "{:?}", list.requests);
    let gone = cluster.run(&["eval", "delete", "-yes", "-filter", "Status == \"complete\""]);
    assert_eq!(gone.stdout, "Successfully deleted 2 evaluation(s)\n", "{}", gone.stderr);
    let output = cluster.run(&["eval", "delete", "-filter", "Status == \"complete\""]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("no eval delete. -yes asks no questions"), "{}", output.stderr);
    let mut rejecting = cluster.with("DELETE /v1/evaluations", "400 not now");
    for (paused, advises) in [(false, true), (true, false)] {
        let config = format!(r#"{{"SchedulerConfig": {{"PauseEvalBroker": {paused}}}}}"#);
        rejecting = rejecting.with("GET /v1/operator/scheduler/configuration", &config);
        let rejected = rejecting.run(&["eval", "delete", "-yes", "-filter", "x"]);
        assert!(rejected.stderr.contains("not now"), "{}", rejected.stderr);
        assert_eq!(
            rejected.stderr.contains("Pause the evaluation broker first"),
            advises,
            "{}",
            rejected.stderr
        );
    }
    let none = Cluster::answering(&[("GET /v1/evaluations", "[]")]).run(&["eval", "list"]);
    assert_eq!(none.stdout, "No evals found\n");
}
