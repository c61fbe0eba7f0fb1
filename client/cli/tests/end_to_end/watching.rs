//! `-watch` and `-o wide`, against a real agent.

use rustix::process::Signal;
use serde_json::Value;

use crate::end_to_end::support::terminal::Terminal;
use crate::end_to_end::support::*;

fn with_job(directory: &std::path::Path) -> Agent {
    let agent = AgentConfig::server_and_client(directory, "one").start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("stay"));
    agent.running("stay");
    agent
}

#[test]
fn what_has_changed_is_printed_after_a_line_until_an_interrupt() {
    let directory = tempfile::tempdir().unwrap();
    let agent = with_job(directory.path());
    let mut watching = agent.follow(&["job", "status", "-watch", "stay"]);
    let mut jsons = agent.follow(&["job", "status", "-watch", "-json", "stay"]);
    let of_line = |line: String| -> String {
        let status: Value = serde_json::from_str(&line).unwrap();
        status[0]["Allocations"][0]["ClientStatus"].as_str().unwrap().to_string()
    };
    assert_eq!(watching.line(), "ID            = stay");
    eventually("it runs", || watching.line().contains("= running").then_some(()));
    assert_eq!(of_line(jsons.line()), "running");
    agent.run(&["job", "stop", "-detach", "stay"]).expect_success();
    eventually("another version", || (watching.line() == "---").then_some(()));
    eventually("it is dead", || watching.line().contains("= dead (stopped)").then_some(()));
    eventually("it is complete", || (of_line(jsons.line()) == "complete").then_some(()));
    assert_eq!((watching.interrupt(), jsons.interrupt()), (0, 0));
}

#[test]
fn on_a_terminal_each_version_takes_the_place_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let agent = with_job(directory.path());
    let mut command = program(&sojourn());
    command.env("NOMAD_ADDR", format!("http://{}", agent.config.http));
    command.args(["node", "status", "-watch"]);
    let mut terminal = Terminal::start(command, (20, 120));
    let eligible = |screen: &str, word: &str| {
        screen.starts_with("node status  changed at ")
            && screen.lines().any(|line| line.contains(&format!("  {word}  ")))
    };
    terminal.shows("a node", |screen| eligible(screen, "eligible"));
    let node = agent.get("/v1/nodes")[0]["ID"].as_str().unwrap().to_string();
    agent.run(&["node", "eligibility", "-disable", &node]).expect_success();
    terminal.shows("what became of it", |screen| eligible(screen, "ineligible"));
    terminal.send(Signal::INT);
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn what_excludes_watching_is_refused_and_so_is_what_is_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let agent = with_job(directory.path());
    for (flag, why) in [("-as-of=-1m", "what was does not change"), ("-ui", "opened again and again")] {
        let refused = agent.run(&["job", "status", "-watch", flag, "stay"]).expect_failure();
        assert!(refused.contains("exclude each other") && refused.contains(why), "{refused}");
    }
    let missing = agent.run(&["job", "status", "-watch", "nothing"]).expect_failure();
    assert!(missing.contains("No job(s) with prefix or ID \"nothing\" found"), "{missing}");
}

#[test]
fn wide_tables_have_more_columns_and_no_other_format_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let agent = with_job(directory.path());
    let run = |arguments: &[&str]| agent.run(arguments).expect_success();
    let nodes = run(&["node", "status", "-o", "wide"]);
    assert!(nodes.contains("Drivers") && nodes.contains("raw_exec") && nodes.contains(" MHz"), "{nodes}");
    assert!(!run(&["node", "status"]).contains("Drivers"));
    let jobs = run(&["job", "status", "-o=wide"]);
    assert!(jobs.contains("Node Pool  Datacenters  Running  Queued  Failed"), "{jobs}");
    let allocs = run(&["job", "allocs", "-o=wide", "stay"]);
    assert!(allocs.contains("Node Name") && allocs.contains("stay."), "{allocs}");
    assert!(run(&["eval", "list", "-o=wide"]).contains("Modified"));
    assert!(run(&["server", "members", "-o=wide"]).contains("Tags"));
    let wrong = agent.run(&["node", "status", "-o", "narrow"]).expect_failure();
    assert!(wrong.starts_with("invalid value \"narrow\" for flag -o: expected wide\n"), "{wrong}");
    let both = agent.run(&["node", "status", "-o=wide", "-json"]).expect_failure();
    assert!(both.starts_with("-o is about tables"), "{both}");
}
