//! What a recorder reads of another cluster becomes facts of this log: those that a cluster would write itself, and before
//! them the mark that they were observed.
//!
//! A document comes from outside and may say anything. What does not fit the state (an allocation of a version that nobody
//! remembers) is left out, never half taken over. `docs/record.md` says what that is.

mod alloc;
mod deployment;
mod eval;
mod job;
mod named;
mod node;

use base::Time;
use model::event::{Event, ObservationGap, Observed};
use model::{
    Actor, Command, CommandKind, CommandRecord, OBSERVED_MAX, Observation, Observe, ObservedKey, Rejection,
    RequestId,
};
use state::{Delta, Moment, State};

use crate::decision::{Context, Decision};

/// Rejects what would have a recording differ from the cluster that is recorded. What is left is about this server: the keys
/// that it signs with, and how far readers of its event stream have come.
pub(crate) fn check(state: &State, command: &Command) -> Result<(), Rejection> {
    let Some(recording) = &state.recording else { return Ok(()) };
    match command {
        Command::Observe(_)
        | Command::NoteObservationGap(_)
        | Command::FoundCluster { .. }
        | Command::SetAutopilot { .. }
        | Command::RaiseEpoch { .. }
        | Command::NoteDroppedHistory { .. }
        | Command::AnnounceServerKey { .. }
        | Command::ActivateRootKey(_)
        | Command::SealRootKey { .. }
        | Command::RemoveRootKey { .. }
        | Command::KeyTree(_)
        | Command::FinishRekey
        | Command::SetEventCursor(_)
        | Command::AckEventCursor { .. }
        | Command::AckEventCursorMember { .. }
        | Command::SplitEventCursor { .. }
        | Command::ResetEventCursor { .. }
        | Command::DeleteEventCursor { .. }
        | Command::ExpireEventCursors => Ok(()),
        _ => Err(Rejection::RecordingOf(recording.source.clone())),
    }
}

/// Documents of another cluster were read.
pub(crate) fn observe(
    state: &State,
    ctx: &Context,
    actor: &Actor,
    observe: &Observe,
) -> Result<Decision, Rejection> {
    if state.recording.is_none() && !is_unused(state) {
        let why = "this log belongs to a cluster of its own: a recording begins in an empty data directory";
        return Err(Rejection::RecordingRefused(why.to_string()));
    }
    if observe.documents.len() > OBSERVED_MAX {
        let why = format!("documents: expected at most {OBSERVED_MAX}, got {}", observe.documents.len());
        return Err(Rejection::RecordingRefused(why));
    }
    let mut seen = Seen::new(state, ctx, actor);
    let mut mark = Observed {
        source: observe.source.clone(),
        index: observe.index,
        seen: observe.seen,
        objects: Vec::new(),
        indexes: Vec::new(),
        happened: Vec::new(),
    };
    for document in &observe.documents {
        let before = seen.events.len();
        let Some((object, index, happened)) = seen.take(document) else { continue };
        if seen.events.len() > before {
            mark.objects.push(object);
            mark.indexes.push(index);
            mark.happened.push(happened);
        }
    }
    let is_known = state.recording.as_ref().is_some_and(|recording| recording.source == observe.source);
    if is_known && seen.events.is_empty() {
        return Ok(Decision::nothing());
    }
    let mut events = vec![Event::from(mark)];
    events.append(&mut seen.events);
    Ok(Decision::of(events))
}

/// Something could not be read any more.
pub(crate) fn note_gap(state: &State, gap: &ObservationGap) -> Result<Decision, Rejection> {
    if state.recording.is_none() {
        return Err(Rejection::RecordingRefused("this log is no recording".to_string()));
    }
    Ok(gap.clone().into())
}

/// Nothing was ever done with the log but to found its cluster.
fn is_unused(state: &State) -> bool {
    state.nodes.rows_len() == 0
        && state.jobs.is_empty()
        && state.variables.changed() == base::Index::ZERO
        && state.acl.bootstrapped() == base::Index::ZERO
}

/// The state with what was observed so far in it, and the facts that led there.
struct Seen {
    state: State,
    at: Moment,
    record: CommandRecord,
    events: Vec<Event>,
}

impl Seen {
    fn new(state: &State, ctx: &Context, actor: &Actor) -> Seen {
        let kind = CommandKind::Observe as u16;
        Seen {
            state: state.clone(),
            at: Moment { index: ctx.index, time: ctx.time, epoch: state.epoch() },
            record: CommandRecord { request: RequestId::default(), kind, actor: actor.clone() },
            events: Vec::new(),
        }
    }

    /// The next fact. Rules look at what it left behind.
    fn add(&mut self, event: impl Into<Event>) {
        let event = event.into();
        self.state.absorb(self.at, &self.record, std::iter::once(&event), &mut Delta::default());
        self.events.push(event);
    }

    /// What the document is about, the other cluster's index of its last change, and when that was; `None` for one without a
    /// usable name.
    fn take(&mut self, document: &Observation) -> Option<(String, u64, Time)> {
        match document {
            Observation::Namespace(document) => named::namespace(self, document),
            Observation::NodePool(document) => named::pool(self, document),
            Observation::Node(document) => node::observed(self, document),
            Observation::Job(versions) => job::observed(self, versions),
            Observation::Eval(document) => eval::observed(self, document),
            Observation::Deployment(document) => deployment::observed(self, document),
            Observation::Alloc(document) => alloc::observed(self, document),
            Observation::Gone(key) => Some((self.gone(key), 0, Time::ZERO)),
        }
    }

    fn gone(&mut self, key: &ObservedKey) -> String {
        match key {
            ObservedKey::Namespace(name) => named::namespace_gone(self, name),
            ObservedKey::NodePool(name) => named::pool_gone(self, name),
            ObservedKey::Node(id) => node::gone(self, *id),
            ObservedKey::Job(key) => job::gone(self, key),
            ObservedKey::Eval(id) => eval::gone(self, *id),
            ObservedKey::Deployment(id) => deployment::gone(self, *id),
            ObservedKey::Alloc(id) => alloc::gone(self, *id),
        }
    }
}

/// Counts of the API, which has them signed.
fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}
