//! Namespaces: what may be in one, and when it may go.

use base::Duration;
use model::command::RegisterJob;
use model::document::{Job, Namespace, NamespaceCapabilities, Task};
use model::{Command, Rejection};
use rules::Decision;
use test_world::{World, job_document};

fn upsert(world: &mut World, change: impl Fn(&mut Namespace)) -> Result<Decision, Rejection> {
    let mut wanted = Namespace { name: "dev".into(), ..Namespace::default() };
    change(&mut wanted);
    world.submit(Command::UpsertNamespace(Box::new(wanted)))
}

fn register(world: &mut World, namespace: &str) -> Result<Decision, Rejection> {
    let mut job = Job { namespace: Some(namespace.into()), ..job_document("web", "service", Duration::ZERO) };
    job.task_groups[0].tasks = vec![Task { driver: "docker".into(), ..Task::default() }].into();
    let request = RegisterJob::new(job);
    world.submit(Command::RegisterJob(Box::new(request)))
}

fn delete(world: &mut World, name: &str) -> Result<Decision, Rejection> {
    world.submit(Command::DeleteNamespace { name: name.into() })
}

#[test]
fn a_job_needs_its_namespace_and_keeps_it() {
    let mut world = World::new();
    let why = register(&mut world, "dev").unwrap_err().to_string();
    assert_eq!(why, "job \"web\" is in nonexistent namespace \"dev\"");
    upsert(&mut world, |_| ()).unwrap();
    assert!(upsert(&mut world, |_| ()).unwrap().events.is_empty(), "nothing changed");
    register(&mut world, "dev").unwrap();
    register(&mut world, "default").unwrap();
    let why = delete(&mut world, "dev").unwrap_err().to_string();
    assert_eq!(why, "namespace \"dev\" has jobs that have not ended: 1");
    let key = model::JobKey::new("dev", "web");
    let purge = Command::DeregisterJob { key, purge: true, eval_priority: None, no_shutdown_delay: false };
    world.submit(purge).unwrap();
    delete(&mut world, "dev").unwrap();
    assert!(matches!(delete(&mut world, "dev"), Err(Rejection::NamespaceUnknown(_))));
    assert!(matches!(delete(&mut world, "default"), Err(Rejection::NamespaceInUse(_))));
    world.check_replay();
}

#[test]
fn a_namespace_says_what_may_run_in_it() {
    let mut world = World::new();
    let capabilities =
        NamespaceCapabilities { disabled_task_drivers: vec!["docker".into()].into(), ..Default::default() };
    upsert(&mut world, |wanted| wanted.capabilities = Some(capabilities.clone())).unwrap();
    let why = register(&mut world, "dev").unwrap_err().to_string();
    assert!(why.contains("driver \"docker\" is not allowed in namespace \"dev\""), "{why}");
    world.check_replay();
}

#[test]
fn what_is_no_namespace_is_refused_by_its_field() {
    let mut world = World::new();
    for name in ["", "a b", "a_b", "*"] {
        let why = upsert(&mut world, |wanted| wanted.name = name.into()).unwrap_err().to_string();
        let expected = "expected 1 to 128 letters, digits and dashes, found an invalid name";
        assert_eq!(why, format!("Invalid namespace: Name: {expected} {name:?}."));
    }
    let why = upsert(&mut world, |wanted| wanted.quota = "q".into()).unwrap_err().to_string();
    assert!(why.contains("Quota: expected none"), "{why}");
    assert!(world.log.is_empty());
}
