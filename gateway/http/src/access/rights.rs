//! What the routes ask for.

use std::marker::PhantomData;

use acl::{Acl, Capability as C, OperatorCapability as O};

/// What a caller has to have for a route. In all namespaces (`*`) means in at least one.
pub(crate) trait Right: Send + Sync + 'static {
    /// Whether it matters who calls. Where it does not, no token is looked at, so that one which has expired does no harm.
    const ASKS_WHO: bool = true;

    /// For a row of this namespace, which may be `*`.
    fn holds(acl: &Acl, namespace: &str) -> bool;

    /// For the route at all, with this namespace in its parameters.
    fn opens(acl: &Acl, namespace: &str) -> bool {
        Self::holds(acl, namespace)
    }
}

/// For who wants to log in: nobody is known yet.
pub(crate) struct Newcomers;

impl Right for Newcomers {
    const ASKS_WHO: bool = false;

    fn holds(_: &Acl, _: &str) -> bool {
        true
    }
}

/// The route names one object by its id, whatever namespace it is in: the right in any of them opens it, and what the
/// caller may not see is not there for it.
pub(crate) struct Somewhere<R>(PhantomData<R>);

impl<R: Right> Right for Somewhere<R> {
    fn holds(acl: &Acl, namespace: &str) -> bool {
        R::holds(acl, namespace)
    }

    fn opens(acl: &Acl, _: &str) -> bool {
        R::holds(acl, "*")
    }
}

/// Both of them.
impl<A: Right, B: Right> Right for (A, B) {
    fn holds(acl: &Acl, namespace: &str) -> bool {
        A::holds(acl, namespace) && B::holds(acl, namespace)
    }

    fn opens(acl: &Acl, namespace: &str) -> bool {
        A::opens(acl, namespace) && B::opens(acl, namespace)
    }
}

macro_rules! rights {
    ($($(#[$doc:meta])* $name:ident: $holds:expr;)+) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name;

            impl Right for $name {
                fn holds(acl: &Acl, namespace: &str) -> bool {
                    let holds: fn(&Acl, &str) -> bool = $holds;
                    holds(acl, namespace)
                }
            }
        )+
    };
}

rights! {
    /// Nothing: the route shows nothing that is not for everybody.
    Anyone: |_, _| true;
    /// The route shows each caller what is theirs, or asks itself.
    Each: |_, _| true;
    Management: |acl, _| acl.is_management();
    ListJobs: |acl, ns| acl.allows(ns, C::ListJobs);
    ReadJob: |acl, ns| acl.allows(ns, C::ReadJob);
    ParseJob: |acl, ns| acl.allows_any(ns, &[C::ParseJob, C::SubmitJob]);
    PlanJob: |acl, ns| acl.allows_any(ns, &[C::SubmitJob, C::PlanJob]);
    ReadScale: |acl, ns| acl.allows_any(ns, &[C::ReadJob, C::ReadJobScaling]);
    ListScalingPolicies: |acl, ns| acl.allows(ns, C::ListScalingPolicies) || lists_and_reads(acl, ns);
    ReadScalingPolicy: |acl, ns| acl.allows(ns, C::ReadScalingPolicy) || lists_and_reads(acl, ns);
    /// Services also for tasks of the namespace, and for nodes, which answer for them in the DNS.
    ReadServices: |acl, ns| {
        acl.allows(ns, C::ReadJob) || acl.is_node() || acl.workload().is_some_and(|task| ns == "*" || task.namespace == ns)
    };
    DeleteServices: |acl, ns| acl.allows_any(ns, &[C::SubmitJob, C::DeleteServiceRegistration]);
    UnblockDeployment: |acl, ns| acl.allows_any(ns, &[C::SubmitJob, C::UnblockDeployment]);
    ReadFiles: |acl, ns| acl.allows(ns, C::ReadFs);
    ReadLogs: |acl, ns| acl.allows_any(ns, &[C::ReadLogs, C::ReadFs]);
    AllocLifecycle: |acl, ns| acl.allows(ns, C::AllocLifecycle);
    AllocExec: |acl, ns| acl.allows(ns, C::AllocExec);
    /// Where the driver does not keep a task from the files of the node.
    AllocNodeExec: |acl, ns| acl.allows(ns, C::AllocNodeExec);
    CollectAlloc: |acl, ns| acl.allows_any(ns, &[C::SubmitJob, C::GcAllocation]);
    PauseAlloc: |acl, ns| acl.allows_any(ns, &[C::SubmitJob, C::PauseAllocation]);
    ListCsiVolumes: |acl, ns| {
        acl.allows_any(ns, &[C::CsiListVolume, C::CsiReadVolume, C::CsiMountVolume, C::ListJobs])
    };
    ReadCsiVolume: |acl, ns| acl.allows_any(ns, &[C::CsiReadVolume, C::CsiMountVolume, C::ReadJob]);
    DeleteHostVolumes: |acl, ns| acl.allows_any(ns, &[C::HostVolumeDelete, C::HostVolumeWrite]);
    ReadHostVolumes: |acl, ns| acl.allows(ns, C::HostVolumeRead);
    /// Some of the namespace: each path is looked at.
    SeeVariables: |acl, ns| acl.knows_variables(ns);
    ReadNodes: |acl, _| acl.reads_nodes();
    WriteNodes: |acl, _| acl.writes_nodes();
    ReadAgent: |acl, _| acl.reads_agent();
    WriteAgent: |acl, _| acl.writes_agent();
    ReadOperator: |acl, _| acl.reads_operator();
    WriteOperator: |acl, _| acl.writes_operator();
    SaveSnapshot: |acl, _| acl.allows_operator(O::SnapshotSave);
    ReadKeyring: |acl, _| acl.allows_operator(O::KeyringRead);
    ListPlugins: |acl, _| acl.lists_plugins();
    ReadPlugins: |acl, _| acl.reads_plugins();
}

fn lists_and_reads(acl: &Acl, namespace: &str) -> bool {
    acl.allows(namespace, C::ListJobs) && acl.allows(namespace, C::ReadJob)
}
