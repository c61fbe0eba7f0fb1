//! A leader of a recording.

use base::{Duration, Rng, Time};
use control::GarbageSettings;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use control::leader::Leader;
use model::document::{Evaluation, Job, Node};
use model::{Command, JobType, NodeId, NodeStatus, Observation, Observe, SchedulerRules};
use state::Delta;
use test_world::World;

const NODE: u128 = 7;
const TYPES: [JobType; 1] = [JobType::Service];

fn leader() -> Leader {
    let (broker, heartbeats) = (BrokerSettings::default(), HeartbeatSettings::default());
    Leader::new(broker, heartbeats, GarbageSettings::default(), SchedulerRules::default(), Rng::new(1))
}

/// A node that is ready, a periodic job, and an evaluation that waits.
fn recorded() -> World {
    let node = NodeId(NODE.into()).to_string();
    let node = Node { id: node, status: "ready".to_string(), ..Node::default() };
    let job = Job {
        id: Some("web".to_string()),
        kind: Some("service".to_string()),
        version: Some(0),
        create_index: Some(5),
        ..Job::default()
    };
    let eval = Evaluation {
        id: "00000000-0000-0000-0000-000000000009".to_string(),
        namespace: "default".to_string(),
        job_id: "web".to_string(),
        kind: "service".to_string(),
        triggered_by: "job-register".to_string(),
        status: "pending".to_string(),
        ..Evaluation::default()
    };
    let documents = vec![
        Observation::Node(Box::new(node)),
        Observation::Job(vec![job]),
        Observation::Eval(Box::new(eval)),
    ];
    let observe = Observe { source: "http://nomad:4646".to_string(), documents, ..Observe::default() };
    let mut world = World::new();
    world.submit(Command::Observe(Box::new(observe))).unwrap();
    let row = world.state.nodes.find(NodeId(NODE.into())).expect("the node is recorded");
    assert_eq!(world.state.nodes.hot(row).status, NodeStatus::Ready);
    assert_eq!(world.state.evals.len(), 1);
    world
}

#[test]
fn a_leader_of_a_recording_waits_for_no_node_and_hands_out_no_evaluation() {
    let (world, mut leader) = (recorded(), leader());
    let _founds = leader.lead(&world.state, world.now);
    assert_eq!((leader.next_deadline(), leader.heartbeats_tracked()), (None, 0));
    assert!(leader.dequeue(&world.state, &TYPES, 9, world.now).is_empty());
    leader.observe(&world.state, &Delta::everything(), world.now);
    let later = world.now.plus(Duration::from_secs(1_000_000));
    assert_eq!(leader.next_deadline(), None);
    assert!(leader.expire(&world.state, later).is_empty());
    world.check_replay();
}

#[test]
fn a_leader_gives_up_its_duties_when_its_log_becomes_a_recording() {
    let (world, mut leader) = (recorded(), leader());
    let _founds = leader.lead(&state::State::default(), Time::ZERO);
    leader.observe(&world.state, &Delta::everything(), world.now);
    assert_eq!((leader.next_deadline(), leader.heartbeats_tracked()), (None, 0));
    assert!(leader.dequeue(&world.state, &TYPES, 9, world.now).is_empty());
}
