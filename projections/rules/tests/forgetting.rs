//! What was forgotten takes no room: not in memory, and not in images.

use base::Duration;
use model::{Actor, Command, JobKey, NodeStatus, Rejection};
use state::Imager;
use test_world::{World, key, node_id};

/// Runs a batch job to its end, on node 1.
fn run(world: &mut World, job: &str) {
    world.register_job(job, "batch", Duration::ZERO).unwrap();
    let placed = world.placement(job, 0, 1, None);
    let plan = model::command::Plan { placed: vec![placed], ..world.plan() };
    let verdict = world.settle(job, plan).unwrap();
    assert!(verdict.rejected.is_empty(), "{verdict:?}");
    world.report(1, &[(&format!("{job}[0]"), "complete")]).unwrap();
}

fn collect(jobs: &[JobKey]) -> Command {
    let jobs_after = Duration::from_secs(4 * 3600);
    Command::CollectDue { jobs: jobs.to_vec(), jobs_after, nodes_after: None }
}

fn world(jobs: usize) -> (World, Vec<JobKey>) {
    let mut world = World::new();
    world.register_node(1, "r").unwrap();
    let ready = Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready };
    world.submit_as(Actor::Node(node_id(1)), ready).unwrap();
    (0..jobs).for_each(|number| run(&mut world, &format!("b{number}")));
    let keys = (0..jobs).map(|number| key(&format!("b{number}"))).collect();
    (world, keys)
}

fn image_bytes(world: &World) -> usize {
    let image = Imager::default().image(&world.state);
    let restored = state::restore(&image).unwrap();
    assert!(restored == world.state, "an image is read back as what it was made of");
    assert_eq!(restored.digest(), restored.recomputed_digest());
    image.chunks.iter().map(|chunk| chunk.bytes.as_ref().unwrap().len()).sum()
}

#[test]
fn jobs_that_ended_leave_nothing_behind() {
    let (mut world, keys) = world(600);
    run(&mut world, "stays");
    let whole = image_bytes(&world);
    world.now = world.now.plus(Duration::from_secs(4 * 3600));
    run(&mut world, "later");
    for part in keys.chunks(256) {
        world.submit(collect(part)).unwrap();
    }
    let state = &world.state;
    assert_eq!((state.jobs.len(), state.evals.len(), state.allocs.len()), (2, 2, 2));
    assert_eq!(state.jobs.all_rows().count(), 2 + 88, "the last batch forgot 88, its readers look at them");

    // What the last batch forgot leaves with the next one.
    run(&mut world, "last");
    assert_eq!(world.state.jobs.all_rows().count(), 3);
    let left = image_bytes(&world);
    assert!(left * 10 < whole, "{left} bytes are left of {whole}");

    // Others go on, also after a restart.
    let mut restarted = state::restore(&Imager::default().image(&world.state)).unwrap();
    let seen = world.log.len();
    run(&mut world, "b7");
    world.log[seen..].iter().for_each(|batch| drop(restarted.apply(batch).unwrap()));
    assert!(restarted == world.state);
    world.check_replay();
}

#[test]
fn only_what_is_due_is_collected_and_nothing_that_does_not_exist() {
    let (mut world, keys) = world(2);
    let collect_both = collect(&keys);
    assert!(world.submit(collect_both.clone()).unwrap().events.is_empty(), "they have just ended");
    world.now = world.now.plus(Duration::from_secs(4 * 3600));
    world.register_job("b0", "batch", Duration::ZERO).unwrap();
    world.submit(collect(&[keys.clone(), vec![key("b1"), key("unknown")]].concat())).unwrap();
    assert!(world.state.jobs.find(&key("b0")).is_some(), "it was registered again");
    assert!(world.state.jobs.find(&key("b1")).is_none());
    world.check_replay();
}

#[test]
fn a_job_with_many_evaluations_is_forgotten_in_parts() -> Result<(), Rejection> {
    let (mut world, keys) = world(1);
    for _ in 0..rules::leftovers::LEFTOVERS_MAX {
        world.submit(Command::EvaluateJob { key: keys[0].clone(), force_reschedule: false })?;
        let plan = world.plan();
        world.settle("b0", plan)?;
    }
    world.now = world.now.plus(Duration::from_secs(4 * 3600));
    world.submit(collect(&keys))?;
    assert_eq!((world.state.jobs.len(), world.state.evals.len()), (1, 1));
    world.submit(collect(&keys))?;
    assert_eq!((world.state.jobs.len(), world.state.evals.len()), (0, 0));
    Ok(())
}
