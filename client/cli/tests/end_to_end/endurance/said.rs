//! What the tasks have said: whether a line was lost, whether two starts ran at once, and with which code one has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use bollard::query_parameters::LogsOptions;
use futures_util::stream::StreamExt;
use serde_json::Value;

use crate::end_to_end::support::AgentConfig;
use crate::end_to_end::support::engine::TestEngine;

/// With which a task ends by itself, see [`ENDING`](super::tasks::ENDING).
const OWN_CODES: RangeInclusive<i64> = 1..=100;

/// What one start of a task has said.
#[derive(Debug)]
pub struct Start {
    pub name: String,
    /// The number of its last line.
    pub last: u64,
    pub missing: Vec<u64>,
    /// With which code it said that it ends.
    pub code: Option<i64>,
}

/// All starts of the task; checks that they came one after the other, that no line came twice, and that none is missing. An
/// engine that is killed may have read a line of a container that it has not written down yet: nobody has that.
pub fn starts(config: &AgentConfig, driver: &str, alloc: &str) -> Vec<Start> {
    let logs = config.home.join("data/alloc").join(alloc).join("alloc/logs");
    // Nothing is there before the first start.
    let said = std::fs::read(logs.join("main.stdout.0")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let mut starts: Vec<Start> = Vec::new();
    // The last one may be half written, as may the last one of a start that was killed.
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    for line in whole.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let (name, number, code) = match parts[..] {
            [name, number] => (name, number.parse::<u64>().ok(), None),
            [name, "ends", code] => (name, None, code.parse::<i64>().ok()),
            _ => ("", None, None),
        };
        if number.is_none() && code.is_none() {
            // The firmware of a machine speaks too.
            assert!(driver == "qemu", "{driver} {alloc}: {line:?}");
            continue;
        }
        if starts.last().is_none_or(|newest| newest.name != name) {
            assert!(
                starts.iter().all(|earlier| earlier.name != name),
                "{driver} {alloc} ran twice at once: {starts:?}"
            );
            let (last, missing) = (number.unwrap_or(0), (0..number.unwrap_or(0)).collect());
            starts.push(Start { name: name.to_string(), last, missing, code });
        } else if let Some(newest) = starts.last_mut() {
            assert!(newest.code.is_none(), "{driver} {alloc} went on after its end: {line}");
            newest.code = code;
            if let Some(number) = number {
                assert!(number > newest.last, "{driver} {alloc} repeated a line of {name}");
                newest.missing.extend(newest.last + 1..number);
                newest.last = number;
            }
        }
    }
    let lost = starts.iter().find(|start| driver != "docker" && !start.missing.is_empty());
    assert!(lost.is_none(), "{driver} {alloc} lost a line: {lost:?}");
    starts
}

/// What was done to a task from outside, and so may be how it ended.
#[derive(Debug, Default)]
pub struct Killed {
    /// The allocations whose executor was killed.
    pub executors: BTreeSet<String>,
    /// Those a process of whose task was killed.
    pub tasks: BTreeSet<String>,
    /// How often the engine of a driver was killed.
    pub engines: BTreeMap<&'static str, u32>,
}

/// A task that ended by itself is reported with its own code. What else may be said of it is true as well:
/// * that its executor died, if that was killed: nobody else has seen the end;
/// * SIGKILL, if the task was killed and had not yet ended by itself;
/// * 0 or 255 of a container, if the docker engine was killed since it began: one that takes the end of a container from containerd
///   and is killed before it has written that down says so for ever, and nobody else has the code;
/// * its own code, which it has not said as far as the engine knows, if that was killed since: see [`starts`];
/// * that it has not begun, if its engine was killed since, or its executor: no other start is allowed.
///
/// `engine_before` is how often its engine was killed when it last answered before the job was registered. Returns whether it was its own code.
pub fn ended_truthfully(
    config: &AgentConfig,
    driver: &str,
    alloc: &Value,
    killed: &Killed,
    engine_before: u32,
) -> bool {
    let id = alloc["ID"].as_str().unwrap();
    let starts = starts(config, driver, id);
    let events = alloc["TaskStates"]["main"]["Events"].as_array().unwrap();
    let all: Vec<&Value> = events.iter().filter(|event| event["Type"] == "Terminated").collect();
    let told = || format!("{driver} {id}: {events:?}, said {starts:?}, killed {killed:?}");
    let engine_killed = killed.engines.get(driver).is_some_and(|kills| *kills > engine_before);
    let failed = events.iter().any(|event| event["Type"] == "Driver Failure");
    let lost_its_helper = engine_killed || killed.executors.contains(id);
    if all.is_empty() && starts.is_empty() && failed && lost_its_helper {
        return false;
    }
    assert_eq!(all.len(), 1, "its end is reported, and it is not started again: {}", told());
    let last = all[0];
    let detail = |name: &str| last["Details"][name].as_str().unwrap_or_default().to_string();
    let reported: i64 = detail("exit_code").parse().unwrap();
    let said = starts.last().and_then(|start| start.code);
    if Some(reported) == said && detail("signal") == "0" {
        return true;
    }
    let executor_died = killed.executors.contains(id) && detail("exit_message").contains("the executor died");
    // What becomes an isolated task looks like an executor until then.
    let is_victim = killed.tasks.contains(id) || killed.executors.contains(id);
    let was_killed = is_victim && reported == 137 && said.is_none();
    let forgotten = driver == "docker" && engine_killed && [0, 255].contains(&reported);
    let unheard = driver == "docker" && engine_killed && said.is_none() && OWN_CODES.contains(&reported);
    let is_true = executor_died || was_killed || forgotten || unheard;
    assert!(is_true, "its end is not reported as it was: {}", told());
    false
}

/// What is missing of a container that runs, its engine has not.
pub fn not_in_engine(engine: &TestEngine, alloc: &str, start: &Start) {
    if start.missing.is_empty() {
        return;
    }
    let containers = engine.containers(alloc);
    let said: String = containers.iter().map(|found| output(engine, found.id.clone().unwrap())).collect();
    assert!(said.contains(&format!("{} {}\n", start.name, start.last)), "the engine has the output");
    for number in &start.missing {
        assert!(!said.contains(&format!("{} {number}\n", start.name)), "{alloc} lost a line: {start:?}");
    }
    eprintln!("the engine lost lines of a container: {start:?}");
}

/// All that a container has said, as the engine has it.
fn output(engine: &TestEngine, container: String) -> String {
    let options = LogsOptions { stdout: true, stderr: true, ..LogsOptions::default() };
    engine.ask(async move |client| {
        let pieces = client.logs(&container, Some(options)).map(|piece| piece.unwrap().to_string());
        pieces.collect::<Vec<String>>().await.concat()
    })
}
