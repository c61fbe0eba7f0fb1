//! Dry runs: the real scheduler on a copy of the state (cases K).

use crate::support::*;
use model::command::RegisterJob;
use model::document::{AllocationListStub, DesiredUpdates, Job, RestartPolicy, UpdateStrategy};
use placement::{DryRun, dry_run};

/// Nothing is stored, whatever comes out.
fn dry(world: &World, job: Job) -> DryRun {
    let before = world.state.clone();
    let request = RegisterJob::new(job);
    let run = dry_run(&world.state, &request, 7, world.now).expect("the job is accepted");
    assert!(world.state == before && world.state.digest() == before.digest(), "nothing is stored");
    run
}

fn desired(run: &DryRun) -> DesiredUpdates {
    run.annotations.desired_tg_updates.get("web").cloned().expect("the group is told of")
}

/// K11.
#[test]
fn a_new_job_would_place_all_it_wants() {
    let world = World::with_nodes(10);
    let run = dry(&world, job("service", 10));
    assert_eq!(desired(&run), DesiredUpdates { place: 10, ..DesiredUpdates::default() });
    assert!(run.failed.is_empty() && run.created.is_empty());
    assert!(world.state.jobs.lookup(&key()).is_none());
    assert_eq!(run.state.jobs.lookup(&key()).unwrap().live_allocs, 10, "the copy has them");
}

/// G65.
#[test]
fn a_new_system_job_would_be_placed_where_it_suits() {
    let mut world = World::with_nodes(8);
    (9..=10)
        .for_each(|n| world.node(n, |node| _ = node.attributes.insert("kernel.name".into(), "plan9".into())));
    let linux = |job: &mut Job| job.constraints.push(constraint("${attr.kernel.name}", "=", "linux"));
    let run = dry(&world, job("system", 1).with(linux));
    assert_eq!(desired(&run), DesiredUpdates { place: 8, ..DesiredUpdates::default() });
}

/// K12, A25.
#[test]
fn the_same_job_again_changes_nothing_and_makes_no_version() {
    let world = World::running(job("service", 10), 10);
    let run = dry(&world, job("service", 10));
    assert_eq!(desired(&run), DesiredUpdates { ignore: 10, ..DesiredUpdates::default() });
    let version = |state: &state::State| state.jobs.lookup(&key()).unwrap().current().version;
    assert_eq!(version(&run.state), version(&world.state));
}

/// K13.
#[test]
fn a_larger_count_places_more_and_updates_the_rest_in_place() {
    let world = World::running(job("service", 10), 12);
    let run = dry(&world, job("service", 12));
    let expected = DesiredUpdates { place: 2, in_place_update: 10, ..DesiredUpdates::default() };
    assert_eq!(desired(&run), expected);
}

/// K14.
#[test]
fn a_destructive_change_moves_as_many_as_may_move_at_once() {
    let update = |job: &mut Job| {
        let update = UpdateStrategy { max_parallel: Some(3), ..UpdateStrategy::default() };
        group(job).update = Some(update);
    };
    let world = World::running(job("service", 10).with(update), 10);
    let run = dry(&world, job("service", 10).with(update).with(destructive));
    let expected = DesiredUpdates { destructive_update: 3, ignore: 7, ..DesiredUpdates::default() };
    assert_eq!(desired(&run), expected);
}

/// K15, K16: both are done in place.
#[test]
fn what_a_running_task_can_take_is_updated_in_place() {
    let world = World::running(job("service", 4), 4);
    let slower = |job: &mut Job| task(job).kill_timeout = Some(base::Duration::from_secs(9).into());
    let policy = |job: &mut Job| {
        let policy = RestartPolicy { attempts: Some(9), ..RestartPolicy::default() };
        group(job).restart_policy = Some(policy);
    };
    let in_place = DesiredUpdates { in_place_update: 4, ..DesiredUpdates::default() };
    assert_eq!(desired(&dry(&world, job("service", 4).with(slower))), in_place);
    assert_eq!(desired(&dry(&world, job("service", 4).with(policy))), in_place);
}

/// K17.
#[test]
fn what_finds_no_place_is_told_with_the_evaluation_that_would_wait() {
    let world = World::with_nodes(2);
    let run = dry(&world, job("service", 5));
    let failed = run.failed.get("web").expect("the group finds no place for all");
    assert_eq!(failed.coalesced_failures, 2, "one failed, and two more");
    let statuses: Vec<&str> = run.created.iter().map(|eval| eval.status.as_str()).collect();
    assert_eq!(statuses, ["blocked"]);
    assert_eq!(world.state.evals.len(), 0);
}

#[test]
fn a_dry_run_answers_while_registration_is_closed_and_for_jobs_that_wait_for_their_time() {
    let mut world = World::with_nodes(2);
    let rules = model::SchedulerRules { reject_job_registration: true, ..Default::default() };
    world.submit(model::Command::SetScheduler { rules, only_at: None });
    assert_eq!(desired(&dry(&world, job("batch", 2))).place, 2);
    let periodic = |job: &mut Job| job.periodic = Some(Default::default());
    assert_eq!(desired(&dry(&world, job("batch", 2).with(periodic))).place, 2);
}

/// K18.
#[test]
fn those_whose_place_would_be_taken_are_named() {
    let with = |id: &str, priority| {
        job("service", 1).with(|job| {
            (job.id, job.priority) = (Some(id.to_string()), Some(priority));
            task(job).resources.as_mut().unwrap().cpu = Some(3900);
        })
    };
    let mut world = World::with_nodes(1);
    let eval = world.register(with("low", 20));
    world.settle(eval);
    let run = dry(&world, with("high", 70));
    assert_eq!(desired(&run), DesiredUpdates { place: 1, preemptions: 1, ..DesiredUpdates::default() });
    let named: Vec<&str> = run.annotations.preempted_allocs.iter().map(|stub| stub.job_id.as_str()).collect();
    assert_eq!(named, ["low"]);
}

/// K18, EV-10. What a dry run says is also what the evaluation says afterwards.
#[test]
fn an_evaluation_says_what_was_to_become_of_its_groups() {
    let with = |id: &str, priority| {
        job("service", 1).with(|job| {
            (job.id, job.priority) = (Some(id.to_string()), Some(priority));
            task(job).resources.as_mut().unwrap().cpu = Some(3900);
        })
    };
    let mut world = World::with_nodes(1);
    let low = world.register(with("low", 20));
    let shown = |world: &World, eval| state::eval::document(&world.state, world.eval(eval)).plan_annotations;
    assert_eq!(shown(&world, low), None, "no scheduler has looked at it");
    world.settle(low);
    let desired = shown(&world, low).unwrap().desired_tg_updates;
    assert_eq!(desired.get("web"), Some(&DesiredUpdates { place: 1, ..DesiredUpdates::default() }));
    let run = dry(&world, with("high", 70));
    let high = world.register(with("high", 70));
    world.settle(high);
    let annotations = shown(&world, high).unwrap();
    assert_eq!(annotations.desired_tg_updates, run.annotations.desired_tg_updates);
    let ids = |stubs: &[AllocationListStub]| stubs.iter().map(|stub| stub.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&annotations.preempted_allocs), ids(&run.annotations.preempted_allocs));
    assert_eq!(annotations.preempted_allocs[0].job_id, "low");
}
