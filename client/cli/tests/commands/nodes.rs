//! Nodes: status, drain and eligibility.

use crate::commands::support::{Cluster, NODE, without_times};

/// A cluster with one node without allocations.
fn emptied(last_drain: &str) -> Cluster {
    let stub = format!(r#"[{{"ID": "{NODE}", "Name": "n1"}}]"#);
    let node = format!(r#"{{"ID": "{NODE}", "Name": "n1", "LastDrain": {{"Status": "{last_drain}"}}}}"#);
    Cluster::answering(&[
        ("GET /v1/nodes", &stub),
        (&format!("GET /v1/node/{NODE}"), &node),
        (&format!("GET /v1/node/{NODE}/allocations"), "[]"),
        (&format!("PUT /v1/node/{NODE}/drain"), "{}"),
        (&format!("PUT /v1/node/{NODE}/eligibility"), "{}"),
    ])
}

#[test]
fn a_node_is_drained_and_monitored() {
    let cluster = emptied("complete");
    let drained = cluster.run(&["node", "drain", "-enable", NODE]);
    assert_eq!(drained.code, 0, "{}", drained.stderr);
    let expected = format!(
        "    T: Ctrl-C to stop monitoring: will not cancel the node drain\n    T: Node \"{NODE}\" drain strategy \
         set\n    T: Drain complete for node {NODE}\n    T: All allocations on node \"{NODE}\" have stopped\n"
    );
    assert_eq!(without_times(&drained.stdout), expected);
    let detached = cluster.run(&["node", "drain", "-enable", "-yes", "-detach", "0bad"]);
    assert_eq!(detached.stdout, format!("Node \"{NODE}\" drain strategy set\n"));
    let off = cluster.run(&["node", "drain", "-disable", NODE]);
    assert_eq!(off.stdout, format!("Node \"{NODE}\" drain strategy unset\n"));
    let canceled = emptied("canceled").run(&["node", "drain", "-monitor", NODE]);
    assert_eq!(
        (canceled.code, without_times(&canceled.stdout)),
        (1, format!("    T: Drain canceled for node {NODE}\n"))
    );
}

#[test]
fn a_shortened_node_id_is_confirmed() {
    let output = emptied("complete").run(&["node", "drain", "-enable", "0bad"]);
    let question = format!("Are you sure you want to enable drain mode for node \"{NODE}\"? [y/N] ");
    assert_eq!((output.code, output.stdout), (1, question + "\n"));
    assert!(output.stderr.contains("no drain. -yes asks no questions"), "{}", output.stderr);
}

#[test]
fn a_drain_that_contradicts_itself_is_not_begun() {
    for (flags, wrong) in [
        (&["-enable", "-disable"][..], "Either the '-enable' or '-disable' flag must be set"),
        (&[][..], "Either the '-enable' or '-disable' flag must be set"),
        (&["-enable", "-deadline", "1h", "-force"][..], "The '-deadline' flag excludes"),
        (&["-enable", "-no-deadline", "-force"][..], "The '-force' flag excludes"),
        (&["-enable", "-deadline", "-5s"][..], "A positive duration must be given"),
        (&["-enable", "-deadline", "soon"][..], "expected a duration"),
        (&["-enable", "-meta", "why"][..], "expected KEY=VALUE"),
        (&["-disable", "-force"][..], "The '-force' flag needs '-enable'"),
        (&["-enable", "-keep-ineligible"][..], "The '-keep-ineligible' flag needs '-disable'"),
    ] {
        let words: Vec<&str> =
            ["node", "drain"].into_iter().chain(flags.iter().copied()).chain([NODE]).collect();
        let refused = Cluster::answering(&[]).run(&words);
        assert_eq!(refused.code, 1, "{flags:?}");
        assert!(refused.stderr.contains(wrong), "{flags:?}: {}", refused.stderr);
    }
}

#[test]
fn the_eligibility_of_a_node_is_changed() {
    for (flag, word) in [("-enable", "eligible"), ("-disable", "ineligible")] {
        let set = emptied("complete").run(&["node", "eligibility", flag, NODE]);
        let expected = format!("Node \"{NODE}\" scheduling eligibility set: {word} for scheduling\n");
        assert_eq!((set.code, set.stdout), (0, expected));
    }
}

#[test]
fn a_node_is_shown_without_its_statistics() {
    let node = format!(
        r#"{{"ID": "{NODE}", "Name": "n1", "Status": "ready", "Drivers": {{"raw_exec": {{"Detected": true, "Healthy": true}}}}}}"#
    );
    let cluster = Cluster::answering(&[
        ("GET /v1/nodes", &format!(r#"[{{"ID": "{NODE}", "Name": "n1", "Status": "ready"}}]"#)),
        (&format!("GET /v1/node/{NODE}"), &node),
        (&format!("GET /v1/node/{NODE}/allocations"), "[]"),
    ]);
    let list = cluster.run(&["node", "status"]);
    assert!(list.stdout.starts_with("ID        Node Pool  DC      Name  Class"), "{}", list.stdout);
    let shown = cluster.run(&["node", "status", "0bad"]);
    assert_eq!(shown.code, 0);
    assert!(shown.stdout.contains("Driver Status   = raw_exec\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("\nAllocated Resources\n"), "{}", shown.stdout);
    assert!(
        shown.stderr.starts_with("error fetching node stats: Unexpected response code: 404"),
        "{}",
        shown.stderr
    );
}
