//! The life of allocations, read from a log.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Duration as Span, Index, Term};
use history::{History, HistoryError, Object, States, Transition};
use journal::{EncodedBatch, Journal, MemoryJournal, Sink, encode};
use model::command::{EvalEnd, Plan, RegisterJob, Settlement};
use model::document::{Allocation, TaskEvent, TaskState};
use model::event::{AllocsPlaced, EvalOutcome, NewEval};
use model::{Actor, AllocId, Caller, ClientStatus, Command, EvalId, EvalStatus, Event, NodeStatus, Trigger};
use state::State;
use test_world::{World, job_document, key, node_id, reconnected, stop, unknown};

/// What tests wait at most before they fail.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_life_is_told_from_placement_to_purge() {
    let world = busy_world();
    let history = over(&world, None);
    let told = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    let node = node_id(1);
    let expected = format!(
        "-/- -> run/pending by anonymous, evaluation: placed on node {node}\n\
         run/pending -> run/running by node:{node}, report of node {node}: \n\
         run/running -> run/running by anonymous, node {node}: its node is disconnected: Node heartbeat missed\n\
         run/running -> run/unknown by anonymous, evaluation: its node is disconnected\n\
         run/unknown -> run/unknown by anonymous, node {node}: its node is initializing\n\
         run/unknown -> run/running by node:{node}, report of node {node}: \n\
         run/running -> run/running by anonymous, evaluation: its node came back and it stays\n\
         run/running -> run/running by anonymous, operator-stop: asked for: migrate\n\
         run/running -> stop/running by anonymous, evaluation: by the story\n\
         stop/running -> stop/complete by node:{node}, report of node {node}: \n\
         stop/complete -> stop/complete by anonymous, job default/web purged: forgotten once it has ended\n"
    );
    assert_eq!(told.iter().map(line).collect::<String>(), expected);
    assert!(told.is_sorted_by_key(|transition| (transition.index, transition.ordinal)));
    assert!(world.state.allocs.lookup(world.alloc("web[0]")).is_none(), "it is told after it was forgotten");
}

#[test]
fn an_allocation_knows_who_asked_for_its_job() {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    let ada = Caller {
        accessor: "a1".into(),
        name: "ada".into(),
        address: Some([10, 0, 0, 7].into()),
        ..Caller::default()
    };
    let register = RegisterJob::new(job_document("web", "service", Span(0)));
    world.submit_as(Actor::Caller(ada.clone()), Command::RegisterJob(Box::new(register))).unwrap();
    // There is no room: what waits for it is another evaluation, which the scheduler makes.
    let first = world.waiting_eval("web").unwrap();
    let worker = || Actor::Server("worker".to_string());
    let created = world.state.evals.lookup(first).unwrap().facts.clone();
    let blocked = NewEval {
        id: EvalId(77.into()),
        trigger: Trigger::QueuedAllocs,
        status: EvalStatus::Blocked,
        previous: Some(first),
        ..(*created).clone()
    };
    let outcome = EvalOutcome { blocked: Some(blocked.id), ..EvalOutcome::default() };
    let end = EvalEnd { blocked: Some(blocked), ..EvalEnd::complete(outcome) };
    let settlement = Settlement { eval: first, plan: world.plan(), end: Some(end) };
    world.submit_as(worker(), Command::SettleEval(Box::new(settlement))).unwrap();
    let placed = AllocsPlaced { eval: EvalId(77.into()), ..world.placement("web", 0, 1, None) };
    let plan = Plan { placed: vec![placed], ..world.plan() };
    let settlement = Settlement { eval: EvalId(77.into()), plan, end: None };
    world.submit_as(worker(), Command::SettleEval(Box::new(settlement))).unwrap();
    world.report(1, &[("web[0]", "running")]).unwrap();
    let stop =
        Command::StopAlloc { alloc: world.alloc("web[0]"), no_shutdown_delay: false, reschedule: false };
    let grace = Caller { address: Some([10, 0, 0, 8].into()), ..Caller::default() };
    world.submit_as(Actor::Caller(grace.clone()), stop).unwrap();

    let history = over(&world, None);
    let told = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    let who: Vec<_> = told.iter().map(|one| (one.actor.to_string(), one.requester.clone())).collect();
    let node = format!("node:{}", node_id(1));
    let expected = [("server:worker", Some(ada)), (node.as_str(), None), ("anonymous", Some(grace))];
    assert_eq!(who, expected.map(|(actor, requester)| (actor.to_string(), requester)));
    world.check_replay();
}

#[test]
fn an_allocation_nobody_placed_has_no_life() {
    let world = busy_world();
    let history = over(&world, None);
    assert_eq!(history.transitions(AllocId(7.into()), world.state.index, PATIENCE).unwrap(), []);
}

#[test]
fn a_restart_goes_on_where_the_index_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = Some(dir.path().join("history"));
    let world = busy_world();
    let all: Vec<EncodedBatch> = world.log.iter().map(encode).collect();
    let half = all.len() / 2;
    {
        let history =
            History::open(path.clone(), journal(all[..half].to_vec()), Nothing, history::MEMORY).unwrap();
        history.transitions(world.alloc("web[0]"), Index(half as u64), PATIENCE).unwrap();
    }
    let history = History::open(path, journal(all), Nothing, history::MEMORY).unwrap();
    let told = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    let fresh = over(&world, None);
    assert_eq!(told, fresh.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap());
}

#[test]
fn an_index_of_another_log_is_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let path = Some(dir.path().join("history"));
    let (world, mut other) = (busy_world(), World::new());
    drop(settled(over(&world, path.clone()), &world));
    other.now.0 += 1;
    for number in 1..20 {
        other.register_node(number, "a").unwrap();
    }
    let history = settled(over(&other, path), &other);
    assert_eq!(history.transitions(world.alloc("web[0]"), other.state.index, PATIENCE).unwrap(), []);
}

#[test]
fn a_damaged_index_is_put_aside_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history");
    let world = busy_world();
    drop(settled(over(&world, Some(path.clone())), &world));
    for entry in std::fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() && entry.file_name() != "lock" {
            std::fs::write(entry.path(), b"not a database").unwrap();
        }
    }
    let history = over(&world, Some(path.clone()));
    let told = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    assert_eq!(told.len(), 11);
    assert!(path.with_extension("damaged").exists(), "the damaged index is kept for a look");
}

#[test]
fn any_file_of_the_index_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history");
    let world = busy_world();
    drop(settled(over(&world, Some(path.clone())), &world));
    let files: Vec<(PathBuf, Vec<u8>)> = files_below(&path);
    assert!(files.len() > 3, "{files:?}");
    for missing in 0..files.len() {
        std::fs::remove_dir_all(&path).unwrap();
        for (at, (file, bytes)) in files.iter().enumerate() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            if at != missing {
                std::fs::write(file, bytes).unwrap();
            }
        }
        let history = over(&world, Some(path.clone()));
        let told = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
        assert_eq!(told.len(), 11, "without {}", files[missing].0.display());
    }
}

fn files_below(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![(path.clone(), std::fs::read(path).unwrap())],
    };
    std::fs::read_dir(dir).unwrap().flat_map(|entry| read(entry.unwrap().path())).collect()
}

#[test]
fn what_the_log_no_longer_keeps_is_left_out() {
    let world = busy_world();
    let batches = world.log.iter().map(encode).collect();
    let journal = Arc::new(MemoryJournal::with(batches, Deaf));
    let history = History::open(None, journal.clone(), Nothing, history::MEMORY).unwrap();
    let all = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    journal.forget_before(all[2].index);
    let kept = history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    // Where it was is not known any more, so its node is not named either.
    assert_eq!(kept.len(), all.len() - 4);
    assert_eq!((kept[0].old.client, kept[0].new.client), (None, Some(ClientStatus::Unknown)));
    assert_eq!(kept[1].old.client, Some(ClientStatus::Unknown));
}

#[test]
fn a_log_that_has_not_come_so_far_is_waited_for() {
    let world = busy_world();
    let all: Vec<EncodedBatch> = world.log.iter().map(encode).collect();
    let (early, late) = all.split_at(3);
    let journal = journal(early.to_vec());
    let history = History::open(None, journal.clone(), Nothing, history::MEMORY).unwrap();
    let behind = history.transitions(world.alloc("web[0]"), world.state.index, Duration::from_millis(1));
    assert!(matches!(behind, Err(HistoryError::Behind { wanted, .. }) if wanted == world.state.index));
    for batch in late {
        journal.propose(Term(1), batch.clone()).unwrap();
    }
    assert_eq!(history.transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap().len(), 11);
}

#[test]
fn causes_say_why_their_evaluations_were_made() {
    let world = busy_world();
    let told = over(&world, None).transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    let causes: Vec<&str> =
        told.iter().filter(|one| one.eval.is_some()).map(|one| one.cause.as_str()).collect();
    let triggers: Vec<&str> = causes.iter().filter_map(|cause| cause.split(['(', ')']).nth(1)).collect();
    assert_eq!(triggers, ["job-register", "node-update", "node-update", "reconnect"], "{causes:?}");
}

#[test]
fn who_takes_its_place_is_in_the_story_of_the_one_it_replaces() {
    let mut world = World::new();
    for node in [1, 2] {
        world.register_node(node, "a").unwrap();
        world.submit(Command::UpdateNodeStatus { node: node_id(node), claimed: NodeStatus::Ready }).unwrap();
    }
    world.register_job("web", "service", Span::ZERO).unwrap();
    let placed = world.placement("web", 0, 1, None);
    settle(&mut world, |plan| plan.placed.push(placed));
    world.report(1, &[("web[0]", "running")]).unwrap();
    world.report(1, &[("web[0]", "failed")]).unwrap();
    if world.waiting_eval("web").is_none() {
        world.submit(Command::EvaluateJob { key: key("web"), force_reschedule: false }).unwrap();
    }
    let original = world.alloc("web[0]");
    let substitute = world.placement("web", 0, 2, Some(original));
    settle(&mut world, |plan| {
        plan.stopped.push(stop(vec![original], None));
        plan.placed.push(substitute);
    });
    let told = over(&world, None).transitions(original, world.state.index, PATIENCE).unwrap();
    let text = format!("allocation {} takes its place on node {}", world.alloc("web[0]'"), node_id(2));
    assert_eq!(told.iter().filter(|one| one.description == text).count(), 1, "{told:#?}");
    assert_eq!(told.last().unwrap().new.client, Some(ClientStatus::Failed), "the substitute is another one");
    world.check_replay();
}

#[test]
fn restarts_and_exit_codes_are_lines_and_reports_that_change_nothing_are_not() {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.register_job("web", "service", Span::ZERO).unwrap();
    let placed = world.placement("web", 0, 1, None);
    settle(&mut world, |plan| plan.placed.push(placed));
    let event = |kind: &str, time, message: &str| TaskEvent {
        kind: kind.into(),
        time,
        display_message: message.into(),
        ..TaskEvent::default()
    };
    let mut events = vec![event("Started", 1, "Task started by client")];
    let steps = [
        event("Terminated", 5, "Exit Code: 3"),
        event("Restarting", 6, "Task restarting in 1s"),
        event("Started", 7, "Task started by client"),
    ];
    for step in [None].into_iter().chain(steps.into_iter().map(Some)) {
        events.extend(step);
        let task =
            TaskState { state: "running".into(), events: events.clone().into(), ..TaskState::default() };
        let update = Allocation {
            id: world.alloc("web[0]").to_string(),
            client_status: "running".into(),
            task_states: [("main".to_string(), task)].into_iter().collect(),
            ..Allocation::default()
        };
        let node = node_id(1);
        world.submit_as(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] }).unwrap();
    }
    let told = over(&world, None).transitions(world.alloc("web[0]"), world.state.index, PATIENCE).unwrap();
    let after_placement: Vec<&str> = told[1..].iter().map(|one| one.description.as_str()).collect();
    let expected =
        ["", "task \"main\": Terminated: Exit Code: 3", "task \"main\": Restarting: Task restarting in 1s"];
    assert_eq!(after_placement, expected);
    world.check_replay();
}

#[test]
fn jobs_nodes_and_evaluations_have_their_stories() {
    let world = busy_world();
    let history = over(&world, None);
    let told = |object: Object| -> Vec<String> {
        let story = history.story(&object, world.state.index, PATIENCE).unwrap();
        assert!(story.lines.is_sorted_by_key(|line| (line.index, line.ordinal)) && !story.cut_short);
        story.lines.into_iter().map(|line| line.description).collect()
    };
    let job = told(Object::Job(key("web")));
    assert_eq!(
        (job[0].as_str(), job.last().map(String::as_str)),
        ("registered as version 0", Some("purged"))
    );
    let (alloc, node) = (world.alloc("web[0]"), node_id(1));
    let placed = format!("1 allocation of group \"g\" version 0 placed: {alloc} on {node}");
    assert!(job.contains(&placed), "{job:#?}");
    let lines = told(Object::Node(node));
    assert_eq!(lines[0], "joined");
    assert!(lines.contains(&"ready -> disconnected: Node heartbeat missed".to_string()), "{lines:#?}");
    let created = world.log.iter().flat_map(|batch| &batch.events).find_map(|logged| match &logged.event {
        Event::EvalCreated(created) => Some(created.eval.id),
        _ => None,
    });
    let lines = told(Object::Eval(created.unwrap()));
    assert!(lines[0].contains("(job-register) is pending"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("plan made on the state")), "{lines:#?}");
    assert!(lines.contains(&placed), "{lines:#?}");
    assert!(told(Object::Job(key("other"))).is_empty());
}

#[test]
fn forgotten_allocations_are_found_by_the_beginning_of_their_ids() {
    let world = busy_world();
    let history = over(&world, None);
    let alloc = world.alloc("web[0]");
    let found = |prefix: &str| history.allocs_with_prefix(prefix, 2, world.state.index, PATIENCE).unwrap();
    assert!(world.state.allocs.lookup(alloc).is_none());
    assert_eq!(found(&alloc.to_string()[..35]), [alloc]);
    assert_eq!(found(&alloc.to_string()[..11]), [alloc]);
    assert!(found("ffff").is_empty() && found("zz").is_empty());
}

/// One job whose allocation sees everything that can happen to one.
fn busy_world() -> World {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.register_job("web", "service", Span::from_secs(3_600)).unwrap();
    let placed = world.placement("web", 0, 1, None);
    settle(&mut world, |plan| plan.placed.push(placed));
    world.report(1, &[("web[0]", "running")]).unwrap();
    let alloc = world.alloc("web[0]");
    world.submit(Command::MissHeartbeat { node: node_id(1) }).unwrap();
    settle(&mut world, |plan| plan.unknown.push(unknown(vec![alloc])));
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.report(1, &[("web[0]", "running")]).unwrap();
    settle(&mut world, |plan| plan.reconnected.push(reconnected(vec![alloc])));
    world.submit(Command::StopAlloc { alloc, no_shutdown_delay: false, reschedule: false }).unwrap();
    settle(&mut world, |plan| plan.stopped.push(stop(vec![alloc], None)));
    world.report(1, &[("web[0]", "complete")]).unwrap();
    let purge = Command::DeregisterJob {
        key: key("web"),
        purge: true,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    world.submit(purge).unwrap();
    world.check_replay();
    world
}

pub(crate) fn settle(world: &mut World, fill: impl FnOnce(&mut model::command::Plan)) {
    let mut plan = world.plan();
    fill(&mut plan);
    world.settle("web", plan).unwrap();
}

pub(crate) fn over(world: &World, dir: Option<PathBuf>) -> Arc<History> {
    let journal = journal(world.log.iter().map(encode).collect());
    History::open(dir, journal, Nothing, history::MEMORY).unwrap()
}

/// A server that has published nothing.
pub(crate) struct Nothing;

impl States for Nothing {
    fn published(&self) -> Arc<State> {
        Arc::default()
    }

    fn origin(&self) -> Arc<State> {
        Arc::default()
    }
}

fn settled(history: Arc<History>, world: &World) -> Arc<History> {
    history.transitions(AllocId::default(), world.state.index, PATIENCE).unwrap();
    history
}

pub(crate) fn journal(batches: Vec<EncodedBatch>) -> Arc<MemoryJournal> {
    Arc::new(MemoryJournal::with(batches, Deaf))
}

fn line(transition: &Transition) -> String {
    let view = |view: &history::View| {
        let desired = view.desired.map_or("-", |desired| desired.word());
        let client = view.client.map_or("-", |client| client.word());
        format!("{desired}/{client}")
    };
    let Transition { old, new, actor, cause, description, .. } = transition;
    // Evaluations are minted: which one it was is not the point here.
    let cause = if cause.starts_with("evaluation ") { "evaluation" } else { cause };
    format!("{} -> {} by {actor}, {cause}: {description}\n", view(old), view(new))
}

pub(crate) struct Deaf;

impl Sink for Deaf {
    fn committed(&mut self, _batch: EncodedBatch) {}
    fn restored(&mut self, _image: model::Image) {}
    fn leading(&mut self, _term: Term) {}
    fn following(&mut self, _leader: Option<u64>) {}
    fn halted(&mut self, _why: String) {}
}
