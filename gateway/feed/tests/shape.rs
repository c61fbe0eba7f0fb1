//! What the stream shows of a batch, and how.

use base::Index;
use model::{Actor, Batch, Command, CommandRecord, LoggedEvent, NodeStatus, RequestId};
use rules::{Context, decide};
use serde_json::Value;
use state::{Delta, Moment, State};

use crate::support::{Log, busy, everything, purge, read};
use feed::Feed;
use feed::entries::{self, Object};
use feed::{Cursor, StreamEvent};
use test_world::{World, node_id};

/// Ids are promises: a line that changes here breaks readers that stored one.
#[test]
fn what_is_sent_of_each_batch_stays_as_it_is() {
    let world = busy();
    let mut state = State::default();
    let mut events = String::new();
    for batch in &world.log {
        for (ordinal, entry) in entries::list(&mut state, batch).unwrap().iter().enumerate() {
            let key = if entry.topic == entries::EVALUATION { "eval" } else { &entry.key };
            let key = world_name(&world, key);
            events.push_str(&format!("{}.{ordinal} {} {} {key}\n", batch.index, entry.kind, entry.topic));
        }
    }
    assert_eq!(
        events,
        "2.0 NodeRegistration Node n1\n\
         3.0 NodeStreamEvent Node n1\n\
         4.0 JobRegistered Job web\n\
         4.1 JobRegistered Evaluation eval\n\
         5.0 PlanResult Evaluation eval\n\
         5.1 PlanResult Job web\n\
         5.2 PlanResult Allocation web[0]\n\
         5.3 PlanResult Allocation web[1]\n\
         5.4 EvaluationUpdated Evaluation eval\n\
         6.0 AllocationUpdated Allocation web[0]\n\
         6.1 AllocationUpdated Node n1\n\
         6.2 AllocationUpdated Allocation web[1]\n\
         7.0 AllocationUpdateDesiredStatus Allocation web[0]\n\
         7.1 AllocationUpdateDesiredStatus Evaluation eval\n\
         8.0 PlanResult Evaluation eval\n\
         8.1 PlanResult Allocation web[0]\n\
         8.2 PlanResult Allocation web[0]'\n\
         8.3 EvaluationUpdated Evaluation eval\n\
         9.0 NodeEligibility Node n1\n\
         10.0 JobDeregistered Evaluation eval\n\
         10.1 JobDeregistered Allocation web[1]\n\
         10.2 JobDeregistered Allocation web[0]'\n\
         10.3 JobDeregistered Job web\n\
         11.0 NodeDeregistration Node n1\n"
    );
}

#[test]
fn every_command_of_a_batch_keeps_its_type() {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    let mut batch = world.state.next_batch(world.now, base::Uuid::NIL);
    let ready = Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready };
    let back = Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Initializing };
    let ineligible = Command::SetNodeEligibility { node: node_id(1), to: model::Eligibility::Ineligible };
    let gone = Command::DeregisterNode { node: node_id(1) };
    let mut working = world.state.clone();
    for (number, command) in [ready, ineligible, back, gone].iter().enumerate() {
        let mut context = Context::new(batch.index, batch.time, number as u64);
        let decision = decide(&working, &mut context, &Actor::ANONYMOUS, command).unwrap();
        let record =
            CommandRecord { request: RequestId::default(), kind: command.kind(), actor: Actor::ANONYMOUS };
        let at = Moment { index: batch.index, time: batch.time, epoch: batch.epoch };
        working.absorb(at, &record, decision.events.iter(), &mut Delta::default());
        batch.commands.push(record);
        let logged = |event| LoggedEvent { command: number as u16, event };
        batch.events.extend(decision.events.into_iter().map(logged));
    }
    let entries = entries::list(&mut world.state, &batch).unwrap();
    let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.key.clone())).collect();
    let node = node_id(1).to_string();
    // Each changed row once per type, as it is after the whole batch.
    let expected = ["NodeStreamEvent", "NodeEligibility", "NodeDeregistration"];
    assert_eq!(kinds, expected.map(|kind| (kind, node.clone())));
}

#[tokio::test]
async fn events_have_nomads_shape() {
    let world = busy();
    let log = Log::of(&world.log);
    let events = read(&Feed::new(log.clone()), Cursor::at(Index(1)), log.last(), &everything()).await;
    let json = |id: &str| json(&events, id);

    let node = json("2.0");
    assert_eq!((&node["Topic"], &node["Type"]), (&"Node".into(), &"NodeRegistration".into()));
    assert_eq!((&node["Namespace"], &node["FilterKeys"]), (&"".into(), &Value::Null));
    assert_eq!((&node["Payload"]["Node"]["SecretID"], &node["Index"]), (&"".into(), &2.into()));

    let job = json("4.0");
    assert_eq!((&job["Key"], &job["Namespace"]), (&"web".into(), &"default".into()));
    assert_eq!(job["Payload"]["Job"]["Status"], "pending");
    assert_eq!(job["Payload"].get("Deleted"), None);

    let eval = json("4.1");
    assert_eq!(eval["FilterKeys"], serde_json::json!(["web", ""]));
    assert_eq!(eval["Key"], eval["Payload"]["Evaluation"]["ID"]);

    let alloc = json("5.2");
    assert_eq!(alloc["FilterKeys"], serde_json::json!(["web", ""]));
    let document = &alloc["Payload"]["Allocation"];
    assert_eq!((&document["ID"], document.get("Job")), (&alloc["Key"], None));
    // As it was then, not as it is now.
    assert_eq!((&document["ClientStatus"], &document["ModifyIndex"]), (&"pending".into(), &5.into()));
    assert_eq!(json("8.1")["Payload"]["Allocation"]["NextAllocation"], json("8.2")["Key"]);

    let purged = json("10.3");
    assert_eq!(purged["Payload"]["Deleted"], true);
    assert_eq!(purged["Payload"]["Job"]["ID"], "web");
    assert_eq!(json("11.0")["Payload"]["Node"]["ID"], node["Key"]);
}

#[test]
fn what_came_and_went_within_a_batch_is_not_sent() {
    let mut world = World::new();
    world.register_job("web", "service", base::Duration::ZERO).unwrap();
    world.submit(purge("web")).unwrap();
    let (first, second) = (world.log[0].clone(), world.log[1].clone());
    let moved = |logged: LoggedEvent| LoggedEvent { command: 1, ..logged };
    let both = Batch {
        commands: [first.commands, second.commands].concat(),
        events: first.events.into_iter().chain(second.events.into_iter().map(moved)).collect(),
        ..first
    };
    let entries = entries::list(&mut State::default(), &both).unwrap();
    assert!(entries.iter().all(|entry| entry.topic != entries::JOB), "{entries:?}");
}

fn json(events: &[StreamEvent], id: &str) -> Value {
    let event = events.iter().find(|event| event.id.to_string() == id).unwrap();
    serde_json::from_slice(&event.body).unwrap()
}

fn world_name(world: &World, key: &str) -> String {
    if key == node_id(1).to_string() {
        return "n1".to_string();
    }
    key.parse().map_or(key.to_string(), |id| world.alloc_name(id))
}

#[test]
fn instances_of_services_come_and_go_under_their_own_topic() {
    use model::command::Plan;
    use model::{RegisterService, Service};
    let mut world = World::new();
    world.register_node(1, "r1").unwrap();
    let claimed = model::NodeStatus::Ready;
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed }).unwrap();
    world.register_job("web", "service", base::Duration::ZERO).unwrap();
    let plan = Plan { placed: vec![world.placement("web", 0, 1, None)], ..world.plan() };
    world.settle("web", plan).unwrap();
    let alloc = world.alloc("web[0]");
    let id = format!("_nomad-task-{alloc}-group-web-web-http");
    let service =
        Service { id: id.clone(), name: "web".into(), tags: vec![], address: "10.0.0.1".into(), port: 80 };
    let services = vec![RegisterService { alloc, service }];
    world.submit(Command::RegisterServices { node: node_id(1), services }).unwrap();
    world.report(1, &[("web[0]", "failed")]).unwrap();
    let mut state = State::default();
    let entries: Vec<_> =
        world.log.iter().flat_map(|batch| entries::list(&mut state, batch).unwrap()).collect();
    let services: Vec<_> = entries.iter().filter(|entry| entry.topic == entries::SERVICE).collect();
    assert_eq!(
        services.iter().map(|entry| entry.kind).collect::<Vec<_>>(),
        ["ServiceRegistration", "ServiceDeregistration"]
    );
    for entry in services {
        assert_eq!((entry.key.as_str(), entry.namespace.as_str()), (id.as_str(), "default"));
        assert_eq!(entry.filter_keys, ["web", "web"]);
        let Object::Service(service) = &entry.object else { panic!("{entry:?}") };
        assert_eq!(service.port, 80);
    }
}
