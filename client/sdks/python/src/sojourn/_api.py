"""Written by `generate` from the OpenAPI file: change that, and run it again."""
# ruff: noqa
from __future__ import annotations

from typing import Any, TypedDict

from ._answer import Answer, quoted


class AclAccess(TypedDict):
    """What a caller may do: `write`, `read` or nothing of each. With `Management` everything. `AccessorID` is that of the token, or the node or allocation whose identity was presented. Ours."""

    AccessorID: str
    Name: str
    Management: bool
    Policies: list[str]
    Agent: str
    Node: str
    Operator: str


class AllocWhy(TypedDict):
    """The answer of `GET /v1/allocation/:id/explain`."""

    # Why it is only approximate; left out where it is not.
    Approximate: str
    ID: str
    Name: str
    JobID: str
    Namespace: str
    JobVersion: int
    NodeID: str
    NodeName: str
    DesiredStatus: str
    DesiredDescription: str
    ClientStatus: str
    ClientDescription: str
    Decision: Decision
    # What the group's first placement of that plan saw: the node that won, and those after it.
    Placed: dict[str, Any] | None
    # Names of the nodes that have scores.
    NodeNames: dict[str, str] | None
    # What its node says about its tasks, by name.
    Tasks: dict[str, TaskNow] | None
    # Null for an allocation that is never rescheduled.
    Reschedule: RescheduleNow | None
    # Null for a group without a disconnect block.
    Disconnect: DisconnectNow | None
    DeploymentID: str
    # Null while it is not known.
    Healthy: bool | None
    # Allocations that were stopped to make room for it.
    Preempted: list[Link] | None
    # The allocation that it was stopped for.
    PreemptedBy: Link | None
    # It has been forgotten: this is read from the log, as far back as that is kept.
    Collected: bool
    # From the first one to the last, this one among them.
    Chain: list[Link] | None
    Transitions: list[AllocationTransition] | None
    WaitsFor: list[Wait] | None


class AllocationHistory(TypedDict):
    """The answer of `GET /v1/allocation/:id/history`: oldest first."""

    ID: str
    Transitions: list[AllocationTransition] | None
    # There is more, and older, than what is shown.
    CutShort: bool


class AllocationTransition(TypedDict):
    """One fact that the servers decided about an allocation, or accepted from its node."""

    # The batch, and the event's place in it: together the id of the event in the stream.
    Index: int
    Ordinal: int
    # The servers' time, never the node's.
    Time: str
    # Empty for the transition that created the allocation.
    OldDesired: str
    NewDesired: str
    OldClient: str
    NewClient: str
    # Who brought it about: a caller, a node, a controller.
    Actor: str
    Requester: Requester
    # Why: the evaluation, the missed heartbeat, the report.
    Cause: str
    Description: str
    # The choice between the allocation and the other one, where this is what came of it; null elsewhere, and where
    # the log does not reach back to what it was made on. It is made again from the log.
    Reconnect: Reconnect | None


class ChainFact(TypedDict):
    """A fact in the log, with what it followed from."""

    # `INDEX:ORDINAL`: the batch, and the place of the fact in it.
    ID: str
    Index: int
    Ordinal: int
    # The servers' time, never the node's.
    Time: str
    # The kind of fact, as the log names it.
    Event: str
    # What it is about: `job/default/web`, `node/ID`.
    Object: str
    # Who brought it about: a caller, a node, a controller.
    Actor: str
    Requester: Requester
    # The name of the request; empty where it has none.
    RequestID: str
    Command: str
    # What happened, in words.
    Description: str
    # Steps from what was asked about.
    Depth: int
    Causes: list[FactCause] | None
    # Where it followed from nothing in the log: `request`, `deadline`, or `gone` for what is no longer kept. Else
    # empty.
    Root: str


class Decision(TypedDict):
    """What a decision was made of, and whether it could be made again."""

    # The evaluation it was made for; another one where this evaluation only waits for what that one left over.
    EvalID: str
    # The state that was looked at.
    Snapshot: int
    Time: str
    # What chance was drawn from: a whole number, as text because clients round large ones.
    Seed: str
    Recomputed: bool
    # The plan came out as it stands in the log; null where there is nothing to compare with.
    AsLogged: bool | None
    # Why it was not made again, or what to know about it.
    Note: str


class DecisionAgain(TypedDict):
    """A decision that comes out differently, or could not be made again."""

    # Of the batch that has it, and of the state that it was made on.
    Index: int
    Snapshot: int
    EvalID: str
    Namespace: str
    JobID: str
    TriggeredBy: str
    # False for one that could not be made again, for the reason that is given.
    Made: bool
    # As far as it is known.
    Reason: str
    # Allocations that are placed elsewhere, or by one of the two only.
    Placements: list[PlacementAgain] | None
    # What else differs, in words.
    Changes: list[str] | None
    # There are more placements.
    CutShort: bool


class DecisionsAgain(TypedDict):
    """The decisions of a part of the log, made again by the server that answers."""

    # After which index it began, and with which it ended.
    From: int
    To: int
    # The newest index there is.
    Newest: int
    # Decisions that the log has there: those that come out the same, those that do not, and those that could not be
    # made again.
    Decisions: int
    Same: int
    Differing: int
    NotMade: int
    # Those that differ or could not be made again, by index.
    Differences: list[DecisionAgain] | None
    # There are more; the counts are of all.
    CutShort: bool


class DeploymentGroup(TypedDict):
    """How far a deployment is with one group."""

    DesiredCanaries: int
    HealthyCanaries: int
    DesiredTotal: int
    Placed: int
    Healthy: int
    Unhealthy: int
    Promoted: bool
    AutoPromote: bool
    AutoRevert: bool
    # The deployment fails unless something becomes healthy by then; null without a limit.
    RequireProgressBy: str | None


class DeploymentWhy(TypedDict):
    """The answer of `GET /v1/deployment/:id/explain`."""

    # Why it is only approximate; left out where it is not.
    Approximate: str
    ID: str
    JobID: str
    Namespace: str
    JobVersion: int
    Status: str
    StatusDescription: str
    Groups: dict[str, DeploymentGroup] | None
    # Allocations of it that are unhealthy, the first of them.
    Unhealthy: list[Link] | None
    WaitsFor: list[Wait] | None


class DisconnectNow(TypedDict):
    """What happens when an allocation's node disconnects."""

    # It is given up then; zero when at once.
    LostAfter: int
    # A replacement is placed meanwhile.
    Replace: bool
    # How to choose between it and its replacement.
    Reconcile: str
    # When it is given up, if its node is disconnected now.
    LostAt: str | None


class DispatchNow(TypedDict):
    """What a dispatch of a parameterized job takes."""

    # `required`, `optional` or `forbidden`.
    Payload: str
    MetaRequired: list[str] | None
    MetaOptional: list[str] | None


class DoctorFinding(TypedDict):
    """A block or an attribute of a job that this release does not do."""

    # Empty outside of a group.
    Group: str
    # Empty outside of a task.
    Task: str
    # As a job file calls it.
    What: str
    Effect: str
    # What becomes of it, in words.
    Text: str


class DoctorGroup(TypedDict):
    """Why a group could not be placed."""

    # No node may run it, however much room there is.
    NeverPlaced: bool
    # `AllocationMetric` of Nomad's API.
    Failed: dict[str, Any]


class ErasurePending(TypedDict):
    """A server that may still be able to open what was forgotten. Ours."""

    ID: str
    # Empty while no other server knows it.
    Name: str


class EvalWhy(TypedDict):
    """The answer of `GET /v1/evaluation/:id/explain`."""

    # Why it is only approximate; left out where it is not.
    Approximate: str
    ID: str
    JobID: str
    Namespace: str
    TriggeredBy: str
    Status: str
    StatusDescription: str
    Decision: Decision
    Groups: dict[str, GroupReasons] | None
    WaitsFor: list[Wait] | None


class EventChain(TypedDict):
    """The answer of `GET /v1/event/:id/causes` and `/effects`: facts that led to each other, nearest first."""

    # What was asked about: an event, a fact or a request.
    ID: str
    # The trace that a sink of traces sends this under. Empty where some of what led to it is hidden.
    TraceID: str
    Facts: list[ChainFact] | None
    # There is more than was followed.
    CutShort: bool
    # The log no longer has some of it.
    Gone: bool
    # Facts that were reached and that the caller may not see. What lies behind them was not followed.
    Hidden: int


class EventCursor(TypedDict):
    """A durable cursor of the event stream."""

    Name: str
    # Everything without one.
    Topics: list[str]
    Namespace: str
    Filter: str
    # Where it began, as it was asked for.
    From: str
    Reader: str
    TTL: str
    # When it is deleted unless somebody uses it.
    Expires: str
    # The id of the last event that was acknowledged; an index stands for all of its events.
    Position: str
    PositionIndex: int
    # Batches after the position that are about something else than cursors.
    LagBatches: int
    # How long ago the oldest of those was made; 0 without one.
    LagSeconds: int
    # The oldest index that can still be read.
    OldestIndex: int
    # What follows the position is no longer kept.
    Gap: bool
    AckedAt: str
    # As the log names who asked: `token:ACCESSOR`.
    AckedBy: str
    CreateIndex: int
    ModifyIndex: int
    CreateTime: str
    # Among how many readers it is split; 0 when it is not. `Position` is then that of the last of them.
    Members: int
    # How far each of those readers has come.
    Shares: list[EventCursorShare]


class EventCursorAckRequest(TypedDict, total=False):
    """What a reader has done with."""

    # The id of the last event; of a checkpoint too.
    ID: str
    # Of a cursor that is split: which of its readers has done with it.
    Member: int


class EventCursorPosition(TypedDict):
    """Where a cursor is."""

    # The id of the last event that was acknowledged.
    Position: str
    # The index of the change, or the newest without one.
    Index: int


class EventCursorRequest(TypedDict, total=False):
    """What a cursor is to give."""

    # Where a new cursor begins, as `from` of the stream; `now` without it. One that exists stays where it is, and
    # began there if this is given.
    From: str
    # `Topic` or `Topic:key`; everything without one.
    Topics: list[str]
    # `default` unless given; `*` for all.
    Namespace: str
    # As `filter` of the stream.
    Filter: str
    # The accessor of the token that may acknowledge besides operators.
    Reader: str
    # A span like `72h`: the cursor is deleted when it was not used for so long. Never without it.
    TTL: str
    # Among how many readers a new cursor is split, at most 64, so that all events of a job go to the same one. 1:
    # not split. Of one that exists: as it is, or nothing.
    Members: int


class EventCursorResetRequest(TypedDict, total=False):
    """Where a cursor is to be."""

    # As `from` of the stream.
    To: str
    # Splits it among so many readers, who all begin there; 1 joins it again. `To` may be left out then: it stays
    # where it is.
    Members: int


class EventCursorShare(TypedDict):
    """How far one of the readers has come that a cursor is split among."""

    # From 0.
    Member: int
    # The id of the last event that it has acknowledged.
    Position: str
    PositionIndex: int
    # Batches after its position, whether or not they are for it.
    LagBatches: int
    LagSeconds: int
    # What follows its position is no longer kept.
    Gap: bool
    AckedAt: str
    AckedBy: str


class EventSink(TypedDict):
    """A sink of the event stream."""

    Name: str
    # `webhook`, `nats`, `kafka`, `file`, `syslog` or `otlp`.
    Kind: str
    # Of a webhook, or of a collector of OpenTelemetry.
    URL: str
    # Of a collector: `logs` or `traces`.
    Signal: str
    # `HOST:PORT` of a NATS or syslog server; of brokers of Kafka, one or several with commas.
    Address: str
    # Of the messages in NATS; of Kafka the topic.
    Subject: str
    # NATS: nothing is sent without TLS. Where it is not set, what the server asks for. Kafka: whether brokers speak
    # TLS.
    TLS: bool
    # Of syslog: `udp`, `tcp` or `tls`; `tcp` unless given.
    Transport: str
    # Of syslog: `local0` unless given.
    Facility: str
    # Of syslog: `sojourn` unless given.
    AppName: str
    # A file that would be longer is put aside; 64 MiB unless given.
    MaxBytes: int
    # Files that are kept, the one being written included; 4 unless given.
    MaxFiles: int
    # The path of the variable whose items authorise and sign.
    SecretVariable: str
    # Its namespace; `default` unless given.
    SecretNamespace: str
    # After so many failures of one event nothing is sent until somebody says so; 10 unless given.
    MaxAttempts: int
    # How long one attempt may take; 30 s unless given.
    Timeout: str
    # Where a new sink begins, as `from` of the stream.
    From: str
    # Everything without one.
    Topics: list[str]
    # `default` unless given; `*` for all.
    Namespace: str
    # As `filter` of the stream.
    Filter: str
    # `running`, `paused` or `parked`.
    Status: str
    # The event that did not get through, of a parked sink.
    ParkedEvent: str
    ParkedAttempts: int
    ParkedReason: str
    ParkedAt: str
    # The cursor that keeps where it is.
    Cursor: str
    # The id of the last event that is known to have arrived; an index stands for all of its events.
    Position: str
    # As of cursors.
    LagBatches: int
    # As of cursors.
    LagSeconds: int
    AckedAt: str
    # The server that answers leads, and sends: what follows is known to it alone, and counts since it leads.
    Reported: bool
    Sent: int
    # Attempts that failed.
    Failures: int
    # Attempts that failed for the event that it tries to send.
    FailedAttempts: int
    # When that is tried again.
    NextAttemptAt: str
    # Of the last attempt that failed, even if it went better after that.
    LastFailureEvent: str
    LastFailureReason: str
    LastFailureAt: str
    CreateIndex: int
    ModifyIndex: int


class EventSinkRequest(TypedDict, total=False):
    """Where events are to go. What is not of the kind is refused."""

    # `webhook`, `nats`, `kafka`, `file`, `syslog` or `otlp`.
    Kind: str
    # Of a webhook, or of a collector of OpenTelemetry.
    URL: str
    # Of a collector: `logs` or `traces`; `logs` unless given.
    Signal: str
    # `HOST:PORT` of a NATS or syslog server; of brokers of Kafka, one or several with commas.
    Address: str
    # Of the messages in NATS; of Kafka the topic.
    Subject: str
    # NATS: nothing is sent without TLS. Where it is not set, what the server asks for. Kafka: whether brokers speak
    # TLS.
    TLS: bool
    # Of syslog: `udp`, `tcp` or `tls`; `tcp` unless given.
    Transport: str
    # Of syslog: `local0` unless given.
    Facility: str
    # Of syslog: `sojourn` unless given.
    AppName: str
    # A file that would be longer is put aside; 64 MiB unless given.
    MaxBytes: int
    # Files that are kept, the one being written included; 4 unless given.
    MaxFiles: int
    # The path of the variable whose items authorise and sign.
    SecretVariable: str
    # Its namespace; `default` unless given.
    SecretNamespace: str
    # After so many failures of one event nothing is sent until somebody says so; 10 unless given.
    MaxAttempts: int
    # How long one attempt may take; 30 s unless given.
    Timeout: str
    # Where a new sink begins, as `from` of the stream.
    From: str
    # Everything without one.
    Topics: list[str]
    # `default` unless given; `*` for all.
    Namespace: str
    # As `filter` of the stream.
    Filter: str


class FactCause(TypedDict):
    """A fact that led to another."""

    ID: str
    # What the link is derived from: `command`, `evaluation`, `plan`, `previous evaluation`, `allocation`, `report`,
    # `health`, `drain` or `job`.
    How: str


class ForkAdd(TypedDict, total=False):
    """Nodes that join, with nothing on them."""

    # The node that they are like.
    like: str
    # How many; one unless given.
    count: int | None


class ForkAdvanceRequest(TypedDict, total=False):
    """The body of `POST /v1/fork/:id/advance`."""

    # How much time passes on its clock: `1h`.
    by: str


class ForkAllocation(TypedDict):
    """What became of an allocation. The ids of allocations that exist on the fork only are not shown."""

    # Empty for one that is new.
    ID: str
    Name: str
    Namespace: str
    JobID: str
    # The node that it was on; empty for one that is new.
    FromNodeID: str
    FromNodeName: str
    # The node that it, or what took its place, is on; empty without one.
    ToNodeID: str
    ToNodeName: str
    # Why it left, in the scheduler's words.
    Cause: str


class ForkChange(TypedDict, total=False):
    """One change. It has exactly one field."""

    # A node to drain. Nodes are named by their id, the beginning of it, or their name.
    drain: str | None
    down: ForkDown | None
    add: ForkAdd | None
    # A job to register, as `POST /v1/jobs` takes it.
    job: dict[str, Any] | None
    # A job to stop.
    stop: str | None
    scale: ForkScale | None
    # The configuration of the scheduler, as a whole.
    scheduler: dict[str, Any] | None


class ForkChangesRequest(TypedDict, total=False):
    """The body of `POST /v1/fork/:id/changes`."""

    # Made in this order.
    changes: list[ForkChange] | None
    # As in ForkRequest.
    until: str


class ForkCounts(TypedDict):
    """How many there are of each."""

    Placed: int
    Moved: int
    Replaced: int
    UpdatedInPlace: int
    Stopped: int
    Lost: int
    Preempted: int
    # Allocations of nodes that may still return.
    Unknown: int
    # Allocations without a node, of the groups that `Unplaced` has.
    Unplaced: int
    # Allocations that had no node before either.
    UnplacedBefore: int
    # Groups that `Violated` has, and deployments that failed.
    Violated: int


class ForkDeployment(TypedDict):
    """A deployment as it is in the end."""

    Namespace: str
    JobID: str
    JobVersion: int
    Status: str
    StatusDescription: str
    # It failed on the fork.
    Failed: bool


class ForkDown(TypedDict, total=False):
    """Nodes that fall silent: one of the two."""

    node: str
    # All nodes of a datacenter.
    datacenter: str


class ForkFree(TypedDict):
    """What is free in a datacenter, before and after."""

    # Empty for all of them together.
    Datacenter: str
    Before: ForkRoom
    After: ForkRoom


class ForkGroup(TypedDict):
    """A group of which fewer were running than its `migrate` and `update` blocks allow."""

    Namespace: str
    JobID: str
    Group: str
    # As many as the group's count says, in the end.
    Wanted: int
    # Its count less `max_parallel`.
    Allowed: int
    RunningBefore: int
    # At the worst moment.
    Lowest: int
    RunningAfter: int


class ForkKept(TypedDict):
    """A fork that a server keeps, to be read and to go on from."""

    ID: str
    # The token that it was made with; empty without access control.
    AccessorID: str
    Created: str
    # When it is forgotten, and how long that is from now.
    Expires: str
    # In nanoseconds.
    Remaining: int
    # The index of the state that it began with, and that of the state it has come to.
    Index: int
    ForkIndex: int
    # The time on its clock, and how much of it has passed.
    Time: str
    # In nanoseconds.
    VirtualTime: int
    # Changes that were made.
    Changes: int
    # Allocations that it changed or added.
    Allocations: int
    EndedBy: str
    Counts: ForkCounts


class ForkRequest(TypedDict, total=False):
    """The body of `POST /v1/fork`."""

    # The moment to begin with; empty: now.
    as_of: str
    # Made in this order.
    changes: list[ForkChange] | None
    # `quiet`, or how much time passes on the fork: `1h`. Empty: `quiet`.
    until: str
    # How long the fork is kept: `1h`. Empty: it is not.
    ttl: str


class ForkResult(TypedDict):
    """How a fork ended, compared with the state that it began with."""

    # The state that it began with, and the time that it then was on the fork.
    Index: int
    Time: str
    # Nothing is left to be done or waited for.
    Quiet: bool
    # `quiet`, `until`, `paused`, or the bound that was reached: `steps`, `evaluations`, `allocations`, `time`,
    # `duration`.
    EndedBy: str
    # How long it took on the fork's clock: tasks start and stop in no time there. In nanoseconds.
    VirtualTime: int
    # Commands that were decided, and evaluations that were scheduled.
    Steps: int
    Evaluations: int
    Counts: ForkCounts
    # Allocations that run and take no other's place.
    Placed: list[ForkAllocation] | None
    # Allocations that run on another node than before.
    Moved: list[ForkAllocation] | None
    # Allocations of which another one took the place on the same node.
    Replaced: list[ForkAllocation] | None
    # Allocations that were stopped, without another one in their place.
    Stopped: list[ForkAllocation] | None
    # Allocations that their node took with it, without another one in their place.
    Lost: list[ForkAllocation] | None
    # Allocations that had to make room for others, wherever they run then.
    Preempted: list[ForkAllocation] | None
    # Groups that lack more allocations than before for want of a node, and those of the jobs that were changed.
    Unplaced: list[ForkUnplaced] | None
    # Groups of which too few were running at some moment.
    Violated: list[ForkGroup] | None
    # Deployments that failed, began, or are still under way.
    Deployments: list[ForkDeployment] | None
    # Free resources of nodes that take work, by datacenter.
    Free: list[ForkFree] | None
    FreeTotal: ForkFree
    # What the result does not say.
    Notes: list[str] | None
    # A list names the first of its items only; the counts are of all.
    CutShort: bool
    # Of a fork that is kept; null for others.
    Kept: ForkKept | None


class ForkRoom(TypedDict):
    """What nodes have that are ready, eligible and not drained."""

    Nodes: int
    CPU: int
    FreeCPU: int
    MemoryMB: int
    FreeMemoryMB: int


class ForkScale(TypedDict, total=False):
    """A group that gets another count."""

    job: str
    group: str
    count: int | None


class ForkUnplaced(TypedDict):
    """A group with allocations that no node takes."""

    Namespace: str
    JobID: str
    Group: str
    Before: int
    After: int
    # What the first of them saw: nodes ruled out, resources exhausted. `AllocationMetric` of Nomad's v1 API.
    Failed: dict[str, Any]


class GroupNow(TypedDict):
    """How a group's allocations are."""

    # Zero for jobs that run on every node.
    Wanted: int
    Running: int
    Starting: int
    Queued: int
    Unknown: int
    Failed: int
    Lost: int
    Complete: int
    # Names of the group that no allocation holds, the first of them.
    Missing: list[MissingSlot] | None


class GroupOnNode(TypedDict):
    """A group of a job, and what stands in the way of one more allocation of it on a node."""

    Group: str
    # Allocations of it that are there.
    There: int
    # Allocations of it that take room anywhere.
    Everywhere: int
    # Empty when it could go there.
    Lacks: list[Lack] | None


class GroupReasons(TypedDict):
    """What a decision found out about one group."""

    # What was to become of its allocations, in numbers.
    Desired: dict[str, Any]
    # What the first placement saw: best scores, nodes ruled out.
    Placed: dict[str, Any] | None
    # What the first allocation saw that found no place.
    Failed: dict[str, Any] | None
    # Allocations that found no place.
    Missing: int
    # Their names: the first of them, each once.
    MissingNames: list[str] | None
    # The version of the job that they would have run, where it is not the current one.
    OlderVersion: int | None
    # Nodes that the cluster had.
    Nodes: int
    # Nodes that came closest to taking one more, the closest first.
    Nearest: list[NearMiss] | None
    # Allocations whose nodes came back, each against a replacement.
    Reconnects: list[Reconnect] | None
    # Single changes that would give every missing allocation a place. Each was tried out.
    WouldFitIf: list[str] | None
    # How many changes were tried.
    Tried: int
    # More changes may help: looking for them was cut short.
    HintsCutShort: bool


class HistoryArchive(TypedDict):
    """What was removed from the log, compressed."""

    # Files that lead on to the log without a gap, their bytes, and how many they have when they are not compressed.
    Files: int
    Bytes: int
    RawBytes: int
    # Null for as many as the disk takes.
    MaxBytes: int | None
    # The oldest index in them; 0 without a file.
    OldestIndex: int
    # Files before a gap, which are not read, and their bytes.
    ApartFiles: int
    ApartBytes: int
    # Names of files that are not as they were written.
    Damaged: list[str] | None
    # Why a segment could not be archived the last time; empty if it could.
    Failed: str


class HistoryDropped(TypedDict):
    """What a server said in the log when it last dropped the oldest part of its history."""

    Server: str
    # The oldest index that it can read since, and its time.
    OldestIndex: int
    OldestTime: str | None
    # The index of the fact that says so.
    Index: int


class HistoryFileVerified(TypedDict):
    """The answer of `GET /v1/operator/history/verify`: a file of history was read and is whole."""

    Name: str
    # The indexes in it; the last is below the first when there are none.
    FirstIndex: int
    LastIndex: int
    FirstTime: str
    LastTime: str
    # On disk, and of its records.
    Bytes: int
    RawBytes: int
    # Where the log stands before and after it. The next file begins with what this one ends with.
    Begins: str
    Ends: str


class HistoryKept(TypedDict):
    """Facts of chosen kinds that are older than all history in the log and the archive."""

    # What is kept of history that leaves from now on: `history.keep` in the configuration.
    Kinds: list[str] | None
    # What there is, oldest first.
    Parts: list[KeptHistory] | None
    # The files with it, their bytes, and how many they have when they are not compressed.
    Files: int
    Bytes: int
    RawBytes: int
    MaxBytes: int
    # Names of files that are not as they were written.
    Damaged: list[str] | None
    # Why nothing could be kept the last time; empty if it could.
    Failed: str


class HistoryLine(TypedDict):
    """One fact about an object."""

    # The batch, and the event's place in it.
    Index: int
    Ordinal: int
    # The servers' time, never the node's.
    Time: str
    # The kind of event, as the log names it.
    Event: str
    # What it is about: `job/default/web`, `node/ID`.
    Object: str
    # Who brought it about: a caller, a node, a controller.
    Actor: str
    Requester: Requester
    # What happened, in words.
    Description: str


class HistoryStorage(TypedDict):
    """The answer of `GET /v1/operator/history`: how much history the server has that answers, and where."""

    # The name of the server: each keeps its own.
    Server: str
    # The oldest index that can be read, its time, and the newest.
    OldestIndex: int
    OldestTime: str | None
    NewestIndex: int
    # How long history stays in the log, and how many bytes of it at most: `history` in the configuration.
    MinAge: str
    MaxBytes: int
    # The segments of the log, their bytes on disk, and the oldest index in them.
    Segments: int
    SegmentBytes: int
    LogOldestIndex: int
    # Null without one.
    Archive: HistoryArchive | None
    # What is kept of older facts; null where nothing is.
    Kept: HistoryKept | None
    # From where on servers have history that dropped what was before, as the log has it.
    Dropped: list[HistoryDropped] | None


class HistoryVerified(TypedDict):
    """The answer of `GET /v1/history/verify`: a part of the log was folded again."""

    # After which index it began, and with which it ended.
    From: int
    To: int
    # The newest index there is.
    Newest: int
    Batches: int
    Events: int
    Bytes: int
    # Of each table of the state after the last batch, in hexadecimal digits: equal states have equal ones, on every
    # server.
    Digests: dict[str, str] | None


class JobDoctor(TypedDict):
    """The answer of `PUT /v1/jobs/doctor`."""

    # Nodes that the cluster has.
    Nodes: int
    # Why the job could not be registered, besides what the findings say.
    Errors: list[str] | None
    # As registering it would answer.
    Warnings: list[str] | None
    # Blocks and attributes that this release does not do.
    Findings: list[DoctorFinding] | None
    # Groups that could not be placed completely now.
    Groups: dict[str, DoctorGroup] | None


class JobWhy(TypedDict):
    """The answer of `GET /v1/job/:id/explain`."""

    # Why it is only approximate; left out where it is not.
    Approximate: str
    ID: str
    Namespace: str
    Type: str
    Status: str
    Stopped: bool
    Groups: dict[str, GroupNow] | None
    WaitsFor: list[Wait] | None
    # The newest deployment of the version that is current.
    Deployment: DeploymentWhy | None
    # When a periodic job is launched next; null for others, and for one that is stopped or not enabled.
    NextLaunch: str | None
    # How a parameterized job is dispatched; null for others.
    Dispatch: DispatchNow | None
    # The newest decision about the job; none while no scheduler has looked at it.
    Evaluation: EvalWhy | None


class KeptDocument(TypedDict):
    """A job as it was after a fact, without what followed from other objects, as its status does."""

    Index: int
    # The job, as Nomad's API has jobs. Null where it was purged.
    Document: dict[str, Any] | None


class KeptHistory(TypedDict):
    """A part of the log of which facts of some kinds are kept."""

    FirstIndex: int
    LastIndex: int
    # Of the first and of the last batch that is left; null where none is.
    FirstTime: str | None
    LastTime: str | None
    # `job`, `variable` and so on.
    Kinds: list[str] | None
    Facts: int


class Lack(TypedDict):
    """One thing that a node lacks or that excludes it. The numbers are zero where there is nothing to count."""

    # `cpu`, `memory`, `disk`, or what stands in the way, as a statement about the node.
    What: str
    # `MHz` or `MiB`.
    Unit: str
    Asked: int
    Free: int
    # How much is missing.
    Short: int
    # How much of what is not free belongs to allocations that are being stopped there.
    Stopping: int


class Link(TypedDict):
    """One of a row of allocations that took each other's place."""

    ID: str
    NodeName: str
    DesiredStatus: str
    ClientStatus: str
    DesiredDescription: str
    # What its tasks ended with, if they did not end well.
    Trouble: str


class MissingSlot(TypedDict):
    """A name of a group that no allocation holds now."""

    Name: str
    # The last allocation that held it; null when there was none.
    Last: Link | None
    # Why nothing has taken its place.
    Why: str
    # When it is replaced, if that waits for a time.
    Until: str | None


class NearMiss(TypedDict):
    """A node that did not do, and all that stands in the way."""

    NodeID: str
    NodeName: str
    Lacks: list[Lack] | None


class NodeWhy(TypedDict):
    """The answer of `GET /v1/node/:id/explain`."""

    # Why it is only approximate; left out where it is not.
    Approximate: str
    ID: str
    Name: str
    Status: str
    Eligibility: str
    # It may be given new work.
    TakesWork: bool
    # Why it takes no work, as statements about the node.
    Obstacles: list[str] | None
    Room: list[Room] | None
    Running: int
    Starting: int
    Stopping: int
    Unknown: int
    WaitsFor: list[Wait] | None
    # What the node and the servers said about it, the newest first.
    Messages: list[dict[str, Any]] | None


class ObjectHistory(TypedDict):
    """The answer of `GET /v1/job|node|evaluation|deployment/:id/history`, and of `GET /v1/history` (without an id): oldest first."""

    ID: str
    Lines: list[HistoryLine] | None
    # There is more, and older, than what is shown.
    CutShort: bool
    # From this index on every fact is there. What is older is gone, but for what `Kept` names.
    WholeFrom: int
    # Of which older parts of the log which kinds of facts are kept, oldest first. Between them nothing is.
    Kept: list[KeptHistory] | None
    # With `documents`, of a job alone: what each of its facts left of which the state is gone, as far as they say.
    # The newest 500.
    Documents: list[KeptDocument] | None


class PlacementAgain(TypedDict):
    """Where an allocation is placed by the log, and where it would be now; empty where it is not."""

    ID: str
    LoggedNodeID: str
    LoggedNodeName: str
    NodeID: str
    NodeName: str


class Reconnect(TypedDict):
    """The choice between an allocation that came back and its replacement."""

    # Ids of the two allocations.
    Original: str
    Replacement: str
    # As the job has it.
    Strategy: str
    # The scores that they were placed with; null where none is known.
    OriginalScore: float | None
    ReplacementScore: float | None
    # The original stays and the replacement is stopped; else the other way around.
    KeepsOriginal: bool
    Why: str


class Requester(TypedDict):
    """Somebody who is no part of the cluster, as far as the server knew that took the call."""

    # The public id of the access token; empty without one.
    AccessorID: str
    # The name of the token; may be empty.
    Name: str
    # Where the call came from; empty where that is not known.
    Address: str
    # The program, as it named itself in the header `User-Agent`; empty where it did not.
    Agent: str


class RescheduleNow(TypedDict):
    """How an allocation is replaced when it fails."""

    # In words.
    Policy: str
    Attempts: int
    # Within the interval of the policy; null without a limit.
    AttemptsMax: int | None
    # When it is replaced; null when nothing is to be replaced.
    Next: str | None
    # Why it is not replaced although it failed; empty otherwise.
    WhyNot: str


class Room(TypedDict):
    """How much of one resource a node has."""

    What: str
    Unit: str
    Capacity: int
    Used: int
    # How much of what is used belongs to allocations that are being stopped.
    Stopping: int


class SchedulerScan(TypedDict, total=False):
    """Which nodes the scheduler looks at: `all` of them, or a `sample` as Nomad does. Ours; only with `sample` has `NodeLimitForFeasibilityChecks` an effect."""

    Scan: str


class TaskNow(TypedDict):
    """What a node says about a task."""

    State: str
    Failed: bool
    Restarts: int
    # Of the last time that it ended; null when it has not.
    ExitCode: int | None
    # The newest event that says what went wrong: an exit code, a failed hook, a driver's error.
    Trouble: str


class UpgradeRaised(TypedDict):
    """The cluster's epoch after an upgrade was finished."""

    Epoch: int
    Raised: bool
    Index: int


class UpgradeServer(TypedDict):
    """A server of the raft cluster, and its release. Epoch 0: it is not known."""

    ID: str
    Name: str
    Address: str
    Version: str
    Epoch: int
    Status: str
    Voter: bool


class UpgradeStatus(TypedDict):
    """How far an upgrade of the servers has come."""

    Epoch: int
    Next: int
    Newest: int
    Finished: bool
    Problems: list[str]
    Servers: list[UpgradeServer]


class VariableErasure(TypedDict):
    """How far it is with the erasure of a variable, a token or an auth method that was forgotten: these have no namespace, and the path `acl-token/ID` or `acl-auth-method/NAME`. Ours."""

    Namespace: str
    Path: str
    # The index at which it was forgotten.
    ForgottenAt: int
    # No server can open any more what the variable held.
    Complete: bool
    # Servers that have not said so yet.
    Pending: list[ErasurePending]
    # What was written before this index is encrypted with a root key, which stays. Left out where nothing was.
    KeptBefore: int


class VariableVersion(TypedDict):
    """One of the versions that are kept of a variable, without its items. `AccessorID` and `Author` are of the token of who set it. Ours."""

    Version: int
    ModifyIndex: int
    # Nanoseconds since 1970.
    ModifyTime: int
    AccessorID: str
    Author: str


class Wait(TypedDict):
    """Something that has to happen before the job goes on."""

    What: str
    EvalID: str
    # When it ends by itself; null when it does not.
    Until: str | None


class WhyNot(TypedDict):
    """The answer of `GET /v1/node/:id/explain/:job`: why none of it is placed on a node."""

    # Why it is only approximate; left out where it is not.
    Approximate: str
    JobID: str
    # The job was stopped, so nothing of it is placed anywhere.
    Stopped: bool
    NodeID: str
    NodeName: str
    Groups: list[GroupOnNode] | None


class Operations:
    """What Sojourn adds to Nomad's API, a method each."""

    def request(self, method: str, path: str, **given: Any) -> Answer[Any]:
        raise NotImplementedError

    def explain_job(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[JobWhy]:
        """Why the job is where it is, or nowhere, and what would help."""
        return self.request("GET", f"/v1/job/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def explain_evaluation(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[EvalWhy]:
        """Why an evaluation came out as it did: decided again on the state it saw."""
        return self.request("GET", f"/v1/evaluation/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def explain_allocation(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[AllocWhy]:
        """Why an allocation is on its node, and what became of it."""
        return self.request("GET", f"/v1/allocation/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def explain_deployment(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[DeploymentWhy]:
        """How far a deployment is, what it waits for, or why it failed."""
        return self.request("GET", f"/v1/deployment/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def explain_node(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[NodeWhy]:
        """Whether a node takes work, why not, and what it waits for."""
        return self.request("GET", f"/v1/node/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def explain_job_on_node(
        self,
        id: str,
        job: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[WhyNot]:
        """What stands in the way of one more allocation of each group of a job on a node."""
        return self.request("GET", f"/v1/node/{quoted(id)}/explain/{quoted(job)}", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def doctor_job(
        self,
        body: dict[str, Any],
        *,
        namespace: str | None = None,
    ) -> Answer[JobDoctor]:
        """What of a job works on the cluster as it is. Nothing is registered."""
        return self.request("PUT", "/v1/jobs/doctor", query={"namespace": namespace}, body=body)

    def history(
        self,
        *,
        since: str | None = None,
        per_page: int | None = None,
        next_token: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact of the log, oldest first, with who brought it about. It takes a management token."""
        return self.request("GET", "/v1/history", query={"since": since, "per_page": per_page, "next_token": next_token, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of})

    def verify_history(
        self,
        *,
        since: str | None = None,
    ) -> Answer[HistoryVerified]:
        """Folds a part of the log again and compares what it leads to with what was published. It takes a
        management token."""
        return self.request("GET", "/v1/history/verify", query={"since": since})

    def decide_again(
        self,
        *,
        since: str | None = None,
        algorithm: str | None = None,
    ) -> Answer[DecisionsAgain]:
        """Makes the decisions of a part of the log again with this server's scheduler and compares them with the
        log. It takes a management token."""
        return self.request("GET", "/v1/history/decisions", query={"since": since, "algorithm": algorithm})

    def allocation_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[AllocationHistory]:
        """Every fact about an allocation, oldest first."""
        return self.request("GET", f"/v1/allocation/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    def job_history(
        self,
        id: str,
        *,
        documents: bool | None = None,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about a job, oldest first."""
        return self.request("GET", f"/v1/job/{quoted(id)}/history", query={"documents": documents, "index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    def node_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about a node, oldest first."""
        return self.request("GET", f"/v1/node/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    def evaluation_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about an evaluation, oldest first."""
        return self.request("GET", f"/v1/evaluation/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    def deployment_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about a deployment, oldest first."""
        return self.request("GET", f"/v1/deployment/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    def history_storage(self) -> Answer[HistoryStorage]:
        """How much history the server has that answers, and where. It takes operator:read."""
        return self.request("GET", "/v1/operator/history")

    def verify_history_file(
        self,
        *,
        from_: int,
        kept: bool | None = None,
    ) -> Answer[HistoryFileVerified]:
        """Reads the file of history that an index is in, in the log or in the archive of the server that answers,
        and compares all of it with its checksums and the chain of the log. It takes operator:read."""
        return self.request("GET", "/v1/operator/history/verify", query={"from": from_, "kept": kept})

    def export_history_file(
        self,
        *,
        from_: int,
        kept: bool | None = None,
    ) -> Answer[bytes]:
        """A copy of the file of history that an index is in, compressed. The header X-Sojourn-Next-Index has the
        index to ask with for the next file. It takes a management token."""
        return self.request("GET", "/v1/operator/history/export", raw=True, query={"from": from_, "kept": kept})

    def scheduler_scan(
        self,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[SchedulerScan]:
        """Whether the scheduler looks at all nodes or at a sample."""
        return self.request("GET", "/v1/operator/scheduler/scan", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    def set_scheduler_scan(
        self,
        body: SchedulerScan,
        *,
        request_id: str | None = None,
    ) -> Answer[None]:
        """Sets it."""
        return self.request("PUT", "/v1/operator/scheduler/scan", headers={"X-Sojourn-Request-Id": request_id}, body=body)

    def upgrade_status(self) -> Answer[UpgradeStatus]:
        """How far an upgrade of the servers has come: their releases, and what the cluster writes. Needs
        `operator:read`."""
        return self.request("GET", "/v1/operator/upgrade")

    def finish_upgrade(self) -> Answer[UpgradeRaised]:
        """Let the cluster write what every server knows; no older release can follow from then on. Needs
        `operator:write`."""
        return self.request("PUT", "/v1/operator/upgrade")

    def access(self) -> Answer[AclAccess]:
        """Who the caller is to this cluster, and what they may do, in coarse words."""
        return self.request("GET", "/v1/acl/access")

    def list_cursors(
        self,
        *,
        prefix: str | None = None,
        index: int | None = None,
    ) -> Answer[list[EventCursor]]:
        """The durable cursors of the event stream, and how far each is behind. Needs `operator:read`."""
        return self.request("GET", "/v1/event/cursors", query={"prefix": prefix, "index": index})

    def read_cursor(
        self,
        id: str,
        *,
        index: int | None = None,
    ) -> Answer[EventCursor]:
        """One cursor. Needs `operator:read`, or the token that it names as its reader."""
        return self.request("GET", f"/v1/event/cursor/{quoted(id)}", query={"index": index})

    def set_cursor(
        self,
        id: str,
        body: EventCursorRequest,
    ) -> Answer[EventCursor]:
        """Creates a cursor, or changes what it gives; where it is stays then. Needs `operator:write`."""
        return self.request("PUT", f"/v1/event/cursor/{quoted(id)}", body=body)

    def delete_cursor(
        self,
        id: str,
    ) -> Answer[None]:
        """Deletes a cursor. Needs `operator:write`."""
        return self.request("DELETE", f"/v1/event/cursor/{quoted(id)}")

    def ack_cursor(
        self,
        id: str,
        body: EventCursorAckRequest,
    ) -> Answer[EventCursorPosition]:
        """Moves a cursor on, after what its reader has done with; what lies before it changes nothing. The answer
        comes when that is committed. Needs the rights to read what the cursor gives, and `operator:write` or the
        token that it names as its reader."""
        return self.request("POST", f"/v1/event/cursor/{quoted(id)}/ack", body=body)

    def reset_cursor(
        self,
        id: str,
        body: EventCursorResetRequest,
    ) -> Answer[EventCursorPosition]:
        """Puts a cursor anywhere that is still kept, also back. Needs `operator:write`."""
        return self.request("POST", f"/v1/event/cursor/{quoted(id)}/reset", body=body)

    def list_sinks(
        self,
        *,
        prefix: str | None = None,
        index: int | None = None,
    ) -> Answer[list[EventSink]]:
        """The sinks of the event stream, where each is and whether it sends. Needs `operator:read`."""
        return self.request("GET", "/v1/event/sinks", query={"prefix": prefix, "index": index})

    def read_sink(
        self,
        id: str,
        *,
        index: int | None = None,
    ) -> Answer[EventSink]:
        """One sink. Needs `operator:read`."""
        return self.request("GET", f"/v1/event/sink/{quoted(id)}", query={"index": index})

    def set_sink(
        self,
        id: str,
        body: EventSinkRequest,
    ) -> Answer[EventSink]:
        """Makes a sink with its cursor, or changes them; where it is and whether it sends stays then. Needs a
        management token."""
        return self.request("PUT", f"/v1/event/sink/{quoted(id)}", body=body)

    def delete_sink(
        self,
        id: str,
    ) -> Answer[None]:
        """Deletes a sink and its cursor. Needs a management token."""
        return self.request("DELETE", f"/v1/event/sink/{quoted(id)}")

    def pause_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """Sends nothing until it is resumed. Needs `operator:write`."""
        return self.request("POST", f"/v1/event/sink/{quoted(id)}/pause")

    def resume_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """Sends again what is paused or parked, from where the cursor is. Needs `operator:write`."""
        return self.request("POST", f"/v1/event/sink/{quoted(id)}/resume")

    def retry_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """The same as `resume`. Needs `operator:write`."""
        return self.request("POST", f"/v1/event/sink/{quoted(id)}/retry")

    def skip_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """Gives up the event that a sink is parked at, and goes on behind it. Needs `operator:write`."""
        return self.request("POST", f"/v1/event/sink/{quoted(id)}/skip")

    def read_auth_method(
        self,
        name: str,
        *,
        forgotten: bool | None = None,
    ) -> Answer[dict[str, Any] | list[VariableErasure]]:
        """What Nomad has at this path, and besides, with `forgotten`: how far it is with the erasure of auth
        methods of this name that were forgotten, the newest first."""
        return self.request("GET", f"/v1/acl/auth-method/{quoted(name)}", query={"forgotten": forgotten})

    def delete_auth_method(
        self,
        name: str,
        *,
        forget: bool | None = None,
    ) -> Answer[VariableErasure]:
        """What Nomad has at this path, and besides, with `forget`: the key of its secrets is erased on all servers.
        Needs a management token."""
        return self.request("DELETE", f"/v1/acl/auth-method/{quoted(name)}", query={"forget": forget})

    def read_acl_token(
        self,
        accessor: str,
        *,
        forgotten: bool | None = None,
    ) -> Answer[dict[str, Any] | list[VariableErasure]]:
        """What Nomad has at this path, and besides, with `forgotten`: how far it is with the erasure of tokens of
        this name that were forgotten, the newest first."""
        return self.request("GET", f"/v1/acl/token/{quoted(accessor)}", query={"forgotten": forgotten})

    def delete_acl_token(
        self,
        accessor: str,
        *,
        forget: bool | None = None,
    ) -> Answer[VariableErasure]:
        """What Nomad has at this path, and besides, with `forget`: the key of its secrets is erased on all servers.
        Needs a management token."""
        return self.request("DELETE", f"/v1/acl/token/{quoted(accessor)}", query={"forget": forget})

    def read_variable(
        self,
        path: str,
        *,
        versions: bool | None = None,
        version: int | None = None,
        forgotten: bool | None = None,
    ) -> Answer[dict[str, Any] | list[VariableVersion] | list[VariableErasure]]:
        """What Nomad has at this path, and besides: the versions of a variable that are kept, the newest first
        (`versions`), or what one of them held (`version`). Needs `read` on the path. The versions of a variable
        that was deleted are gone. With `forgotten`: how far it is with the erasure of the variables of this name
        that were forgotten, the newest first; needs `list`."""
        return self.request("GET", f"/v1/var/{quoted(path)}", query={"versions": versions, "version": version, "forgotten": forgotten})

    def delete_variable(
        self,
        path: str,
        *,
        forget: bool | None = None,
    ) -> Answer[VariableErasure | None]:
        """What Nomad has at this path, and besides, with `forget`: the variable is deleted, if it is there, and the
        key of everything that it ever held is erased on all servers. Needs `destroy` on the path."""
        return self.request("DELETE", f"/v1/var/{quoted(path)}", query={"forget": forget})

    def what_if(
        self,
        body: ForkRequest,
        *,
        namespace: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[ForkResult]:
        """What changes would lead to: the scheduler and the controllers run on a fork of the state until nothing is
        left to be done. Nothing is written."""
        return self.request("POST", "/v1/fork", query={"namespace": namespace, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of}, body=body)

    def list_forks(self) -> Answer[list[ForkKept]]:
        """The kept forks that the caller made; all of them for a management token."""
        return self.request("GET", "/v1/forks")

    def read_fork(
        self,
        id: str,
    ) -> Answer[ForkResult]:
        """How a kept fork differs from the state that it began with."""
        return self.request("GET", f"/v1/fork/{quoted(id)}")

    def delete_fork(
        self,
        id: str,
    ) -> Answer[dict[str, Any]]:
        """Forgets a kept fork before its time is over."""
        return self.request("DELETE", f"/v1/fork/{quoted(id)}")

    def change_fork(
        self,
        id: str,
        body: ForkChangesRequest,
        *,
        namespace: str | None = None,
    ) -> Answer[ForkResult]:
        """Makes further changes on a kept fork, and runs it on. What is refused changes nothing."""
        return self.request("POST", f"/v1/fork/{quoted(id)}/changes", query={"namespace": namespace}, body=body)

    def advance_fork(
        self,
        id: str,
        body: ForkAdvanceRequest,
    ) -> Answer[ForkResult]:
        """Lets time pass on the clock of a kept fork: a week in all."""
        return self.request("POST", f"/v1/fork/{quoted(id)}/advance", body=body)

    def event_causes(
        self,
        id: str,
        *,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[EventChain]:
        """What an event followed from, and what that followed from, nearest first: at most 256 facts, 16 steps
        away."""
        return self.request("GET", f"/v1/event/{quoted(id)}/causes", query={"stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of})

    def event_effects(
        self,
        id: str,
        *,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[EventChain]:
        """What followed from an event, and what followed from that, nearest first: at most 256 facts, 16 steps
        away."""
        return self.request("GET", f"/v1/event/{quoted(id)}/effects", query={"stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of})


class AsyncOperations:
    """What Sojourn adds to Nomad's API, a method each."""

    async def request(self, method: str, path: str, **given: Any) -> Answer[Any]:
        raise NotImplementedError

    async def explain_job(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[JobWhy]:
        """Why the job is where it is, or nowhere, and what would help."""
        return await self.request("GET", f"/v1/job/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def explain_evaluation(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[EvalWhy]:
        """Why an evaluation came out as it did: decided again on the state it saw."""
        return await self.request("GET", f"/v1/evaluation/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def explain_allocation(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[AllocWhy]:
        """Why an allocation is on its node, and what became of it."""
        return await self.request("GET", f"/v1/allocation/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def explain_deployment(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[DeploymentWhy]:
        """How far a deployment is, what it waits for, or why it failed."""
        return await self.request("GET", f"/v1/deployment/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def explain_node(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[NodeWhy]:
        """Whether a node takes work, why not, and what it waits for."""
        return await self.request("GET", f"/v1/node/{quoted(id)}/explain", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def explain_job_on_node(
        self,
        id: str,
        job: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[WhyNot]:
        """What stands in the way of one more allocation of each group of a job on a node."""
        return await self.request("GET", f"/v1/node/{quoted(id)}/explain/{quoted(job)}", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def doctor_job(
        self,
        body: dict[str, Any],
        *,
        namespace: str | None = None,
    ) -> Answer[JobDoctor]:
        """What of a job works on the cluster as it is. Nothing is registered."""
        return await self.request("PUT", "/v1/jobs/doctor", query={"namespace": namespace}, body=body)

    async def history(
        self,
        *,
        since: str | None = None,
        per_page: int | None = None,
        next_token: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact of the log, oldest first, with who brought it about. It takes a management token."""
        return await self.request("GET", "/v1/history", query={"since": since, "per_page": per_page, "next_token": next_token, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of})

    async def verify_history(
        self,
        *,
        since: str | None = None,
    ) -> Answer[HistoryVerified]:
        """Folds a part of the log again and compares what it leads to with what was published. It takes a
        management token."""
        return await self.request("GET", "/v1/history/verify", query={"since": since})

    async def decide_again(
        self,
        *,
        since: str | None = None,
        algorithm: str | None = None,
    ) -> Answer[DecisionsAgain]:
        """Makes the decisions of a part of the log again with this server's scheduler and compares them with the
        log. It takes a management token."""
        return await self.request("GET", "/v1/history/decisions", query={"since": since, "algorithm": algorithm})

    async def allocation_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[AllocationHistory]:
        """Every fact about an allocation, oldest first."""
        return await self.request("GET", f"/v1/allocation/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    async def job_history(
        self,
        id: str,
        *,
        documents: bool | None = None,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about a job, oldest first."""
        return await self.request("GET", f"/v1/job/{quoted(id)}/history", query={"documents": documents, "index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    async def node_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about a node, oldest first."""
        return await self.request("GET", f"/v1/node/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    async def evaluation_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about an evaluation, oldest first."""
        return await self.request("GET", f"/v1/evaluation/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    async def deployment_history(
        self,
        id: str,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        namespace: str | None = None,
    ) -> Answer[ObjectHistory]:
        """Every fact about a deployment, oldest first."""
        return await self.request("GET", f"/v1/deployment/{quoted(id)}/history", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "namespace": namespace})

    async def history_storage(self) -> Answer[HistoryStorage]:
        """How much history the server has that answers, and where. It takes operator:read."""
        return await self.request("GET", "/v1/operator/history")

    async def verify_history_file(
        self,
        *,
        from_: int,
        kept: bool | None = None,
    ) -> Answer[HistoryFileVerified]:
        """Reads the file of history that an index is in, in the log or in the archive of the server that answers,
        and compares all of it with its checksums and the chain of the log. It takes operator:read."""
        return await self.request("GET", "/v1/operator/history/verify", query={"from": from_, "kept": kept})

    async def export_history_file(
        self,
        *,
        from_: int,
        kept: bool | None = None,
    ) -> Answer[bytes]:
        """A copy of the file of history that an index is in, compressed. The header X-Sojourn-Next-Index has the
        index to ask with for the next file. It takes a management token."""
        return await self.request("GET", "/v1/operator/history/export", raw=True, query={"from": from_, "kept": kept})

    async def scheduler_scan(
        self,
        *,
        index: int | None = None,
        wait: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
        fork: str | None = None,
        namespace: str | None = None,
    ) -> Answer[SchedulerScan]:
        """Whether the scheduler looks at all nodes or at a sample."""
        return await self.request("GET", "/v1/operator/scheduler/scan", query={"index": index, "wait": wait, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of, "fork": fork, "namespace": namespace})

    async def set_scheduler_scan(
        self,
        body: SchedulerScan,
        *,
        request_id: str | None = None,
    ) -> Answer[None]:
        """Sets it."""
        return await self.request("PUT", "/v1/operator/scheduler/scan", headers={"X-Sojourn-Request-Id": request_id}, body=body)

    async def upgrade_status(self) -> Answer[UpgradeStatus]:
        """How far an upgrade of the servers has come: their releases, and what the cluster writes. Needs
        `operator:read`."""
        return await self.request("GET", "/v1/operator/upgrade")

    async def finish_upgrade(self) -> Answer[UpgradeRaised]:
        """Let the cluster write what every server knows; no older release can follow from then on. Needs
        `operator:write`."""
        return await self.request("PUT", "/v1/operator/upgrade")

    async def access(self) -> Answer[AclAccess]:
        """Who the caller is to this cluster, and what they may do, in coarse words."""
        return await self.request("GET", "/v1/acl/access")

    async def list_cursors(
        self,
        *,
        prefix: str | None = None,
        index: int | None = None,
    ) -> Answer[list[EventCursor]]:
        """The durable cursors of the event stream, and how far each is behind. Needs `operator:read`."""
        return await self.request("GET", "/v1/event/cursors", query={"prefix": prefix, "index": index})

    async def read_cursor(
        self,
        id: str,
        *,
        index: int | None = None,
    ) -> Answer[EventCursor]:
        """One cursor. Needs `operator:read`, or the token that it names as its reader."""
        return await self.request("GET", f"/v1/event/cursor/{quoted(id)}", query={"index": index})

    async def set_cursor(
        self,
        id: str,
        body: EventCursorRequest,
    ) -> Answer[EventCursor]:
        """Creates a cursor, or changes what it gives; where it is stays then. Needs `operator:write`."""
        return await self.request("PUT", f"/v1/event/cursor/{quoted(id)}", body=body)

    async def delete_cursor(
        self,
        id: str,
    ) -> Answer[None]:
        """Deletes a cursor. Needs `operator:write`."""
        return await self.request("DELETE", f"/v1/event/cursor/{quoted(id)}")

    async def ack_cursor(
        self,
        id: str,
        body: EventCursorAckRequest,
    ) -> Answer[EventCursorPosition]:
        """Moves a cursor on, after what its reader has done with; what lies before it changes nothing. The answer
        comes when that is committed. Needs the rights to read what the cursor gives, and `operator:write` or the
        token that it names as its reader."""
        return await self.request("POST", f"/v1/event/cursor/{quoted(id)}/ack", body=body)

    async def reset_cursor(
        self,
        id: str,
        body: EventCursorResetRequest,
    ) -> Answer[EventCursorPosition]:
        """Puts a cursor anywhere that is still kept, also back. Needs `operator:write`."""
        return await self.request("POST", f"/v1/event/cursor/{quoted(id)}/reset", body=body)

    async def list_sinks(
        self,
        *,
        prefix: str | None = None,
        index: int | None = None,
    ) -> Answer[list[EventSink]]:
        """The sinks of the event stream, where each is and whether it sends. Needs `operator:read`."""
        return await self.request("GET", "/v1/event/sinks", query={"prefix": prefix, "index": index})

    async def read_sink(
        self,
        id: str,
        *,
        index: int | None = None,
    ) -> Answer[EventSink]:
        """One sink. Needs `operator:read`."""
        return await self.request("GET", f"/v1/event/sink/{quoted(id)}", query={"index": index})

    async def set_sink(
        self,
        id: str,
        body: EventSinkRequest,
    ) -> Answer[EventSink]:
        """Makes a sink with its cursor, or changes them; where it is and whether it sends stays then. Needs a
        management token."""
        return await self.request("PUT", f"/v1/event/sink/{quoted(id)}", body=body)

    async def delete_sink(
        self,
        id: str,
    ) -> Answer[None]:
        """Deletes a sink and its cursor. Needs a management token."""
        return await self.request("DELETE", f"/v1/event/sink/{quoted(id)}")

    async def pause_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """Sends nothing until it is resumed. Needs `operator:write`."""
        return await self.request("POST", f"/v1/event/sink/{quoted(id)}/pause")

    async def resume_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """Sends again what is paused or parked, from where the cursor is. Needs `operator:write`."""
        return await self.request("POST", f"/v1/event/sink/{quoted(id)}/resume")

    async def retry_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """The same as `resume`. Needs `operator:write`."""
        return await self.request("POST", f"/v1/event/sink/{quoted(id)}/retry")

    async def skip_sink(
        self,
        id: str,
    ) -> Answer[EventSink]:
        """Gives up the event that a sink is parked at, and goes on behind it. Needs `operator:write`."""
        return await self.request("POST", f"/v1/event/sink/{quoted(id)}/skip")

    async def read_auth_method(
        self,
        name: str,
        *,
        forgotten: bool | None = None,
    ) -> Answer[dict[str, Any] | list[VariableErasure]]:
        """What Nomad has at this path, and besides, with `forgotten`: how far it is with the erasure of auth
        methods of this name that were forgotten, the newest first."""
        return await self.request("GET", f"/v1/acl/auth-method/{quoted(name)}", query={"forgotten": forgotten})

    async def delete_auth_method(
        self,
        name: str,
        *,
        forget: bool | None = None,
    ) -> Answer[VariableErasure]:
        """What Nomad has at this path, and besides, with `forget`: the key of its secrets is erased on all servers.
        Needs a management token."""
        return await self.request("DELETE", f"/v1/acl/auth-method/{quoted(name)}", query={"forget": forget})

    async def read_acl_token(
        self,
        accessor: str,
        *,
        forgotten: bool | None = None,
    ) -> Answer[dict[str, Any] | list[VariableErasure]]:
        """What Nomad has at this path, and besides, with `forgotten`: how far it is with the erasure of tokens of
        this name that were forgotten, the newest first."""
        return await self.request("GET", f"/v1/acl/token/{quoted(accessor)}", query={"forgotten": forgotten})

    async def delete_acl_token(
        self,
        accessor: str,
        *,
        forget: bool | None = None,
    ) -> Answer[VariableErasure]:
        """What Nomad has at this path, and besides, with `forget`: the key of its secrets is erased on all servers.
        Needs a management token."""
        return await self.request("DELETE", f"/v1/acl/token/{quoted(accessor)}", query={"forget": forget})

    async def read_variable(
        self,
        path: str,
        *,
        versions: bool | None = None,
        version: int | None = None,
        forgotten: bool | None = None,
    ) -> Answer[dict[str, Any] | list[VariableVersion] | list[VariableErasure]]:
        """What Nomad has at this path, and besides: the versions of a variable that are kept, the newest first
        (`versions`), or what one of them held (`version`). Needs `read` on the path. The versions of a variable
        that was deleted are gone. With `forgotten`: how far it is with the erasure of the variables of this name
        that were forgotten, the newest first; needs `list`."""
        return await self.request("GET", f"/v1/var/{quoted(path)}", query={"versions": versions, "version": version, "forgotten": forgotten})

    async def delete_variable(
        self,
        path: str,
        *,
        forget: bool | None = None,
    ) -> Answer[VariableErasure | None]:
        """What Nomad has at this path, and besides, with `forget`: the variable is deleted, if it is there, and the
        key of everything that it ever held is erased on all servers. Needs `destroy` on the path."""
        return await self.request("DELETE", f"/v1/var/{quoted(path)}", query={"forget": forget})

    async def what_if(
        self,
        body: ForkRequest,
        *,
        namespace: str | None = None,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[ForkResult]:
        """What changes would lead to: the scheduler and the controllers run on a fork of the state until nothing is
        left to be done. Nothing is written."""
        return await self.request("POST", "/v1/fork", query={"namespace": namespace, "stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of}, body=body)

    async def list_forks(self) -> Answer[list[ForkKept]]:
        """The kept forks that the caller made; all of them for a management token."""
        return await self.request("GET", "/v1/forks")

    async def read_fork(
        self,
        id: str,
    ) -> Answer[ForkResult]:
        """How a kept fork differs from the state that it began with."""
        return await self.request("GET", f"/v1/fork/{quoted(id)}")

    async def delete_fork(
        self,
        id: str,
    ) -> Answer[dict[str, Any]]:
        """Forgets a kept fork before its time is over."""
        return await self.request("DELETE", f"/v1/fork/{quoted(id)}")

    async def change_fork(
        self,
        id: str,
        body: ForkChangesRequest,
        *,
        namespace: str | None = None,
    ) -> Answer[ForkResult]:
        """Makes further changes on a kept fork, and runs it on. What is refused changes nothing."""
        return await self.request("POST", f"/v1/fork/{quoted(id)}/changes", query={"namespace": namespace}, body=body)

    async def advance_fork(
        self,
        id: str,
        body: ForkAdvanceRequest,
    ) -> Answer[ForkResult]:
        """Lets time pass on the clock of a kept fork: a week in all."""
        return await self.request("POST", f"/v1/fork/{quoted(id)}/advance", body=body)

    async def event_causes(
        self,
        id: str,
        *,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[EventChain]:
        """What an event followed from, and what that followed from, nearest first: at most 256 facts, 16 steps
        away."""
        return await self.request("GET", f"/v1/event/{quoted(id)}/causes", query={"stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of})

    async def event_effects(
        self,
        id: str,
        *,
        stale: bool | None = None,
        consistent: bool | None = None,
        min_index: int | None = None,
        as_of: str | None = None,
    ) -> Answer[EventChain]:
        """What followed from an event, and what followed from that, nearest first: at most 256 facts, 16 steps
        away."""
        return await self.request("GET", f"/v1/event/{quoted(id)}/effects", query={"stale": stale, "consistent": consistent, "min_index": min_index, "as_of": as_of})
