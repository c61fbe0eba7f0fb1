//! The types of the contract, held against its own description: a field that is renamed, dropped or invented fails here.
//!
//! `contract/api-types.json` is what other people's clients were written for. A type here may lack a field only if it is
//! named below, with the reason.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::Value;

const CONTRACT: &str = include_str!("../contract/api-types.json");

/// Fields of the contract that are not there, and why.
const ABSENT: &[(&str, &str, &str)] = &[];

/// Fields that are ours.
const OURS: &[(&str, &str, &str)] = &[];

/// Catches the names of the fields that a type reads.
struct Catch<'a>(&'a mut BTreeSet<String>);

#[derive(Debug)]
struct Caught;

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the names are known now")
    }
}

impl std::error::Error for Caught {}

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
    assert!(caught.is_err() && !fields.is_empty(), "a type of the contract reads fields");
    fields
}

/// What servers and clients exchange; what only the other side's own structs have is not on the wire.
fn described(contract: &Value, name: &str) -> BTreeSet<String> {
    let fields = contract["types"][name]["fields"].as_array();
    let fields = fields.unwrap_or_else(|| panic!("{name} is no type of the contract")).iter();
    let on_the_wire = fields.filter(|field| field["side"] != "client_only");
    on_the_wire.map(|field| field["name"].as_str().unwrap().to_string()).collect()
}

fn excused(list: &[(&str, &str, &str)], name: &str) -> BTreeSet<String> {
    list.iter().filter(|(kind, ..)| *kind == name).map(|(_, field, _)| field.to_string()).collect()
}

macro_rules! held_to_the_contract {
    ($($path:path { $($name:ident)+ })+) => {
        fn types() -> Vec<(&'static str, BTreeSet<String>)> {
            vec![$($({
                use $path as place;
                (stringify!($name), own::<place::$name>())
            },)+)+]
        }
    };
}

held_to_the_contract! {
    api {
        AgentHealth AgentHealthResponse AgentMember AgentSelf AllocFileInfo AllocResourceUsage
        AllocSignalRequest AllocStopResponse AllocationRestartRequest AutopilotConfiguration
        CpuStats DeploymentAllocHealthRequest DeploymentFailRequest DeploymentPauseRequest
        DeploymentPromoteRequest DeploymentUpdateResponse DeviceGroupStats DeviceStats DrainSpec
        EvalCountResponse EvalOptions Event Events FieldDiff FuzzyMatch FuzzySearchRequest
        FuzzySearchResponse GaugeValue GenericResponse HostCPUStats HostDiskStats HostMemoryStats
        HostStats JobAction JobChildrenSummary JobDeregisterResponse JobDiff JobDispatchRequest
        JobDispatchResponse JobEvaluateRequest JobListStub JobPlanRequest JobPlanResponse
        JobRegisterRequest JobRegisterResponse JobRevertRequest JobScaleStatusResponse
        JobStabilityRequest JobStabilityResponse JobStatusesAlloc JobStatusesDeployment
        JobStatusesJob JobStatusesLatestDeployment JobStatusesRequest JobSummary JobTagResponse
        JobValidateRequest JobValidateResponse JobVersionsResponse JobsParseRequest
        LeadershipTransferResponse MemoryStats MetricsSummary NamespacedID NodeDrainUpdateResponse
        NodeEligibilityUpdateResponse NodeListStub NodePurgeResponse NodeServerInfo
        NodeUpdateDrainRequest NodeUpdateEligibilityRequest ObjectDiff OperatorHealthReply
        PointValue PreemptionConfig RaftConfiguration RaftServer ResourceUsage SampledValue
        ScalingPolicyListStub ScalingRequest SchedulerConfiguration SchedulerConfigurationResponse
        SchedulerSetConfigurationResponse SearchRequest SearchResponse ServerHealth ServerMembers
        StatObject StatValue StreamFrame TagVersionRequest TaskDiff TaskGroupDiff
        TaskGroupScaleStatus TaskGroupSummary TaskResourceUsage
    }
    model::document {
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

#[test]
fn every_field_is_the_contracts() {
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    let mut wrong = Vec::new();
    for (name, own) in types() {
        let described = described(&contract, name);
        let (absent, ours) = (excused(ABSENT, name), excused(OURS, name));
        wrong.extend(
            described.difference(&own).filter(|f| !absent.contains(*f)).map(|f| format!("{name} lacks {f}")),
        );
        wrong.extend(
            own.difference(&described).filter(|f| !ours.contains(*f)).map(|f| format!("{name} invents {f}")),
        );
        wrong.extend(absent.intersection(&own).map(|f| format!("{name} has {f}: no excuse is needed")));
        wrong.extend(ours.difference(&own).map(|f| format!("{name} has no {f}: no excuse is needed")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
