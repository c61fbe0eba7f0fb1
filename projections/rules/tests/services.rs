//! Services: who may register them, and when they are known no more without that anybody asks.

use base::Duration;
use model::command::Plan;
use model::event::{Event, ServicesDeregistered};
use model::{ClientStatus, Command, NodeStatus, RegisterService, Rejection, Service, ServiceEnd, ServiceKey};
use rules::Decision;
use test_world::{World, node_id, stop};

/// `web[0]` runs on node 1, `web[1]` on node 2.
fn world() -> World {
    let mut world = World::new();
    for number in [1, 2] {
        world.register_node(number, "r1").unwrap();
        let claimed = NodeStatus::Ready;
        world.submit(Command::UpdateNodeStatus { node: node_id(number), claimed }).unwrap();
    }
    world.register_job("web", "service", Duration::ZERO).unwrap();
    let placed = vec![world.placement("web", 0, 1, None), world.placement("web", 1, 2, None)];
    let plan = Plan { placed, ..world.plan() };
    assert!(world.settle("web", plan).unwrap().full);
    world.report(1, &[("web[0]", "running")]).unwrap();
    world.report(2, &[("web[1]", "running")]).unwrap();
    world
}

fn service(world: &World, alloc: &str, name: &str, port: u16) -> RegisterService {
    let alloc = world.alloc(alloc);
    let id = format!("_nomad-task-{alloc}-group-web-{name}-http");
    let (tags, address) = (vec!["v1".to_string()], "10.0.0.1".to_string());
    RegisterService { alloc, service: Service { id, name: name.to_string(), tags, address, port } }
}

fn register(world: &mut World, node: u128, services: Vec<RegisterService>) -> Result<Decision, Rejection> {
    world.submit(Command::RegisterServices { node: node_id(node), services })
}

/// Both allocations, each with the service `web`.
fn registered() -> World {
    let mut world = world();
    for (node, alloc) in [(1, "web[0]"), (2, "web[1]")] {
        let service = service(&world, alloc, "web", 80);
        register(&mut world, node, vec![service]).unwrap();
    }
    assert_eq!(known(&world), ["web[0]", "web[1]"]);
    world
}

/// The allocations that the service is known of.
fn known(world: &World) -> Vec<String> {
    let named = world.state.services.named("default", "web");
    let mut names: Vec<String> = named.map(|row| world.alloc_name(row.alloc)).collect();
    names.sort();
    names
}

fn causes(decision: &Decision) -> Vec<ServiceEnd> {
    let ended = decision.events.iter().filter_map(|event| match event {
        Event::ServicesDeregistered(ServicesDeregistered { cause, .. }) => Some(*cause),
        _ => None,
    });
    ended.collect()
}

#[test]
fn what_is_known_already_is_not_written_again_and_a_change_keeps_when_it_was_created() {
    let mut world = world();
    let web = service(&world, "web[0]", "web", 80);
    register(&mut world, 1, vec![web.clone()]).unwrap();
    let key = ServiceKey::new("default", &web.service.id);
    let before = world.state.services.get(&key).unwrap().clone();
    assert_eq!((before.key.id.as_str(), before.node, before.created), ("web", node_id(1), before.modified));
    assert_eq!(register(&mut world, 1, vec![web.clone()]).unwrap().events, []);
    let mut moved = web.clone();
    moved.service.port = 81;
    let db = service(&world, "web[0]", "db", 5);
    register(&mut world, 1, vec![moved, db]).unwrap();
    let after = world.state.services.get(&key).unwrap();
    assert_eq!((after.service.port, after.created), (81, before.created));
    assert!(after.modified > before.created);
    assert_eq!(world.state.services.len(), 2);
    world.check_replay();
}

#[test]
fn a_node_registers_its_own_allocations_alone() {
    let mut world = world();
    let web = service(&world, "web[0]", "web", 80);
    let foreign = register(&mut world, 2, vec![web.clone()]);
    assert!(matches!(foreign, Err(Rejection::NodeForeignAlloc { .. })));
    let unknown = register(&mut world, 3, vec![web.clone()]);
    assert_eq!(unknown, Err(Rejection::NodeUnknown(node_id(3))));
    let other = service(&world, "web[1]", "web", 80);
    let named_wrongly = RegisterService { alloc: web.alloc, service: other.service };
    assert!(matches!(register(&mut world, 1, vec![named_wrongly]), Err(Rejection::ServiceInvalid(_))));
    let twice = register(&mut world, 1, vec![web.clone(), web.clone()]);
    assert!(matches!(twice, Err(Rejection::ServiceInvalid(_))));
    let mut nameless = web;
    nameless.service.name.clear();
    assert!(matches!(register(&mut world, 1, vec![nameless]), Err(Rejection::ServiceInvalid(_))));
    assert!(world.state.services.is_empty());
    world.check_replay();
}

#[test]
fn one_is_removed_by_its_id_and_only_by_its_own_node() {
    let mut world = registered();
    let key = ServiceKey::new("default", &service(&world, "web[0]", "web", 80).service.id);
    let remove = |node, name: Option<&str>| Command::DeregisterService {
        key: key.clone(),
        name: name.map(str::to_string),
        node,
    };
    let unknown = Err(Rejection::ServiceUnknown(key.clone()));
    assert_eq!(world.submit(remove(Some(node_id(2)), None)), unknown);
    assert_eq!(world.submit(remove(None, Some("db"))), unknown);
    assert_eq!(causes(&world.submit(remove(None, Some("web"))).unwrap()), [ServiceEnd::Asked]);
    assert_eq!(known(&world), ["web[1]"]);
    assert_eq!(world.submit(remove(Some(node_id(1)), None)), unknown);
    world.submit(Command::DeregisterServicesOfNode { node: node_id(2) }).unwrap();
    assert!(world.state.services.is_empty());
    world.check_replay();
}

#[test]
fn an_allocation_that_ends_takes_its_services_along() {
    let mut world = registered();
    let ended = world.report(1, &[("web[0]", "failed")]).unwrap();
    assert_eq!(causes(&ended), [ServiceEnd::AllocEnded]);
    assert_eq!(known(&world), ["web[1]"]);
    // What comes late is known to be over.
    let late = service(&world, "web[0]", "web", 80);
    assert_eq!(register(&mut world, 1, vec![late]).unwrap().events, []);
    // The servers give the other one up.
    let key = test_world::key("web");
    world.submit(Command::EvaluateJob { key, force_reschedule: false }).unwrap();
    let alloc = world.alloc("web[1]");
    let plan = Plan { stopped: vec![stop(vec![alloc], Some(ClientStatus::Lost))], ..world.plan() };
    assert!(world.settle("web", plan).unwrap().full);
    assert!(world.state.services.is_empty());
    world.check_replay();
}

#[test]
fn nobody_is_sent_to_a_node_that_is_down() {
    let mut world = registered();
    let down = world.submit(Command::MissHeartbeat { node: node_id(1) }).unwrap();
    assert_eq!(causes(&down), [ServiceEnd::NodeGone]);
    assert_eq!(known(&world), ["web[1]"]);
    let late = service(&world, "web[0]", "web", 80);
    assert!(matches!(register(&mut world, 1, vec![late]), Err(Rejection::NodeSilent(..))));
    let purged = world.submit(Command::DeregisterNode { node: node_id(2) }).unwrap();
    assert_eq!(causes(&purged), [ServiceEnd::NodeGone]);
    assert!(world.state.services.is_empty());
    world.check_replay();
}
