//! Stories: commands in, events out, read as text. `UPDATE_STORIES=1` writes what happens into the files;
//! a person reads the difference.

use std::fmt::Write;
use std::path::Path;

use base::Duration;
use model::command::Plan;
use model::{Actor, ClientStatus, Command, Event, NodeStatus, Subject};
use rules::Decision;
use test_world::{World, key, node_id, node_number, preempt, reconnected, stop, unknown};

#[test]
fn every_story_goes_as_it_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 9, "the stories are where they belong");
    for file in files {
        let told = std::fs::read_to_string(&file).unwrap();
        let happened = run(&told);
        if std::env::var_os("UPDATE_STORIES").is_some() {
            std::fs::write(&file, &happened).unwrap();
        }
        let name = file.file_name().unwrap().to_string_lossy();
        assert!(told == happened || std::env::var_os("UPDATE_STORIES").is_some(), "{name}\n{happened}");
    }
}

/// Runs a story and writes it again, with what really happened below each `---`.
fn run(told: &str) -> String {
    let mut story = World::new();
    let mut retold = String::new();
    for scene in told.trim_end().split("\n\n") {
        let mut happened = String::new();
        for line in scene.lines().take_while(|line| *line != "---") {
            writeln!(retold, "{line}").unwrap();
            if !line.starts_with('#') {
                perform(&mut story, line, &mut happened);
            }
        }
        if scene.lines().any(|line| line == "---") {
            write!(retold, "---\n{happened}").unwrap();
        }
        retold.push('\n');
    }
    story.check_replay();
    format!("{}\n", retold.trim_end())
}

fn perform(story: &mut World, line: &str, out: &mut String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = story.state.index;
    let outcome = act(story, &words);
    match outcome {
        Err(rejection) => writeln!(out, "refused: {rejection}").unwrap(),
        Ok(text) if !text.is_empty() => writeln!(out, "{text}").unwrap(),
        Ok(_) if story.state.index == before => writeln!(out, "nothing changes").unwrap(),
        Ok(_) => {}
    }
    for batch in story.log.iter().filter(|batch| batch.index > before) {
        for logged in &batch.events {
            writeln!(out, "{} {}", batch.index, tell(story, &logged.event)).unwrap();
        }
    }
}

fn act(story: &mut World, words: &[&str]) -> Result<String, model::Rejection> {
    let number = |at: usize| words[at].parse::<u128>().expect("a node is a number in a story");
    let silent = |_: Decision| String::new();
    match words[0] {
        "after" => {
            story.now = story.now.plus(words[1].parse().expect("a duration"));
            Ok(format!("the clock moves {}", words[1]))
        }
        "register" => story.register_node(number(1), words.get(2).unwrap_or(&"r1")).map(silent),
        "status" => {
            let (node, claimed) =
                (node_id(number(1)), NodeStatus::from_word(words[2]).expect("a node status"));
            story.submit_as(Actor::Node(node), Command::UpdateNodeStatus { node, claimed }).map(silent)
        }
        "miss" => story.submit(Command::MissHeartbeat { node: node_id(number(1)) }).map(silent),
        "forget" => story.submit(Command::DeregisterNode { node: node_id(number(1)) }).map(silent),
        "job" => {
            let lost_after = words.get(3).map_or(Duration::ZERO, |text| text.parse().expect("a duration"));
            story.register_job(words[1], words[2], lost_after).map(silent)
        }
        "stop-job" | "purge-job" => {
            let purge = words[0] == "purge-job";
            let key = key(words[1]);
            let command =
                Command::DeregisterJob { key, purge, eval_priority: None, no_shutdown_delay: false };
            story.submit(command).map(silent)
        }
        "evaluate" => {
            story.submit(Command::EvaluateJob { key: key(words[1]), force_reschedule: false }).map(silent)
        }
        "stop" => {
            let alloc = story.alloc(words[1]);
            let command = Command::StopAlloc { alloc, no_shutdown_delay: false, reschedule: false };
            story.submit(command).map(silent)
        }
        "report" => {
            let told: Vec<(&str, &str)> =
                words[2..].iter().map(|word| word.split_once('=').unwrap()).collect();
            story.report(number(1), &told).map(silent)
        }
        "plan" => plan(story, &words[1..]),
        "show" => Ok(show(story, words[1])),
        other => panic!("no story knows how to {other}"),
    }
}

/// `plan JOB [on INDEX] VERB ARGS, VERB ARGS …`: settles the job's oldest evaluation.
fn plan(story: &mut World, words: &[&str]) -> Result<String, model::Rejection> {
    let (job, mut rest) = (words[0], &words[1..]);
    let mut plan: Plan = story.plan();
    if let ["seen", index, tail @ ..] = rest {
        plan.snapshot = base::Index(index.parse().expect("an index"));
        rest = tail;
    }
    for step in rest.join(" ").split(", ").filter(|step| !step.is_empty()) {
        match step.split(' ').collect::<Vec<_>>()[..] {
            ["place", index, "on", node] => {
                plan.placed.push(story.placement(job, index.parse().unwrap(), node.parse().unwrap(), None));
            }
            ["replace", old, "on", node] => {
                let previous = story.alloc(old);
                let index = story.state.allocs.lookup(previous).unwrap().name_index;
                plan.placed.push(story.placement(job, index, node.parse().unwrap(), Some(previous)));
            }
            ["stop", alloc] => plan.stopped.push(stop(vec![story.alloc(alloc)], None)),
            ["lose", alloc] => plan.stopped.push(stop(vec![story.alloc(alloc)], Some(ClientStatus::Lost))),
            ["preempt", alloc] => plan.preempted.push(preempt(story.alloc(alloc), &plan)),
            ["unknown", alloc] => plan.unknown.push(unknown(vec![story.alloc(alloc)])),
            ["reconnect", alloc] => plan.reconnected.push(reconnected(vec![story.alloc(alloc)])),
            _ => panic!("no plan knows how to {step}"),
        }
    }
    let verdict = story.settle(job, plan)?;
    let reasons: Vec<String> =
        verdict.rejected.iter().map(|node| format!("n{}: {}", node_number(node.node), node.reason)).collect();
    Ok(if verdict.full { String::new() } else { format!("rejected {}", reasons.join(", ")) })
}

fn show(story: &World, what: &str) -> String {
    if let Ok(number) = what.parse() {
        let row = story.state.nodes.find(node_id(number)).expect("the node is registered");
        let hot = story.state.nodes.hot(row);
        let work = if hot.takes_work() { "takes work" } else { "takes no work" };
        return format!("n{number} is {}, {work}, {} MHz taken", hot.status, hot.used.cpu_mhz);
    }
    if let Some(job) = story.state.jobs.lookup(&key(what)) {
        return format!("{what} is {}, {} live", job.status, job.live_allocs);
    }
    let alloc = story.state.allocs.lookup(story.alloc(what)).expect("the allocation is known");
    let states: Vec<&str> = alloc.states.iter().map(|state| state.status.word()).collect();
    format!("{what} is wanted to {}, is {}, was [{}]", alloc.desired, alloc.client, states.join(" "))
}

fn tell(story: &World, event: &Event) -> String {
    let allocs =
        |ids: &[model::AllocId]| ids.iter().map(|id| story.alloc_name(*id)).collect::<Vec<_>>().join(" ");
    let said = match event {
        Event::NodeStatusChanged(e) => format!("n{} {} -> {}", node_number(e.node), e.from, e.to),
        Event::NodeEligibilityChanged(e) => format!("n{} {}", node_number(e.node), e.to),
        Event::NodeMessagesEmitted(e) => format!("n{} {}", node_number(e.node), e.messages.len()),
        Event::JobRegistered(e) => format!("{} version {}", e.key.id, e.version),
        Event::EvalCreated(e) => format!("{} {} {}", e.eval.key.id, e.eval.trigger, e.eval.status),
        Event::EvalUpdated(e) => format!("{} {}", trigger(story, e.eval), e.status),
        Event::EvalsCanceled(e) => {
            let triggers: Vec<String> = e.evals.iter().map(|eval| trigger(story, *eval)).collect();
            format!("{} ({})", triggers.join(" "), e.cause.split('"').next().unwrap_or_default().trim())
        }
        Event::PlanCommitted(e) => format!("rejected {}", e.rejected.len()),
        Event::AllocsPlaced(e) => format!("{} on n{}", allocs(&e.ids), node_number(e.nodes[0])),
        Event::AllocsStopped(e) => {
            format!("{}{}", allocs(&e.allocs), e.client.map(|c| format!(" as {c}")).unwrap_or_default())
        }
        Event::AllocsPreempted(e) => format!("{} by {}", allocs(&e.allocs), story.alloc_name(e.by)),
        Event::AllocReported(e) => format!("{} {} -> {}", story.alloc_name(e.alloc), e.from, e.to),
        Event::AllocTransitionRequested(e) => format!("{} {}", allocs(&e.allocs), e.cause),
        Event::NodeDrainEnded(e) => format!("n{} {}", node_number(e.node), e.status),
        Event::NodePoolUpserted(e) => e.name.clone(),
        Event::NodePoolDeleted(e) => e.name.clone(),
        Event::NamespaceUpserted(e) => e.name.clone(),
        Event::NamespaceDeleted(e) => e.name.clone(),
        Event::JobLaunched(e) => format!("{} as {}", e.key.id, e.child),
        Event::JobScaled(e) => format!("{} {}", e.key.id, e.group),
        Event::JobVersionTagged(e) => format!("{} version {} {}", e.key.id, e.version, e.name),
        Event::JobVersionUntagged(e) => format!("{} {}", e.key.id, e.name),
        Event::AllocHealthSet(e) => format!("{} {}", allocs(&e.allocs), e.healthy),
        Event::JobStabilityChanged(e) => format!("{} version {} {}", e.key.id, e.version, e.stable),
        Event::DeploymentCreated(e) => format!("of {} version {}", e.key.id, e.version),
        Event::DeploymentGoalsChanged(e) => {
            let goals = e.groups.iter().map(|goal| format!("{} {}", goal.group, goal.desired_total));
            goals.collect::<Vec<_>>().join(" ")
        }
        Event::DeploymentStatusChanged(e) => format!("{} ({})", e.status, e.description),
        Event::DeploymentPromoted(e) => e.groups.join(" "),
        Event::VolumeRegistered(e) => e.volume.to_string(),
        Event::VolumeDeregistered(e) => e.volume.to_string(),
        _ => subject(story, event.subject()),
    };
    format!("{} {said}", event.name()).trim_end().to_string()
}

fn subject(story: &World, subject: Subject<'_>) -> String {
    match subject {
        Subject::Cluster => String::new(),
        Subject::Node(id) => format!("n{}", node_number(id)),
        Subject::Job(key) => key.id.clone(),
        Subject::Evals(ids) => ids.iter().map(|id| trigger(story, *id)).collect::<Vec<_>>().join(" "),
        Subject::Allocs(ids) => ids.iter().map(|id| story.alloc_name(*id)).collect::<Vec<_>>().join(" "),
        Subject::Deployment(id) => id.to_string(),
    }
}

fn trigger(story: &World, eval: model::EvalId) -> String {
    story.state.evals.lookup(eval).map_or_else(|| "?".to_string(), |eval| eval.facts.trigger.to_string())
}
