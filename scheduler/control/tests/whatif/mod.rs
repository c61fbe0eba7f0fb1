//! What a fork says, and that it is what happens.

mod cluster;
mod kept;
mod truth;

use std::sync::Arc;

use base::Duration;
use control::whatif::{
    Change, DURATION_MAX, Question, Refused, Unfound, Until, find_datacenter, find_node, forecast,
};
use model::command::RegisterJob;
use model::document::{ForkResult, Job};
use model::{JobKey, NodeId, Rejection, SchedulerRules};
use state::State;
use test_world::{key, node_id};

use cluster::{Cluster, service};

pub fn question(changes: Vec<Change>) -> Question {
    Question { changes, until: Until::Quiet, now: base::Time::ZERO, job_count_max: 50_000 }
}

pub fn ask(state: &Arc<State>, changes: Vec<Change>) -> ForkResult {
    forecast(state, &question(changes), &|| true).unwrap()
}

fn register(job: Job) -> Change {
    Change::Job(Box::new(RegisterJob::new(job)))
}

/// Three nodes of 1,024 MiB, and four allocations of 200 MiB.
fn small() -> Cluster {
    let mut cluster = Cluster::new(1);
    for number in 1..=3 {
        cluster.node(number, |node| node.datacenter = format!("dc{}", number % 2));
    }
    cluster.register(service("web", 4, 200, |_| {}));
    cluster.settle();
    cluster
}

fn busiest(state: &State) -> NodeId {
    let most = state.nodes.rows().max_by_key(|row| state.nodes.hot(*row).allocs).unwrap();
    state.nodes.cold(most).id
}

#[test]
fn a_drain_moves_what_runs_there_one_after_the_other() {
    let state = small().state();
    let node = busiest(&state);
    let here = state.nodes.hot(state.nodes.find(node).unwrap()).allocs;
    let result = ask(&state, vec![Change::Drain(node)]);
    assert!(result.quiet && result.ended_by == "quiet", "{result:?}");
    assert_eq!((result.counts.moved, result.moved.len() as u32), (here.into(), here));
    for moved in &result.moved {
        assert_eq!(moved.from_node_id, node.to_string());
        assert!(!moved.to_node_id.is_empty() && moved.to_node_id != moved.from_node_id, "{moved:?}");
        assert!(moved.name.starts_with("web.g[") && !moved.cause.is_empty());
    }
    let counts = &result.counts;
    assert_eq!(
        (counts.placed, counts.lost, counts.stopped, counts.unplaced, counts.violated),
        (0, 0, 0, 0, 0)
    );
    // Each has to be healthy for ten seconds before the next one moves.
    assert!(result.virtual_time.0 >= Duration::from_secs(10 * i64::from(here - 1)), "{result:?}");
    assert!(result.virtual_time.0 < Duration::from_secs(60));
    let (before, after) = (&result.free_total.before, &result.free_total.after);
    assert_eq!((before.nodes, after.nodes, before.memory_mb, after.memory_mb), (3, 2, 3072, 2048));
    assert_eq!((before.free_memory_mb, after.free_memory_mb), (3072 - 800, 2048 - 800));
}

#[test]
fn what_a_lost_datacenter_had_is_placed_elsewhere_or_named() {
    let mut cluster = small();
    cluster.register(service("wide", 9, 200, |_| {}));
    cluster.settle();
    let state = cluster.state();
    let nodes = find_datacenter(&state, "dc1").unwrap();
    assert_eq!(nodes.len(), 2);
    let result = ask(&state, vec![Change::Down(nodes)]);
    // One node with room for five is left, for thirteen.
    assert_eq!((result.counts.unplaced, result.counts.unplaced_before), (8, 0), "{result:?}");
    assert_eq!(result.unplaced.iter().map(|group| group.after).sum::<u64>(), 8);
    assert!(result.unplaced.iter().all(|group| group.failed.dimension_exhausted["memory"] > 0));
    assert_eq!(result.counts.moved + result.counts.lost, 8 + result.counts.moved);
    assert!(result.violated.iter().any(|group| group.job_id == "wide" && group.lowest < group.allowed));
    assert_eq!(result.counts.violated, result.violated.len() as u64);
    let dc1 = result.free.iter().find(|free| free.datacenter == "dc1").unwrap();
    assert_eq!((dc1.before.nodes, dc1.after.nodes), (2, 0));
}

#[test]
fn added_nodes_take_what_waits() {
    let mut cluster = small();
    cluster.register(service("wide", 13, 200, |_| {}));
    cluster.settle();
    let state = cluster.state();
    let nothing = ask(&state, vec![]);
    assert_eq!(
        (nothing.counts.unplaced, nothing.counts.unplaced_before, nothing.steps),
        (0, 2, 1),
        "{nothing:?}"
    );
    let result = ask(&state, vec![Change::Add { like: node_id(1), count: 1 }]);
    assert_eq!((result.counts.placed, result.counts.unplaced), (2, 0), "{result:?}");
    assert!(result.placed.iter().all(|placed| placed.to_node_name == "n1-new-1" && placed.id.is_empty()));
    let more = ask(
        &state,
        vec![Change::Add { like: node_id(1), count: 1 }, Change::Add { like: node_id(2), count: 2 }],
    );
    assert_eq!(more.free_total.after.nodes, 6);
}

#[test]
fn jobs_are_registered_scaled_and_stopped() {
    let state = small().state();
    let more = ask(&state, vec![register(service("web", 50, 200, |_| {}))]);
    assert_eq!((more.counts.placed, more.counts.unplaced), (11, 35), "{more:?}");
    let scaled = ask(&state, vec![Change::Scale { key: key("web"), group: "g".to_string(), count: 6 }]);
    assert_eq!((scaled.counts.placed, scaled.counts.unplaced), (2, 0));
    let stopped = ask(&state, vec![Change::Stop(key("web"))]);
    assert_eq!((stopped.counts.stopped, stopped.counts.violated), (4, 0));
    assert_eq!(stopped.free_total.after.free_memory_mb, 3072);
}

/// In the order in which they are given.
#[test]
fn changes_build_upon_each_other() {
    let state = small().state();
    let result = ask(&state, vec![register(service("new", 2, 900, |_| {})), Change::Stop(key("web"))]);
    assert_eq!(result.counts.stopped, 4);
    assert_eq!((result.counts.placed, result.counts.unplaced), (2, 0), "{result:?}");
}

#[test]
fn a_new_version_is_deployed_to_its_end_and_canaries_wait() {
    let mut cluster = small();
    let rolling = |value: &mut serde_json::Value, canary: u64, env: &str| {
        value["TaskGroups"][0]["Update"] = serde_json::json!({
            "MaxParallel": 1, "MinHealthyTime": "30s", "HealthyDeadline": "5m", "ProgressDeadline": "10m",
            "Canary": canary
        });
        value["TaskGroups"][0]["Tasks"][0]["Env"] = serde_json::json!({"V": env});
    };
    cluster.register(service("web", 4, 200, |value| rolling(value, 0, "1")));
    cluster.settle();
    let state = cluster.state();
    let result = ask(&state, vec![register(service("web", 4, 200, |value| rolling(value, 0, "2")))]);
    assert_eq!(result.counts.replaced + result.counts.moved, 4, "{result:?}");
    let [deployment] = &result.deployments[..] else { panic!("{:?}", result.deployments) };
    assert_eq!((deployment.status.as_str(), deployment.failed), ("successful", false));
    assert!(result.virtual_time.0 >= Duration::from_secs(4 * 30), "{:?}", result.virtual_time);
    assert_eq!(result.counts.violated, 0);
    let canaries = ask(&state, vec![register(service("web", 4, 200, |value| rolling(value, 1, "2")))]);
    assert!(canaries.quiet, "nobody promotes it: {canaries:?}");
    assert_eq!((canaries.deployments[0].status.as_str(), canaries.counts.placed), ("running", 1));
    // What finds no place fails at the deadline of its progress.
    let large = ask(&state, vec![register(service("web", 4, 600, |value| rolling(value, 0, "2")))]);
    assert_eq!(large.counts.replaced + large.counts.moved, 3, "three nodes have room for three: {large:?}");
    assert!(large.deployments[0].failed && large.counts.violated > 0, "{large:?}");
}

/// It gives up at the deadline of its progress; what it lacks it lacks all the same.
#[test]
fn a_deployment_that_is_too_large_says_what_found_no_node() {
    let state = small().state();
    let job = service("new", 40, 200, |value| {
        value["TaskGroups"][0]["Update"] = serde_json::json!({
            "MaxParallel": 1, "MinHealthyTime": "10s", "HealthyDeadline": "5m", "ProgressDeadline": "10m"
        });
    });
    let result = ask(&state, vec![register(job)]);
    let [deployment] = &result.deployments[..] else { panic!("{:?}", result.deployments) };
    assert!(result.quiet && deployment.failed, "{result:?}");
    assert_eq!((result.counts.placed, result.counts.unplaced, result.counts.violated), (11, 29, 1));
    assert!(result.unplaced[0].failed.dimension_exhausted["memory"] > 0);
}

#[test]
fn another_configuration_of_the_scheduler_lets_jobs_preempt_others() {
    let mut cluster = small();
    cluster.register(service("low", 11, 200, |value| value["Priority"] = 20.into()));
    cluster.settle();
    let state = cluster.state();
    let high = || register(service("high", 1, 200, |value| value["Priority"] = 90.into()));
    assert_eq!(ask(&state, vec![high()]).counts.unplaced, 1);
    let mut rules = SchedulerRules::default();
    rules.preempting.service = true;
    let result = ask(&state, vec![Change::Scheduler(rules), high()]);
    assert_eq!((result.counts.placed, result.counts.preempted), (1, 1), "{result:?}");
    assert_eq!(result.preempted[0].job_id, "low");
    assert_eq!(result.unplaced[0].job_id, "low", "who made room has none now");
}

/// Of silent nodes, and of a group that says for how long they may return.
#[test]
fn a_node_that_may_return_is_lost_in_the_end() {
    let mut cluster = Cluster::new(1);
    (1..=2).for_each(|number| cluster.node(number, |_| {}));
    cluster.register(service("web", 1, 200, |value| {
        value["TaskGroups"][0]["Disconnect"] = serde_json::json!({"LostAfter": "1h", "Replace": true});
    }));
    cluster.settle();
    let state = cluster.state();
    let down = vec![Change::Down(vec![busiest(&state)])];
    let whole = ask(&state, down.clone());
    assert!(whole.quiet && whole.counts.moved == 1, "{whole:?}");
    assert!(whole.virtual_time.0 >= Duration::from_secs(3600));
    let early = Question { until: Until::Passed(Duration::from_secs(60)), ..question(down) };
    let early = forecast(&state, &early, &|| true).unwrap();
    assert_eq!((early.quiet, early.ended_by.as_str()), (false, "until"));
    assert_eq!((early.counts.unknown, early.counts.placed, early.counts.moved), (1, 1, 0), "{early:?}");
    assert_eq!(early.virtual_time.0, Duration::from_secs(60));
}

#[test]
fn the_time_that_was_asked_for_passes_also_in_quiet() {
    let state = small().state();
    let hour = Question { until: Until::Passed(Duration::from_secs(3600)), ..question(vec![]) };
    let result = forecast(&state, &hour, &|| true).unwrap();
    assert!(result.quiet && result.virtual_time.0 == Duration::from_secs(3600), "{result:?}");
    let forever = Question { until: Until::Passed(Duration(i64::MAX)), ..question(vec![]) };
    assert_eq!(forecast(&state, &forever, &|| true).unwrap().virtual_time.0, DURATION_MAX);
}

#[test]
fn a_fork_ends_when_its_caller_wants_it_to_and_says_so() {
    let state = small().state();
    let result = forecast(&state, &question(vec![Change::Drain(busiest(&state))]), &|| false).unwrap();
    assert_eq!((result.quiet, result.ended_by.as_str(), result.counts.moved), (false, "time", 0));
    assert!(result.notes[0].contains("the bound of time"), "{:?}", result.notes);
}

#[test]
fn a_paused_broker_is_said() {
    let state = small().state();
    let rules = SchedulerRules { pause_eval_broker: true, ..SchedulerRules::default() };
    let result = ask(&state, vec![Change::Scheduler(rules), Change::Drain(busiest(&state))]);
    assert_eq!((result.quiet, result.ended_by.as_str()), (false, "paused"), "{result:?}");
}

#[test]
fn registration_may_be_closed() {
    let mut cluster = small();
    let rules = SchedulerRules { reject_job_registration: true, ..SchedulerRules::default() };
    cluster.submit(model::Command::SetScheduler { rules, only_at: None });
    let result = ask(&cluster.state(), vec![register(service("new", 1, 100, |_| {}))]);
    assert_eq!(result.counts.placed, 1);
}

#[test]
fn impossible_changes_are_refused_by_their_number() {
    let state = small().state();
    let refused = |change| {
        let asked = question(vec![Change::Stop(key("web")), change]);
        forecast(&state, &asked, &|| true).unwrap_err()
    };
    let unknown = JobKey::new("default", "nobody");
    let why = Rejection::JobUnknown(unknown.clone());
    assert_eq!(refused(Change::Stop(unknown.clone())), Refused { number: 1, why });
    let scale = |group: &str| Change::Scale { key: key("web"), group: group.to_string(), count: 2 };
    assert_eq!(refused(scale("none")).number, 1);
    let node = NodeId(7.into());
    assert_eq!(refused(Change::Drain(node)).why, Rejection::NodeUnknown(node));
    assert_eq!(refused(Change::Down(vec![node])).why, Rejection::NodeUnknown(node));
    assert_eq!(refused(Change::Add { like: node, count: 1 }).why, Rejection::NodeUnknown(node));
}

#[test]
fn nodes_are_found_by_id_name_and_the_beginning_of_an_id() {
    let state = small().state();
    let id = node_id(2).to_string();
    assert_eq!(find_node(&state, &id), Ok(node_id(2)));
    assert_eq!(find_node(&state, "n2"), Ok(node_id(2)));
    // Ids of the test world differ at their ends.
    let several = find_node(&state, &id[..8]).unwrap_err();
    assert!(matches!(&several, Unfound::Several { nodes, .. } if nodes.len() == 3), "{several}");
    assert_eq!(find_node(&state, "n9"), Err(Unfound::Node("n9".to_string())));
    assert!(find_node(&state, "").is_err());
    assert_eq!(find_datacenter(&state, "dc9"), Err(Unfound::Datacenter("dc9".to_string())));
}
