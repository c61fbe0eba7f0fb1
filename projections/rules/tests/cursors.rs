//! Cursors of the event stream: which there may be, and where they may go.

use base::{Duration, Index, Uuid};
use model::event::EventCursorAcked;
use model::{
    Command, Event, EventCursorSettings, EventPosition, FIRST_EPOCH, Rejection, SPLIT_CURSOR_EPOCH,
    SetEventCursor,
};
use rules::cursor::{CURSORS_MAX, has_expired};
use rules::{Decision, cursor};
use test_world::World;

fn wanted(name: &str) -> SetEventCursor {
    let settings = EventCursorSettings { namespace: "default".into(), ..EventCursorSettings::default() };
    SetEventCursor { name: name.into(), settings, start: None }
}

fn set(world: &mut World, change: impl Fn(&mut SetEventCursor)) -> Result<Decision, Rejection> {
    let mut wanted = wanted("billing");
    change(&mut wanted);
    world.submit(Command::SetEventCursor(Box::new(wanted)))
}

fn at(index: u64, ordinal: u32) -> EventPosition {
    EventPosition { index: Index(index), ordinal }
}

fn acknowledge(world: &mut World, after: EventPosition) -> Result<Decision, Rejection> {
    world.submit(Command::AckEventCursor { name: "billing".into(), after })
}

fn reset(world: &mut World, to: Option<EventPosition>) -> Result<Decision, Rejection> {
    world.submit(Command::ResetEventCursor { name: "billing".into(), to })
}

fn place(world: &World) -> EventPosition {
    world.state.cursors.get("billing").unwrap().position
}

#[test]
fn a_new_cursor_begins_where_it_is_asked_to_and_stays_there_when_it_is_changed() {
    let mut world = World::new();
    set(&mut world, |_| ()).unwrap();
    let created = world.state.index;
    assert_eq!(place(&world), EventPosition::before(created), "with what its own batch brings");
    assert!(set(&mut world, |_| ()).unwrap().events.is_empty(), "nothing changed");
    set(&mut world, |wanted| wanted.settings.topics = vec!["Job".into()]).unwrap();
    let known = world.state.cursors.get("billing").unwrap();
    assert_eq!((known.created, known.settings.from.as_str()), (created, "now"));
    assert_eq!(place(&world), EventPosition::before(created));
    // Who applies the same again is right, who wants it to have begun elsewhere is told.
    assert!(
        set(&mut world, |wanted| {
            wanted.settings.from = "now".into();
            wanted.settings.topics = vec!["Job".into()];
        })
        .unwrap()
        .events
        .is_empty()
    );
    let why = set(&mut world, |wanted| wanted.settings.from = "oldest".into()).unwrap_err();
    assert_eq!(
        why.to_string(),
        "event cursor \"billing\" exists, and began at \"now\", not at \"oldest\": leave From out, or reset the cursor"
    );
    assert_eq!(why.kind(), model::RejectionKind::Conflict);
    world.check_replay();
}

#[test]
fn an_acknowledgement_moves_a_cursor_on_and_never_back() {
    let mut world = World::new();
    set(&mut world, |wanted| wanted.start = Some(at(0, u32::MAX))).unwrap();
    for index in 0..4 {
        // So that there is something to be done with.
        let other = SetEventCursor { name: format!("other-{index}"), ..wanted("") };
        world.submit(Command::SetEventCursor(Box::new(other))).unwrap();
    }
    let moved = acknowledge(&mut world, at(2, 1)).unwrap();
    let expected = EventCursorAcked { name: "billing".into(), position: at(2, 1) };
    assert_eq!(moved.events, [Event::EventCursorAcked(expected)]);
    let known = world.state.cursors.get("billing").unwrap();
    let acknowledged = known.acknowledged.clone().unwrap();
    assert_eq!((acknowledged.index, acknowledged.at), (world.state.index, world.state.time));
    for older in [at(2, 1), at(2, 0), at(1, u32::MAX)] {
        assert!(acknowledge(&mut world, older).unwrap().events.is_empty(), "{older:?}");
    }
    assert_eq!(place(&world), at(2, 1));
    acknowledge(&mut world, at(2, u32::MAX)).unwrap();
    let ahead = world.state.index.next();
    let why = acknowledge(&mut world, at(ahead.0, 0)).unwrap_err().to_string();
    assert_eq!(why, "invalid event cursor: ID: expected an event that has happened");
    // Only a reset goes back, and leaves who acknowledged last.
    reset(&mut world, Some(at(1, 0))).unwrap();
    assert_eq!(place(&world), at(1, 0));
    assert!(reset(&mut world, Some(at(1, 0))).unwrap().events.is_empty());
    assert!(world.state.cursors.get("billing").unwrap().acknowledged.is_some());
    let why = reset(&mut world, Some(at(1 << 40, 0))).unwrap_err().to_string();
    assert_eq!(why, "invalid event cursor: To: expected an event that has happened");
    reset(&mut world, None).unwrap();
    assert_eq!(place(&world), EventPosition::before(world.state.index));
    world.check_replay();
}

#[test]
fn what_is_no_cursor_is_refused_by_its_field() {
    let mut world = World::new();
    type Change = fn(&mut SetEventCursor);
    let cases: [(&str, Change); 11] = [
        ("Name: expected 1 to 128 letters, digits, dashes, underscores and dots", |w| w.name = String::new()),
        ("Name: expected 1 to 128 letters, digits, dashes, underscores and dots", |w| w.name = "a/b".into()),
        ("Name: expected 1 to 128 letters, digits, dashes, underscores and dots", |w| {
            w.name = "a".repeat(129)
        }),
        ("Topics: expected at most 64 topics", |w| w.settings.topics = vec!["Job".into(); 65]),
        ("Topics: expected topics of 1 to 512 bytes", |w| w.settings.topics = vec![String::new()]),
        ("Namespace: expected a namespace that exists, or * for all", |w| {
            w.settings.namespace = "none".into()
        }),
        ("Filter: expected at most 4096 bytes", |w| w.settings.filter = "x".repeat(4097)),
        ("Reader: expected the accessor of a token that exists", |w| {
            w.settings.reader = Uuid::from(7).to_string();
        }),
        ("TTL: expected 0 for no end, or a minute at least", |w| w.settings.ttl = Duration::from_secs(59)),
        ("Members: expected a number from 1 to 64", |w| w.settings.members = 65),
        ("From: expected an event that has happened", |w| {
            w.start = Some(EventPosition { index: Index(1 << 40), ordinal: 0 });
        }),
    ];
    for (why, change) in cases {
        let refused = set(&mut world, change).unwrap_err().to_string();
        assert_eq!(refused, format!("invalid event cursor: {why}"));
    }
    for command in [
        Command::AckEventCursor { name: "billing".into(), after: at(0, 0) },
        Command::AckEventCursorMember { name: "billing".into(), member: 0, after: at(0, 0) },
        Command::SplitEventCursor { name: "billing".into(), members: 2, to: None },
        Command::ResetEventCursor { name: "billing".into(), to: None },
        Command::DeleteEventCursor { name: "billing".into() },
    ] {
        let refused = world.submit(command).unwrap_err();
        assert_eq!(refused, Rejection::EventCursorUnknown("billing".into()));
        assert_eq!(refused.to_string(), "event cursor \"billing\" not found");
    }
    assert!(world.log.is_empty());
}

#[test]
fn there_are_only_so_many_cursors() {
    let mut world = World::new();
    for number in 0..CURSORS_MAX {
        set(&mut world, |wanted| wanted.name = format!("cursor-{number}")).unwrap();
    }
    let why = set(&mut world, |_| ()).unwrap_err().to_string();
    assert_eq!(why, "there are 256 event cursors, and no more are kept: delete one first");
    // One that is there may be changed.
    set(&mut world, |wanted| (wanted.name, wanted.settings.namespace) = ("cursor-7".into(), "*".into()))
        .unwrap();
    world.submit(Command::DeleteEventCursor { name: "cursor-7".into() }).unwrap();
    set(&mut world, |_| ()).unwrap();
    world.check_replay();
}

#[test]
fn a_cursor_that_nobody_uses_for_too_long_is_deleted() {
    let mut world = World::new();
    set(&mut world, |wanted| wanted.settings.ttl = Duration::from_secs(3600)).unwrap();
    set(&mut world, |wanted| wanted.name = "for-ever".into()).unwrap();
    world.now = world.now.plus(Duration::from_secs(3000));
    let newest = at(world.state.index.0, 0);
    acknowledge(&mut world, newest).unwrap();
    world.now = world.now.plus(Duration::from_secs(3599));
    assert!(!has_expired(&world.state.cursors, world.now));
    assert!(world.submit(Command::ExpireEventCursors).unwrap().events.is_empty(), "it was used meanwhile");
    world.now = world.now.plus(Duration::from_secs(1));
    assert!(cursor::has_expired(&world.state.cursors, world.now));
    assert_eq!(world.submit(Command::ExpireEventCursors).unwrap().events.len(), 1);
    let left: Vec<&str> = world.state.cursors.iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["for-ever"]);
    world.check_replay();
}

fn acknowledge_member(world: &mut World, member: u32, after: EventPosition) -> Result<Decision, Rejection> {
    world.submit(Command::AckEventCursorMember { name: "billing".into(), member, after })
}

fn split(world: &mut World, members: u32, to: Option<EventPosition>) -> Result<Decision, Rejection> {
    world.submit(Command::SplitEventCursor { name: "billing".into(), members, to })
}

fn places(world: &World) -> Vec<EventPosition> {
    let members = &world.state.cursors.get("billing").unwrap().members;
    members.iter().map(|member| member.position).collect()
}

/// Every server knows what a split cursor is.
fn upgraded() -> World {
    let mut world = World::new();
    world.submit(Command::RaiseEpoch { epoch: SPLIT_CURSOR_EPOCH }).unwrap();
    world
}

#[test]
fn no_cursor_is_split_before_every_server_knows_what_that_is() {
    let mut world = World::new();
    let too_low = Rejection::EpochTooLow { needed: SPLIT_CURSOR_EPOCH, epoch: FIRST_EPOCH };
    assert_eq!(set(&mut world, |wanted| wanted.settings.members = 2).unwrap_err(), too_low);
    set(&mut world, |_| ()).unwrap();
    assert_eq!(split(&mut world, 2, None).unwrap_err(), too_low);
    world.check_replay();
}

#[test]
fn of_a_cursor_that_is_split_each_member_moves_by_itself_and_the_cursor_with_the_last() {
    let mut world = upgraded();
    let begin = at(0, u32::MAX);
    set(&mut world, |wanted| (wanted.start, wanted.settings.members) = (Some(begin), 3)).unwrap();
    for number in 0..4 {
        set(&mut world, |wanted| wanted.name = format!("other-{number}")).unwrap();
    }
    assert_eq!(places(&world), [begin; 3]);
    acknowledge_member(&mut world, 1, at(3, 0)).unwrap();
    acknowledge_member(&mut world, 2, at(2, 4)).unwrap();
    assert_eq!((places(&world), place(&world)), (vec![begin, at(3, 0), at(2, 4)], begin));
    acknowledge_member(&mut world, 0, at(4, 0)).unwrap();
    assert_eq!(place(&world), at(2, 4), "where the one is that has come least far");
    let known = world.state.cursors.get("billing").unwrap();
    assert_eq!(known.members[0].acknowledged, known.acknowledged, "it was the last to say so");
    assert_ne!(known.members[2].acknowledged, known.acknowledged);
    for (member, older) in [(0, at(4, 0)), (1, at(2, 0)), (2, at(2, 4))] {
        assert!(acknowledge_member(&mut world, member, older).unwrap().events.is_empty(), "{member}");
    }
    let refused = |refused: Result<Decision, Rejection>| refused.unwrap_err().to_string();
    assert_eq!(
        refused(acknowledge_member(&mut world, 3, at(4, 0))),
        "invalid event cursor: Member: expected a number below that of the cursor's members"
    );
    assert_eq!(
        refused(acknowledge(&mut world, at(4, 0))),
        "invalid event cursor: Member: expected a number: the cursor is split"
    );
    let ahead = at(world.state.index.next().0, 0);
    assert_eq!(
        refused(acknowledge_member(&mut world, 0, ahead)),
        "invalid event cursor: ID: expected an event that has happened"
    );
    // A reset moves all of them.
    reset(&mut world, Some(at(1, 0))).unwrap();
    assert_eq!((places(&world), place(&world)), (vec![at(1, 0); 3], at(1, 0)));
    acknowledge_member(&mut world, 1, at(3, 0)).unwrap();
    assert_eq!(reset(&mut world, Some(at(1, 0))).unwrap().events.len(), 1, "one of them is elsewhere");
    assert_eq!(places(&world), [at(1, 0); 3]);
    world.check_replay();
}

#[test]
fn only_a_reset_changes_among_how_many_a_cursor_is_split() {
    let mut world = upgraded();
    set(&mut world, |wanted| (wanted.start, wanted.settings.members) = (Some(at(0, u32::MAX)), 2)).unwrap();
    set(&mut world, |wanted| wanted.name = "other".into()).unwrap();
    acknowledge_member(&mut world, 0, at(1, 0)).unwrap();
    for members in [0, 2] {
        let same = set(&mut world, |wanted| wanted.settings.members = members).unwrap();
        assert!(same.events.is_empty(), "{members} says what it is");
    }
    for (members, shown) in [(1, "2 members, not 1"), (3, "2 members, not 3")] {
        let why = set(&mut world, |wanted| wanted.settings.members = members).unwrap_err();
        assert_eq!(why.kind(), model::RejectionKind::Conflict);
        let expected =
            format!("event cursor \"billing\" has {shown}: leave Members out, or reset the cursor with it");
        assert_eq!(why.to_string(), expected);
    }
    // What it gives may change, and each stays where it is.
    set(&mut world, |wanted| wanted.settings.topics = vec!["Job".into()]).unwrap();
    assert_eq!(places(&world), [at(1, 0), at(0, u32::MAX)]);
    split(&mut world, 3, Some(at(0, u32::MAX))).unwrap();
    assert_eq!(places(&world), [at(0, u32::MAX); 3]);
    assert_eq!(world.state.cursors.get("billing").unwrap().settings.members, 3);
    let why = split(&mut world, 65, None).unwrap_err().to_string();
    assert_eq!(why, "invalid event cursor: Members: expected a number from 1 to 64");
    split(&mut world, 1, Some(at(1, 0))).unwrap();
    assert_eq!((places(&world), place(&world)), (vec![], at(1, 0)), "one reader has all of it");
    let why = acknowledge_member(&mut world, 0, at(2, 0)).unwrap_err().to_string();
    assert_eq!(why, "invalid event cursor: Member: expected none: the cursor is not split");
    acknowledge(&mut world, at(2, 0)).unwrap();
    world.check_replay();
}
