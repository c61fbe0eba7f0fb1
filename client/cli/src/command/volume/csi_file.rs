//! The file that describes a volume of a storage plugin.

use jobspec::Diagnostics;
use jobspec::config::Section;
use model::document::{
    CSIMountOptions, CSITopology, CSITopologyRequest, CSIVolume, CSIVolumeCapability, CsiSecrets, Map,
};

use super::create::capacity;

type Texts = Map<String, String>;

/// `top` without its type.
pub(super) fn read(mut top: Section) -> Result<CSIVolume, Diagnostics> {
    let mut volume = CSIVolume {
        id: top.take("id")?.unwrap_or_default(),
        name: top.take("name")?.unwrap_or_default(),
        namespace: top.take("namespace")?.unwrap_or_default(),
        external_id: top.take("external_id")?.unwrap_or_default(),
        plugin_id: top.take("plugin_id")?.unwrap_or_default(),
        snapshot_id: top.take("snapshot_id")?.unwrap_or_default(),
        clone_id: top.take("clone_id")?.unwrap_or_default(),
        secrets: CsiSecrets(top.take::<Texts>("secrets")?.unwrap_or_default()),
        parameters: top.take::<Texts>("parameters")?.unwrap_or_default(),
        context: top.take::<Texts>("context")?.unwrap_or_default(),
        requested_capacity_min: capacity(&mut top, "capacity_min")?,
        requested_capacity_max: capacity(&mut top, "capacity_max")?,
        ..CSIVolume::default()
    };
    for mut part in top.sections("capability")? {
        volume.requested_capabilities.push(CSIVolumeCapability {
            access_mode: part.take("access_mode")?.unwrap_or_default(),
            attachment_mode: part.take("attachment_mode")?.unwrap_or_default(),
        });
        part.finish()?;
    }
    for mut part in top.sections("mount_options")? {
        volume.mount_options = Some(CSIMountOptions {
            fs_type: part.take("fs_type")?.unwrap_or_default(),
            mount_flags: part.take::<Vec<String>>("mount_flags")?.unwrap_or_default().into(),
        });
        part.finish()?;
    }
    for mut part in top.sections("topology_request")? {
        let request = CSITopologyRequest {
            required: topologies(&mut part, "required")?.into(),
            preferred: topologies(&mut part, "preferred")?.into(),
        };
        volume.requested_topologies = Some(request);
        part.finish()?;
    }
    if volume.id.is_empty() {
        return Err(top.wrong("id: expected a name".to_string()));
    }
    top.finish()?;
    Ok(volume)
}

fn topologies(section: &mut Section, name: &str) -> Result<Vec<CSITopology>, Diagnostics> {
    let mut found = Vec::new();
    for mut part in section.sections(name)? {
        for mut one in part.sections("topology")? {
            found.push(CSITopology { segments: one.take::<Texts>("segments")?.unwrap_or_default() });
            one.finish()?;
        }
        part.finish()?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use jobspec::Source;

    use super::*;

    fn parsed(text: &str) -> Result<CSIVolume, Diagnostics> {
        let mut top = Section::parse(&Source::new("volume.hcl", text.to_string()))?;
        top.take::<String>("type")?;
        read(top)
    }

    #[test]
    fn the_example_is_read_whole() {
        let volume = parsed(super::super::init::CSI).unwrap();
        assert_eq!((volume.id.as_str(), volume.plugin_id.as_str()), ("ebs_prod_db1", "ebs-prod"));
        assert_eq!((volume.requested_capacity_min, volume.requested_capacity_max), (10 << 30, 20 << 30));
        assert_eq!(volume.requested_capabilities[0].access_mode, "single-node-writer");
        assert_eq!(volume.mount_options.as_ref().unwrap().mount_flags.0, ["noatime"]);
        let topologies = volume.requested_topologies.unwrap();
        assert_eq!(topologies.required[0].segments["rack"], "R1");
        assert_eq!(volume.parameters["skuname"], "Premium_LRS");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(parsed("type = \"csi\"\nname = \"x\"\n").is_err(), "without an id");
        assert!(parsed("id = \"x\"\ncolor = \"red\"\n").is_err());
        assert!(parsed("id = \"x\"\ncapacity_min = \"much\"\n").is_err());
    }
}
