//! Sinks of the event stream: which there may be, and how they stop and go on.

use base::{Duration, Index};
use model::{
    Command, EventCursorSettings, EventPosition, EventSinkSettings, EventSinkTarget, FIRST_EPOCH,
    KAFKA_SINK_EPOCH, OTLP_TRACES_EPOCH, OtlpSignal, ParkEventSink, Rejection, SetEventCursor, SetEventSink,
    SyslogTransport, VariableKey,
};
use rules::Decision;
use rules::sink::SINKS_MAX;
use state::sink::Status;
use test_world::World;

fn wanted(name: &str) -> SetEventSink {
    SetEventSink {
        name: name.into(),
        settings: EventSinkSettings {
            target: EventSinkTarget::Webhook { url: "https://example.com/hook".into() },
            secret: None,
            attempts_max: 10,
            timeout: Duration::from_secs(30),
        },
        events: EventCursorSettings { namespace: "default".into(), ..EventCursorSettings::default() },
        start: None,
    }
}

fn set(world: &mut World, change: impl Fn(&mut SetEventSink)) -> Result<Decision, Rejection> {
    let mut wanted = wanted("billing");
    change(&mut wanted);
    world.submit(Command::SetEventSink(Box::new(wanted)))
}

fn park(world: &mut World, event: EventPosition) -> Result<Decision, Rejection> {
    let parked =
        ParkEventSink { name: "billing".into(), event, attempts: 10, reason: "answered 500".repeat(99) };
    world.submit(Command::ParkEventSink(Box::new(parked)))
}

fn named(command: fn(String) -> Command, world: &mut World) -> Result<Decision, Rejection> {
    world.submit(command("billing".into()))
}

const RESUME: fn(String) -> Command = |name| Command::ResumeEventSink { name };
const PAUSE: fn(String) -> Command = |name| Command::PauseEventSink { name };
const SKIP: fn(String) -> Command = |name| Command::SkipEventSink { name };
const DELETE: fn(String) -> Command = |name| Command::DeleteEventSink { name };

fn status(world: &World) -> Status {
    world.state.sinks.get("billing").unwrap().status.clone()
}

#[test]
fn a_sink_comes_and_goes_with_its_cursor() {
    let mut world = World::new();
    set(&mut world, |_| ()).unwrap();
    let created = world.state.index;
    let place = world.state.cursors.get("sink.billing").unwrap().position;
    assert_eq!(place, EventPosition::before(created));
    assert!(set(&mut world, |_| ()).unwrap().events.is_empty(), "nothing changed");
    set(&mut world, |wanted| wanted.settings.secret = Some(VariableKey::new("default", "a"))).unwrap();
    assert_eq!(world.state.cursors.get("sink.billing").unwrap().position, place);
    let again = set(&mut world, |wanted| wanted.events.topics = vec!["Job".into()]).unwrap();
    assert_eq!(again.events.len(), 2, "the secret went, the topics came");

    let cursor = SetEventCursor {
        name: "sink.other".into(),
        settings: EventCursorSettings { namespace: "*".into(), ..EventCursorSettings::default() },
        start: None,
    };
    let why = world.submit(Command::SetEventCursor(Box::new(cursor))).unwrap_err();
    assert!(why.to_string().contains("does not begin with"), "{why}");
    let split = Command::SplitEventCursor { name: "sink.billing".into(), members: 2, to: None };
    assert_eq!(
        world.submit(split).unwrap_err().to_string(),
        "event cursor \"sink.billing\" belongs to the sink \"billing\", which reads all of it"
    );
    let why = world.submit(Command::DeleteEventCursor { name: "sink.billing".into() }).unwrap_err();
    assert!(why.to_string().contains("belongs to the sink"), "{why}");

    named(DELETE, &mut world).unwrap();
    assert!(world.state.sinks.is_empty() && world.state.cursors.is_empty());
    assert_eq!(named(DELETE, &mut world), Err(Rejection::EventSinkUnknown("billing".into())));
    world.check_replay();
}

#[test]
fn what_is_parked_is_tried_again_or_skipped_and_nothing_else_is() {
    let mut world = World::new();
    set(&mut world, |_| ()).unwrap();
    assert!(named(SKIP, &mut world).is_err(), "nothing is parked");
    let event = EventPosition { index: world.state.index, ordinal: 2 };
    park(&mut world, event).unwrap();
    let Status::Parked(parked) = status(&world) else { panic!("it is parked") };
    assert_eq!((parked.event, parked.attempts), (event, 10));
    assert!(parked.reason.len() <= 512);
    assert!(park(&mut world, event).unwrap().events.is_empty(), "once is enough");
    named(RESUME, &mut world).unwrap();
    assert_eq!(status(&world), Status::Running);
    assert!(world.state.cursors.get("sink.billing").unwrap().position < event, "it is tried again");

    park(&mut world, event).unwrap();
    named(SKIP, &mut world).unwrap();
    assert_eq!(status(&world), Status::Running);
    assert_eq!(world.state.cursors.get("sink.billing").unwrap().position, event);

    named(PAUSE, &mut world).unwrap();
    let later = EventPosition { index: Index(event.index.0), ordinal: 5 };
    assert!(park(&mut world, later).unwrap().events.is_empty(), "who paused it knows better");
    assert!(named(PAUSE, &mut world).unwrap().events.is_empty());
    set(&mut world, |wanted| wanted.settings.attempts_max = 3).unwrap();
    assert_eq!(status(&world), Status::Paused, "a change does not start it");
    world.check_replay();
}

/// Servers of the release before do not know the kind, and would not understand the log.
#[test]
fn a_sink_of_kafka_waits_until_every_server_knows_it() {
    let kafka = |wanted: &mut SetEventSink| {
        let (address, topic) = ("a:9092,b:9092".to_string(), "sojourn.events".to_string());
        wanted.settings.target = EventSinkTarget::Kafka { address, topic, tls: true };
    };
    let mut world = World::new();
    let too_early = Rejection::EpochTooLow { needed: KAFKA_SINK_EPOCH, epoch: FIRST_EPOCH };
    assert_eq!(set(&mut world, kafka), Err(too_early));
    world.submit(Command::RaiseEpoch { epoch: KAFKA_SINK_EPOCH }).unwrap();
    set(&mut world, kafka).unwrap();
    let target = &world.state.sinks.get("billing").unwrap().settings.target;
    assert!(matches!(target, EventSinkTarget::Kafka { topic, tls: true, .. } if topic == "sojourn.events"));
    world.check_replay();
}

/// Servers of the release before would send logs where traces are wanted.
#[test]
fn a_sink_of_traces_waits_until_every_server_knows_it() {
    let of = |signal| {
        move |wanted: &mut SetEventSink| {
            wanted.settings.target =
                EventSinkTarget::Otlp { url: "https://collector/v1/traces".into(), signal };
        }
    };
    let mut world = World::new();
    let too_early = Rejection::EpochTooLow { needed: OTLP_TRACES_EPOCH, epoch: FIRST_EPOCH };
    assert_eq!(set(&mut world, of(OtlpSignal::Traces)), Err(too_early));
    set(&mut world, of(OtlpSignal::Logs)).unwrap();
    world.submit(Command::RaiseEpoch { epoch: OTLP_TRACES_EPOCH }).unwrap();
    set(&mut world, of(OtlpSignal::Traces)).unwrap();
    let target = &world.state.sinks.get("billing").unwrap().settings.target;
    assert!(matches!(target, EventSinkTarget::Otlp { signal: OtlpSignal::Traces, .. }));
    world.check_replay();
}

#[test]
fn what_no_sink_can_be_is_refused_with_its_field() {
    let mut world = World::new();
    world.submit(Command::RaiseEpoch { epoch: KAFKA_SINK_EPOCH }).unwrap();
    type Change = fn(&mut SetEventSink);
    let syslog = |address: &str, facility, app_name: &str| {
        let (address, app_name) = (address.into(), app_name.into());
        EventSinkTarget::Syslog { address, transport: SyslogTransport::Udp, facility, app_name }
    };
    let otlp = |url: &str, signal| EventSinkTarget::Otlp { url: url.into(), signal };
    let kafka = |address: &str, topic: &str| EventSinkTarget::Kafka {
        address: address.into(),
        topic: topic.into(),
        tls: true,
    };
    let cases: [(Change, &str); 8] = [
        (|wanted| wanted.name = "a.b".into(), "Name"),
        (|wanted| wanted.settings.target = EventSinkTarget::Webhook { url: "ftp://a".into() }, "URL"),
        (|wanted| wanted.settings.target = EventSinkTarget::Webhook { url: "http://u:p@a/".into() }, "URL"),
        (
            |wanted| {
                wanted.settings.target =
                    EventSinkTarget::Nats { address: "nats".into(), subject: "a".into(), tls: true }
            },
            "Address",
        ),
        (
            |wanted| {
                wanted.settings.target =
                    EventSinkTarget::Nats { address: "nats:4222".into(), subject: "a.*".into(), tls: false }
            },
            "Subject",
        ),
        (|wanted| wanted.settings.target = EventSinkTarget::File { max_bytes: 1, max_files: 1 }, "MaxBytes"),
        (|wanted| wanted.settings.attempts_max = 0, "MaxAttempts"),
        (|wanted| wanted.settings.timeout = Duration::ZERO, "Timeout"),
    ];
    for (change, field) in cases {
        let why = set(&mut world, change).unwrap_err().to_string();
        assert!(why.contains(&format!("{field}: expected")), "{why}");
    }
    let targets = [
        (syslog("logs", 16, "sojourn"), "Address"),
        (syslog("logs:601", 24, "sojourn"), "Facility"),
        (syslog("logs:601", 16, "two words"), "AppName"),
        (otlp("http://u:p@a/v1/logs", OtlpSignal::Logs), "URL"),
        (otlp("ftp://a/v1/traces", OtlpSignal::Traces), "URL"),
        (kafka("a:9092,b", "events"), "Address"),
        (kafka("a:9092", "two words"), "Subject"),
        (kafka("a:9092", ".."), "Subject"),
    ];
    for (target, field) in targets {
        let why = set(&mut world, |wanted| wanted.settings.target = target.clone()).unwrap_err().to_string();
        assert!(why.contains(&format!("{field}: expected")), "{why}");
    }
    for at in 0..SINKS_MAX {
        world.submit(Command::SetEventSink(Box::new(wanted(&format!("s{at}"))))).unwrap();
    }
    assert!(matches!(set(&mut world, |_| ()), Err(Rejection::EventSinkRefused(_))));
    world.check_replay();
}
