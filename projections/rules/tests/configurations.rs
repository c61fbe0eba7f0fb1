//! Configurations of the whole cluster: one is set against the one that was seen.

use base::{Index, Time, Uuid};
use model::{
    Autopilot, Command, EPOCH, FIRST_EPOCH, KEY_TREE_EPOCH, KeyTreeCommand, Rejection, SchedulerRules,
};
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

#[test]
fn what_came_with_an_epoch_waits_until_the_cluster_is_there() {
    let mut world = World::new();
    let request = KeyTreeCommand::Request { server: Uuid::from(1), public: [1; 32] };
    let request = || Command::KeyTree(Box::new(request.clone()));
    let too_early = Rejection::EpochTooLow { needed: KEY_TREE_EPOCH, epoch: FIRST_EPOCH };
    assert_eq!(world.submit(request()).unwrap_err(), too_early);
    let unknown = world.submit(Command::RaiseEpoch { epoch: EPOCH + 1 });
    assert_eq!(unknown.unwrap_err(), Rejection::EpochUnknown(EPOCH + 1));
    assert_eq!(world.state.index, Index::ZERO, "nothing is written");

    let mut raise = |epoch| !world.submit(Command::RaiseEpoch { epoch }).unwrap().events.is_empty();
    assert_eq!([raise(EPOCH), raise(EPOCH), raise(FIRST_EPOCH)], [true, false, false]);
    world.submit(request()).unwrap();
    let epochs: Vec<u16> = world.log.iter().map(|batch| batch.epoch).collect();
    assert_eq!(epochs, [FIRST_EPOCH, EPOCH], "the fact itself is one that every server reads");
    world.check_replay();
}

#[test]
fn a_cluster_is_founded_at_the_newest_epoch() {
    let mut world = World::new();
    world.submit(Command::FoundCluster { scheduler: SchedulerRules::default() }).unwrap();
    assert_eq!(world.state.epoch(), EPOCH);
    world.check_replay();
}

#[test]
fn a_server_says_from_where_on_it_has_history() {
    let mut world = World::new();
    let note = |world: &mut World, server: &str, oldest: u64| {
        let (server, oldest, time) = (server.to_string(), Index(oldest), Time(oldest as i64));
        world.submit(Command::NoteDroppedHistory { server, oldest, time }).map(|done| done.events.len())
    };
    assert_eq!(note(&mut world, "one", 5), Err(Rejection::EpochTooLow { needed: 4, epoch: FIRST_EPOCH }));
    world.submit(Command::RaiseEpoch { epoch: EPOCH }).unwrap();
    for (server, oldest, written) in
        [("one", 5, 1), ("one", 5, 0), ("two", 3, 1), ("one", 9, 1), ("two", 2, 1)]
    {
        assert_eq!(note(&mut world, server, oldest), Ok(written), "{server} {oldest}");
    }
    let known = world.state.dropped_history.iter();
    let known: Vec<_> =
        known.map(|(name, said)| (&**name, said.oldest.0, said.time.0, said.noted.0)).collect();
    assert_eq!(known, [("one", 9, 9, 4), ("two", 2, 2, 5)]);
    world.check_replay();
}
