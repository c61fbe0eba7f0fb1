//! The task of one sink: reads on from its cursor, sends event after event, or as many together as the target takes, and
//! acknowledges what has arrived.
//!
//! It ends when its cursor is moved by somebody else, and is begun again from there.

use std::sync::Arc;
use std::time::Duration;

use api::{EventId, StreamPosition, TopicFilter};
use feed::{Condition, Cursor, EventFilter, Everybody, FeedError, Page, StreamEvent, View};
use journal::Freshness;
use keyring::Items;
use model::{
    Actor, Command, EventCursorSettings, EventPosition, EventSinkSettings, EventSinkTarget, OtlpSignal,
    ParkEventSink, Request, cursor_of_sink,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::Sinks;
use crate::target::{Outgoing, Target, Undelivered};
use crate::traces::Tracer;

/// Acknowledgements are put together: the log has one fact for all that arrived in so long.
const ACK_EVERY: Duration = Duration::from_secs(1);
/// The same while nothing matches, so that the cursor stays in what is kept.
const ACK_IDLE_EVERY: Duration = Duration::from_secs(30);
/// The pause after a first failure; twice as long each time after that, up to the second. A fifth of it is chance.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Of events that are sent together. Brokers of Kafka take a batch of 1 MiB unless they are set otherwise.
const TOGETHER_BYTES: usize = 512 << 10;

/// As the log names who acknowledges and parks.
const ACTOR: &str = "sinks";

pub(crate) struct Sender {
    sinks: Sinks,
    name: String,
    cursor: String,
    settings: EventSinkSettings,
    events: EventCursorSettings,
    /// Of a sink of traces.
    tracer: Option<Tracer>,
    /// What the cursor says.
    acked: EventPosition,
    /// What has arrived, or is not for this sink.
    done: EventPosition,
    /// The first event that arrived since the last acknowledgement.
    first: Option<EventId>,
    /// How often what was sent was lost since then.
    lost: u32,
    acked_at: Instant,
}

/// How a task goes on.
enum Flow {
    On,
    /// From the last acknowledgement, because what came after it may not have arrived.
    Again,
    /// No further: it was parked, or its cursor was moved.
    Ended,
}

type Step = Result<Flow, String>;

impl Sender {
    pub(crate) fn new(
        sinks: Sinks,
        name: &str,
        settings: &EventSinkSettings,
        events: &EventCursorSettings,
    ) -> Sender {
        let is_of_traces =
            matches!(settings.target, EventSinkTarget::Otlp { signal: OtlpSignal::Traces, .. });
        let tracer = is_of_traces.then(|| Tracer::new(sinks.history.clone(), sinks.events.cluster()));
        Sender {
            tracer,
            sinks,
            name: name.to_string(),
            cursor: cursor_of_sink(name),
            settings: settings.clone(),
            events: events.clone(),
            acked: EventPosition::default(),
            done: EventPosition::default(),
            first: None,
            lost: 0,
            acked_at: Instant::now(),
        }
    }

    /// # Errors
    /// Why it cannot go on for now.
    pub(crate) async fn run(mut self) -> Result<(), String> {
        // A new leader may not have folded yet what the one before acknowledged.
        let caught_up = self.sinks.control.catch_up(Freshness::Confirmed).await;
        caught_up.map_err(|error| error.to_string())?;
        let Some(position) = self.position() else { return Ok(()) };
        (self.acked, self.done) = (position, position);
        let view = if self.tracer.is_some() { View::Key } else { View::CloudEvents };
        let filter = Arc::new(filter_of(&self.events, view)?);
        let Sinks { directory, addresses, .. } = &self.sinks;
        let mut target = Target::open(&self.name, &self.settings, directory, addresses)?;
        let mut next = Cursor::behind(position);
        loop {
            let page = tokio::select! {
                page = self.sinks.events.page(next, &filter) => Some(page),
                () = sleep_until(self.ack_due()), if self.done > self.acked => None,
            };
            let flow = match page {
                None => self.acknowledge(&mut target).await?,
                Some(Ok(page)) => {
                    next = page.next;
                    self.send(&page, &mut target).await?
                }
                Some(Err(FeedError::Ended)) => return Ok(()),
                Some(Err(FeedError::Gone)) => return self.park_at_gap(next).await,
                Some(Err(error)) => return Err(error.to_string()),
            };
            match flow {
                Flow::On => {}
                Flow::Again => next = Cursor::behind(self.acked),
                Flow::Ended => return Ok(()),
            }
            // One with a narrow filter finds nothing for a long time: others use the thread too.
            tokio::task::yield_now().await;
        }
    }

    async fn send(&mut self, page: &Page, target: &mut Target) -> Step {
        let mut rest = &page.events[..];
        while !rest.is_empty() {
            let (group, after) = rest.split_at(group_len(rest, target.together_max()));
            match self.deliver(group, target).await? {
                Flow::On => rest = after,
                flow @ (Flow::Again | Flow::Ended) => return Ok(flow),
            }
        }
        if let Some(seen) = page.seen {
            self.done = self.done.max(position_of(seen));
        }
        Ok(Flow::On)
    }

    /// Tries until all events of a group have arrived, or one of them as often as it may be tried.
    async fn deliver(&mut self, group: &[StreamEvent], target: &mut Target) -> Step {
        let mut waiting = Vec::with_capacity(group.len());
        for event in group {
            waiting.extend(self.outgoing(event).await?);
        }
        let (mut failed, mut attempts) = (None, 0);
        let mut one_by_one = false;
        loop {
            self.advance(group, &waiting);
            if self.done > self.acked && Instant::now() >= self.ack_due() {
                match self.acknowledge(target).await? {
                    Flow::On => {}
                    flow @ (Flow::Again | Flow::Ended) => return Ok(flow),
                }
            }
            let together = if one_by_one { waiting.len().min(1) } else { waiting.len() };
            if together == 0 {
                return Ok(Flow::On);
            }
            let rest = waiting.split_off(together);
            let outcome = self.attempt(&mut waiting, target).await;
            if waiting.len() < together {
                self.sinks.figures.arrived(&self.name, together - waiting.len());
                self.first.get_or_insert(group[0].id);
            }
            waiting.extend(rest);
            let (Err(why), Some(first)) = (outcome, waiting.first()) else { continue };
            attempts = if failed == Some(first.at) { attempts + 1 } else { 1 };
            failed = Some(first.at);
            let (why, least) = match why {
                Undelivered::Lost(why) => return self.lose(&first.id, why).await,
                // Which of them it is has to be found out.
                Undelivered::Rejected(_) if together > 1 => {
                    (one_by_one, failed) = (true, None);
                    continue;
                }
                Undelivered::Rejected(why) => {
                    self.failed(&first.id, &why, attempts, None);
                    return self.park(id_of(first.at), attempts, why, target).await;
                }
                Undelivered::Later(why) => (why, Duration::ZERO),
                Undelivered::Busy(why, least) => (why, least.min(PAUSE_MAX)),
            };
            if attempts >= self.settings.attempts_max {
                self.failed(&first.id, &why, attempts, None);
                return self.park(id_of(first.at), attempts, why, target).await;
            }
            let pause = with_chance(pause_after(attempts)).max(least);
            self.failed(&first.id, &why, attempts, Some(pause));
            match self.pause(pause, target).await? {
                Flow::On => {}
                flow @ (Flow::Again | Flow::Ended) => return Ok(flow),
            }
        }
    }

    /// All before the first that waits is done.
    fn advance(&mut self, group: &[StreamEvent], waiting: &[Outgoing]) {
        let first = waiting.first().map(|event| event.at);
        let all = group.iter().map(|event| position_of(event.id));
        let done = all.take_while(|at| first.is_none_or(|first| *at < first)).last();
        self.done = done.map_or(self.done, |done| self.done.max(done));
    }

    async fn pause(&mut self, pause: Duration, target: &mut Target) -> Step {
        // What arrived before it is not sent again if this takes longer than this server leads.
        if self.done > self.acked {
            match self.acknowledge(target).await? {
                Flow::On => {}
                flow @ (Flow::Again | Flow::Ended) => return Ok(flow),
            }
        }
        sleep(pause).await;
        Ok(if self.position() == Some(self.acked) { Flow::On } else { Flow::Ended })
    }

    /// `None` for an event that ends no span, of a sink of traces.
    async fn outgoing(&mut self, event: &StreamEvent) -> Result<Option<Outgoing>, String> {
        let cluster = self.sinks.events.cluster();
        let id = StreamPosition { after: event.id, cluster }.to_string();
        let body = match &mut self.tracer {
            Some(tracer) => tracer.request(event, &id).await?,
            None => Some(event.body.clone()),
        };
        let (time, topic, kind) = (event.time, event.topic, event.kind);
        Ok(body.map(|body| Outgoing { at: position_of(event.id), id, body, time, topic, kind }))
    }

    /// Takes out what has arrived.
    async fn attempt(&self, waiting: &mut Vec<Outgoing>, target: &mut Target) -> Result<(), Undelivered> {
        let secret = self.secret().map_err(Undelivered::Later)?;
        let (time, began) = (self.settings.timeout.to_std(), Instant::now());
        let delivered = timeout(time, target.deliver(waiting, &secret)).await.unwrap_or_else(|_| {
            target.give_up();
            Err(Undelivered::Later(format!("nothing was answered in {}", self.settings.timeout)))
        });
        self.sinks.figures.took(&self.name, began.elapsed());
        delivered
    }

    /// Tried again after the pause; without one never.
    fn failed(&self, event: &str, why: &str, attempts: u32, pause: Option<Duration>) {
        if pause.is_some() {
            tracing::warn!(sink = self.name, event, attempts, why, "an event did not arrive");
        }
        self.sinks.figures.failed(&self.name, event, why, attempts, pause);
    }

    /// What was sent since the last acknowledgement is sent again. When that happens too often, it is parked at the first of
    /// it: a receiver that breaks each connection gets nothing either.
    async fn lose(&mut self, event: &str, why: String) -> Step {
        self.done = self.acked;
        self.lost += 1;
        let Some(first) = self.first.take().filter(|_| self.lost >= self.settings.attempts_max) else {
            let pause = with_chance(pause_after(self.lost));
            self.failed(event, &why, self.lost, Some(pause));
            sleep(pause).await;
            return Ok(if self.position() == Some(self.acked) { Flow::Again } else { Flow::Ended });
        };
        self.failed(event, &why, self.lost, None);
        self.park_here(first, self.lost, why).await
    }

    /// Read each time: a key that was replaced is used at once, and one that was removed no more.
    fn secret(&self) -> Result<Items, String> {
        let Some(key) = &self.settings.secret else { return Ok(Items::new()) };
        let state = self.sinks.control.state();
        let Some(row) = state.variables.get(key) else {
            return Err(format!("the variable {key} does not exist"));
        };
        let opened = self.sinks.signer.open_items(&state.keyring, key, &row.current().items);
        opened.map_err(|error| format!("the variable {key} cannot be opened: {error}"))
    }

    async fn acknowledge(&mut self, target: &mut Target) -> Step {
        match target.flush().await {
            Ok(()) => {}
            Err(Undelivered::Lost(why)) => {
                return self.lose(&id_of(self.done).to_string(), why).await;
            }
            Err(Undelivered::Later(why) | Undelivered::Busy(why, _) | Undelivered::Rejected(why)) => {
                return Err(why);
            }
        }
        if self.position() != Some(self.acked) {
            return Ok(Flow::Ended);
        }
        let (name, after) = (self.cursor.clone(), self.done);
        self.submit(Command::AckEventCursor { name, after }).await?;
        (self.acked, self.acked_at) = (self.done, Instant::now());
        (self.first, self.lost) = (None, 0);
        Ok(if self.position() == Some(self.acked) { Flow::On } else { Flow::Ended })
    }

    async fn park(&mut self, event: EventId, attempts: u32, reason: String, target: &mut Target) -> Step {
        if self.done > self.acked {
            match self.acknowledge(target).await {
                Ok(Flow::On) => {}
                // What comes before it is in doubt too.
                Ok(flow @ (Flow::Again | Flow::Ended)) => return Ok(flow),
                // It is parked all the same, and what arrived since the last acknowledgement is sent again.
                Err(why) => tracing::warn!(sink = self.name, why, "what arrived is not acknowledged"),
            }
        }
        self.park_here(event, attempts, reason).await
    }

    async fn park_here(&mut self, event: EventId, attempts: u32, reason: String) -> Step {
        tracing::error!(sink = self.name, %event, attempts, reason, "a sink is parked");
        let name = self.name.clone();
        let parked = ParkEventSink { name, event: position_of(event), attempts, reason };
        self.submit(Command::ParkEventSink(Box::new(parked))).await?;
        Ok(Flow::Ended)
    }

    /// To skip goes on with the oldest event there is.
    async fn park_at_gap(&mut self, next: Cursor) -> Result<(), String> {
        let oldest = self.sinks.events.oldest();
        let reason = format!(
            "what follows index {} is no longer kept: the oldest event has index {oldest}",
            next.index
        );
        tracing::error!(sink = self.name, reason, "a sink is parked");
        let event = EventPosition::before(oldest);
        let parked = ParkEventSink { name: self.name.clone(), event, attempts: 0, reason };
        self.submit(Command::ParkEventSink(Box::new(parked))).await
    }

    async fn submit(&self, command: Command) -> Result<(), String> {
        let request = Request::unnamed(Actor::Server(ACTOR.to_string()), command);
        self.sinks.control.submit(request).await.map(drop).map_err(|error| error.to_string())
    }

    fn position(&self) -> Option<EventPosition> {
        self.sinks.control.state().cursors.get(&self.cursor).map(|cursor| cursor.position)
    }

    fn ack_due(&self) -> Instant {
        self.acked_at + if self.first.is_some() { ACK_EVERY } else { ACK_IDLE_EVERY }
    }
}

/// Checked when the sink was made; the language may have changed since.
fn filter_of(events: &EventCursorSettings, view: View) -> Result<EventFilter, String> {
    let topics = events.topics.iter().map(|topic| topic.parse()).collect::<Result<Vec<TopicFilter>, _>>();
    let topics = topics.map_err(|error| format!("Topics: {error}"))?;
    let condition = Condition::parse(&events.filter).map_err(|error| format!("Filter: {error}"))?;
    let namespace = (events.namespace != "*").then(|| events.namespace.clone());
    let everything = EventFilter::of_topics(topics, Arc::new(Everybody));
    Ok(EventFilter { namespace, condition, view, ..everything })
}

/// How many of these, of which there is one, are sent together.
fn group_len(events: &[StreamEvent], most: usize) -> usize {
    let mut bytes = 0;
    let fitting = events.iter().take(most).take_while(|event| {
        bytes += event.body.len();
        bytes <= TOGETHER_BYTES
    });
    fitting.count().max(1)
}

fn position_of(EventId { index, ordinal }: EventId) -> EventPosition {
    EventPosition { index, ordinal }
}

fn id_of(EventPosition { index, ordinal }: EventPosition) -> EventId {
    EventId { index, ordinal }
}

/// Twice as long with each failure.
fn pause_after(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    PAUSE.saturating_mul(doubled).min(PAUSE_MAX)
}

/// Many sinks that failed together do not come back together.
fn with_chance(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without entropy all of it is waited for.
    let _without = getrandom::fill(&mut byte);
    pause - pause.mul_f64(f64::from(byte[0]) / 255.0 / 5.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses = [1, 2, 3, 7, 8, 33, 100].map(|failures| pause_after(failures).as_millis());
        assert_eq!(pauses, [500, 1_000, 2_000, 32_000, 60_000, 60_000, 60_000]);
    }

    #[test]
    fn a_pause_is_shortened_by_a_fifth_at_most() {
        for _ in 0..100 {
            let pause = with_chance(PAUSE_MAX);
            assert!(pause <= PAUSE_MAX && pause >= PAUSE_MAX.mul_f64(0.8), "{pause:?}");
        }
    }

    #[test]
    fn a_filter_that_cannot_be_read_says_which_field_it_is() {
        let of = |filter: &str| {
            let settings = EventCursorSettings { filter: filter.into(), ..Default::default() };
            filter_of(&settings, View::CloudEvents)
        };
        assert!(of("Topic == \"Job\"").is_ok());
        assert!(of("Topic ==").err().is_some_and(|why| why.starts_with("Filter: ")));
    }
}
