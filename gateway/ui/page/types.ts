// What the page reads of the API's documents.

export interface Counts {
  Queued: number;
  Complete: number;
  Failed: number;
  Running: number;
  Starting: number;
  Lost: number;
  Unknown: number;
}

export interface JobStub {
  ID: string;
  ParentID: string;
  Name: string;
  Namespace: string;
  Type: string;
  Priority: number;
  Periodic: boolean;
  ParameterizedJob: boolean;
  Stop: boolean;
  Status: string;
  StatusDescription: string;
  NodePool: string;
  SubmitTime: number;
  JobSummary: { Summary: Record<string, Counts>; Children: { Pending: number; Running: number; Dead: number } | null };
}

export interface Job {
  ID: string;
  Namespace: string;
  Type: string;
  Priority: number;
  Status: string;
  Stop: boolean;
  Version: number;
  Stable: boolean;
  SubmitTime: number;
  JobModifyIndex: number;
  NodePool: string;
  Datacenters: string[] | null;
  Periodic: { Spec: string; Enabled: boolean } | null;
  ParameterizedJob: { Payload: string; MetaRequired: string[] | null; MetaOptional: string[] | null } | null;
  Dispatched: boolean;
  ParentID: string;
  Meta: Record<string, string> | null;
  TaskGroups: { Name: string; Count: number; Tasks: { Name: string; Driver: string }[] }[] | null;
}

export interface TaskEvent {
  Type: string;
  Time: number;
  DisplayMessage: string;
}

export interface TaskState {
  State: string;
  Failed: boolean;
  Restarts: number;
  StartedAt: string | null;
  FinishedAt: string | null;
  Events: TaskEvent[] | null;
}

export interface Alloc {
  ID: string;
  EvalID: string;
  Name: string;
  Namespace: string;
  NodeID: string;
  NodeName: string;
  JobID: string;
  JobVersion?: number;
  TaskGroup: string;
  DesiredStatus: string;
  DesiredDescription?: string;
  ClientStatus: string;
  ClientDescription?: string;
  DeploymentID?: string;
  DeploymentStatus?: { Healthy: boolean | null; Canary: boolean } | null;
  PreviousAllocation?: string;
  NextAllocation?: string;
  TaskStates: Record<string, TaskState> | null;
  CreateTime: number;
  ModifyTime: number;
  CreateIndex: number;
  ModifyIndex: number;
  AllocatedResources?: {
    Tasks: Record<string, { Cpu: { CpuShares: number }; Memory: { MemoryMB: number } }> | null;
    Shared: {
      DiskMB: number;
      Ports: { Label: string; Value: number; HostIP: string; To?: number }[] | null;
    };
  } | null;
  Job?: Job;
}

export interface Eval {
  ID: string;
  Namespace: string;
  JobID?: string;
  NodeID?: string;
  DeploymentID?: string;
  Type: string;
  Priority: number;
  TriggeredBy: string;
  Status: string;
  StatusDescription?: string;
  PreviousEval?: string;
  NextEval?: string;
  BlockedEval?: string;
  QueuedAllocations?: Record<string, number> | null;
  FailedTGAllocs?: Record<string, unknown> | null;
  SnapshotIndex?: number;
  CreateTime: number;
  ModifyTime: number;
}

export interface Deployment {
  ID: string;
  JobID: string;
  Namespace: string;
  JobVersion: number;
  Status: string;
  StatusDescription: string;
  CreateTime: number;
  TaskGroups: Record<
    string,
    {
      DesiredCanaries: number;
      PlacedCanaries: string[] | null;
      DesiredTotal: number;
      PlacedAllocs: number;
      HealthyAllocs: number;
      UnhealthyAllocs: number;
      Promoted: boolean;
    }
  > | null;
}

export interface Resources {
  Cpu: { CpuShares: number };
  Memory: { MemoryMB: number };
  Disk: { DiskMB: number };
}

export interface NodeStub {
  ID: string;
  Name: string;
  Address: string;
  Datacenter: string;
  NodeClass: string;
  NodePool: string;
  Version: string;
  Drain: boolean;
  SchedulingEligibility: string;
  Status: string;
  StatusDescription: string;
  NodeResources?: Resources | null;
  ReservedResources?: Resources | null;
}

export interface Node extends NodeStub {
  HTTPAddr: string;
  Attributes: Record<string, string> | null;
  Meta: Record<string, string> | null;
  Drivers: Record<string, { Detected: boolean; Healthy: boolean; HealthDescription: string }> | null;
  Events: { Message: string; Subsystem: string; Timestamp: string }[] | null;
  HostVolumes: Record<string, { Path: string; ReadOnly: boolean }> | null;
}

export interface FieldDiff {
  Type: string;
  Name: string;
  Old: string;
  New: string;
}

export interface Diff {
  Type: string;
  ID?: string;
  Name?: string;
  Fields: FieldDiff[] | null;
  Objects: Diff[] | null;
  TaskGroups?: Diff[] | null;
  Tasks?: Diff[] | null;
  Updates?: Record<string, number> | null;
}

export interface Transition {
  Index: number;
  Ordinal: number;
  Time: string;
  Event?: string;
  Object?: string;
  OldClient?: string;
  NewClient?: string;
  NewDesired?: string;
  Actor: string;
  Cause?: string;
  Description: string;
}
