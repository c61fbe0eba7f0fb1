use model::document::{CSIInfo, CSIVolume, Node, TaskGroup, VolumeRequest};
use model::{AllocId, JobKey, NodeId};
use state::volume::MANY_WRITERS;

use super::{of_type, source};

/// The CSI volumes a group mounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsiVolumeRequests {
    requests: Vec<VolumeRequest>,
}

/// An allocation that may write to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub alloc: AllocId,
    /// `None`: the allocation was garbage collected.
    pub job: Option<JobKey>,
}

/// What the checks need to know of CSI volumes, apart from the node's own document.
pub trait CsiVolumes {
    /// A volume of the job's namespace.
    fn volume(&self, id: &str) -> Option<&CSIVolume>;
    /// Its plugin is healthy, and its storage is not exhausted.
    fn is_schedulable(&self, id: &str) -> bool;
    /// The access mode it is used with now; empty while it is not used, when its capabilities decide.
    fn access_mode(&self, id: &str) -> &str;
    /// The allocations that may write to it, by id.
    fn writers(&self, id: &str) -> Vec<Claim>;
    /// How many volumes of the plugin will be in use on the node.
    fn in_use(&self, plugin: &str) -> usize;
}

impl CsiVolumeRequests {
    pub fn of(group: &TaskGroup) -> CsiVolumeRequests {
        CsiVolumeRequests { requests: of_type(group, "csi") }
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The ids of volumes that the allocation with this number in its name requests and that are not registered.
    ///
    /// No node is feasible while there are any. The reason lists them, and the blocked evaluation waits for
    /// their [`VolumeKey::resource`](model::VolumeKey::resource)s.
    pub fn missing(&self, name_index: u32, known: &impl CsiVolumes) -> Vec<String> {
        let mut ids: Vec<String> = self.requests.iter().map(|request| source(request, name_index)).collect();
        ids.retain(|id| known.volume(id).is_none());
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Whether the allocation can have all of them on the node.
    ///
    /// # Errors
    /// The reason as metrics name it.
    pub fn check(
        &self,
        (id, node): (NodeId, &Node),
        job: &JobKey,
        name_index: u32,
        known: &impl CsiVolumes,
    ) -> Result<(), String> {
        let missing = self.missing(name_index, known);
        if !missing.is_empty() {
            return Err(missing_reason(&missing));
        }
        for request in &self.requests {
            let source = source(request, name_index);
            let volume = known.volume(&source).expect("missing volumes were reported above");
            on_node(volume, id, node, known)?;
            claims(volume, &source, request.read_only, job, known)?;
        }
        Ok(())
    }
}

fn missing_reason(ids: &[String]) -> String {
    format!("missing CSI volume(s) {}", ids.join(", "))
}

fn on_node(volume: &CSIVolume, id: NodeId, node: &Node, known: &impl CsiVolumes) -> Result<(), String> {
    let name = &volume.plugin_id;
    let Some(plugin) = node.csi_node_plugins.get(name) else {
        return Err(format!("CSI plugin {name} is missing from client {id}"));
    };
    if !plugin.healthy {
        return Err(format!("CSI plugin {name} is unhealthy on client {id}"));
    }
    let most = plugin.node_info.as_ref().map_or(0, |info| info.max_volumes);
    // Zero means that the plugin sets no limit.
    if most > 0 && i64::try_from(known.in_use(name)).unwrap_or(i64::MAX) >= most {
        return Err(format!("CSI plugin {name} has the maximum number of volumes on client {id}"));
    }
    if is_accessible(volume, plugin) { Ok(()) } else { Err("did not meet topology requirement".to_string()) }
}

/// The volume is accessible from the node: the node has every segment of one of the volume's topologies.
fn is_accessible(volume: &CSIVolume, plugin: &CSIInfo) -> bool {
    let own = plugin.node_info.as_ref().and_then(|info| info.accessible_topology.as_ref());
    volume.topologies.is_empty()
        || own.is_some_and(|own| {
            let has = |(key, value): (&String, &String)| own.segments.get(key) == Some(value);
            volume.topologies.iter().any(|topology| topology.segments.iter().all(has))
        })
}

fn claims(
    volume: &CSIVolume,
    id: &str,
    read_only: bool,
    job: &JobKey,
    known: &impl CsiVolumes,
) -> Result<(), String> {
    let is_schedulable = known.is_schedulable(id);
    if read_only && !is_schedulable {
        return Err(format!("CSI volume {id} is unschedulable or has exhausted its available reader claims"));
    }
    if read_only {
        return Ok(());
    }
    let mode = known.access_mode(id);
    let may_write = match mode {
        "" => volume.requested_capabilities.iter().any(|own| is_writer(&own.access_mode)),
        mode => is_writer(mode),
    };
    if !is_schedulable || !may_write {
        return Err(format!("CSI volume {id} is unschedulable or is read-only"));
    }
    if mode == MANY_WRITERS {
        return Ok(());
    }
    let exhausted = format!("CSI volume {id} has exhausted its available writer claims");
    match known.writers(id).into_iter().find(|claim| claim.job.as_ref() != Some(job)) {
        None => Ok(()),
        Some(Claim { job: Some(_), .. }) => Err(exhausted),
        Some(Claim { alloc, job: None }) => Err(format!(
            "{exhausted} and is claimed by a garbage collected allocation {alloc}; waiting for claim to be released"
        )),
    }
}

fn is_writer(mode: &str) -> bool {
    matches!(mode, "single-node-writer" | "multi-node-single-writer" | MANY_WRITERS)
}

#[cfg(test)]
mod tests {
    use model::document::{CSINodeInfo, CSITopology, CSIVolumeCapability};
    use model::{VolumeKey, VolumeKind};

    use super::*;

    struct Known {
        volumes: Vec<CSIVolume>,
        is_schedulable: bool,
        mode: &'static str,
        writers: Vec<Claim>,
        in_use: usize,
    }

    impl Default for Known {
        fn default() -> Known {
            let volumes = vec![volume("vol", "single-node-writer")];
            Known { volumes, is_schedulable: true, mode: "", writers: vec![], in_use: 0 }
        }
    }

    impl CsiVolumes for Known {
        fn volume(&self, id: &str) -> Option<&CSIVolume> {
            self.volumes.iter().find(|volume| volume.id == id)
        }

        fn is_schedulable(&self, _: &str) -> bool {
            self.is_schedulable
        }

        fn access_mode(&self, _: &str) -> &str {
            self.mode
        }

        fn writers(&self, _: &str) -> Vec<Claim> {
            self.writers.clone()
        }

        fn in_use(&self, _: &str) -> usize {
            self.in_use
        }
    }

    fn volume(id: &str, access_mode: &str) -> CSIVolume {
        let capability =
            CSIVolumeCapability { access_mode: access_mode.into(), attachment_mode: "file-system".into() };
        CSIVolume {
            id: id.into(),
            plugin_id: "ebs".into(),
            requested_capabilities: vec![capability].into(),
            ..CSIVolume::default()
        }
    }

    fn node(healthy: bool, segments: &[(&str, &str)]) -> Node {
        let segments = segments.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let info = CSINodeInfo {
            max_volumes: 2,
            accessible_topology: Some(CSITopology { segments }),
            ..CSINodeInfo::default()
        };
        let plugin = CSIInfo { healthy, node_info: Some(info), ..CSIInfo::default() };
        Node { csi_node_plugins: [("ebs".to_string(), plugin)].into_iter().collect(), ..Node::default() }
    }

    const NODE: NodeId = NodeId(base::Uuid::NIL);

    fn check(node: &Node, read_only: bool, known: &Known) -> Result<(), String> {
        let request =
            VolumeRequest { kind: "csi".into(), source: "vol".into(), read_only, ..VolumeRequest::default() };
        let volumes = [("v".to_string(), request)].into_iter().collect();
        let ask = CsiVolumeRequests::of(&TaskGroup { volumes, ..TaskGroup::default() });
        ask.check((NODE, node), &JobKey::new("default", "web"), 0, known)
    }

    fn refused(node: &Node, read_only: bool, known: &Known) -> String {
        check(node, read_only, known).unwrap_err()
    }

    /// H61: the reason and what is waited for; what an evaluation does with them is tested with whole passes.
    #[test]
    fn a_volume_nobody_registered_is_named() {
        let known = Known { volumes: vec![volume("vol[1]", "single-node-writer")], ..Known::default() };
        assert_eq!(refused(&node(true, &[]), true, &known), "missing CSI volume(s) vol");
        let key = VolumeKey::new(VolumeKind::Csi, "default", "vol");
        assert_eq!(key.resource(), "csi-volume:default:vol");
        assert_eq!(VolumeKey::of_resource(&key.resource()), Some(key));
        let own = |name: &str| {
            let request = VolumeRequest {
                kind: "csi".into(),
                source: name.into(),
                per_alloc: true,
                ..VolumeRequest::default()
            };
            (name.to_string(), request)
        };
        let volumes = [own("vol"), own("log")].into_iter().collect();
        let ask = CsiVolumeRequests::of(&TaskGroup { volumes, ..TaskGroup::default() });
        assert_eq!(ask.missing(1, &known), ["log[1]"]);
        assert_eq!(ask.missing(0, &known), ["log[0]", "vol[0]"]);
    }

    /// H62.
    #[test]
    fn the_nodes_plugin_is_there_healthy_and_has_room() {
        let (known, full) = (Known::default(), Known { in_use: 2, ..Known::default() });
        assert_eq!(check(&node(true, &[]), false, &known), Ok(()));
        let client = format!("client {NODE}");
        let missing = refused(&Node::default(), false, &known);
        assert_eq!(missing, format!("CSI plugin ebs is missing from {client}"));
        let unhealthy = refused(&node(false, &[]), false, &known);
        assert_eq!(unhealthy, format!("CSI plugin ebs is unhealthy on {client}"));
        let most = refused(&node(true, &[]), false, &full);
        assert_eq!(most, format!("CSI plugin ebs has the maximum number of volumes on {client}"));
    }

    /// H63, H64.
    #[test]
    fn one_job_writes_at_a_time() {
        let claim = |job: Option<&str>| Claim {
            alloc: AllocId::default(),
            job: job.map(|job| JobKey::new("default", job)),
        };
        let held = |job| Known { mode: "single-node-writer", writers: vec![claim(job)], ..Known::default() };
        let node = node(true, &[]);
        assert_eq!(check(&node, false, &held(Some("web"))), Ok(()));
        assert_eq!(check(&node, true, &held(Some("db"))), Ok(()));
        let exhausted = "CSI volume vol has exhausted its available writer claims";
        assert_eq!(refused(&node, false, &held(Some("db"))), exhausted);
        let gone = refused(&node, false, &held(None));
        let id = AllocId::default();
        let tail =
            format!("claimed by a garbage collected allocation {id}; waiting for claim to be released");
        assert_eq!(gone, format!("{exhausted} and is {tail}"));
        let many = Known { mode: "multi-node-multi-writer", ..held(Some("db")) };
        assert_eq!(check(&node, false, &many), Ok(()));
    }

    /// H65.
    #[test]
    fn a_volume_has_to_be_schedulable() {
        let node = node(true, &[]);
        let broken = Known { is_schedulable: false, ..Known::default() };
        let reader = "CSI volume vol is unschedulable or has exhausted its available reader claims";
        assert_eq!(refused(&node, true, &broken), reader);
        let writer = "CSI volume vol is unschedulable or is read-only";
        assert_eq!(refused(&node, false, &broken), writer);
        let volumes = vec![volume("vol", "multi-node-reader-only")];
        assert_eq!(refused(&node, false, &Known { volumes, ..Known::default() }), writer);
        let reading = Known { mode: "single-node-reader", ..Known::default() };
        assert_eq!(refused(&node, false, &reading), writer, "it is used for reading now");
    }

    /// G66: the node's own part of it.
    #[test]
    fn a_volume_is_reached_from_where_its_topology_says() {
        let topology =
            CSITopology { segments: [("zone".to_string(), "a".to_string())].into_iter().collect() };
        let mut zoned = volume("vol", "single-node-writer");
        zoned.topologies = vec![topology].into();
        let known = Known { volumes: vec![zoned], ..Known::default() };
        assert_eq!(check(&node(true, &[("zone", "a")]), false, &known), Ok(()));
        assert_eq!(check(&node(true, &[("zone", "a"), ("rack", "r")]), false, &known), Ok(()));
        let unmet = "did not meet topology requirement";
        assert_eq!(refused(&node(true, &[("zone", "b")]), false, &known), unmet);
        assert_eq!(refused(&node(true, &[]), false, &known), unmet);
    }
}
