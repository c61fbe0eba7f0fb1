//! Cursors of the event stream: which there may be, and where they may go.

use base::{Duration, Time};
use model::event::{
    EventCursorAcked, EventCursorDeleted, EventCursorMemberAcked, EventCursorReset, EventCursorSet,
    EventCursorSplit,
};
use model::{
    Doc, EventCursorSettings, EventPosition, Rejection, SPLIT_CURSOR_EPOCH, SetEventCursor, sink_of_cursor,
};
use state::State;
use state::cursor::{Cursor, Cursors};

use crate::decision::{Context, Decision};

/// Most cursors of a cluster. All of them are in every image, and each acknowledgement is a fact.
pub const CURSORS_MAX: usize = 256;
/// Longest name of a cursor, in bytes.
const NAME_MAX: usize = 128;
/// Most topics that one gives, and the longest of them in bytes.
const TOPICS_MAX: usize = 64;
const TOPIC_MAX: usize = 512;
/// Longest filter, and longest word of where to begin, in bytes.
const FILTER_MAX: usize = 4096;
const FROM_MAX: usize = 128;
/// Most readers that one is split among: each of them acknowledges by itself.
pub const MEMBERS_MAX: u32 = 64;
/// Shortest time after which an unused cursor may be deleted: garbage is collected every few minutes.
const TTL_MIN: Duration = Duration::from_secs(60);

/// Creates a cursor, or changes what it gives; its place stays then.
///
/// # Errors
/// [`Rejection::EventCursorInvalid`] with the field; [`Rejection::EventCursorRefused`] when there are as many as there may be,
/// or the cursor began elsewhere.
pub(crate) fn set(state: &State, ctx: &Context, wanted: &SetEventCursor) -> Result<Decision, Rejection> {
    if sink_of_cursor(&wanted.name).is_some() {
        return invalid("Name", "a name that does not begin with \"sink.\": such cursors come with sinks");
    }
    place_or_change(state, ctx, wanted)
}

/// As [`set`], also for those of sinks.
pub(crate) fn place_or_change(
    state: &State,
    ctx: &Context,
    wanted: &SetEventCursor,
) -> Result<Decision, Rejection> {
    check(state, wanted)?;
    let SetEventCursor { name, settings, start } = wanted;
    let Some(before) = state.cursors.get(name) else {
        if state.cursors.len() >= CURSORS_MAX {
            let why =
                format!("there are {CURSORS_MAX} event cursors, and no more are kept: delete one first");
            return Err(Rejection::EventCursorRefused(why));
        }
        let from = if settings.from.is_empty() { "now" } else { &settings.from };
        let members = split_among(settings.members);
        // It stands in the settings, of which servers of an older release know nothing.
        if members > 0 && state.epoch() < SPLIT_CURSOR_EPOCH {
            return Err(Rejection::EpochTooLow { needed: SPLIT_CURSOR_EPOCH, epoch: state.epoch() });
        }
        let settings = EventCursorSettings { from: from.to_string(), members, ..settings.clone() };
        let position = place(ctx, *start, "From")?;
        return Ok(EventCursorSet { name: name.clone(), settings: Doc::of(&settings), position }.into());
    };
    let began = &before.settings.from;
    if !settings.from.is_empty() && settings.from != *began {
        let why = format!(
            "event cursor {name:?} exists, and began at {began:?}, not at {:?}: leave From out, or reset the cursor",
            settings.from
        );
        return Err(Rejection::EventCursorRefused(why));
    }
    let members = before.settings.members;
    if settings.members != 0 && split_among(settings.members) != members {
        let why = format!(
            "event cursor {name:?} has {} members, not {}: leave Members out, or reset the cursor with it",
            members.max(1),
            settings.members
        );
        return Err(Rejection::EventCursorRefused(why));
    }
    let settings = EventCursorSettings { from: began.clone(), members, ..settings.clone() };
    if settings == before.settings {
        return Ok(Decision::nothing());
    }
    let position = before.position;
    Ok(EventCursorSet { name: name.clone(), settings: Doc::of(&settings), position }.into())
}

/// A reader has done with everything up to there. What lies before the cursor was acknowledged already, so whoever says it
/// again is right and changes nothing.
///
/// # Errors
/// [`Rejection::EventCursorUnknown`], or [`Rejection::EventCursorInvalid`] for an event that is still to come.
pub(crate) fn acknowledge(
    state: &State,
    ctx: &Context,
    name: &str,
    after: EventPosition,
) -> Result<Decision, Rejection> {
    let cursor = known(state, name)?;
    if !cursor.members.is_empty() {
        return invalid("Member", "a number: the cursor is split");
    }
    let position = place(ctx, Some(after), "ID")?;
    if position <= cursor.position {
        return Ok(Decision::nothing());
    }
    Ok(EventCursorAcked { name: name.to_string(), position }.into())
}

/// The same of one of the readers that a cursor is split among.
///
/// # Errors
/// As [`acknowledge`]; [`Rejection::EventCursorInvalid`] also for a member that it does not have.
pub(crate) fn acknowledge_member(
    state: &State,
    ctx: &Context,
    name: &str,
    member: u32,
    after: EventPosition,
) -> Result<Decision, Rejection> {
    let cursor = known(state, name)?;
    let Some(own) = cursor.members.get(member as usize) else {
        return match cursor.members.len() {
            0 => invalid("Member", "none: the cursor is not split"),
            _ => invalid("Member", "a number below that of the cursor's members"),
        };
    };
    let position = place(ctx, Some(after), "ID")?;
    if position <= own.position {
        return Ok(Decision::nothing());
    }
    Ok(EventCursorMemberAcked { name: name.to_string(), member, position }.into())
}

/// Splits it among so many readers, who all begin at one place: which of them has an event depends on how many there are, so
/// what each had acknowledged before says nothing any more.
///
/// # Errors
/// As [`reset`]; [`Rejection::EventCursorRefused`] for that of a sink, which is one reader.
pub(crate) fn split(
    state: &State,
    ctx: &Context,
    name: &str,
    members: u32,
    to: Option<EventPosition>,
) -> Result<Decision, Rejection> {
    known(state, name)?;
    check_members(members)?;
    if let Some(sink) = sink_of_cursor(name) {
        let why = format!("event cursor {name:?} belongs to the sink {sink:?}, which reads all of it");
        return Err(Rejection::EventCursorRefused(why));
    }
    let (position, members) = (place(ctx, to, "To")?, split_among(members));
    Ok(EventCursorSplit { name: name.to_string(), members, position }.into())
}

/// One reader has all of it: then it is not split.
fn split_among(members: u32) -> u32 {
    if members == 1 { 0 } else { members }
}

fn check_members(members: u32) -> Result<(), Rejection> {
    if members > MEMBERS_MAX {
        return invalid("Members", "a number from 1 to 64");
    }
    Ok(())
}

/// # Errors
/// As [`acknowledge`].
pub(crate) fn reset(
    state: &State,
    ctx: &Context,
    name: &str,
    to: Option<EventPosition>,
) -> Result<Decision, Rejection> {
    let cursor = known(state, name)?;
    let position = place(ctx, to, "To")?;
    if position == cursor.position && cursor.members.iter().all(|member| member.position == position) {
        return Ok(Decision::nothing());
    }
    Ok(EventCursorReset { name: name.to_string(), position }.into())
}

/// # Errors
/// [`Rejection::EventCursorUnknown`], or [`Rejection::EventCursorRefused`] while a sink needs it.
pub(crate) fn delete(state: &State, name: &str) -> Result<Decision, Rejection> {
    known(state, name)?;
    if let Some(sink) = sink_of_cursor(name).filter(|sink| state.sinks.get(sink).is_some()) {
        let why = format!("event cursor {name:?} belongs to the sink {sink:?}: delete that");
        return Err(Rejection::EventCursorRefused(why));
    }
    Ok(removed(state, name))
}

/// Nothing is left of it, if there was something.
pub(crate) fn removed(state: &State, name: &str) -> Decision {
    let known = state.cursors.get(name);
    Decision::of(known.map(|_| EventCursorDeleted { name: name.to_string() }.into()).into_iter().collect())
}

/// Deletes what nobody has used for as long as it says. There are so few that one command takes them all.
pub(crate) fn expire(cursors: &Cursors, now: Time) -> Decision {
    let expired = cursors.iter().filter(|(_, cursor)| is_expired(cursor, now));
    Decision::of(expired.map(|(name, _)| EventCursorDeleted { name: name.to_string() }.into()).collect())
}

/// Whether there is something for [`model::Command::ExpireEventCursors`] to do.
pub fn has_expired(cursors: &Cursors, now: Time) -> bool {
    cursors.iter().any(|(_, cursor)| is_expired(cursor, now))
}

fn is_expired(cursor: &Cursor, now: Time) -> bool {
    cursor.expires().is_some_and(|end| end <= now)
}

fn known<'a>(state: &'a State, name: &str) -> Result<&'a Cursor, Rejection> {
    state.cursors.get(name).ok_or_else(|| Rejection::EventCursorUnknown(name.to_string()))
}

/// Without a wish: right before what this batch brings, so that the one who asked misses nothing of what comes next.
fn place(
    ctx: &Context,
    wanted: Option<EventPosition>,
    field: &'static str,
) -> Result<EventPosition, Rejection> {
    let last = EventPosition::before(ctx.index);
    match wanted {
        Some(wanted) if wanted > last => invalid(field, "an event that has happened"),
        Some(wanted) => Ok(wanted),
        None => Ok(last),
    }
}

fn check(state: &State, wanted: &SetEventCursor) -> Result<(), Rejection> {
    let SetEventCursor { name, settings, .. } = wanted;
    let EventCursorSettings { topics, namespace, filter, from, reader, ttl, members } = settings;
    check_members(*members)?;
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=NAME_MAX).contains(&name.len()) || !name.chars().all(is_fit) {
        return invalid("Name", "1 to 128 letters, digits, dashes, underscores and dots");
    }
    if topics.len() > TOPICS_MAX {
        return invalid("Topics", "at most 64 topics");
    }
    if topics.iter().any(|topic| topic.is_empty() || topic.len() > TOPIC_MAX) {
        return invalid("Topics", "topics of 1 to 512 bytes");
    }
    if namespace != "*" && !state.namespaces.exists(namespace) {
        return invalid("Namespace", "a namespace that exists, or * for all");
    }
    if filter.len() > FILTER_MAX {
        return invalid("Filter", "at most 4096 bytes");
    }
    if from.len() > FROM_MAX {
        return invalid("From", "at most 128 bytes");
    }
    let accessor = reader.parse().ok();
    if !reader.is_empty() && accessor.and_then(|accessor| state::acl::token(&state.acl, accessor)).is_none() {
        return invalid("Reader", "the accessor of a token that exists");
    }
    if ttl.0 != 0 && *ttl < TTL_MIN {
        return invalid("TTL", "0 for no end, or a minute at least");
    }
    Ok(())
}

fn invalid<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::EventCursorInvalid { field: field.into(), expected: expected.into() })
}
