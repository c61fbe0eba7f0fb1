//! Durable cursors: the cluster keeps how far readers of the stream have come.

use api::{
    EventCursor, EventCursorAckRequest, EventCursorPosition, EventCursorRequest, EventCursorResetRequest,
    EventCursorShare, EventId, Params, StreamPosition, TopicFilter,
};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::response::Response;
use axum::routing::{get, put};
use base::{Duration, Index};
use feed::{Cursor, Feed, FeedError, Recent, Share};
use model::document::Timestamp;
use model::{Command, EventCursorSettings, EventPosition, SetEventCursor};
use state::State;
use state::cursor::{Acknowledged, Cursor as Kept};

use super::acks;
use super::query::{self, From};
use super::reader;
use super::route::{check_cluster, check_not_ahead, first_after, gone};
use crate::access::{self, Access, Each, ReadOperator, denied};
use crate::answer::{self, Answer, Meta, done, written};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::page::page;
use crate::request::{Json, ReadNow, Reading, Write};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/event/cursors", get(list))
        .route("/v1/event/cursor/{name}", get(show).put(set).post(set).delete(remove))
        .route("/v1/event/cursor/{name}/ack", put(acknowledge).post(acknowledge))
        .route("/v1/event/cursor/{name}/reset", put(reset).post(reset))
}

/// Where a cursor makes a stream begin.
pub(super) struct Chosen {
    pub name: String,
    pub place: Cursor,
    /// Of a cursor that is split: the part of this reader.
    pub share: Option<Share>,
}

/// What a stream is to give: with a cursor, what that gives, from where it is.
///
/// # Errors
/// 400 for parameters that contradict the cursor; 404.
pub(super) async fn chosen(
    server: &AppState,
    access: &Access,
    params: Params,
) -> Result<(Params, Option<Chosen>), Failure> {
    let name = params.get("cursor").unwrap_or_default().to_string();
    let given = |key: &str| params.get(key).is_some_and(|value| !value.is_empty());
    if name.is_empty() {
        return match given("member") {
            true => Err(Failure::invalid("member: expected together with a cursor that is split")),
            false => Ok((params, None)),
        };
    }
    if let Some(key) = ["from", "index"].into_iter().find(|key| given(key)) {
        let why = format!("cursor and {key} exclude each other: reset the cursor to begin elsewhere");
        return Err(Failure::invalid(why));
    }
    // A reader that comes back must not get again what it has acknowledged at another server.
    let options = params.read_options()?;
    server.fresh(options.consistency, options.min_index).await?;
    let state = server.control.state();
    let kept = known(&state, access, &name)?;
    let EventCursorSettings { topics, namespace, filter, .. } = &kept.settings;
    let contradicts = [
        ("topic", !params.all("topic").all(|topic| topics.iter().any(|own| own == topic))),
        ("namespace", given("namespace") && params.namespace() != namespace),
        ("filter", given("filter") && params.get("filter") != Some(filter)),
    ];
    if let Some((key, _)) = contradicts.into_iter().find(|(_, contradicts)| *contradicts) {
        let why = format!("cursor {name:?} has a {key} of its own, which is another one: leave {key} out");
        return Err(Failure::invalid(why));
    }
    let member = params.get("member").filter(|text| !text.is_empty());
    // What is no number is no member either.
    let member = member.map(|text| text.parse().unwrap_or(u32::MAX));
    let position = position_of(&name, kept, member, "member")?;
    let share = member.map(|member| Share { member, of: kept.settings.members });
    let place = Cursor::behind(position);
    let params = params.with("topic", topics.iter().map(String::as_str));
    let params = params.with("namespace", [namespace.as_str()]).with("filter", [filter.as_str()]);
    Ok((params, Some(Chosen { name, place, share })))
}

/// How far a reader of a cursor has come: of one that is split, a member.
///
/// # Errors
/// 400 with the field: a member of a cursor that is not split or does not have it, or none of one that is.
fn position_of(name: &str, kept: &Kept, member: Option<u32>, field: &str) -> Result<EventPosition, Failure> {
    match (member, kept.members.len()) {
        (None, 0) => Ok(kept.position),
        (Some(_), 0) => {
            Err(Failure::invalid(format!("{field}: cursor {name:?} is not split: leave {field} out")))
        }
        (member, number) => {
            let own = member.and_then(|member| kept.members.get(member as usize));
            own.map(|own| own.position).ok_or_else(|| {
                let last = number - 1;
                let why = format!("cursor {name:?} is split among {number} readers");
                Failure::invalid(format!("{field}: expected a number from 0 to {last}: {why}"))
            })
        }
    }
}

async fn list(With(server): With<AppState>, ReadNow(read): ReadNow<ReadOperator>) -> Answer {
    read.without_filter()?;
    let feed = server.events.clone();
    let view = move |state: &State, read: &Reading| {
        let all = state.cursors.iter().filter(|(name, _)| name.starts_with(&read.options.prefix));
        let shown = page(all.map(|(name, kept)| (name.to_string(), (name, kept))), &read.options)?;
        let behind = shown.items.iter().map(|(_, kept)| kept.position.index).min().unwrap_or(state.index);
        let recent = feed.recent(behind).map_err(|error| unreadable(&error))?;
        let items = shown.items.iter().map(|(name, kept)| view(&feed, &recent, name, kept));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        Ok(crate::page::Page { items, next: shown.next })
    };
    server.list(read, |state: &State| state.cursors.changed(), view).await
}

async fn show(
    With(server): With<AppState>,
    Path(name): Path<String>,
    ReadNow(read): ReadNow<Each>,
) -> Answer {
    let index = |state: &State| state.cursors.get(&name).map_or(state.cursors.changed(), |own| own.modified);
    let (state, known_leader) = server.newer(&read, &index).await?;
    read.check_again(&server)?;
    let kept = known(&state, &read.access, &name)?.clone();
    if !read.access.acl.reads_operator() && !is_reader(&read.access, &kept) {
        return Err(denied());
    }
    let meta = Meta { index: index(&state), known_leader, next_token: None };
    Ok(answer::with_meta(answer::json(&shown(&server, name, kept).await?), &meta))
}

async fn set(
    With(server): With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<EventCursorRequest>,
) -> Answer {
    let EventCursorRequest { from, topics, namespace, filter, reader, ttl, members } = wanted;
    let namespace = if namespace.is_empty() { "default".to_string() } else { namespace };
    let (topics, ttl) = (topics.0, ttl.0);
    let settings = EventCursorSettings { topics, namespace, filter, from, reader, ttl, members };
    let mut wanted = Box::new(SetEventCursor { name: name.clone(), settings, start: None });
    access::check(&write.access, &server.control.state(), &Command::SetEventCursor(wanted.clone()))?;
    wanted.settings.topics.iter().try_for_each(|topic| check_topic(topic))?;
    query::conditioned(&wanted.settings.filter, "Filter")?;
    wanted.start = match place(&server, &wanted.settings.from, "From").await? {
        Ok(start) => start,
        // Where one that exists has begun may be gone by now.
        Err(_) if server.control.state().cursors.get(&name).is_some() => None,
        Err(gone) => return Ok(gone),
    };
    let receipt = server.submit(&write, Command::SetEventCursor(wanted)).await?;
    let state = server.after(&receipt).await?;
    let kept = state.cursors.get(&name).cloned();
    let kept = kept.ok_or_else(|| Failure::internal("the cursor was deleted meanwhile"))?;
    written(receipt.index, &shown(&server, name, kept).await?)
}

async fn remove(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    let receipt = server.submit(&write, Command::DeleteEventCursor { name }).await?;
    Ok(done(receipt.index))
}

async fn acknowledge(
    With(server): With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<EventCursorAckRequest>,
) -> Answer {
    let mut state = server.control.state();
    let member = wanted.member;
    let fits = |kept: &Kept| position_of(&name, kept, member, "Member").is_ok();
    if !state.cursors.get(&name).is_some_and(fits) {
        // It may have been made, or split, a moment ago.
        server.fresh(api::Consistency::Confirmed, Index::ZERO).await?;
        state = server.control.state();
    }
    let kept = known(&state, &write.access, &name)?.clone();
    may_read(&write.access, &kept)?;
    let after = acknowledged(&server, &wanted.id).await?;
    access::check(&write.access, &state, &acks::command(&name, member, after))?;
    let position = position_of(&name, &kept, member, "Member")?;
    if after <= position {
        // It was acknowledged already, and that is committed.
        return moved(&server, state.index, &name, member);
    }
    let receipt = server.acks.acknowledge(&server, (name.clone(), member), after, write).await?;
    server.after(&receipt).await?;
    moved(&server, receipt.index, &name, member)
}

async fn reset(
    With(server): With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<EventCursorResetRequest>,
) -> Answer {
    let EventCursorResetRequest { to, members } = wanted;
    let command = |to| match members {
        0 => Command::ResetEventCursor { name: name.clone(), to },
        members => Command::SplitEventCursor { name: name.clone(), members, to },
    };
    let state = server.control.state();
    access::check(&write.access, &state, &command(None))?;
    let to = match to.as_str() {
        "" if members == 0 => {
            return Err(Failure::invalid("To: expected a place in the stream, like oldest or now"));
        }
        // What is acknowledged meanwhile comes once more.
        "" => {
            server.fresh(api::Consistency::Confirmed, Index::ZERO).await?;
            Some(known(&server.control.state(), &write.access, &name)?.position)
        }
        to => match place(&server, to, "To").await? {
            Ok(to) => to,
            Err(gone) => return Ok(gone),
        },
    };
    let receipt = server.submit(&write, command(to)).await?;
    server.after(&receipt).await?;
    moved(&server, receipt.index, &name, None)
}

/// Who may know of no cursor is not told which there are.
fn known<'a>(state: &'a State, access: &Access, name: &str) -> Result<&'a Kept, Failure> {
    state.cursors.get(name).ok_or_else(|| {
        if access.acl.reads_operator() {
            Failure::not_found(format!("event cursor {name:?} not found"))
        } else {
            denied()
        }
    })
}

fn is_reader(access: &Access, kept: &Kept) -> bool {
    access.accessor().is_some_and(|own| own.to_string() == kept.settings.reader)
}

/// # Errors
/// 403: what the cursor gives is not for this caller.
fn may_read(access: &Access, kept: &Kept) -> Result<(), Failure> {
    let topics = kept.settings.topics.iter().map(|topic| topic.parse());
    let topics = topics.collect::<Result<Vec<TopicFilter>, _>>();
    let topics = topics.map_err(|error| Failure::internal(error.to_string()))?;
    reader::check(access, &topics, &kept.settings.namespace)
}

/// A topic that no event has would be waited for for ever.
pub(super) fn check_topic(text: &str) -> Result<(), Failure> {
    let asked: TopicFilter = text.parse().map_err(|error| Failure::invalid(format!("Topics: {error}")))?;
    if asked.topic == "*" || api::TOPICS.contains(&asked.topic.as_str()) {
        return Ok(());
    }
    let known = api::TOPICS.join(", ");
    Err(Failure::invalid(format!("Topics: no event has the topic {:?}: expected *, {known}", asked.topic)))
}

/// What a reader has done with.
///
/// # Errors
/// 400 for what was never an event's id.
async fn acknowledged(server: &AppState, text: &str) -> Result<EventPosition, Failure> {
    let expected =
        || Failure::invalid(format!("ID: {text:?} is not the id of an event, like 42.0, or an index"));
    let StreamPosition { after, cluster } = text.parse().map_err(|_| expected())?;
    check_cluster(cluster, server.events.cluster())?;
    if after.index >= server.events.newest() {
        server.fresh(api::Consistency::Leased, Index::ZERO).await?;
    }
    given(server, after, "ID").await?;
    Ok(EventPosition { index: after.index, ordinal: after.ordinal })
}

/// # Errors
/// 400 for what was never an event's id.
async fn given(server: &AppState, id: EventId, field: &str) -> Result<(), Failure> {
    if server.events.was_given(id).await.map_err(|error| unreadable(&error))? {
        return Ok(());
    }
    let newest = server.control.state().index;
    let id = StreamPosition { after: id, cluster: None };
    Err(Failure::invalid(format!(
        "{field}: there is no event {id} in the stream: the newest index is {newest}"
    )))
}

/// Where a cursor is to be; `None` for what comes next, the answer for what is no longer kept.
///
/// # Errors
/// 400 for what is no place in the stream.
pub(super) async fn place(
    server: &AppState,
    text: &str,
    field: &str,
) -> Result<Result<Option<EventPosition>, Response>, Failure> {
    let from = match query::place(text, field)? {
        None | Some(From::Now) => return Ok(Ok(None)),
        Some(from) => from,
    };
    let oldest = server.events.oldest();
    let first = first_after(server, from).await?.unwrap_or(Cursor::at(oldest));
    check_not_ahead(server, first).await?;
    if first.index < oldest {
        return Ok(Err(gone(first.index, oldest, None)));
    }
    let Some(ordinal) = first.ordinal.checked_sub(1) else {
        return Ok(Ok(Some(EventPosition::before(first.index))));
    };
    given(server, EventId { index: first.index, ordinal: first.ordinal }, field).await?;
    Ok(Ok(Some(EventPosition { index: first.index, ordinal })))
}

fn moved(server: &AppState, index: Index, name: &str, member: Option<u32>) -> Answer {
    let state = server.control.state();
    let kept = state.cursors.get(name);
    let kept = kept.ok_or_else(|| Failure::not_found(format!("event cursor {name:?} not found")))?;
    let own = member.and_then(|member| kept.members.get(member as usize));
    let position = own.map_or(kept.position, |own| own.position);
    written(index, &EventCursorPosition { position: id(&server.events, position), index: index.0 })
}

/// Reads the log: not on the threads that serve everybody.
async fn shown(server: &AppState, name: String, kept: Kept) -> Result<EventCursor, Failure> {
    let feed = server.events.clone();
    let shown = tokio::task::spawn_blocking(move || {
        let recent = feed.recent(kept.position.index).map_err(|error| unreadable(&error))?;
        view(&feed, &recent, &name, &kept)
    });
    shown.await?
}

pub(super) fn view(feed: &Feed, recent: &Recent, name: &str, kept: &Kept) -> Result<EventCursor, Failure> {
    let EventCursorSettings { topics, namespace, filter, from, reader, ttl, members } = kept.settings.clone();
    let oldest = feed.oldest();
    let of_all = share(feed, recent, (kept.position, kept.acknowledged.as_ref()), oldest)?;
    let shares = kept.members.iter().zip(0..).map(|(own, member)| {
        let shown = share(feed, recent, (own.position, own.acknowledged.as_ref()), oldest)?;
        Ok(EventCursorShare { member, ..shown })
    });
    let shares = shares.collect::<Result<Vec<_>, Failure>>()?;
    Ok(EventCursor {
        name: name.to_string(),
        topics: topics.into(),
        namespace,
        filter,
        from,
        reader,
        ttl: ttl.into(),
        expires: kept.expires().map(Timestamp::from),
        position: of_all.position,
        position_index: of_all.position_index,
        lag_batches: of_all.lag_batches,
        lag_seconds: of_all.lag_seconds,
        oldest_index: oldest.0,
        gap: of_all.gap,
        acked_at: of_all.acked_at,
        acked_by: of_all.acked_by,
        create_index: kept.created.0,
        modify_index: kept.modified.0,
        create_time: kept.created_at.into(),
        members,
        shares: shares.into(),
    })
}

/// How far somebody has come, and how far behind that is.
fn share(
    feed: &Feed,
    recent: &Recent,
    (position, acknowledged): (EventPosition, Option<&Acknowledged>),
    oldest: Index,
) -> Result<EventCursorShare, Failure> {
    let lag = feed.lag(recent, position.index).map_err(|error| unreadable(&error))?;
    let behind = lag.since.map_or(Duration::ZERO, |since| now().since(since));
    Ok(EventCursorShare {
        member: 0,
        position: id(feed, position),
        position_index: position.index.0,
        lag_batches: lag.batches,
        lag_seconds: u64::try_from(behind.0 / 1_000_000_000).unwrap_or_default(),
        gap: Cursor::behind(position).index < oldest,
        acked_at: acknowledged.map(|known| known.at.into()),
        acked_by: acknowledged.map(|known| known.by.clone()).unwrap_or_default(),
    })
}

pub(super) fn id(feed: &Feed, EventPosition { index, ordinal }: EventPosition) -> String {
    StreamPosition { after: EventId { index, ordinal }, cluster: feed.cluster() }.to_string()
}

pub(super) fn unreadable(error: &FeedError) -> Failure {
    Failure::internal(error.to_string())
}
