//! The words of policies: what may be done, and what the coarse words stand for.

use std::fmt;
use std::marker::PhantomData;
use std::ops::BitOr;

/// Declares capabilities with the words that policies have for them.
macro_rules! capabilities {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($variant,)+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// As policies write it.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl Member for $name {
            const ALL: &'static [$name] = $name::ALL;
            fn bit(self) -> u64 {
                1 << self as u64
            }
            fn word(self) -> &'static str {
                $name::word(self)
            }
            fn from_word(word: &str) -> Option<$name> {
                $name::from_word(word)
            }
        }
    };
}

/// A capability that a [`Set`] can hold.
pub trait Member: Copy + 'static {
    const ALL: &'static [Self];
    fn bit(self) -> u64;
    fn word(self) -> &'static str;
    fn from_word(word: &str) -> Option<Self>;
}

capabilities! {
    /// What may be done in a namespace.
    Capability {
        Deny = "deny",
        ListJobs = "list-jobs",
        ParseJob = "parse-job",
        ReadJob = "read-job",
        SubmitJob = "submit-job",
        DispatchJob = "dispatch-job",
        ScaleJob = "scale-job",
        ReadLogs = "read-logs",
        ReadFs = "read-fs",
        AllocExec = "alloc-exec",
        AllocNodeExec = "alloc-node-exec",
        AllocLifecycle = "alloc-lifecycle",
        CsiRegisterPlugin = "csi-register-plugin",
        CsiWriteVolume = "csi-write-volume",
        CsiReadVolume = "csi-read-volume",
        CsiListVolume = "csi-list-volume",
        CsiMountVolume = "csi-mount-volume",
        HostVolumeCreate = "host-volume-create",
        HostVolumeRegister = "host-volume-register",
        HostVolumeRead = "host-volume-read",
        HostVolumeWrite = "host-volume-write",
        HostVolumeDelete = "host-volume-delete",
        ListScalingPolicies = "list-scaling-policies",
        ReadScalingPolicy = "read-scaling-policy",
        ReadJobScaling = "read-job-scaling",
        SentinelOverride = "sentinel-override",
        SubmitRecommendation = "submit-recommendation",
        RegisterJob = "register-job",
        RevertJob = "revert-job",
        DeregisterJob = "deregister-job",
        PurgeJob = "purge-job",
        EvaluateJob = "evaluate-job",
        PlanJob = "plan-job",
        TagJobVersion = "tag-job-version",
        StableJob = "stable-job",
        FailDeployment = "fail-deployment",
        PauseDeployment = "pause-deployment",
        PromoteDeployment = "promote-deployment",
        UnblockDeployment = "unblock-deployment",
        CancelDeployment = "cancel-deployment",
        SetAllocHealthDeployment = "set-alloc-health-deployment",
        GcAllocation = "gc-allocation",
        PauseAllocation = "pause-allocation",
        ForcePeriodicJob = "force-periodic-job",
        DeleteServiceRegistration = "delete-service-registration",
    }
}

capabilities! {
    /// What may be done with a pool of nodes.
    PoolCapability {
        Deny = "deny",
        Read = "read",
        Write = "write",
        Delete = "delete",
    }
}

capabilities! {
    /// How a volume of nodes may be mounted.
    HostVolumeCapability {
        Deny = "deny",
        MountReadonly = "mount-readonly",
        MountReadwrite = "mount-readwrite",
    }
}

capabilities! {
    /// What may be done with variables.
    VariableCapability {
        Deny = "deny",
        List = "list",
        Read = "read",
        Write = "write",
        Destroy = "destroy",
    }
}

capabilities! {
    /// What may be done with the cluster.
    OperatorCapability {
        Deny = "deny",
        SnapshotSave = "snapshot-save",
        LicenseRead = "license-read",
        KeyringRotate = "keyring-rotate",
        KeyringRead = "keyring-read",
        KeyringDelete = "keyring-delete",
    }
}

/// The coarse words of a scope. A higher one of several policies wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    List,
    Scale,
    Read,
    Write,
    Deny,
}

impl Level {
    pub const fn word(self) -> &'static str {
        match self {
            Level::List => "list",
            Level::Scale => "scale",
            Level::Read => "read",
            Level::Write => "write",
            Level::Deny => "deny",
        }
    }

    pub fn from_word(word: &str) -> Option<Level> {
        let all = [Level::List, Level::Scale, Level::Read, Level::Write, Level::Deny];
        all.into_iter().find(|level| level.word() == word)
    }
}

/// Some capabilities of one sort.
pub struct Set<C>(u64, PhantomData<C>);

impl<C> Clone for Set<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Set<C> {}

impl<C> Default for Set<C> {
    fn default() -> Self {
        Set(0, PhantomData)
    }
}

impl<C> PartialEq for Set<C> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<C: Member + fmt::Debug> fmt::Debug for Set<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<C: Member> Set<C> {
    pub fn of(members: &[C]) -> Set<C> {
        Set(members.iter().fold(0, |bits, member| bits | member.bit()), PhantomData)
    }

    pub fn contains(self, member: C) -> bool {
        self.0 & member.bit() != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = C> {
        C::ALL.iter().copied().filter(move |member| self.contains(*member))
    }
}

impl<C> BitOr for Set<C> {
    type Output = Set<C>;

    fn bitor(self, other: Set<C>) -> Set<C> {
        Set(self.0 | other.0, PhantomData)
    }
}

/// What a coarse word of a namespace stands for; `None` for a word that namespaces do not have.
pub(crate) fn of_namespace(level: Level) -> Option<Set<Capability>> {
    use Capability as C;
    let read = Set::of(&[
        C::ListJobs,
        C::ParseJob,
        C::ReadJob,
        C::CsiListVolume,
        C::CsiReadVolume,
        C::ReadJobScaling,
        C::ListScalingPolicies,
        C::ReadScalingPolicy,
        C::HostVolumeRead,
    ]);
    Some(match level {
        Level::Deny => Set::of(&[C::Deny]),
        Level::Read => read,
        Level::Write => {
            read | Set::of(&[
                C::ScaleJob,
                C::SubmitJob,
                C::DispatchJob,
                C::ReadLogs,
                C::ReadFs,
                C::AllocExec,
                C::AllocLifecycle,
                C::CsiMountVolume,
                C::CsiWriteVolume,
                C::SubmitRecommendation,
                C::HostVolumeCreate,
            ])
        }
        Level::Scale => Set::of(&[
            C::ListScalingPolicies,
            C::ReadScalingPolicy,
            C::ReadJobScaling,
            C::ScaleJob,
            C::ReadJob,
            C::SubmitRecommendation,
        ]),
        Level::List => return None,
    })
}

pub(crate) fn of_pool(level: Level) -> Option<Set<PoolCapability>> {
    use PoolCapability as C;
    match level {
        Level::Deny => Some(Set::of(&[C::Deny])),
        Level::Read => Some(Set::of(&[C::Read])),
        Level::Write => Some(Set::of(&[C::Read, C::Write, C::Delete])),
        Level::List | Level::Scale => None,
    }
}

pub(crate) fn of_host_volume(level: Level) -> Option<Set<HostVolumeCapability>> {
    use HostVolumeCapability as C;
    match level {
        Level::Deny => Some(Set::of(&[C::Deny])),
        Level::Read => Some(Set::of(&[C::MountReadonly])),
        Level::Write => Some(Set::of(&[C::MountReadonly, C::MountReadwrite])),
        Level::List | Level::Scale => None,
    }
}

pub(crate) fn of_operator(level: Level) -> Set<OperatorCapability> {
    use OperatorCapability as C;
    match level {
        Level::Deny => Set::of(&[C::Deny]),
        Level::Read => Set::of(&[C::LicenseRead, C::KeyringRead]),
        Level::Write => {
            Set::of(&[C::LicenseRead, C::KeyringRead, C::SnapshotSave, C::KeyringRotate, C::KeyringDelete])
        }
        Level::List | Level::Scale => Set::default(),
    }
}

/// Capabilities that others bring with them.
pub(crate) fn implied(given: Set<Capability>) -> Set<Capability> {
    use Capability as C;
    let mut all = given;
    if all.contains(C::HostVolumeWrite) {
        all = all
            | Set::of(&[C::HostVolumeRegister, C::HostVolumeCreate, C::HostVolumeDelete, C::HostVolumeRead]);
    }
    if all.contains(C::HostVolumeRegister) {
        all = all | Set::of(&[C::HostVolumeCreate, C::HostVolumeRead]);
    }
    if all.contains(C::HostVolumeCreate) {
        all = all | Set::of(&[C::HostVolumeRead]);
    }
    all
}
