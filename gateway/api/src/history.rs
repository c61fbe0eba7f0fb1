//! What was true: the life of an allocation, one line a transition. Ours alone.

use model::document::{Job, List, Map, Reconnect, Timestamp};
use serde::{Deserialize, Serialize};

/// The answer of `GET /v1/allocation/:id/history`: oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocationHistory {
    #[serde(rename = "ID")]
    pub id: String,
    pub transitions: List<AllocationTransition>,
    /// There is more, and older, than what is shown.
    pub cut_short: bool,
}

/// The answer of `GET /v1/job|node|evaluation|deployment/:id/history`, and of `GET /v1/history` (without an id): oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ObjectHistory {
    #[serde(rename = "ID")]
    pub id: String,
    pub lines: List<HistoryLine>,
    /// There is more, and older, than what is shown.
    pub cut_short: bool,
    /// From this index on every fact is there. What is older is gone, but for what `Kept` names.
    pub whole_from: u64,
    /// Of which older parts of the log which kinds of facts are kept, oldest first. Between them nothing is.
    pub kept: List<KeptHistory>,
    /// With `documents`, of a job alone: what each of its facts left of which the state is gone, as far as they say. The newest 500.
    pub documents: List<KeptDocument>,
}

/// A part of the log of which facts of some kinds are kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeptHistory {
    pub first_index: u64,
    pub last_index: u64,
    /// Of the first and of the last batch that is left; null where none is.
    pub first_time: Option<Timestamp>,
    pub last_time: Option<Timestamp>,
    /// `job`, `variable` and so on.
    pub kinds: List<String>,
    pub facts: u64,
}

/// A job as it was after a fact, without what followed from other objects, as its status does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeptDocument {
    pub index: u64,
    /// Null where it was purged.
    pub document: Option<Job>,
}

/// One fact about an object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryLine {
    /// The batch, and the event's place in it.
    pub index: u64,
    pub ordinal: u32,
    /// The servers' time, never the node's.
    pub time: Timestamp,
    /// The kind of event, as the log names it.
    pub event: String,
    /// What it is about: `job/default/web`, `node/ID`.
    pub object: String,
    /// Who brought it about: a caller, a node, a controller.
    pub actor: String,
    /// Who asked for it, if somebody did.
    pub requester: Option<Requester>,
    /// What happened, in words.
    pub description: String,
}

/// One fact that the servers decided about an allocation, or accepted from its node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocationTransition {
    /// The batch, and the event's place in it: together the id of the event in the stream.
    pub index: u64,
    pub ordinal: u32,
    /// The servers' time, never the node's.
    pub time: Timestamp,
    /// Empty for the transition that created the allocation.
    pub old_desired: String,
    pub new_desired: String,
    pub old_client: String,
    pub new_client: String,
    /// Who brought it about: a caller, a node, a controller.
    pub actor: String,
    /// Who asked for it, if somebody did: the actor itself, or whoever asked for what the evaluation was made for.
    pub requester: Option<Requester>,
    /// Why: the evaluation, the missed heartbeat, the report.
    pub cause: String,
    pub description: String,
    /// The choice between the allocation and the other one, where this is what came of it; null elsewhere, and where the log does not
    /// reach back to what it was made on. It is made again from the log.
    pub reconnect: Option<Reconnect>,
}

/// The answer of `GET /v1/event/:id/causes` and `/effects`: facts that led to each other, nearest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventChain {
    /// What was asked about: an event, a fact or a request.
    #[serde(rename = "ID")]
    pub id: String,
    /// The trace that a sink of traces sends this under. Empty where some of the chain is hidden: it names the request that all
    /// of it followed from.
    #[serde(rename = "TraceID")]
    pub trace_id: String,
    pub facts: List<ChainFact>,
    /// There is more than was followed.
    pub cut_short: bool,
    /// The log no longer has some of it.
    pub gone: bool,
    /// Facts that were reached and that the caller may not see. What lies behind them was not followed.
    pub hidden: u64,
}

/// A fact in the log, with what it followed from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ChainFact {
    /// `INDEX:ORDINAL`: the batch, and the place of the fact in it.
    #[serde(rename = "ID")]
    pub id: String,
    pub index: u64,
    pub ordinal: u32,
    /// The servers' time, never the node's.
    pub time: Timestamp,
    /// The kind of fact, as the log names it.
    pub event: String,
    /// What it is about: `job/default/web`, `node/ID`.
    pub object: String,
    /// Who brought it about: a caller, a node, a controller.
    pub actor: String,
    /// Who asked for it, if somebody did.
    pub requester: Option<Requester>,
    /// The name of the request; empty where it has none.
    #[serde(rename = "RequestID")]
    pub request_id: String,
    pub command: String,
    /// What happened, in words.
    pub description: String,
    /// Steps from what was asked about.
    pub depth: u32,
    /// What it followed from.
    pub causes: List<FactCause>,
    /// Where it followed from nothing in the log: `request`, `deadline`, or `gone` for what is no longer kept. Else empty.
    pub root: String,
}

/// A fact that led to another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FactCause {
    #[serde(rename = "ID")]
    pub id: String,
    /// What the link is derived from: `command`, `evaluation`, `plan`, `previous evaluation`, `allocation`, `report`, `health`,
    /// `drain` or `job`.
    pub how: String,
}

/// Somebody who is no part of the cluster, as far as the server knew that took the call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Requester {
    /// The public id of the access token; empty without one.
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    /// The name of the token; may be empty.
    pub name: String,
    /// Where the call came from; empty where that is not known.
    pub address: String,
    /// The program, as it named itself in the header `User-Agent`; empty where it did not.
    pub agent: String,
}

/// The answer of `GET /v1/history/verify`: a part of the log was folded again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryVerified {
    /// After which index it began, and with which it ended.
    pub from: u64,
    pub to: u64,
    /// The newest index there is.
    pub newest: u64,
    pub batches: u64,
    pub events: u64,
    pub bytes: u64,
    /// Of each table of the state after the last batch, in hexadecimal digits: equal states have equal ones, on every server.
    pub digests: Map<String, String>,
}

/// The answer of `GET /v1/history/decisions`: the decisions of a part of the log, made again by the server that answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DecisionsAgain {
    /// After which index it began, and with which it ended.
    pub from: u64,
    pub to: u64,
    /// The newest index there is.
    pub newest: u64,
    /// Decisions that the log has there: those that come out the same, those that do not, and those that could not be made again.
    pub decisions: u64,
    pub same: u64,
    pub differing: u64,
    pub not_made: u64,
    /// Those that differ or could not be made again, by index.
    pub differences: List<DecisionAgain>,
    /// There are more; the counts are of all.
    pub cut_short: bool,
}

/// A decision that comes out differently, or could not be made again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DecisionAgain {
    /// Of the batch that has it, and of the state that it was made on.
    pub index: u64,
    pub snapshot: u64,
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub triggered_by: String,
    /// False for one that could not be made again, for the reason that is given.
    pub made: bool,
    /// As far as it is known.
    pub reason: String,
    /// Allocations that are placed elsewhere, or by one of the two only.
    pub placements: List<PlacementAgain>,
    /// What else differs, in words.
    pub changes: List<String>,
    /// There are more placements.
    pub cut_short: bool,
}

/// Where an allocation is placed by the log, and where it would be now; empty where it is not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PlacementAgain {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "LoggedNodeID")]
    pub logged_node_id: String,
    pub logged_node_name: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
}

/// The answer of `GET /v1/operator/history`: how much history the server has that answers, and where.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryStorage {
    /// The name of the server: each keeps its own.
    pub server: String,
    /// The oldest index that can be read, its time, and the newest.
    pub oldest_index: u64,
    pub oldest_time: Option<Timestamp>,
    pub newest_index: u64,
    /// How long history stays in the log, and how many bytes of it at most: `history` in the configuration.
    pub min_age: String,
    pub max_bytes: u64,
    /// The segments of the log, their bytes on disk, and the oldest index in them.
    pub segments: u64,
    pub segment_bytes: u64,
    pub log_oldest_index: u64,
    /// Null without one.
    pub archive: Option<HistoryArchive>,
    /// What is kept of older facts; null where nothing is.
    pub kept: Option<HistoryKept>,
    /// From where on servers have history that dropped what was before, as the log has it.
    pub dropped: List<HistoryDropped>,
}

/// What a server said in the log when it last dropped the oldest part of its history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryDropped {
    pub server: String,
    /// The oldest index that it can read since, and its time.
    pub oldest_index: u64,
    pub oldest_time: Option<Timestamp>,
    /// The index of the fact that says so.
    pub index: u64,
}

/// Facts of chosen kinds that are older than all history in the log and the archive.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryKept {
    /// What is kept of history that leaves from now on: `history.keep` in the configuration.
    pub kinds: List<String>,
    /// What there is, oldest first.
    pub parts: List<KeptHistory>,
    /// The files with it, their bytes, and how many they have when they are not compressed.
    pub files: u64,
    pub bytes: u64,
    pub raw_bytes: u64,
    pub max_bytes: u64,
    /// Names of files that are not as they were written.
    pub damaged: List<String>,
    /// Why nothing could be kept the last time; empty if it could.
    pub failed: String,
}

/// What was removed from the log, compressed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryArchive {
    /// Files that lead on to the log without a gap, their bytes, and how many they have when they are not compressed.
    pub files: u64,
    pub bytes: u64,
    pub raw_bytes: u64,
    /// Null for as many as the disk takes.
    pub max_bytes: Option<u64>,
    /// The oldest index in them; 0 without a file.
    pub oldest_index: u64,
    /// Files before a gap, which are not read, and their bytes.
    pub apart_files: u64,
    pub apart_bytes: u64,
    /// Names of files that are not as they were written.
    pub damaged: List<String>,
    /// Why a segment could not be archived the last time; empty if it could.
    pub failed: String,
}

/// The answer of `GET /v1/operator/history/verify`: a file of history was read and is whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HistoryFileVerified {
    pub name: String,
    /// The indexes in it; the last is below the first when there are none.
    pub first_index: u64,
    pub last_index: u64,
    pub first_time: Timestamp,
    pub last_time: Timestamp,
    /// On disk, and of its records.
    pub bytes: u64,
    pub raw_bytes: u64,
    /// Where the log stands before and after it. The next file begins with what this one ends with.
    pub begins: String,
    pub ends: String,
}
