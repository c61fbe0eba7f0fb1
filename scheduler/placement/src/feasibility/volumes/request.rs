use std::collections::{BTreeMap, BTreeSet};

use model::document::{CSIVolume, HostVolume, TaskGroup, VolumeRequest};
use model::{JobKey, VolumeKey, VolumeKind};
use state::State;
use state::alloc::Alloc;
use state::job::JobState;
use state::node::NodeRow;
use state::volume::{
    MANY_WRITERS, csi_claims, host_document, is_csi_schedulable, is_shared_by_jobs, mounts, sources,
};

use super::{
    Claim, CsiVolumeRequests, CsiVolumes, HostVolumeRequests, HostVolumes, MISSING, unmet_claims, writes,
};
use crate::feasibility::proposed::Proposed;

/// The volumes that one allocation requests, with what does not depend on the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeRequests {
    host: HostVolumeRequests,
    csi: CsiVolumeRequests,
    /// Each allocation of the group requests different volumes, so they are placed one by one.
    pub one_by_one: bool,
    name_index: u32,
    job: Option<JobKey>,
    /// Sticky volumes that the group has to use again, by source.
    claims: BTreeMap<String, BTreeSet<String>>,
    known: BTreeMap<String, CsiVolumeState>,
}

/// A CSI volume in the state.
#[derive(Clone, Debug, PartialEq)]
struct CsiVolumeState {
    volume: CSIVolume,
    is_schedulable: bool,
    /// As allocations that may write use it; empty without them.
    access_mode: String,
    writers: Vec<Claim>,
}

impl VolumeRequests {
    pub fn of(group: &TaskGroup) -> VolumeRequests {
        VolumeRequests {
            host: HostVolumeRequests::of(group),
            csi: CsiVolumeRequests::of(group),
            one_by_one: group.volumes.values().any(|request| request.per_alloc || request.sticky),
            ..VolumeRequests::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.host.is_empty() && self.csi.is_empty()
    }

    /// Some of them can be attached to other nodes.
    pub fn may_be_anywhere(&self) -> bool {
        !self.csi.is_empty()
    }

    /// Reads the state for the allocation of `job` with this number in its name, which takes the place of `previous`, with the plan in
    /// progress applied.
    pub fn resolve(
        &mut self,
        state: &State,
        job: &JobState,
        group: &TaskGroup,
        (name_index, previous): (u32, Option<&Alloc>),
        proposed: &Proposed,
    ) {
        if self.is_empty() {
            return;
        }
        self.name_index = name_index;
        self.job = Some(job.key.clone());
        let name = group.name.as_deref().unwrap_or_default();
        self.claims = sources(group, name_index, VolumeKind::Host)
            .filter(|(request, _)| request.sticky)
            .map(|(_, source)| {
                let claims = claims(state, (job, name, previous), &source, proposed);
                (source, claims)
            })
            .collect();
        let namespace = &job.key.namespace;
        let asked = sources(group, name_index, VolumeKind::Csi).map(|(_, id)| id);
        let known = asked.filter_map(|id| {
            let volume = state.volumes.csi(namespace, &id)?.clone();
            let is_schedulable = is_csi_schedulable(state, &volume);
            let writes = |request: &VolumeRequest, source: &str| !request.read_only && source == id;
            let mut staying: Vec<(&Alloc, &VolumeRequest)> = csi_claims(state, namespace)
                .filter(|(alloc, request, source)| writes(request, source) && !proposed.is_stopped(alloc.id))
                .map(|(alloc, request, _)| (alloc, request))
                .collect();
            staying.sort_by_key(|(alloc, _)| alloc.id);
            let mut modes = staying.iter().map(|(_, request)| request.access_mode.as_str());
            let access_mode = match modes.len() {
                0 => String::new(),
                _ if is_shared_by_jobs(&volume, &mut modes) => MANY_WRITERS.to_string(),
                _ => volume.access_mode.clone(),
            };
            let writers = staying.iter().map(|(alloc, _)| {
                let job = (!alloc.gone).then(|| state.jobs.get(alloc.job).key.clone());
                Claim { alloc: alloc.id, job }
            });
            let writers = writers.collect();
            Some((id, CsiVolumeState { volume, is_schedulable, access_mode, writers }))
        });
        self.known = known.collect();
    }

    /// Volumes that are not registered, in the form in which a blocked evaluation waits for them.
    pub fn missing(&self, state: &State) -> Vec<String> {
        let Some(job) = self.job.as_ref().filter(|_| !self.csi.is_empty()) else { return Vec::new() };
        let ids = self.csi.missing(self.name_index, &self.on(state, None));
        ids.iter().map(|id| VolumeKey::new(VolumeKind::Csi, &job.namespace, id).resource()).collect()
    }

    /// Why the node is infeasible, with the plan in progress applied.
    pub fn infeasible_reason(&self, state: &State, row: NodeRow, proposed: &Proposed) -> Option<String> {
        let job = self.job.as_ref()?;
        let known = self.on(state, Some((row, proposed)));
        let node = state.nodes.cold(row);
        if !self.host.holds(&node.document, self.name_index, &known) {
            return Some(MISSING.to_string());
        }
        self.csi.check((node.id, &node.document), job, self.name_index, &known).err()
    }

    fn on<'a>(&'a self, state: &'a State, at: Option<(NodeRow, &'a Proposed<'a>)>) -> OnNode<'a> {
        OnNode { resource_request: self, state, at }
    }

    fn namespace(&self) -> &str {
        self.job.as_ref().map_or("", |job| &job.namespace)
    }
}

/// The volumes of that name that allocations of the group used and none of them uses now; without such, the one that the previous
/// allocation used, where several may share it.
fn claims(
    state: &State,
    (job, group, previous): (&JobState, &str, Option<&Alloc>),
    source: &str,
    proposed: &Proposed,
) -> BTreeSet<String> {
    let id = |row: NodeRow| {
        let volumes = &state.nodes.cold(row).document.host_volumes;
        volumes.get(source).map(|info| info.id.as_str()).filter(|id| !id.is_empty())
    };
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    let mounts = |alloc: &Alloc| {
        mounts(alloc, VolumeKind::Host).any(|(request, name)| request.sticky && name == source)
    };
    let of_group = allocs.filter(|alloc| &*alloc.group == group && mounts(alloc));
    let used = of_group.filter_map(|alloc| {
        let lives = !alloc.is_terminal() && !proposed.is_stopped(alloc.id);
        Some((id(alloc.node)?, lives))
    });
    let planned = proposed.rows().filter(|row| {
        proposed.mounted(*row).any(|(group, name_index)| {
            sources(group, name_index, VolumeKind::Host).any(|(_, name)| name == source)
        })
    });
    let unmet = unmet_claims(used.chain(planned.filter_map(|row| Some((id(row)?, true)))));
    // One that may come back keeps its volume meanwhile.
    let has_ended = |alloc: &&Alloc| alloc.is_terminal() || proposed.is_stopped(alloc.id);
    match previous.filter(has_ended).filter(|alloc| unmet.is_empty() && mounts(alloc)) {
        Some(previous) => id(previous.node).map(str::to_string).into_iter().collect(),
        None => unmet,
    }
}

/// The volumes as seen from one node.
struct OnNode<'a> {
    resource_request: &'a VolumeRequests,
    state: &'a State,
    at: Option<(NodeRow, &'a Proposed<'a>)>,
}

impl OnNode<'_> {
    /// For each allocation on the node, running or planned: its group, the number in its name and its namespace. The
    /// group is `None` if its definition no longer exists.
    fn users(&self) -> impl Iterator<Item = (Option<&TaskGroup>, u32, &str)> {
        self.at.into_iter().flat_map(|(row, proposed)| {
            let staying = proposed.staying(row).map(|alloc| {
                let namespace = self.state.jobs.get(alloc.job).key.namespace.as_str();
                (alloc.version.group(&alloc.group), alloc.name_index, namespace)
            });
            let planned = proposed.mounted(row);
            staying.chain(planned.map(|(group, name)| (Some(group), name, self.resource_request.namespace())))
        })
    }
}

impl HostVolumes for OnNode<'_> {
    fn volume(&self, id: &str) -> Option<HostVolume> {
        let volume = self.state.volumes.host(self.resource_request.namespace(), id)?;
        Some(host_document(self.state, volume))
    }

    fn is_written(&self, name: &str) -> bool {
        let mut users =
            self.users().filter(|(.., namespace)| *namespace == self.resource_request.namespace());
        users.any(|(group, name_index, _)| writes(group, name_index, name))
    }

    fn claims(&self, source: &str) -> BTreeSet<String> {
        self.resource_request.claims.get(source).cloned().unwrap_or_default()
    }
}

impl CsiVolumes for OnNode<'_> {
    fn volume(&self, id: &str) -> Option<&CSIVolume> {
        self.resource_request.known.get(id).map(|known| &known.volume)
    }

    fn is_schedulable(&self, id: &str) -> bool {
        self.resource_request.known.get(id).is_some_and(|known| known.is_schedulable)
    }

    fn access_mode(&self, id: &str) -> &str {
        self.resource_request.known.get(id).map_or("", |known| &known.access_mode)
    }

    fn writers(&self, id: &str) -> Vec<Claim> {
        self.resource_request.known.get(id).map(|known| known.writers.clone()).unwrap_or_default()
    }

    fn in_use(&self, plugin: &str) -> usize {
        let used = self.users().flat_map(|(group, name_index, namespace)| {
            let ids = group.into_iter().flat_map(move |group| sources(group, name_index, VolumeKind::Csi));
            ids.map(move |(_, id)| (namespace, id))
        });
        let of_plugin = |(namespace, id): &(&str, String)| {
            self.state.volumes.csi(namespace, id).is_some_and(|volume| volume.plugin_id == plugin)
        };
        used.filter(of_plugin).collect::<BTreeSet<_>>().len()
    }
}
