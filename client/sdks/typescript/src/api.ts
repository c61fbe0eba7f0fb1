// Written by `generate` from the OpenAPI file: change that, and run it again.
import { type Answer, type Given, quoted } from "./answer.js";

/** What a caller may do: `write`, `read` or nothing of each. With `Management` everything. `AccessorID` is that of the token, or the node or allocation whose identity was presented. Ours. */
export interface AclAccess {
  AccessorID: string;
  Name: string;
  Management: boolean;
  Policies: string[];
  Agent: string;
  Node: string;
  Operator: string;
}

/** The answer of `GET /v1/allocation/:id/explain`. */
export interface AllocWhy {
  /** Why it is only approximate; left out where it is not. */
  Approximate: string;
  ID: string;
  Name: string;
  JobID: string;
  Namespace: string;
  JobVersion: number;
  NodeID: string;
  NodeName: string;
  DesiredStatus: string;
  DesiredDescription: string;
  ClientStatus: string;
  ClientDescription: string;
  Decision: Decision;
  /** What the group's first placement of that plan saw: the node that won, and those after it. */
  Placed: Record<string, unknown> | null;
  /** Names of the nodes that have scores. */
  NodeNames: Record<string, string> | null;
  /** What its node says about its tasks, by name. */
  Tasks: Record<string, TaskNow> | null;
  /** Null for an allocation that is never rescheduled. */
  Reschedule: RescheduleNow | null;
  /** Null for a group without a disconnect block. */
  Disconnect: DisconnectNow | null;
  DeploymentID: string;
  /** Null while it is not known. */
  Healthy: boolean | null;
  /** Allocations that were stopped to make room for it. */
  Preempted: Link[] | null;
  /** The allocation that it was stopped for. */
  PreemptedBy: Link | null;
  /** It has been forgotten: this is read from the log, as far back as that is kept. */
  Collected: boolean;
  /** From the first one to the last, this one among them. */
  Chain: Link[] | null;
  Transitions: AllocationTransition[] | null;
  WaitsFor: Wait[] | null;
}

/** The answer of `GET /v1/allocation/:id/history`: oldest first. */
export interface AllocationHistory {
  ID: string;
  Transitions: AllocationTransition[] | null;
  /** There is more, and older, than what is shown. */
  CutShort: boolean;
}

/** One fact that the servers decided about an allocation, or accepted from its node. */
export interface AllocationTransition {
  /** The batch, and the event's place in it: together the id of the event in the stream. */
  Index: number;
  Ordinal: number;
  /** The servers' time, never the node's. */
  Time: string;
  /** Empty for the transition that created the allocation. */
  OldDesired: string;
  NewDesired: string;
  OldClient: string;
  NewClient: string;
  /** Who brought it about: a caller, a node, a controller. */
  Actor: string;
  Requester: Requester;
  /** Why: the evaluation, the missed heartbeat, the report. */
  Cause: string;
  Description: string;
  /** The choice between the allocation and the other one, where this is what came of it; null elsewhere, and where the log does not reach back to what it was made on. It is made again from the log. */
  Reconnect: Reconnect | null;
}

/** A fact in the log, with what it followed from. */
export interface ChainFact {
  /** `INDEX:ORDINAL`: the batch, and the place of the fact in it. */
  ID: string;
  Index: number;
  Ordinal: number;
  /** The servers' time, never the node's. */
  Time: string;
  /** The kind of fact, as the log names it. */
  Event: string;
  /** What it is about: `job/default/web`, `node/ID`. */
  Object: string;
  /** Who brought it about: a caller, a node, a controller. */
  Actor: string;
  Requester: Requester;
  /** The name of the request; empty where it has none. */
  RequestID: string;
  Command: string;
  /** What happened, in words. */
  Description: string;
  /** Steps from what was asked about. */
  Depth: number;
  Causes: FactCause[] | null;
  /** Where it followed from nothing in the log: `request`, `deadline`, or `gone` for what is no longer kept. Else empty. */
  Root: string;
}

/** What a decision was made of, and whether it could be made again. */
export interface Decision {
  /** The evaluation it was made for; another one where this evaluation only waits for what that one left over. */
  EvalID: string;
  /** The state that was looked at. */
  Snapshot: number;
  Time: string;
  /** What chance was drawn from: a whole number, as text because clients round large ones. */
  Seed: string;
  Recomputed: boolean;
  /** The plan came out as it stands in the log; null where there is nothing to compare with. */
  AsLogged: boolean | null;
  /** Why it was not made again, or what to know about it. */
  Note: string;
}

/** A decision that comes out differently, or could not be made again. */
export interface DecisionAgain {
  /** Of the batch that has it, and of the state that it was made on. */
  Index: number;
  Snapshot: number;
  EvalID: string;
  Namespace: string;
  JobID: string;
  TriggeredBy: string;
  /** False for one that could not be made again, for the reason that is given. */
  Made: boolean;
  /** As far as it is known. */
  Reason: string;
  /** Allocations that are placed elsewhere, or by one of the two only. */
  Placements: PlacementAgain[] | null;
  /** What else differs, in words. */
  Changes: string[] | null;
  /** There are more placements. */
  CutShort: boolean;
}

/** The decisions of a part of the log, made again by the server that answers. */
export interface DecisionsAgain {
  /** After which index it began, and with which it ended. */
  From: number;
  To: number;
  /** The newest index there is. */
  Newest: number;
  /** Decisions that the log has there: those that come out the same, those that do not, and those that could not be made again. */
  Decisions: number;
  Same: number;
  Differing: number;
  NotMade: number;
  /** Those that differ or could not be made again, by index. */
  Differences: DecisionAgain[] | null;
  /** There are more; the counts are of all. */
  CutShort: boolean;
}

/** How far a deployment is with one group. */
export interface DeploymentGroup {
  DesiredCanaries: number;
  HealthyCanaries: number;
  DesiredTotal: number;
  Placed: number;
  Healthy: number;
  Unhealthy: number;
  Promoted: boolean;
  AutoPromote: boolean;
  AutoRevert: boolean;
  /** The deployment fails unless something becomes healthy by then; null without a limit. */
  RequireProgressBy: string | null;
}

/** The answer of `GET /v1/deployment/:id/explain`. */
export interface DeploymentWhy {
  /** Why it is only approximate; left out where it is not. */
  Approximate: string;
  ID: string;
  JobID: string;
  Namespace: string;
  JobVersion: number;
  Status: string;
  StatusDescription: string;
  Groups: Record<string, DeploymentGroup> | null;
  /** Allocations of it that are unhealthy, the first of them. */
  Unhealthy: Link[] | null;
  WaitsFor: Wait[] | null;
}

/** What happens when an allocation's node disconnects. */
export interface DisconnectNow {
  /** It is given up then; zero when at once. */
  LostAfter: number;
  /** A replacement is placed meanwhile. */
  Replace: boolean;
  /** How to choose between it and its replacement. */
  Reconcile: string;
  /** When it is given up, if its node is disconnected now. */
  LostAt: string | null;
}

/** What a dispatch of a parameterized job takes. */
export interface DispatchNow {
  /** `required`, `optional` or `forbidden`. */
  Payload: string;
  MetaRequired: string[] | null;
  MetaOptional: string[] | null;
}

/** A block or an attribute of a job that this release does not do. */
export interface DoctorFinding {
  /** Empty outside of a group. */
  Group: string;
  /** Empty outside of a task. */
  Task: string;
  /** As a job file calls it. */
  What: string;
  Effect: string;
  /** What becomes of it, in words. */
  Text: string;
}

/** Why a group could not be placed. */
export interface DoctorGroup {
  /** No node may run it, however much room there is. */
  NeverPlaced: boolean;
  /** `AllocationMetric` of Nomad's API. */
  Failed: Record<string, unknown>;
}

/** A server that may still be able to open what was forgotten. Ours. */
export interface ErasurePending {
  ID: string;
  /** Empty while no other server knows it. */
  Name: string;
}

/** The answer of `GET /v1/evaluation/:id/explain`. */
export interface EvalWhy {
  /** Why it is only approximate; left out where it is not. */
  Approximate: string;
  ID: string;
  JobID: string;
  Namespace: string;
  TriggeredBy: string;
  Status: string;
  StatusDescription: string;
  Decision: Decision;
  Groups: Record<string, GroupReasons> | null;
  WaitsFor: Wait[] | null;
}

/** The answer of `GET /v1/event/:id/causes` and `/effects`: facts that led to each other, nearest first. */
export interface EventChain {
  /** What was asked about: an event, a fact or a request. */
  ID: string;
  /** The trace that a sink of traces sends this under. Empty where some of what led to it is hidden. */
  TraceID: string;
  Facts: ChainFact[] | null;
  /** There is more than was followed. */
  CutShort: boolean;
  /** The log no longer has some of it. */
  Gone: boolean;
  /** Facts that were reached and that the caller may not see. What lies behind them was not followed. */
  Hidden: number;
}

/** A durable cursor of the event stream. */
export interface EventCursor {
  Name: string;
  /** Everything without one. */
  Topics: string[];
  Namespace: string;
  Filter: string;
  /** Where it began, as it was asked for. */
  From: string;
  Reader: string;
  TTL: string;
  /** When it is deleted unless somebody uses it. */
  Expires: string;
  /** The id of the last event that was acknowledged; an index stands for all of its events. */
  Position: string;
  PositionIndex: number;
  /** Batches after the position that are about something else than cursors. */
  LagBatches: number;
  /** How long ago the oldest of those was made; 0 without one. */
  LagSeconds: number;
  /** The oldest index that can still be read. */
  OldestIndex: number;
  /** What follows the position is no longer kept. */
  Gap: boolean;
  AckedAt: string;
  /** As the log names who asked: `token:ACCESSOR`. */
  AckedBy: string;
  CreateIndex: number;
  ModifyIndex: number;
  CreateTime: string;
  /** Among how many readers it is split; 0 when it is not. `Position` is then that of the last of them. */
  Members: number;
  /** How far each of those readers has come. */
  Shares: EventCursorShare[];
}

/** What a reader has done with. */
export interface EventCursorAckRequest {
  /** The id of the last event; of a checkpoint too. */
  ID?: string;
  /** Of a cursor that is split: which of its readers has done with it. */
  Member?: number;
}

/** Where a cursor is. */
export interface EventCursorPosition {
  /** The id of the last event that was acknowledged. */
  Position: string;
  /** The index of the change, or the newest without one. */
  Index: number;
}

/** What a cursor is to give. */
export interface EventCursorRequest {
  /** Where a new cursor begins, as `from` of the stream; `now` without it. One that exists stays where it is, and began there if this is given. */
  From?: string;
  /** `Topic` or `Topic:key`; everything without one. */
  Topics?: string[];
  /** `default` unless given; `*` for all. */
  Namespace?: string;
  /** As `filter` of the stream. */
  Filter?: string;
  /** The accessor of the token that may acknowledge besides operators. */
  Reader?: string;
  /** A span like `72h`: the cursor is deleted when it was not used for so long. Never without it. */
  TTL?: string;
  /** Among how many readers a new cursor is split, at most 64, so that all events of a job go to the same one. 1: not split. Of one that exists: as it is, or nothing. */
  Members?: number;
}

/** Where a cursor is to be. */
export interface EventCursorResetRequest {
  /** As `from` of the stream. */
  To?: string;
  /** Splits it among so many readers, who all begin there; 1 joins it again. `To` may be left out then: it stays where it is. */
  Members?: number;
}

/** How far one of the readers has come that a cursor is split among. */
export interface EventCursorShare {
  /** From 0. */
  Member: number;
  /** The id of the last event that it has acknowledged. */
  Position: string;
  PositionIndex: number;
  /** Batches after its position, whether or not they are for it. */
  LagBatches: number;
  LagSeconds: number;
  /** What follows its position is no longer kept. */
  Gap: boolean;
  AckedAt: string;
  AckedBy: string;
}

/** A sink of the event stream. */
export interface EventSink {
  Name: string;
  /** `webhook`, `nats`, `kafka`, `file`, `syslog` or `otlp`. */
  Kind: string;
  /** Of a webhook, or of a collector of OpenTelemetry. */
  URL: string;
  /** Of a collector: `logs` or `traces`. */
  Signal: string;
  /** `HOST:PORT` of a NATS or syslog server; of brokers of Kafka, one or several with commas. */
  Address: string;
  /** Of the messages in NATS; of Kafka the topic. */
  Subject: string;
  /** NATS: nothing is sent without TLS. Where it is not set, what the server asks for. Kafka: whether brokers speak TLS. */
  TLS: boolean;
  /** Of syslog: `udp`, `tcp` or `tls`; `tcp` unless given. */
  Transport: string;
  /** Of syslog: `local0` unless given. */
  Facility: string;
  /** Of syslog: `sojourn` unless given. */
  AppName: string;
  /** A file that would be longer is put aside; 64 MiB unless given. */
  MaxBytes: number;
  /** Files that are kept, the one being written included; 4 unless given. */
  MaxFiles: number;
  /** The path of the variable whose items authorise and sign. */
  SecretVariable: string;
  /** Its namespace; `default` unless given. */
  SecretNamespace: string;
  /** After so many failures of one event nothing is sent until somebody says so; 10 unless given. */
  MaxAttempts: number;
  /** How long one attempt may take; 30 s unless given. */
  Timeout: string;
  /** Where a new sink begins, as `from` of the stream. */
  From: string;
  /** Everything without one. */
  Topics: string[];
  /** `default` unless given; `*` for all. */
  Namespace: string;
  /** As `filter` of the stream. */
  Filter: string;
  /** `running`, `paused` or `parked`. */
  Status: string;
  /** The event that did not get through, of a parked sink. */
  ParkedEvent: string;
  ParkedAttempts: number;
  ParkedReason: string;
  ParkedAt: string;
  /** The cursor that keeps where it is. */
  Cursor: string;
  /** The id of the last event that is known to have arrived; an index stands for all of its events. */
  Position: string;
  /** As of cursors. */
  LagBatches: number;
  /** As of cursors. */
  LagSeconds: number;
  AckedAt: string;
  /** The server that answers leads, and sends: what follows is known to it alone, and counts since it leads. */
  Reported: boolean;
  Sent: number;
  /** Attempts that failed. */
  Failures: number;
  /** Attempts that failed for the event that it tries to send. */
  FailedAttempts: number;
  /** When that is tried again. */
  NextAttemptAt: string;
  /** Of the last attempt that failed, even if it went better after that. */
  LastFailureEvent: string;
  LastFailureReason: string;
  LastFailureAt: string;
  CreateIndex: number;
  ModifyIndex: number;
}

/** Where events are to go. What is not of the kind is refused. */
export interface EventSinkRequest {
  /** `webhook`, `nats`, `kafka`, `file`, `syslog` or `otlp`. */
  Kind?: string;
  /** Of a webhook, or of a collector of OpenTelemetry. */
  URL?: string;
  /** Of a collector: `logs` or `traces`; `logs` unless given. */
  Signal?: string;
  /** `HOST:PORT` of a NATS or syslog server; of brokers of Kafka, one or several with commas. */
  Address?: string;
  /** Of the messages in NATS; of Kafka the topic. */
  Subject?: string;
  /** NATS: nothing is sent without TLS. Where it is not set, what the server asks for. Kafka: whether brokers speak TLS. */
  TLS?: boolean;
  /** Of syslog: `udp`, `tcp` or `tls`; `tcp` unless given. */
  Transport?: string;
  /** Of syslog: `local0` unless given. */
  Facility?: string;
  /** Of syslog: `sojourn` unless given. */
  AppName?: string;
  /** A file that would be longer is put aside; 64 MiB unless given. */
  MaxBytes?: number;
  /** Files that are kept, the one being written included; 4 unless given. */
  MaxFiles?: number;
  /** The path of the variable whose items authorise and sign. */
  SecretVariable?: string;
  /** Its namespace; `default` unless given. */
  SecretNamespace?: string;
  /** After so many failures of one event nothing is sent until somebody says so; 10 unless given. */
  MaxAttempts?: number;
  /** How long one attempt may take; 30 s unless given. */
  Timeout?: string;
  /** Where a new sink begins, as `from` of the stream. */
  From?: string;
  /** Everything without one. */
  Topics?: string[];
  /** `default` unless given; `*` for all. */
  Namespace?: string;
  /** As `filter` of the stream. */
  Filter?: string;
}

/** A fact that led to another. */
export interface FactCause {
  ID: string;
  /** What the link is derived from: `command`, `evaluation`, `plan`, `previous evaluation`, `allocation`, `report`, `health`, `drain` or `job`. */
  How: string;
}

/** Nodes that join, with nothing on them. */
export interface ForkAdd {
  /** The node that they are like. */
  like?: string;
  /** How many; one unless given. */
  count?: number | null;
}

/** The body of `POST /v1/fork/:id/advance`. */
export interface ForkAdvanceRequest {
  /** How much time passes on its clock: `1h`. */
  by?: string;
}

/** What became of an allocation. The ids of allocations that exist on the fork only are not shown. */
export interface ForkAllocation {
  /** Empty for one that is new. */
  ID: string;
  Name: string;
  Namespace: string;
  JobID: string;
  /** The node that it was on; empty for one that is new. */
  FromNodeID: string;
  FromNodeName: string;
  /** The node that it, or what took its place, is on; empty without one. */
  ToNodeID: string;
  ToNodeName: string;
  /** Why it left, in the scheduler's words. */
  Cause: string;
}

/** One change. It has exactly one field. */
export interface ForkChange {
  /** A node to drain. Nodes are named by their id, the beginning of it, or their name. */
  drain?: string | null;
  down?: ForkDown | null;
  add?: ForkAdd | null;
  /** A job to register, as `POST /v1/jobs` takes it. */
  job?: Record<string, unknown> | null;
  /** A job to stop. */
  stop?: string | null;
  scale?: ForkScale | null;
  /** The configuration of the scheduler, as a whole. */
  scheduler?: Record<string, unknown> | null;
}

/** The body of `POST /v1/fork/:id/changes`. */
export interface ForkChangesRequest {
  /** Made in this order. */
  changes?: ForkChange[] | null;
  /** As in ForkRequest. */
  until?: string;
}

/** How many there are of each. */
export interface ForkCounts {
  Placed: number;
  Moved: number;
  Replaced: number;
  UpdatedInPlace: number;
  Stopped: number;
  Lost: number;
  Preempted: number;
  /** Allocations of nodes that may still return. */
  Unknown: number;
  /** Allocations without a node, of the groups that `Unplaced` has. */
  Unplaced: number;
  /** Allocations that had no node before either. */
  UnplacedBefore: number;
  /** Groups that `Violated` has, and deployments that failed. */
  Violated: number;
}

/** A deployment as it is in the end. */
export interface ForkDeployment {
  Namespace: string;
  JobID: string;
  JobVersion: number;
  Status: string;
  StatusDescription: string;
  /** It failed on the fork. */
  Failed: boolean;
}

/** Nodes that fall silent: one of the two. */
export interface ForkDown {
  node?: string;
  /** All nodes of a datacenter. */
  datacenter?: string;
}

/** What is free in a datacenter, before and after. */
export interface ForkFree {
  /** Empty for all of them together. */
  Datacenter: string;
  Before: ForkRoom;
  After: ForkRoom;
}

/** A group of which fewer were running than its `migrate` and `update` blocks allow. */
export interface ForkGroup {
  Namespace: string;
  JobID: string;
  Group: string;
  /** As many as the group's count says, in the end. */
  Wanted: number;
  /** Its count less `max_parallel`. */
  Allowed: number;
  RunningBefore: number;
  /** At the worst moment. */
  Lowest: number;
  RunningAfter: number;
}

/** A fork that a server keeps, to be read and to go on from. */
export interface ForkKept {
  ID: string;
  /** The token that it was made with; empty without access control. */
  AccessorID: string;
  Created: string;
  /** When it is forgotten, and how long that is from now. */
  Expires: string;
  /** In nanoseconds. */
  Remaining: number;
  /** The index of the state that it began with, and that of the state it has come to. */
  Index: number;
  ForkIndex: number;
  /** The time on its clock, and how much of it has passed. */
  Time: string;
  /** In nanoseconds. */
  VirtualTime: number;
  /** Changes that were made. */
  Changes: number;
  /** Allocations that it changed or added. */
  Allocations: number;
  EndedBy: string;
  Counts: ForkCounts;
}

/** The body of `POST /v1/fork`. */
export interface ForkRequest {
  /** The moment to begin with; empty: now. */
  as_of?: string;
  /** Made in this order. */
  changes?: ForkChange[] | null;
  /** `quiet`, or how much time passes on the fork: `1h`. Empty: `quiet`. */
  until?: string;
  /** How long the fork is kept: `1h`. Empty: it is not. */
  ttl?: string;
}

/** How a fork ended, compared with the state that it began with. */
export interface ForkResult {
  /** The state that it began with, and the time that it then was on the fork. */
  Index: number;
  Time: string;
  /** Nothing is left to be done or waited for. */
  Quiet: boolean;
  /** `quiet`, `until`, `paused`, or the bound that was reached: `steps`, `evaluations`, `allocations`, `time`, `duration`. */
  EndedBy: string;
  /** How long it took on the fork's clock: tasks start and stop in no time there. In nanoseconds. */
  VirtualTime: number;
  /** Commands that were decided, and evaluations that were scheduled. */
  Steps: number;
  Evaluations: number;
  Counts: ForkCounts;
  /** Allocations that run and take no other's place. */
  Placed: ForkAllocation[] | null;
  /** Allocations that run on another node than before. */
  Moved: ForkAllocation[] | null;
  /** Allocations of which another one took the place on the same node. */
  Replaced: ForkAllocation[] | null;
  /** Allocations that were stopped, without another one in their place. */
  Stopped: ForkAllocation[] | null;
  /** Allocations that their node took with it, without another one in their place. */
  Lost: ForkAllocation[] | null;
  /** Allocations that had to make room for others, wherever they run then. */
  Preempted: ForkAllocation[] | null;
  /** Groups that lack more allocations than before for want of a node, and those of the jobs that were changed. */
  Unplaced: ForkUnplaced[] | null;
  /** Groups of which too few were running at some moment. */
  Violated: ForkGroup[] | null;
  /** Deployments that failed, began, or are still under way. */
  Deployments: ForkDeployment[] | null;
  /** Free resources of nodes that take work, by datacenter. */
  Free: ForkFree[] | null;
  FreeTotal: ForkFree;
  /** What the result does not say. */
  Notes: string[] | null;
  /** A list names the first of its items only; the counts are of all. */
  CutShort: boolean;
  /** Of a fork that is kept; null for others. */
  Kept: ForkKept | null;
}

/** What nodes have that are ready, eligible and not drained. */
export interface ForkRoom {
  Nodes: number;
  CPU: number;
  FreeCPU: number;
  MemoryMB: number;
  FreeMemoryMB: number;
}

/** A group that gets another count. */
export interface ForkScale {
  job?: string;
  group?: string;
  count?: number | null;
}

/** A group with allocations that no node takes. */
export interface ForkUnplaced {
  Namespace: string;
  JobID: string;
  Group: string;
  Before: number;
  After: number;
  /** What the first of them saw: nodes ruled out, resources exhausted. `AllocationMetric` of Nomad's v1 API. */
  Failed: Record<string, unknown>;
}

/** How a group's allocations are. */
export interface GroupNow {
  /** Zero for jobs that run on every node. */
  Wanted: number;
  Running: number;
  Starting: number;
  Queued: number;
  Unknown: number;
  Failed: number;
  Lost: number;
  Complete: number;
  /** Names of the group that no allocation holds, the first of them. */
  Missing: MissingSlot[] | null;
}

/** A group of a job, and what stands in the way of one more allocation of it on a node. */
export interface GroupOnNode {
  Group: string;
  /** Allocations of it that are there. */
  There: number;
  /** Allocations of it that take room anywhere. */
  Everywhere: number;
  /** Empty when it could go there. */
  Lacks: Lack[] | null;
}

/** What a decision found out about one group. */
export interface GroupReasons {
  /** What was to become of its allocations, in numbers. */
  Desired: Record<string, unknown>;
  /** What the first placement saw: best scores, nodes ruled out. */
  Placed: Record<string, unknown> | null;
  /** What the first allocation saw that found no place. */
  Failed: Record<string, unknown> | null;
  /** Allocations that found no place. */
  Missing: number;
  /** Their names: the first of them, each once. */
  MissingNames: string[] | null;
  /** The version of the job that they would have run, where it is not the current one. */
  OlderVersion: number | null;
  /** Nodes that the cluster had. */
  Nodes: number;
  /** Nodes that came closest to taking one more, the closest first. */
  Nearest: NearMiss[] | null;
  /** Allocations whose nodes came back, each against a replacement. */
  Reconnects: Reconnect[] | null;
  /** Single changes that would give every missing allocation a place. Each was tried out. */
  WouldFitIf: string[] | null;
  /** How many changes were tried. */
  Tried: number;
  /** More changes may help: looking for them was cut short. */
  HintsCutShort: boolean;
}

/** What was removed from the log, compressed. */
export interface HistoryArchive {
  /** Files that lead on to the log without a gap, their bytes, and how many they have when they are not compressed. */
  Files: number;
  Bytes: number;
  RawBytes: number;
  /** Null for as many as the disk takes. */
  MaxBytes: number | null;
  /** The oldest index in them; 0 without a file. */
  OldestIndex: number;
  /** Files before a gap, which are not read, and their bytes. */
  ApartFiles: number;
  ApartBytes: number;
  /** Names of files that are not as they were written. */
  Damaged: string[] | null;
  /** Why a segment could not be archived the last time; empty if it could. */
  Failed: string;
}

/** What a server said in the log when it last dropped the oldest part of its history. */
export interface HistoryDropped {
  Server: string;
  /** The oldest index that it can read since, and its time. */
  OldestIndex: number;
  OldestTime: string | null;
  /** The index of the fact that says so. */
  Index: number;
}

/** The answer of `GET /v1/operator/history/verify`: a file of history was read and is whole. */
export interface HistoryFileVerified {
  Name: string;
  /** The indexes in it; the last is below the first when there are none. */
  FirstIndex: number;
  LastIndex: number;
  FirstTime: string;
  LastTime: string;
  /** On disk, and of its records. */
  Bytes: number;
  RawBytes: number;
  /** Where the log stands before and after it. The next file begins with what this one ends with. */
  Begins: string;
  Ends: string;
}

/** Facts of chosen kinds that are older than all history in the log and the archive. */
export interface HistoryKept {
  /** What is kept of history that leaves from now on: `history.keep` in the configuration. */
  Kinds: string[] | null;
  /** What there is, oldest first. */
  Parts: KeptHistory[] | null;
  /** The files with it, their bytes, and how many they have when they are not compressed. */
  Files: number;
  Bytes: number;
  RawBytes: number;
  MaxBytes: number;
  /** Names of files that are not as they were written. */
  Damaged: string[] | null;
  /** Why nothing could be kept the last time; empty if it could. */
  Failed: string;
}

/** One fact about an object. */
export interface HistoryLine {
  /** The batch, and the event's place in it. */
  Index: number;
  Ordinal: number;
  /** The servers' time, never the node's. */
  Time: string;
  /** The kind of event, as the log names it. */
  Event: string;
  /** What it is about: `job/default/web`, `node/ID`. */
  Object: string;
  /** Who brought it about: a caller, a node, a controller. */
  Actor: string;
  Requester: Requester;
  /** What happened, in words. */
  Description: string;
}

/** The answer of `GET /v1/operator/history`: how much history the server has that answers, and where. */
export interface HistoryStorage {
  /** The name of the server: each keeps its own. */
  Server: string;
  /** The oldest index that can be read, its time, and the newest. */
  OldestIndex: number;
  OldestTime: string | null;
  NewestIndex: number;
  /** How long history stays in the log, and how many bytes of it at most: `history` in the configuration. */
  MinAge: string;
  MaxBytes: number;
  /** The segments of the log, their bytes on disk, and the oldest index in them. */
  Segments: number;
  SegmentBytes: number;
  LogOldestIndex: number;
  /** Null without one. */
  Archive: HistoryArchive | null;
  /** What is kept of older facts; null where nothing is. */
  Kept: HistoryKept | null;
  /** From where on servers have history that dropped what was before, as the log has it. */
  Dropped: HistoryDropped[] | null;
}

/** The answer of `GET /v1/history/verify`: a part of the log was folded again. */
export interface HistoryVerified {
  /** After which index it began, and with which it ended. */
  From: number;
  To: number;
  /** The newest index there is. */
  Newest: number;
  Batches: number;
  Events: number;
  Bytes: number;
  /** Of each table of the state after the last batch, in hexadecimal digits: equal states have equal ones, on every server. */
  Digests: Record<string, string> | null;
}

/** The answer of `PUT /v1/jobs/doctor`. */
export interface JobDoctor {
  /** Nodes that the cluster has. */
  Nodes: number;
  /** Why the job could not be registered, besides what the findings say. */
  Errors: string[] | null;
  /** As registering it would answer. */
  Warnings: string[] | null;
  /** Blocks and attributes that this release does not do. */
  Findings: DoctorFinding[] | null;
  /** Groups that could not be placed completely now. */
  Groups: Record<string, DoctorGroup> | null;
}

/** The answer of `GET /v1/job/:id/explain`. */
export interface JobWhy {
  /** Why it is only approximate; left out where it is not. */
  Approximate: string;
  ID: string;
  Namespace: string;
  Type: string;
  Status: string;
  Stopped: boolean;
  Groups: Record<string, GroupNow> | null;
  WaitsFor: Wait[] | null;
  /** The newest deployment of the version that is current. */
  Deployment: DeploymentWhy | null;
  /** When a periodic job is launched next; null for others, and for one that is stopped or not enabled. */
  NextLaunch: string | null;
  /** How a parameterized job is dispatched; null for others. */
  Dispatch: DispatchNow | null;
  /** The newest decision about the job; none while no scheduler has looked at it. */
  Evaluation: EvalWhy | null;
}

/** A job as it was after a fact, without what followed from other objects, as its status does. */
export interface KeptDocument {
  Index: number;
  /** The job, as Nomad's API has jobs. Null where it was purged. */
  Document: Record<string, unknown> | null;
}

/** A part of the log of which facts of some kinds are kept. */
export interface KeptHistory {
  FirstIndex: number;
  LastIndex: number;
  /** Of the first and of the last batch that is left; null where none is. */
  FirstTime: string | null;
  LastTime: string | null;
  /** `job`, `variable` and so on. */
  Kinds: string[] | null;
  Facts: number;
}

/** One thing that a node lacks or that excludes it. The numbers are zero where there is nothing to count. */
export interface Lack {
  /** `cpu`, `memory`, `disk`, or what stands in the way, as a statement about the node. */
  What: string;
  /** `MHz` or `MiB`. */
  Unit: string;
  Asked: number;
  Free: number;
  /** How much is missing. */
  Short: number;
  /** How much of what is not free belongs to allocations that are being stopped there. */
  Stopping: number;
}

/** One of a row of allocations that took each other's place. */
export interface Link {
  ID: string;
  NodeName: string;
  DesiredStatus: string;
  ClientStatus: string;
  DesiredDescription: string;
  /** What its tasks ended with, if they did not end well. */
  Trouble: string;
}

/** A name of a group that no allocation holds now. */
export interface MissingSlot {
  Name: string;
  /** The last allocation that held it; null when there was none. */
  Last: Link | null;
  /** Why nothing has taken its place. */
  Why: string;
  /** When it is replaced, if that waits for a time. */
  Until: string | null;
}

/** A node that did not do, and all that stands in the way. */
export interface NearMiss {
  NodeID: string;
  NodeName: string;
  Lacks: Lack[] | null;
}

/** The answer of `GET /v1/node/:id/explain`. */
export interface NodeWhy {
  /** Why it is only approximate; left out where it is not. */
  Approximate: string;
  ID: string;
  Name: string;
  Status: string;
  Eligibility: string;
  /** It may be given new work. */
  TakesWork: boolean;
  /** Why it takes no work, as statements about the node. */
  Obstacles: string[] | null;
  Room: Room[] | null;
  Running: number;
  Starting: number;
  Stopping: number;
  Unknown: number;
  WaitsFor: Wait[] | null;
  /** What the node and the servers said about it, the newest first. */
  Messages: (Record<string, unknown>)[] | null;
}

/** The answer of `GET /v1/job|node|evaluation|deployment/:id/history`, and of `GET /v1/history` (without an id): oldest first. */
export interface ObjectHistory {
  ID: string;
  Lines: HistoryLine[] | null;
  /** There is more, and older, than what is shown. */
  CutShort: boolean;
  /** From this index on every fact is there. What is older is gone, but for what `Kept` names. */
  WholeFrom: number;
  /** Of which older parts of the log which kinds of facts are kept, oldest first. Between them nothing is. */
  Kept: KeptHistory[] | null;
  /** With `documents`, of a job alone: what each of its facts left of which the state is gone, as far as they say. The newest 500. */
  Documents: KeptDocument[] | null;
}

/** Where an allocation is placed by the log, and where it would be now; empty where it is not. */
export interface PlacementAgain {
  ID: string;
  LoggedNodeID: string;
  LoggedNodeName: string;
  NodeID: string;
  NodeName: string;
}

/** The choice between an allocation that came back and its replacement. */
export interface Reconnect {
  /** Ids of the two allocations. */
  Original: string;
  Replacement: string;
  /** As the job has it. */
  Strategy: string;
  /** The scores that they were placed with; null where none is known. */
  OriginalScore: number | null;
  ReplacementScore: number | null;
  /** The original stays and the replacement is stopped; else the other way around. */
  KeepsOriginal: boolean;
  Why: string;
}

/** Somebody who is no part of the cluster, as far as the server knew that took the call. */
export interface Requester {
  /** The public id of the access token; empty without one. */
  AccessorID: string;
  /** The name of the token; may be empty. */
  Name: string;
  /** Where the call came from; empty where that is not known. */
  Address: string;
  /** The program, as it named itself in the header `User-Agent`; empty where it did not. */
  Agent: string;
}

/** How an allocation is replaced when it fails. */
export interface RescheduleNow {
  /** In words. */
  Policy: string;
  Attempts: number;
  /** Within the interval of the policy; null without a limit. */
  AttemptsMax: number | null;
  /** When it is replaced; null when nothing is to be replaced. */
  Next: string | null;
  /** Why it is not replaced although it failed; empty otherwise. */
  WhyNot: string;
}

/** How much of one resource a node has. */
export interface Room {
  What: string;
  Unit: string;
  Capacity: number;
  Used: number;
  /** How much of what is used belongs to allocations that are being stopped. */
  Stopping: number;
}

/** Which nodes the scheduler looks at: `all` of them, or a `sample` as Nomad does. Ours; only with `sample` has `NodeLimitForFeasibilityChecks` an effect. */
export interface SchedulerScan {
  Scan?: string;
}

/** What a node says about a task. */
export interface TaskNow {
  State: string;
  Failed: boolean;
  Restarts: number;
  /** Of the last time that it ended; null when it has not. */
  ExitCode: number | null;
  /** The newest event that says what went wrong: an exit code, a failed hook, a driver's error. */
  Trouble: string;
}

/** The cluster's epoch after an upgrade was finished. */
export interface UpgradeRaised {
  Epoch: number;
  Raised: boolean;
  Index: number;
}

/** A server of the raft cluster, and its release. Epoch 0: it is not known. */
export interface UpgradeServer {
  ID: string;
  Name: string;
  Address: string;
  Version: string;
  Epoch: number;
  Status: string;
  Voter: boolean;
}

/** How far an upgrade of the servers has come. */
export interface UpgradeStatus {
  Epoch: number;
  Next: number;
  Newest: number;
  Finished: boolean;
  Problems: string[];
  Servers: UpgradeServer[];
}

/** How far it is with the erasure of a variable, a token or an auth method that was forgotten: these have no namespace, and the path `acl-token/ID` or `acl-auth-method/NAME`. Ours. */
export interface VariableErasure {
  Namespace: string;
  Path: string;
  /** The index at which it was forgotten. */
  ForgottenAt: number;
  /** No server can open any more what the variable held. */
  Complete: boolean;
  /** Servers that have not said so yet. */
  Pending: ErasurePending[];
  /** What was written before this index is encrypted with a root key, which stays. Left out where nothing was. */
  KeptBefore: number;
}

/** One of the versions that are kept of a variable, without its items. `AccessorID` and `Author` are of the token of who set it. Ours. */
export interface VariableVersion {
  Version: number;
  ModifyIndex: number;
  /** Nanoseconds since 1970. */
  ModifyTime: number;
  AccessorID: string;
  Author: string;
}

/** Something that has to happen before the job goes on. */
export interface Wait {
  What: string;
  EvalID: string;
  /** When it ends by itself; null when it does not. */
  Until: string | null;
}

/** The answer of `GET /v1/node/:id/explain/:job`: why none of it is placed on a node. */
export interface WhyNot {
  /** Why it is only approximate; left out where it is not. */
  Approximate: string;
  JobID: string;
  /** The job was stopped, so nothing of it is placed anywhere. */
  Stopped: boolean;
  NodeID: string;
  NodeName: string;
  Groups: GroupOnNode[] | null;
}

/** What Sojourn adds to Nomad's API, a method each. */
export abstract class Operations {
  abstract request<T>(method: string, path: string, given?: Given): Promise<Answer<T>>;

  /** Why the job is where it is, or nowhere, and what would help. */
  explainJob(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<JobWhy>> {
    return this.request("GET", `/v1/job/${quoted(id)}/explain`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** Why an evaluation came out as it did: decided again on the state it saw. */
  explainEvaluation(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<EvalWhy>> {
    return this.request("GET", `/v1/evaluation/${quoted(id)}/explain`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** Why an allocation is on its node, and what became of it. */
  explainAllocation(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<AllocWhy>> {
    return this.request("GET", `/v1/allocation/${quoted(id)}/explain`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** How far a deployment is, what it waits for, or why it failed. */
  explainDeployment(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<DeploymentWhy>> {
    return this.request("GET", `/v1/deployment/${quoted(id)}/explain`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** Whether a node takes work, why not, and what it waits for. */
  explainNode(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<NodeWhy>> {
    return this.request("GET", `/v1/node/${quoted(id)}/explain`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** What stands in the way of one more allocation of each group of a job on a node. */
  explainJobOnNode(id: string, job: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<WhyNot>> {
    return this.request("GET", `/v1/node/${quoted(id)}/explain/${quoted(job)}`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** What of a job works on the cluster as it is. Nothing is registered. */
  doctorJob(body: Record<string, unknown>, options: { namespace?: string } = {}): Promise<Answer<JobDoctor>> {
    return this.request("PUT", `/v1/jobs/doctor`, { query: { "namespace": options.namespace }, body });
  }

  /** Every fact of the log, oldest first, with who brought it about. It takes a management token. */
  history(options: { since?: string; perPage?: number; nextToken?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string } = {}): Promise<Answer<ObjectHistory>> {
    return this.request("GET", `/v1/history`, { query: { "since": options.since, "per_page": options.perPage, "next_token": options.nextToken, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf } });
  }

  /** Folds a part of the log again and compares what it leads to with what was published. It takes a management token. */
  verifyHistory(options: { since?: string } = {}): Promise<Answer<HistoryVerified>> {
    return this.request("GET", `/v1/history/verify`, { query: { "since": options.since } });
  }

  /** Makes the decisions of a part of the log again with this server's scheduler and compares them with the log. It takes a management token. */
  decideAgain(options: { since?: string; algorithm?: string } = {}): Promise<Answer<DecisionsAgain>> {
    return this.request("GET", `/v1/history/decisions`, { query: { "since": options.since, "algorithm": options.algorithm } });
  }

  /** Every fact about an allocation, oldest first. */
  allocationHistory(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; namespace?: string } = {}): Promise<Answer<AllocationHistory>> {
    return this.request("GET", `/v1/allocation/${quoted(id)}/history`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "namespace": options.namespace } });
  }

  /** Every fact about a job, oldest first. */
  jobHistory(id: string, options: { documents?: boolean; index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; namespace?: string } = {}): Promise<Answer<ObjectHistory>> {
    return this.request("GET", `/v1/job/${quoted(id)}/history`, { query: { "documents": options.documents, "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "namespace": options.namespace } });
  }

  /** Every fact about a node, oldest first. */
  nodeHistory(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; namespace?: string } = {}): Promise<Answer<ObjectHistory>> {
    return this.request("GET", `/v1/node/${quoted(id)}/history`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "namespace": options.namespace } });
  }

  /** Every fact about an evaluation, oldest first. */
  evaluationHistory(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; namespace?: string } = {}): Promise<Answer<ObjectHistory>> {
    return this.request("GET", `/v1/evaluation/${quoted(id)}/history`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "namespace": options.namespace } });
  }

  /** Every fact about a deployment, oldest first. */
  deploymentHistory(id: string, options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; namespace?: string } = {}): Promise<Answer<ObjectHistory>> {
    return this.request("GET", `/v1/deployment/${quoted(id)}/history`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "namespace": options.namespace } });
  }

  /** How much history the server has that answers, and where. It takes operator:read. */
  historyStorage(): Promise<Answer<HistoryStorage>> {
    return this.request("GET", `/v1/operator/history`);
  }

  /** Reads the file of history that an index is in, in the log or in the archive of the server that answers, and compares all of it with its checksums and the chain of the log. It takes operator:read. */
  verifyHistoryFile(options: { from: number; kept?: boolean }): Promise<Answer<HistoryFileVerified>> {
    return this.request("GET", `/v1/operator/history/verify`, { query: { "from": options.from, "kept": options.kept } });
  }

  /** A copy of the file of history that an index is in, compressed. The header X-Sojourn-Next-Index has the index to ask with for the next file. It takes a management token. */
  exportHistoryFile(options: { from: number; kept?: boolean }): Promise<Answer<Uint8Array>> {
    return this.request("GET", `/v1/operator/history/export`, { query: { "from": options.from, "kept": options.kept }, raw: true });
  }

  /** Whether the scheduler looks at all nodes or at a sample. */
  schedulerScan(options: { index?: number; wait?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string; fork?: string; namespace?: string } = {}): Promise<Answer<SchedulerScan>> {
    return this.request("GET", `/v1/operator/scheduler/scan`, { query: { "index": options.index, "wait": options.wait, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf, "fork": options.fork, "namespace": options.namespace } });
  }

  /** Sets it. */
  setSchedulerScan(body: SchedulerScan, options: { requestId?: string } = {}): Promise<Answer<void>> {
    return this.request("PUT", `/v1/operator/scheduler/scan`, { headers: { "X-Sojourn-Request-Id": options.requestId }, body });
  }

  /** How far an upgrade of the servers has come: their releases, and what the cluster writes. Needs `operator:read`. */
  upgradeStatus(): Promise<Answer<UpgradeStatus>> {
    return this.request("GET", `/v1/operator/upgrade`);
  }

  /** Let the cluster write what every server knows; no older release can follow from then on. Needs `operator:write`. */
  finishUpgrade(): Promise<Answer<UpgradeRaised>> {
    return this.request("PUT", `/v1/operator/upgrade`);
  }

  /** Who the caller is to this cluster, and what they may do, in coarse words. */
  access(): Promise<Answer<AclAccess>> {
    return this.request("GET", `/v1/acl/access`);
  }

  /** The durable cursors of the event stream, and how far each is behind. Needs `operator:read`. */
  listCursors(options: { prefix?: string; index?: number } = {}): Promise<Answer<EventCursor[]>> {
    return this.request("GET", `/v1/event/cursors`, { query: { "prefix": options.prefix, "index": options.index } });
  }

  /** One cursor. Needs `operator:read`, or the token that it names as its reader. */
  readCursor(id: string, options: { index?: number } = {}): Promise<Answer<EventCursor>> {
    return this.request("GET", `/v1/event/cursor/${quoted(id)}`, { query: { "index": options.index } });
  }

  /** Creates a cursor, or changes what it gives; where it is stays then. Needs `operator:write`. */
  setCursor(id: string, body: EventCursorRequest): Promise<Answer<EventCursor>> {
    return this.request("PUT", `/v1/event/cursor/${quoted(id)}`, { body });
  }

  /** Deletes a cursor. Needs `operator:write`. */
  deleteCursor(id: string): Promise<Answer<void>> {
    return this.request("DELETE", `/v1/event/cursor/${quoted(id)}`);
  }

  /** Moves a cursor on, after what its reader has done with; what lies before it changes nothing. The answer comes when that is committed. Needs the rights to read what the cursor gives, and `operator:write` or the token that it names as its reader. */
  ackCursor(id: string, body: EventCursorAckRequest): Promise<Answer<EventCursorPosition>> {
    return this.request("POST", `/v1/event/cursor/${quoted(id)}/ack`, { body });
  }

  /** Puts a cursor anywhere that is still kept, also back. Needs `operator:write`. */
  resetCursor(id: string, body: EventCursorResetRequest): Promise<Answer<EventCursorPosition>> {
    return this.request("POST", `/v1/event/cursor/${quoted(id)}/reset`, { body });
  }

  /** The sinks of the event stream, where each is and whether it sends. Needs `operator:read`. */
  listSinks(options: { prefix?: string; index?: number } = {}): Promise<Answer<EventSink[]>> {
    return this.request("GET", `/v1/event/sinks`, { query: { "prefix": options.prefix, "index": options.index } });
  }

  /** One sink. Needs `operator:read`. */
  readSink(id: string, options: { index?: number } = {}): Promise<Answer<EventSink>> {
    return this.request("GET", `/v1/event/sink/${quoted(id)}`, { query: { "index": options.index } });
  }

  /** Makes a sink with its cursor, or changes them; where it is and whether it sends stays then. Needs a management token. */
  setSink(id: string, body: EventSinkRequest): Promise<Answer<EventSink>> {
    return this.request("PUT", `/v1/event/sink/${quoted(id)}`, { body });
  }

  /** Deletes a sink and its cursor. Needs a management token. */
  deleteSink(id: string): Promise<Answer<void>> {
    return this.request("DELETE", `/v1/event/sink/${quoted(id)}`);
  }

  /** Sends nothing until it is resumed. Needs `operator:write`. */
  pauseSink(id: string): Promise<Answer<EventSink>> {
    return this.request("POST", `/v1/event/sink/${quoted(id)}/pause`);
  }

  /** Sends again what is paused or parked, from where the cursor is. Needs `operator:write`. */
  resumeSink(id: string): Promise<Answer<EventSink>> {
    return this.request("POST", `/v1/event/sink/${quoted(id)}/resume`);
  }

  /** The same as `resume`. Needs `operator:write`. */
  retrySink(id: string): Promise<Answer<EventSink>> {
    return this.request("POST", `/v1/event/sink/${quoted(id)}/retry`);
  }

  /** Gives up the event that a sink is parked at, and goes on behind it. Needs `operator:write`. */
  skipSink(id: string): Promise<Answer<EventSink>> {
    return this.request("POST", `/v1/event/sink/${quoted(id)}/skip`);
  }

  /** What Nomad has at this path, and besides, with `forgotten`: how far it is with the erasure of auth methods of this name that were forgotten, the newest first. */
  readAuthMethod(name: string, options: { forgotten?: boolean } = {}): Promise<Answer<Record<string, unknown> | VariableErasure[]>> {
    return this.request("GET", `/v1/acl/auth-method/${quoted(name)}`, { query: { "forgotten": options.forgotten } });
  }

  /** What Nomad has at this path, and besides, with `forget`: the key of its secrets is erased on all servers. Needs a management token. */
  deleteAuthMethod(name: string, options: { forget?: boolean } = {}): Promise<Answer<VariableErasure>> {
    return this.request("DELETE", `/v1/acl/auth-method/${quoted(name)}`, { query: { "forget": options.forget } });
  }

  /** What Nomad has at this path, and besides, with `forgotten`: how far it is with the erasure of tokens of this name that were forgotten, the newest first. */
  readAclToken(accessor: string, options: { forgotten?: boolean } = {}): Promise<Answer<Record<string, unknown> | VariableErasure[]>> {
    return this.request("GET", `/v1/acl/token/${quoted(accessor)}`, { query: { "forgotten": options.forgotten } });
  }

  /** What Nomad has at this path, and besides, with `forget`: the key of its secrets is erased on all servers. Needs a management token. */
  deleteAclToken(accessor: string, options: { forget?: boolean } = {}): Promise<Answer<VariableErasure>> {
    return this.request("DELETE", `/v1/acl/token/${quoted(accessor)}`, { query: { "forget": options.forget } });
  }

  /** What Nomad has at this path, and besides: the versions of a variable that are kept, the newest first (`versions`), or what one of them held (`version`). Needs `read` on the path. The versions of a variable that was deleted are gone. With `forgotten`: how far it is with the erasure of the variables of this name that were forgotten, the newest first; needs `list`. */
  readVariable(path: string, options: { versions?: boolean; version?: number; forgotten?: boolean } = {}): Promise<Answer<Record<string, unknown> | VariableVersion[] | VariableErasure[]>> {
    return this.request("GET", `/v1/var/${quoted(path)}`, { query: { "versions": options.versions, "version": options.version, "forgotten": options.forgotten } });
  }

  /** What Nomad has at this path, and besides, with `forget`: the variable is deleted, if it is there, and the key of everything that it ever held is erased on all servers. Needs `destroy` on the path. */
  deleteVariable(path: string, options: { forget?: boolean } = {}): Promise<Answer<VariableErasure | null>> {
    return this.request("DELETE", `/v1/var/${quoted(path)}`, { query: { "forget": options.forget } });
  }

  /** What changes would lead to: the scheduler and the controllers run on a fork of the state until nothing is left to be done. Nothing is written. */
  whatIf(body: ForkRequest, options: { namespace?: string; stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string } = {}): Promise<Answer<ForkResult>> {
    return this.request("POST", `/v1/fork`, { query: { "namespace": options.namespace, "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf }, body });
  }

  /** The kept forks that the caller made; all of them for a management token. */
  listForks(): Promise<Answer<ForkKept[]>> {
    return this.request("GET", `/v1/forks`);
  }

  /** How a kept fork differs from the state that it began with. */
  readFork(id: string): Promise<Answer<ForkResult>> {
    return this.request("GET", `/v1/fork/${quoted(id)}`);
  }

  /** Forgets a kept fork before its time is over. */
  deleteFork(id: string): Promise<Answer<Record<string, unknown>>> {
    return this.request("DELETE", `/v1/fork/${quoted(id)}`);
  }

  /** Makes further changes on a kept fork, and runs it on. What is refused changes nothing. */
  changeFork(id: string, body: ForkChangesRequest, options: { namespace?: string } = {}): Promise<Answer<ForkResult>> {
    return this.request("POST", `/v1/fork/${quoted(id)}/changes`, { query: { "namespace": options.namespace }, body });
  }

  /** Lets time pass on the clock of a kept fork: a week in all. */
  advanceFork(id: string, body: ForkAdvanceRequest): Promise<Answer<ForkResult>> {
    return this.request("POST", `/v1/fork/${quoted(id)}/advance`, { body });
  }

  /** What an event followed from, and what that followed from, nearest first: at most 256 facts, 16 steps away. */
  eventCauses(id: string, options: { stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string } = {}): Promise<Answer<EventChain>> {
    return this.request("GET", `/v1/event/${quoted(id)}/causes`, { query: { "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf } });
  }

  /** What followed from an event, and what followed from that, nearest first: at most 256 facts, 16 steps away. */
  eventEffects(id: string, options: { stale?: boolean; consistent?: boolean; minIndex?: number; asOf?: string } = {}): Promise<Answer<EventChain>> {
    return this.request("GET", `/v1/event/${quoted(id)}/effects`, { query: { "stale": options.stale, "consistent": options.consistent, "min_index": options.minIndex, "as_of": options.asOf } });
  }
}
