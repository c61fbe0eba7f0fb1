//! Configurations of the whole cluster: one is set against the one that was seen.

use base::Index;
use model::{Autopilot, Command, Rejection, SchedulerRules};
use state::operator::Configured;
use test_world::World;

/// Whether something was written.
fn set_autopilot(world: &mut World, rules: &Autopilot, only_at: Option<u64>) -> Result<bool, Rejection> {
    let command = Command::SetAutopilot { rules: rules.clone(), only_at: only_at.map(Index) };
    world.submit(command).map(|decision| !decision.events.is_empty())
}

#[test]
fn a_configuration_is_set_against_the_one_that_was_seen() {
    let mut world = World::new();
    let (first, second) = (Autopilot::default(), Autopilot { min_quorum: 3, ..Autopilot::default() });
    let late = |at| Err(Rejection::AutopilotIndexMismatch { at: Index(at) });
    assert_eq!(set_autopilot(&mut world, &first, Some(1)), late(0));
    assert_eq!(set_autopilot(&mut world, &first, Some(0)), Ok(true));
    assert_eq!(set_autopilot(&mut world, &second, Some(0)), late(1));
    assert_eq!(set_autopilot(&mut world, &second, Some(1)), Ok(true));
    assert_eq!(set_autopilot(&mut world, &first, None), Ok(true));
    assert_eq!(set_autopilot(&mut world, &first, None), Ok(false), "nothing changes, so nothing is written");
    let expected = Configured { created: Index(1), modified: Index(3), rules: first };
    assert_eq!(world.state.operator.autopilot, Some(expected));
    world.check_replay();
}

#[test]
fn the_schedulers_configuration_is_set_against_the_one_that_was_seen() {
    let mut world = World::new();
    let mut set = |rules: &SchedulerRules, only_at: Option<u64>| {
        let command = Command::SetScheduler { rules: rules.clone(), only_at: only_at.map(Index) };
        world.submit(command)?;
        let configured = world.state.operator.scheduler.as_ref();
        Ok(configured.map(|configured| (configured.created.0, configured.modified.0)))
    };
    let late = |at| Err(Rejection::SchedulerIndexMismatch { at: Index(at) });
    let (first, second) =
        (SchedulerRules::default(), SchedulerRules { pause_eval_broker: true, ..Default::default() });
    assert_eq!(set(&first, Some(1)), late(0));
    assert_eq!(set(&first, Some(0)), Ok(Some((1, 1))));
    assert_eq!(set(&second, Some(0)), late(1));
    assert_eq!(set(&second, Some(1)), Ok(Some((1, 2))));
    assert_eq!(set(&second, None), Ok(Some((1, 2))), "nothing changes, so nothing is written");
    world.check_replay();
}

#[test]
fn a_configuration_that_makes_no_sense_names_its_field() {
    let wrong = Autopilot { last_contact_threshold_ns: 0, ..Autopilot::default() };
    let text = set_autopilot(&mut World::new(), &wrong, None).unwrap_err().to_string();
    assert_eq!(text, "invalid autopilot configuration: LastContactThreshold: expected a duration above zero");
}
