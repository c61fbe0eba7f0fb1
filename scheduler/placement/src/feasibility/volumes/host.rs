use std::collections::BTreeSet;

use model::document::{HostVolume, HostVolumeInfo, Node, TaskGroup, VolumeRequest};

use super::{of_type, or, source};

/// The reason in metrics.
pub const MISSING: &str = "missing compatible host volumes";

/// The host volumes a group mounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostVolumeRequests {
    requests: Vec<VolumeRequest>,
}

/// What the checks need to know of host volumes, apart from the node's own document.
pub trait HostVolumes {
    /// A dynamic host volume of the job's namespace, by its id.
    fn volume(&self, id: &str) -> Option<HostVolume>;
    /// Some allocation that will be on the node may write to the volume of that name; see [`writes`].
    fn is_written(&self, name: &str) -> bool;
    /// Ids of volumes that the group has to use again before it uses others, by source; see [`unmet_claims`].
    fn claims(&self, source: &str) -> BTreeSet<String>;
}

impl HostVolumeRequests {
    pub fn of(group: &TaskGroup) -> HostVolumeRequests {
        HostVolumeRequests { requests: of_type(group, "host") }
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The node has all volumes for the allocation with this number in its name. If not, the reason is [`MISSING`].
    pub fn holds(&self, node: &Node, name_index: u32, known: &impl HostVolumes) -> bool {
        self.requests.iter().all(|request| {
            let source = source(request, name_index);
            let Some(info) = node.host_volumes.get(&source) else { return false };
            if info.id.is_empty() {
                return is_static_fit(info, request);
            }
            let volume = known.volume(&info.id).filter(|volume| volume.state == "ready");
            volume.is_some_and(|volume| is_fit(&volume, request, &source, known))
        })
    }
}

/// A volume of the node's configuration has no id, so it cannot be sticky.
fn is_static_fit(info: &HostVolumeInfo, request: &VolumeRequest) -> bool {
    !request.sticky && (request.read_only || !info.read_only)
}

fn is_fit(volume: &HostVolume, request: &VolumeRequest, source: &str, known: &impl HostVolumes) -> bool {
    let default = if request.read_only { "single-node-reader" } else { "single-node-writer" };
    let (access, attachment) =
        (or(&request.access_mode, default), or(&request.attachment_mode, "file-system"));
    let mut capabilities = volume.requested_capabilities.iter();
    if !capabilities.any(|own| own.access_mode == access && own.attachment_mode == attachment) {
        return false;
    }
    let is_allowed = match access {
        "single-node-reader" => request.read_only,
        "single-node-writer" => !request.read_only,
        "single-node-single-writer" => !known.is_written(source),
        "single-node-multi-writer" => true,
        _ => false,
    };
    is_allowed && (!request.sticky || is_claimed(volume, &known.claims(source)))
}

/// Without unmet claims every volume is allowed.
fn is_claimed(volume: &HostVolume, unmet: &BTreeSet<String>) -> bool {
    unmet.is_empty() || unmet.contains(&volume.id)
}

/// Whether an allocation of this group may write to the host volume of that name. `None`: the group is not known any
/// more, so it may.
pub fn writes(group: Option<&TaskGroup>, name_index: u32, name: &str) -> bool {
    let Some(group) = group else { return true };
    let mut volumes = group.volumes.values().filter(|request| request.kind == "host");
    volumes.any(|request| !request.read_only && source(request, name_index) == name)
}

/// Volumes that a group used and none of its allocations uses now. `used`: the volume of each allocation, and whether
/// it lives.
pub fn unmet_claims<'a>(used: impl Iterator<Item = (&'a str, bool)>) -> BTreeSet<String> {
    let (mut claimed, mut met) = (BTreeSet::new(), BTreeSet::new());
    for (volume, lives) in used {
        claimed.insert(volume.to_string());
        if lives {
            met.insert(volume.to_string());
        }
    }
    claimed.difference(&met).cloned().collect()
}

#[cfg(test)]
mod tests {
    use model::document::HostVolumeCapability;

    use super::*;

    /// Volumes of the namespace, what is written, and claims that wait.
    #[derive(Default)]
    struct Known {
        volumes: Vec<HostVolume>,
        written: Vec<&'static str>,
        unmet: Vec<&'static str>,
    }

    impl HostVolumes for Known {
        fn volume(&self, id: &str) -> Option<HostVolume> {
            self.volumes.iter().find(|volume| volume.id == id).cloned()
        }

        fn is_written(&self, name: &str) -> bool {
            self.written.contains(&name)
        }

        fn claims(&self, _: &str) -> BTreeSet<String> {
            self.unmet.iter().map(ToString::to_string).collect()
        }
    }

    fn node(volumes: &[(&str, &str, bool)]) -> Node {
        let info = |(name, id, read_only): &(&str, &str, bool)| {
            let (id, read_only) = (id.to_string(), *read_only);
            (name.to_string(), HostVolumeInfo { id, read_only, ..HostVolumeInfo::default() })
        };
        Node { host_volumes: volumes.iter().map(info).collect(), ..Node::default() }
    }

    fn volume(id: &str, access_modes: &[&str]) -> HostVolume {
        let capability = |mode: &&str| HostVolumeCapability {
            access_mode: mode.to_string(),
            attachment_mode: "file-system".into(),
        };
        let requested_capabilities = access_modes.iter().map(capability).collect();
        HostVolume { id: id.into(), state: "ready".into(), requested_capabilities, ..HostVolume::default() }
    }

    fn request(read_only: bool) -> VolumeRequest {
        VolumeRequest { kind: "host".into(), source: "data".into(), read_only, ..VolumeRequest::default() }
    }

    fn group(request: VolumeRequest) -> TaskGroup {
        TaskGroup { volumes: [("v".to_string(), request)].into_iter().collect(), ..TaskGroup::default() }
    }

    fn holds(node: &Node, request: VolumeRequest, known: &Known) -> bool {
        HostVolumeRequests::of(&group(request)).holds(node, 2, known)
    }

    /// H54, H55.
    #[test]
    fn a_volume_of_the_nodes_configuration_is_written_if_it_may_be_and_never_sticks() {
        let known = Known::default();
        let (fixed, writable) = (node(&[("data", "", true)]), node(&[("data", "", false)]));
        assert!(!holds(&fixed, request(false), &known));
        assert!(holds(&fixed, request(true), &known));
        assert!(holds(&writable, request(false), &known));
        assert!(!holds(&node(&[]), request(true), &known));
        assert!(!holds(&writable, VolumeRequest { sticky: true, ..request(false) }, &known));
        let csi = VolumeRequest { kind: "csi".into(), ..request(false) };
        assert!(HostVolumeRequests::of(&group(csi)).is_empty(), "what is no host volume is judged elsewhere");
    }

    /// H56.
    #[test]
    fn a_volume_that_was_made_is_of_the_namespace_and_ready() {
        let node = node(&[("data", "id1", false)]);
        let ready = volume("id1", &["single-node-writer"]);
        let known = |volumes| Known { volumes, ..Known::default() };
        assert!(holds(&node, request(false), &known(vec![ready.clone()])));
        assert!(!holds(&node, request(false), &known(vec![])), "nobody of the namespace knows it");
        let pending = HostVolume { state: "pending".into(), ..ready };
        assert!(!holds(&node, request(false), &known(vec![pending])));
    }

    /// H57.
    #[test]
    fn what_a_request_leaves_open_follows_from_reading_and_writing() {
        let node = node(&[("data", "id1", false)]);
        let with = |mode| Known { volumes: vec![volume("id1", &[mode])], ..Known::default() };
        assert!(!holds(&node, request(true), &with("single-node-writer")));
        assert!(holds(&node, request(false), &with("single-node-writer")));
        assert!(holds(&node, request(true), &with("single-node-reader")));
        let writer = VolumeRequest { access_mode: "single-node-writer".into(), ..request(true) };
        assert!(!holds(&node, writer, &with("single-node-writer")), "a reader is no writer");
        let block = VolumeRequest { attachment_mode: "block-device".into(), ..request(false) };
        assert!(!holds(&node, block, &with("single-node-writer")));
        let many = VolumeRequest { access_mode: "single-node-multi-writer".into(), ..request(false) };
        assert!(holds(&node, many.clone(), &with("single-node-multi-writer")));
        assert!(!holds(&node, many, &with("single-node-writer")));
    }

    /// H58.
    #[test]
    fn a_single_writer_is_alone_on_the_node() {
        let node = node(&[("data", "id1", false)]);
        let single = VolumeRequest { access_mode: "single-node-single-writer".into(), ..request(false) };
        let volumes = vec![volume("id1", &["single-node-single-writer"])];
        let known = |written| Known { volumes: volumes.clone(), written, ..Known::default() };
        assert!(holds(&node, single.clone(), &known(vec![])));
        assert!(!holds(&node, single, &known(vec!["data"])));
        assert!(writes(Some(&group(request(false))), 0, "data"));
        assert!(!writes(Some(&group(request(true))), 0, "data"), "who reads does not write");
        assert!(!writes(Some(&group(request(false))), 0, "other"));
        assert!(writes(None, 0, "data"), "nobody knows what a vanished group does");
    }

    /// H59.
    #[test]
    fn each_allocation_may_have_a_volume_of_its_own() {
        let own = VolumeRequest { per_alloc: true, ..request(false) };
        assert!(holds(&node(&[("data[2]", "", false)]), own.clone(), &Known::default()));
        assert!(!holds(
            &node(&[("data", "", false), ("data[1]", "", false)]),
            own.clone(),
            &Known::default()
        ));
        assert!(writes(Some(&group(own.clone())), 2, "data[2]") && !writes(Some(&group(own)), 1, "data[2]"));
    }

    /// H60.
    #[test]
    fn what_sticks_is_used_again_before_anything_else() {
        let volumes = vec![volume("id1", &["single-node-writer"]), volume("id2", &["single-node-writer"])];
        let known = |unmet| Known { volumes: volumes.clone(), unmet, ..Known::default() };
        let (first, second) = (node(&[("data", "id1", false)]), node(&[("data", "id2", false)]));
        let sticky = || VolumeRequest { sticky: true, ..request(false) };
        assert!(holds(&first, sticky(), &known(vec![])) && holds(&second, sticky(), &known(vec![])));
        assert!(holds(&first, sticky(), &known(vec!["id1"])));
        assert!(!holds(&second, sticky(), &known(vec!["id1"])));
        assert!(holds(&second, request(false), &known(vec!["id1"])), "who does not stick may go anywhere");
        let used = |lives| unmet_claims([("id1", false), ("id1", lives), ("id2", true)].into_iter());
        assert_eq!(used(false), BTreeSet::from(["id1".to_string()]));
        assert!(used(true).is_empty(), "a scale-up may use other nodes once its volume is in use again");
    }
}
