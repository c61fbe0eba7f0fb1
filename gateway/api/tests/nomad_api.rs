//! The types of Nomad's API, compared with its description: a field that is renamed, dropped or invented fails here.
//!
//! `nomad/api-types.json` is what other people's clients were written for. A type here may lack a field only if it is
//! named below, with the reason.

use std::collections::BTreeSet;
use std::fmt;

use model::document::input;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, Visitor};
use serde_json::{Value, json};

const NOMAD_API: &str = include_str!("../nomad/api-types.json");
const ADDITIONS: &str = include_str!("../nomad/openapi.json");

/// Fields of Nomad's API that are not there.
const ABSENT: &[(&str, &str)] = &[
    // What servers know of volumes besides what was registered: `CSIVolumeDetail` and `HostVolumeDetail` add it.
    ("CSIVolume", "Allocations"),
    ("CSIVolume", "ControllerRequired"),
    ("CSIVolume", "ControllersExpected"),
    ("CSIVolume", "ControllersHealthy"),
    ("CSIVolume", "CreateIndex"),
    ("CSIVolume", "CreateTime"),
    ("CSIVolume", "ModifyIndex"),
    ("CSIVolume", "ModifyTime"),
    ("CSIVolume", "NodesExpected"),
    ("CSIVolume", "NodesHealthy"),
    ("CSIVolume", "Provider"),
    ("CSIVolume", "ProviderVersion"),
    ("CSIVolume", "ReadAllocs"),
    ("CSIVolume", "ResourceExhausted"),
    ("CSIVolume", "Schedulable"),
    ("CSIVolume", "WriteAllocs"),
    ("HostVolume", "Allocations"),
    ("HostVolume", "CreateIndex"),
    ("HostVolume", "CreateTime"),
    ("HostVolume", "ModifyIndex"),
    ("HostVolume", "ModifyTime"),
    // What servers read in the rules: `AclPolicyRead` adds it.
    ("ACLPolicy", "RulesJSON"),
    // Of the enterprise edition.
    ("OperatorHealthReply", "OptimisticFailureTolerance"),
    ("OperatorHealthReply", "ReadReplicas"),
    ("OperatorHealthReply", "RedundancyZones"),
    ("OperatorHealthReply", "Upgrade"),
];

/// Catches the names of the fields that a type reads.
struct Catch<'a>(&'a mut BTreeSet<String>);

#[derive(Debug, thiserror::Error)]
#[error("the names are known now")]
struct Caught;

impl de::Error for Caught {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Caught
    }
}

impl<'de> Deserializer<'de> for Catch<'_> {
    type Error = Caught;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Caught> {
        Err(Caught)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Caught> {
        self.0.extend(fields.iter().map(ToString::to_string));
        Err(Caught)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn own<'de, T: Deserialize<'de>>() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let caught = T::deserialize(Catch(&mut fields));
    assert!(caught.is_err(), "nothing was there to read");
    fields
}

/// The fields of a type: those that servers and clients exchange, and all that its description names.
fn described(description: &Value, name: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let kind = &description["types"][name];
    let fields = kind["fields"].as_array().unwrap_or_else(|| panic!("{name} is no type of the description"));
    let named = |field: &Value| field["name"].as_str().unwrap().to_string();
    let exchanged = fields.iter().filter(|field| field["side"] != "client_only").map(named).collect();
    let envelope = kind["also_accepts"].as_array().into_iter().flatten();
    let envelope = envelope.map(|name| name.as_str().unwrap().to_string());
    (exchanged, fields.iter().map(named).chain(envelope).collect())
}

fn excused(name: &str) -> BTreeSet<String> {
    ABSENT.iter().filter(|(kind, _)| *kind == name).map(|(_, field)| field.to_string()).collect()
}

/// What a field is in JSON when there is nothing in it, where that is not null: lists and maps that servers always make,
/// and times that have not come.
const EMPTY: &[(&str, &str, &str)] = &[
    ("AllocatedResources", "TaskLifecycles", "{}"),
    ("AllocationMetric", "ResourcesExhausted", "{}"),
    ("CSIPlugin", "Allocations", "[]"),
    ("CSIPlugin", "Controllers", "{}"),
    ("CSIPlugin", "Nodes", "{}"),
    ("CSIVolumeListStub", "ResourceExhausted", "\"0001-01-01T00:00:00Z\""),
    ("GaugeValue", "Labels", "{}"),
    ("JobScaleStatusResponse", "TaskGroups", "{}"),
    ("JobSummary", "Summary", "{}"),
    ("MetricsSummary", "Counters", "[]"),
    ("MetricsSummary", "Gauges", "[]"),
    ("MetricsSummary", "Points", "[]"),
    ("MetricsSummary", "Samples", "[]"),
    ("Node", "HostVolumes", "{}"),
    ("Node", "Links", "{}"),
    ("NodeEvent", "Details", "{}"),
    ("NodeListStub", "HostVolumes", "{}"),
    ("SampledValue", "Labels", "{}"),
    ("TaskEvent", "Details", "{}"),
    ("TaskState", "FinishedAt", "null"),
    ("TaskState", "LastRestart", "null"),
    ("TaskState", "StartedAt", "null"),
];

macro_rules! held {
    ($types:ident $zeros:ident $empties:ident $($path:path { $($name:ident)+ })+) => {
        fn $types() -> Vec<(&'static str, BTreeSet<String>)> {
            vec![$($({
                use $path as place;
                (stringify!($name), own::<place::$name>())
            },)+)+]
        }

        fn $empties() -> Vec<(&'static str, Value)> {
            vec![$($({
                use $path as place;
                (stringify!($name), serde_json::to_value(place::$name::default()).unwrap())
            },)+)+]
        }

        fn $zeros() -> Vec<String> {
            let mut wrong = Vec::new();
            $($({
                use $path as place;
                wrong.extend(misread_zeros::<place::$name>(stringify!($name)));
            })+)+
            wrong
        }
    };
}

/// The places of a type at which null is not read as what is left out.
fn misread_zeros<T: DeserializeOwned + fmt::Debug>(name: &str) -> Vec<String> {
    let read = |text: Value| {
        input::from_value::<T>(text).map(|read| format!("{read:?}")).map_err(|error| error.to_string())
    };
    let mut wrong = Vec::new();
    if read(Value::Null) != read(json!({})) {
        wrong.push(format!("{name}: {:?}", read(Value::Null)));
    }
    for field in own::<T>() {
        let holding = |value: Value| read(json!({ &field: value }));
        if holding(Value::Null) != read(json!({})) {
            wrong.push(format!("{name}.{field}: {:?}", holding(Value::Null)));
        }
        // Only what is a list takes one, and only what is a map or an object takes those.
        for (empty, null) in [(json!([]), json!([null])), (json!({}), json!({"1": null}))] {
            if let (Ok(_), Err(error)) = (holding(empty), holding(null)) {
                wrong.push(format!("{name}.{field}: {error}"));
            }
        }
    }
    wrong
}

#[test]
fn null_is_read_as_what_is_left_out() {
    let wrong = [zeros(), our_zeros()].concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

held! {
    types zeros empties
    api {
        ACLAuthMethodListStub ACLBindingRuleListStub ACLLoginRequest ACLOIDCAuthURLRequest ACLOIDCAuthURLResponse
        ACLOIDCCompleteAuthRequest ACLPolicyListStub ACLTokenListStub OneTimeToken OneTimeTokenExchangeRequest OneTimeTokenExchangeResponse
        AgentHealth AgentHealthResponse AgentMember AgentSchedulerWorkerConfigRequest
        AgentSchedulerWorkerConfigResponse AgentSelf AllocFileInfo AllocResourceUsage
        AllocSignalRequest AllocStopResponse AllocationRestartRequest AutopilotConfiguration
        CpuStats DeploymentAllocHealthRequest DeploymentFailRequest DeploymentPauseRequest
        DeploymentPromoteRequest DeploymentUpdateResponse DeviceGroupStats DeviceStats DrainSpec
        EvalCountResponse EvalDeleteRequest EvalDeleteResponse EvalOptions Event Events FieldDiff FuzzyMatch FuzzySearchRequest
        FuzzySearchResponse GaugeValue GenericResponse HostCPUStats HostDiskStats HostMemoryStats
        HostStats JobAction JobChildrenSummary JobDeregisterResponse JobDiff JobDispatchRequest
        JobDispatchResponse JobEvaluateRequest JobListStub JobPlanRequest JobPlanResponse
        JobRegisterRequest JobRegisterResponse JobRevertRequest JobScaleStatusResponse
        JobStabilityRequest JobStabilityResponse JobStatusesAlloc JobStatusesDeployment
        JobStatusesJob JobStatusesLatestDeployment JobStatusesRequest JobSummary JobTagResponse
        JobValidateRequest JobValidateResponse JobVersionsResponse JobsParseRequest
        KeyringRequest KeyringResponse LeadershipTransferResponse MemoryStats MetricsSummary NamespacedID NodeDrainUpdateResponse
        NodeEligibilityUpdateResponse NodeListStub NodePurgeResponse NodeServerInfo
        NodeUpdateDrainRequest NodeUpdateEligibilityRequest ObjectDiff OperatorHealthReply
        PointValue PreemptionConfig RaftConfiguration RaftServer ResourceUsage RootKeyMeta SampledValue
        ScalingPolicyListStub ScalingRequest SchedulerConfiguration SchedulerConfigurationResponse
        SchedulerSetConfigurationResponse SearchRequest SearchResponse ServerHealth ServerMembers
        StatObject StatValue StreamFrame TagVersionRequest TaskDiff TaskGroupDiff
        TaskGroupScaleStatus TaskGroupSummary TaskResourceUsage
        CSIPlugin CSIPluginListStub CSIVolumeListStub CSIVolumeRegisterRequest CSIVolumeRegisterResponse
        CSISnapshot CSISnapshotCreateRequest CSISnapshotCreateResponse CSISnapshotListResponse
        CSIVolumeCreateRequest CSIVolumeCreateResponse CSIVolumeExternalStub CSIVolumeListExternalResponse
        Variable VariableMetadata VariableLock
        DiskUsage HostData HostDataResponse HostVolumeDeleteResponse HostVolumeRegisterRequest HostVolumeStub
    }
    model::document {
        ACLAuthMethod ACLAuthMethodConfig ACLBindingRule OIDCClientAssertion OIDCClientAssertionKey
        ACLPolicy ACLRole ACLRolePolicyLink ACLToken ACLTokenRoleLink JobACL
        Action Affinity AllocDeploymentStatus AllocNetworkStatus AllocState AllocatedCpuResources
        AllocatedDeviceResource AllocatedMemoryResources AllocatedResources AllocatedSharedResources
        AllocatedTaskResources Allocation AllocationListStub AllocationMetric Attribute CNIConfig
        CSIControllerInfo CSIInfo CSIMountOptions CSINodeInfo CSITopology CSITopologyRequest
        CSIVolume CSIVolumeCapability ChangeScript CheckRestart Constraint Consul ConsulConnect
        ConsulExposeConfig ConsulExposePath ConsulGateway ConsulGatewayBindAddress
        ConsulGatewayProxy ConsulGatewayTLSConfig ConsulGatewayTLSSDSConfig
        ConsulHTTPHeaderModifiers ConsulIngressConfigEntry ConsulIngressListener
        ConsulIngressService ConsulLinkedService ConsulMeshConfigEntry ConsulMeshGateway
        ConsulProxy ConsulSidecarService ConsulTerminatingConfigEntry ConsulTransparentProxy
        ConsulUpstream DNSConfig Deployment DeploymentState DesiredTransition DesiredUpdates
        DisconnectStrategy DispatchPayloadConfig DrainMetadata DrainStrategy DriverInfo
        EphemeralDisk Evaluation EvaluationStub HostNetworkInfo HostVolume HostVolumeCapability
        HostVolumeInfo Job JobSubmission JobUIConfig JobUILink JobVersionTag LogConfig
        MigrateStrategy Multiregion MultiregionRegion MultiregionStrategy NUMAResource Namespace
        NamespaceCapabilities NamespaceConsulConfiguration NamespaceNodePoolConfiguration
        NamespaceVaultConfiguration NetworkResource Node NodeCpuResources NodeDevice
        NodeDeviceLocality NodeDeviceResource NodeDiskResources NodeEvent NodeMemoryResources
        NodeNetworkAddress NodeNetworkResource NodePool NodePoolSchedulerConfiguration
        NodeProcessorResources NodeReservedCpuResources NodeReservedDiskResources
        NodeReservedMemoryResources NodeReservedNetworkResources NodeReservedResources NodeResources
        NodeScoreMeta NumaCore NumaTopology ParameterizedJobConfig PeriodicConfig PlanAnnotations
        Port PortMapping RequestedDevice RescheduleEvent ReschedulePolicy RescheduleTracker
        Resources RestartPolicy ScalingEvent ScalingPolicy Secret Service ServiceCheck
        ServiceWeights SidecarTask Spread SpreadTarget Task TaskArtifact TaskCSIPluginConfig
        TaskEvent TaskGroup TaskLifecycle TaskSchedule TaskScheduleCron TaskState Template
        UpdateStrategy Vault VolumeMount VolumeRequest WaitConfig WorkloadIdentity
    }
}

held! {
    our_types our_zeros our_empties
    api {
        AllocWhy AllocationHistory AllocationTransition ChainFact Decision DecisionAgain DecisionsAgain PlacementAgain DeploymentGroup DeploymentWhy DisconnectNow
        DispatchNow EvalWhy EventChain EventCursor EventCursorAckRequest EventCursorPosition EventCursorRequest
        EventCursorResetRequest EventCursorShare EventSink EventSinkRequest FactCause ForkAdd ForkAdvanceRequest ForkChange ForkChangesRequest ForkDown ForkRequest ForkScale GroupNow GroupOnNode HistoryLine
        HistoryArchive HistoryDropped HistoryFileVerified HistoryKept HistoryStorage HistoryVerified JobWhy KeptDocument KeptHistory Link MissingSlot NodeWhy ObjectHistory Requester
        RescheduleNow Room SchedulerScan TaskNow Wait JobDoctor DoctorFinding DoctorGroup AclAccess UpgradeRaised UpgradeServer UpgradeStatus VariableVersion VariableErasure ErasurePending WhyNot
    }
    model::document {
        ForkAllocation ForkCounts ForkDeployment ForkFree ForkGroup ForkKept ForkResult ForkRoom ForkUnplaced
        GroupReasons Lack NearMiss Reconnect
    }
}

/// Every other list and map is null when it is empty, as Nomad's description says.
#[test]
fn what_is_empty_has_the_form_that_nomad_gives_it() {
    let description: Value = serde_json::from_str(NOMAD_API).unwrap();
    let mut wrong = Vec::new();
    for (name, empty) in empties().into_iter().chain(our_empties()) {
        let named: Vec<_> = EMPTY.iter().filter(|(kind, ..)| *kind == name).collect();
        for (_, field, form) in &named {
            let wanted: Value = serde_json::from_str(form).unwrap();
            if empty[*field] != wanted {
                wrong.push(format!("{name}.{field} is {}, not {form}", empty[*field]));
            }
        }
        for field in description["types"][name]["fields"].as_array().into_iter().flatten() {
            let (field, kind) = (field["name"].as_str().unwrap(), field["type"].as_str().unwrap());
            let collects = kind.starts_with("list<") || kind.starts_with("map<");
            let left_out = empty.get(field).is_none_or(Value::is_null);
            if collects && !left_out && named.iter().all(|(_, known, _)| *known != field) {
                wrong.push(format!("{name}.{field} is {} when it is empty", empty[field]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fields of ours in types of Nomad's. They are left out when they are empty, so that nobody sees them who does not ask.
const ADDED: [(&str, &str); 2] = [("NetworkResource", "Isolation"), ("Multiregion", "Rollout")];

#[test]
fn every_field_is_one_of_nomads() {
    let description: Value = serde_json::from_str(NOMAD_API).unwrap();
    let mut wrong = Vec::new();
    for (name, own) in types() {
        let (exchanged, named) = described(&description, name);
        let absent = excused(name);
        let missing = exchanged.difference(&own).filter(|field| !absent.contains(*field));
        wrong.extend(missing.map(|field| format!("{name} lacks {field}")));
        let invented = own.difference(&named).filter(|field| !ADDED.contains(&(name, field.as_str())));
        wrong.extend(invented.map(|field| format!("{name} invents {field}")));
        wrong
            .extend(absent.intersection(&own).map(|field| format!("{name} has {field}: it needs no excuse")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is ours is described by us, in the document that servers give out.
#[test]
fn every_field_that_is_ours_is_described() {
    let described: Value = serde_json::from_str(ADDITIONS).unwrap();
    let schemas = described["components"]["schemas"].as_object().unwrap();
    let ours = our_types();
    assert!(ours.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>().iter().eq(schemas.keys()));
    for (name, own) in ours {
        let properties = schemas[name]["properties"].as_object().unwrap();
        assert!(own.iter().eq(properties.keys().collect::<BTreeSet<_>>()), "{name}: {own:?}");
    }
}
