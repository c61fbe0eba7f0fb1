//! Samples of events about claims of volumes.

use model::event::*;
use model::*;

use crate::samples::{id, node};

pub fn samples(name: &str) -> Vec<Event> {
    let alloc = || AllocId(id(4));
    let volume = || VolumeKey::new(VolumeKind::Csi, "default", "dane-ż[3]");
    let smallest = || VolumeKey::new(VolumeKind::Csi, "", "");
    match name {
        "CsiVolumeClaimed" => {
            let empty = CsiClaim {
                node: NodeId::default(),
                read_only: false,
                access_mode: String::new(),
                attachment_mode: String::new(),
                plugin: String::new(),
                external_volume: String::new(),
                external_node: String::new(),
                attached: false,
            };
            let full = CsiClaim {
                node: node(),
                read_only: true,
                access_mode: "multi-node-single-writer".into(),
                attachment_mode: "block-device".into(),
                plugin: "ebs".into(),
                external_volume: "vol-1".into(),
                external_node: "i-1".into(),
                attached: true,
            };
            vec![
                CsiVolumeClaimed { volume: smallest(), alloc: AllocId::default(), claim: empty }.into(),
                CsiVolumeClaimed { volume: volume(), alloc: alloc(), claim: full }.into(),
            ]
        }
        "CsiClaimDetached" => vec![
            CsiClaimDetached { volume: smallest(), alloc: AllocId::default() }.into(),
            CsiClaimDetached { volume: volume(), alloc: alloc() }.into(),
        ],
        "CsiClaimReleased" => vec![
            CsiClaimReleased { volume: smallest(), alloc: AllocId::default() }.into(),
            CsiClaimReleased { volume: volume(), alloc: alloc() }.into(),
        ],
        "CsiExpansionAwaited" => vec![
            CsiExpansionAwaited { volume: smallest(), required_bytes: 0, limit_bytes: 0 }.into(),
            CsiExpansionAwaited { volume: volume(), required_bytes: 3 << 40, limit_bytes: 4 << 40 }.into(),
        ],
        "CsiExpansionEnded" => vec![
            CsiExpansionEnded { volume: smallest(), node: None }.into(),
            CsiExpansionEnded { volume: volume(), node: Some(node()) }.into(),
        ],
        other => crate::samples_cursors::samples(other),
    }
}
