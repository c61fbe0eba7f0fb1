//! Cursors of the event stream: which there may be, and where they may go.

use base::{Duration, Index, Uuid};
use model::event::EventCursorAcked;
use model::{Command, Event, EventCursorSettings, EventPosition, Rejection, SetEventCursor};
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
    let cases: [(&str, Change); 10] = [
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
