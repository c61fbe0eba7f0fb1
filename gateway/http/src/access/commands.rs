//! What a write needs: one arm for each command, so that none can be forgotten.

use acl::{
    Acl, Capability as C, HostVolumeCapability, OperatorCapability as O, PoolCapability as P,
    VariableCapability as V,
};
use base::Uuid;
use model::document::{Job, TaskGroup, VolumeRequest};
use model::object::VolumeKind;
use model::{AllocId, Command, DeploymentId, VariableKey};
use state::State;

use super::{Access, denied};
use crate::error::Failure;

/// The command names an object whose namespace says who may change it, and this server does not know it.
pub(crate) fn names_unknown(state: &State, command: &Command) -> bool {
    match command {
        Command::StopAlloc { alloc, .. } => state.allocs.lookup(*alloc).is_none(),
        Command::AckEventCursor { name, .. } | Command::AckEventCursorMember { name, .. } => {
            state.cursors.get(name).is_none()
        }
        Command::PromoteDeployment { deployment, .. }
        | Command::FailDeployment { deployment }
        | Command::PauseDeployment { deployment }
        | Command::ResumeDeployment { deployment }
        | Command::UnblockDeployment { deployment }
        | Command::SetAllocHealth { deployment, .. } => state.deployments.find(*deployment).is_none(),
        _ => false,
    }
}

/// What names an object that `state` does not have is allowed to who may do it somewhere: so it must be a state in which
/// everything is that the caller can know of.
///
/// # Errors
/// 403 if the caller may not have this done.
pub(crate) fn check(access: &Access, state: &State, command: &Command) -> Result<(), Failure> {
    let acl = &*access.acl;
    let in_namespace = |namespace: &str, any: &[C]| acl.allows_any(namespace, any);
    let of_deployment = |id: DeploymentId, any: &[C]| of_deployment(acl, state, id, any);
    let allowed = match command {
        Command::RegisterJob(wanted) => may_register(acl, &wanted.job),
        Command::DeregisterJob { key, purge, .. } => {
            let fine = if *purge { C::PurgeJob } else { C::DeregisterJob };
            in_namespace(&key.namespace, &[C::SubmitJob, fine])
        }
        Command::EvaluateJob { key, .. } => in_namespace(&key.namespace, &[C::SubmitJob, C::EvaluateJob]),
        Command::RevertJob { key, .. } => in_namespace(&key.namespace, &[C::SubmitJob, C::RevertJob]),
        Command::SetJobStability { key, .. } => in_namespace(&key.namespace, &[C::SubmitJob, C::StableJob]),
        Command::DispatchJob(wanted) => in_namespace(&wanted.key.namespace, &[C::DispatchJob]),
        Command::LaunchJob { key, .. } => {
            in_namespace(&key.namespace, &[C::SubmitJob, C::DispatchJob, C::ForcePeriodicJob])
        }
        Command::ScaleJob(wanted) => in_namespace(&wanted.key.namespace, &[C::ScaleJob, C::SubmitJob]),
        Command::TagJobVersion { key, .. } | Command::UntagJobVersion { key, .. } => {
            in_namespace(&key.namespace, &[C::SubmitJob, C::TagJobVersion])
        }
        Command::StopAlloc { alloc, .. } => of_alloc(acl, state, *alloc, C::AllocLifecycle),

        Command::PromoteDeployment { deployment, .. } => {
            of_deployment(*deployment, &[C::SubmitJob, C::PromoteDeployment])
        }
        Command::FailDeployment { deployment } => {
            of_deployment(*deployment, &[C::SubmitJob, C::FailDeployment])
        }
        Command::PauseDeployment { deployment } | Command::ResumeDeployment { deployment } => {
            of_deployment(*deployment, &[C::SubmitJob, C::PauseDeployment])
        }
        Command::UnblockDeployment { deployment } => {
            of_deployment(*deployment, &[C::SubmitJob, C::UnblockDeployment])
        }
        Command::SetAllocHealth { deployment, .. } => {
            of_deployment(*deployment, &[C::SubmitJob, C::SetAllocHealthDeployment])
        }

        Command::SetNodeEligibility { .. }
        | Command::SetNodeDrain { .. }
        | Command::EvaluateNode { .. }
        | Command::DeregisterNode { .. } => acl.writes_nodes(),
        Command::UpsertNodePool(wanted) => acl.allows_pool(&wanted.name, P::Write),
        Command::DeleteNodePool { name } => acl.allows_pool(name, P::Delete),

        Command::RegisterCsiVolume { volume } => {
            in_namespace(&volume.namespace, &[C::CsiWriteVolume]) && acl.reads_plugins()
        }
        Command::RegisterHostVolume { volume } => {
            in_namespace(&volume.namespace, &[C::HostVolumeRegister, C::HostVolumeWrite])
        }
        Command::CreateHostVolume { volume } => {
            in_namespace(&volume.namespace, &[C::HostVolumeCreate, C::HostVolumeRegister, C::HostVolumeWrite])
        }
        Command::AwaitCsiExpansion { volume, .. } => in_namespace(&volume.namespace, &[C::CsiWriteVolume]),
        Command::DetachCsiClaim { volume, .. } => in_namespace(&volume.namespace, &[C::CsiMountVolume]),
        Command::DeregisterVolume { volume, .. } => match volume.kind {
            VolumeKind::Csi => in_namespace(&volume.namespace, &[C::CsiWriteVolume]),
            VolumeKind::Host => in_namespace(&volume.namespace, &[C::HostVolumeDelete, C::HostVolumeWrite]),
        },

        Command::DeregisterService { key, .. } => {
            in_namespace(&key.namespace, &[C::SubmitJob, C::DeleteServiceRegistration])
        }

        Command::SetVariable(wanted) => may_change(acl, &wanted.key, V::Write),
        Command::AcquireVariableLock(wanted) => may_change(acl, &wanted.key, V::Write),
        Command::ReleaseVariableLock { key, .. } => may_change(acl, key, V::Write),
        Command::DeleteVariable { key, .. } | Command::ForgetVariable { key, .. } => may_change(acl, key, V::Destroy),

        Command::SetAutopilot { .. }
        | Command::RaiseEpoch { .. }
        | Command::NoteDroppedHistory { .. }
        | Command::SetScheduler { .. }
        | Command::SetSampling { .. }
        | Command::SetEventCursor(_)
        | Command::ResetEventCursor { .. }
        | Command::SplitEventCursor { .. }
        | Command::DeleteEventCursor { .. }
        | Command::PauseEventSink { .. }
        | Command::ResumeEventSink { .. }
        | Command::SkipEventSink { .. } => acl.writes_operator(),
        // That it may read what the cursor gives, its route has made sure of.
        Command::AckEventCursor { name, .. } | Command::AckEventCursorMember { name, .. } => {
            acl.writes_operator() || is_reader(access, state, name)
        }
        Command::ActivateRootKey(_) => acl.allows_operator(O::KeyringRotate),
        Command::RemoveRootKey { .. } => acl.allows_operator(O::KeyringDelete),

        // The secret itself, or that there is none yet, is what lets these be done.
        Command::BootstrapAcl { .. } | Command::ExchangeOneTimeToken { .. } => true,
        // What lets this be done was proved to the route that makes it, and to no other.
        Command::IssueLoginToken(_) => true,
        Command::CreateOneTimeToken { accessor, .. } => is_own(access, *accessor),

        Command::UpsertNamespace(_)
        | Command::DeleteNamespace { .. }
        | Command::DeleteEvals { .. }
        | Command::CollectGarbage { .. }
        | Command::CollectDue { .. }
        | Command::CollectLeftovers { .. }
        | Command::UpsertAclPolicy(_)
        | Command::DeleteAclPolicy { .. }
        | Command::CreateAclRole(_)
        | Command::UpdateAclRole(_)
        | Command::DeleteAclRole { .. }
        | Command::CreateAclToken(_)
        | Command::UpdateAclToken(_)
        | Command::DeleteAclTokens { .. }
        | Command::ForgetAclToken { .. }
        | Command::CreateAuthMethod(_)
        | Command::UpdateAuthMethod(_)
        | Command::DeleteAuthMethod { .. }
        | Command::ForgetAuthMethod { .. }
        | Command::CreateBindingRule(_)
        | Command::UpdateBindingRule(_)
        | Command::DeleteBindingRule { .. }
        // It sends whatever it is asked for to wherever it is asked to, with a variable's items.
        | Command::SetEventSink(_)
        | Command::DeleteEventSink { .. } => acl.is_management(),

        // Only parts of the cluster ask for these, and never through here.
        Command::FoundCluster { .. }
        | Command::RegisterNode { .. }
        | Command::UpdateNodeStatus { .. }
        | Command::MissHeartbeat { .. }
        | Command::EmitNodeMessages { .. }
        | Command::AdvanceDrain { .. }
        | Command::UpdateAllocs { .. }
        | Command::SettleEval(_)
        | Command::FailEval { .. }
        | Command::AdvanceDeployment { .. }
        | Command::ObserveRollout(_)
        | Command::AnnounceServerKey { .. }
        | Command::SealRootKey { .. }
        | Command::CollectExpiredTokens
        | Command::CopyAuthMethod(_)
        | Command::CopyBindingRule(_)
        | Command::ExpireVariableLock { .. }
        | Command::ResealVariables { .. }
        | Command::FinishRekey
        | Command::KeyTree(_)
        | Command::RegisterServices { .. }
        | Command::DeregisterServicesOfNode { .. }
        | Command::ClaimCsiVolume { .. }
        | Command::ReleaseCsiClaim { .. }
        | Command::EndCsiExpansion { .. }
        | Command::ExpireEventCursors
        | Command::ParkEventSink(_)
        | Command::GiveStateChunk { .. }
        | Command::RestoreState { .. }
        | Command::Observe(_)
        | Command::NoteObservationGap(_) => false,
    };
    if allowed { Ok(()) } else { Err(denied()) }
}

/// The job, and whatever of the cluster it makes use of.
fn may_register(acl: &Acl, job: &Job) -> bool {
    let namespace = job.namespace.as_deref().unwrap_or_default();
    let groups = || job.task_groups.iter();
    let tasks = || groups().flat_map(|group| group.tasks.iter());
    // What is mounted in a volume that way is seen by the node too.
    let reaches_out = |group: &TaskGroup, volume: &str| {
        let mounts = group.tasks.iter().flat_map(|task| task.volume_mounts.iter());
        let mut own = mounts.filter(|mount| mount.volume.as_deref() == Some(volume));
        own.any(|mount| mount.propagation_mode.as_deref() == Some("bidirectional"))
    };
    let may_mount = |group: &TaskGroup, name: &str, volume: &VolumeRequest| match volume.kind.as_str() {
        "csi" => acl.allows(namespace, C::CsiMountVolume),
        "host" if volume.read_only && !reaches_out(group, name) => {
            acl.allows_host_volume(&volume.source, HostVolumeCapability::MountReadonly)
                || acl.allows_host_volume(&volume.source, HostVolumeCapability::MountReadwrite)
        }
        "host" => acl.allows_host_volume(&volume.source, HostVolumeCapability::MountReadwrite),
        _ => true,
    };
    let mut volumes = groups().flat_map(|group| group.volumes.iter().map(move |named| (group, named)));
    acl.allows_any(namespace, &[C::SubmitJob, C::RegisterJob])
        && volumes.all(|(group, (name, volume))| may_mount(group, name, volume))
        && (tasks().all(|task| task.csi_plugin_config.is_none())
            || acl.allows(namespace, C::CsiRegisterPlugin))
}

fn may_change(acl: &Acl, key: &VariableKey, capability: V) -> bool {
    acl.allows_variable(&key.namespace, &key.path, capability)
}

/// What is not there is refused by who decides, unless the caller may not do this anywhere.
fn of_alloc(acl: &Acl, state: &State, id: AllocId, capability: C) -> bool {
    match state.allocs.lookup(id) {
        Some(alloc) => acl.allows(&state.jobs.get(alloc.job).key.namespace, capability),
        None => acl.allows("*", capability),
    }
}

fn of_deployment(acl: &Acl, state: &State, id: DeploymentId, any: &[C]) -> bool {
    match state.deployments.find(id) {
        Some(row) => acl.allows_any(&state.jobs.get(state.deployments.get(row).job).key.namespace, any),
        None => acl.allows_any("*", any),
    }
}

/// Whose token the cursor names may say how far it has come.
fn is_reader(access: &Access, state: &State, cursor: &str) -> bool {
    let named = state.cursors.get(cursor).map(|cursor| cursor.settings.reader.as_str());
    let own = access.accessor().map(|accessor| accessor.to_string());
    own.is_some_and(|own| named == Some(&own))
}

/// Who makes a one-time token hands on what it may do itself, and nothing else.
fn is_own(access: &Access, accessor: Uuid) -> bool {
    access.accessor() == Some(accessor)
}
