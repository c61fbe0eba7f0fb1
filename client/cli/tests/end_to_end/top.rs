//! `top` in a real terminal, against a real agent.

use std::process::Command;

use rustix::process::Signal;

use crate::end_to_end::support::terminal::Terminal;
use crate::end_to_end::support::*;

const SIZE: (u16, u16) = (24, 110);

const LEFT: &str = "\u{1b}[D";
const RIGHT: &str = "\u{1b}[C";

fn top(agent: &Agent, flags: &[&str]) -> Command {
    let mut command = program(&sojourn());
    command.env("NOMAD_ADDR", format!("http://{}", agent.config.http)).arg("top").args(flags);
    command
}

/// The index that the screen is of.
fn index(screen: &str) -> Option<u64> {
    screen.split("index ").nth(1)?.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_job_is_shown_live_and_scrubbing_back_shows_the_moment_before_it_existed() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").start();
    agent.wait_for_a_ready_node();
    let mut terminal = Terminal::start(top(&agent, &[]), SIZE);
    terminal.shows("an empty cluster", |screen| screen.contains("LIVE index") && screen.contains("no jobs"));
    agent.register(&staying("stay"));
    // Nobody presses a key: what is new is shown by itself.
    let row = |screen: &str| screen.lines().find(|line| line.starts_with("stay ")).map(str::to_string);
    terminal.shows("a job that runs", |screen| row(screen).is_some_and(|row| row.contains("running")));
    terminal.type_text("p");
    let mut screen = terminal.shows("a pause", |screen| screen.contains("PAST index"));
    let mut at = index(&screen).unwrap();
    // One batch of the log after the other, until the job is not there yet.
    while row(&screen).is_some() {
        terminal.type_text(LEFT);
        at -= 1;
        screen = terminal.shows("the batch before", |screen| index(screen) == Some(at));
    }
    assert!(screen.contains("no jobs"), "{screen}");
    terminal.type_text(RIGHT);
    terminal.shows("the job's first batch", |screen| index(screen) == Some(at + 1) && row(screen).is_some());
    terminal.type_text("l");
    terminal.shows("the present", |screen| screen.contains("LIVE index") && row(screen).is_some());
    terminal.type_text("\r");
    terminal.shows("its allocation", |screen| screen.contains("of job stay") && screen.contains("stay."));
    terminal.type_text("\r");
    terminal.shows("why it is there", |screen| screen.contains("wanted: run"));
    terminal.type_text("q");
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.is_restored());
}

#[test]
fn a_lost_agent_is_said_and_found_again_and_a_signal_restores_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let mut agent = AgentConfig::server_and_client(directory.path(), "one").start();
    agent.wait_for_a_ready_node();
    let mut terminal = Terminal::start(top(&agent, &["-view", "nodes"]), SIZE);
    terminal.shows("the node", |screen| screen.contains("nodes 1: 1 ready"));
    terminal.resize(10, 60);
    terminal
        .shows("the smaller screen", |screen| screen.contains("LIVE index") && screen.lines().count() == 10);
    agent.interrupt();
    terminal.shows("that nobody answers", |screen| screen.contains("LOST index"));
    let agent = agent.config.clone().start();
    agent.wait_for_a_ready_node();
    terminal.shows("the present again", |screen| screen.contains("LIVE index") && screen.contains("1 ready"));
    terminal.send(Signal::TERM);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.is_restored());
}

#[test]
fn without_a_terminal_it_prints_one_screen_if_asked() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").start();
    agent.wait_for_a_ready_node();
    let before = agent.run(&["top", "-once", "-view", "nodes"]).expect_success();
    assert!(before.contains("servers 1/1 alive") && before.contains("nodes 1: 1 ready"), "{before}");
    let then = index(&before).unwrap();
    agent.register(&staying("stay"));
    let alloc = agent.running("stay");
    let jobs = agent.run(&["top", "-once"]).expect_success();
    assert!(jobs.contains("\nstay "), "{jobs}");
    let allocs = agent.run(&["top", "-once", "-view=allocs"]).expect_success();
    assert!(allocs.contains(&alloc[..8]) && allocs.contains("running"), "{allocs}");
    let events = agent.run(&["top", "-once", "-view=events"]).expect_success();
    assert!(events.contains("JobRegistered"), "{events}");
    let past = agent.run(&["top", "-once", &format!("-as-of={then}")]).expect_success();
    assert!(past.starts_with(&format!("PAST index {then}")) && past.contains("no jobs"), "{past}");
    let refused = agent.run(&["top"]).expect_failure();
    assert!(refused.contains("no terminal: -once prints one screen"), "{refused}");
    let wrong = agent.run(&["top", "-once", "-view=things"]).expect_failure();
    assert!(wrong.contains("expected one of nodes, jobs, allocs, evals, events"), "{wrong}");
}
