//! What plugins can do, and how volumes are used, as one reads it off the messages.

use crate::messages::{
    AccessMode, AccessType, GetCapabilitiesResponse, MountVolume, Nothing, VolumeCapability,
};

/// The words that job files use, with the numbers of the interface.
const ACCESS_MODES: [(&str, i32); 5] = [
    ("single-node-writer", 1),
    ("single-node-reader-only", 2),
    ("multi-node-reader-only", 3),
    ("multi-node-single-writer", 4),
    ("multi-node-multi-writer", 5),
];

/// The number of an access mode; `None` for a word that is none.
pub fn access_mode(word: &str) -> Option<i32> {
    ACCESS_MODES.iter().find(|(known, _)| *known == word).map(|(_, number)| *number)
}

/// How a volume is used. `attachment` is `block-device` or `file-system`; only the latter has a type and flags.
///
/// # Errors
/// Names what is no such word.
pub fn capability(
    access: &str,
    attachment: &str,
    fs_type: &str,
    mount_flags: &[String],
) -> Result<VolumeCapability, String> {
    let unknown = || format!("access_mode \"{access}\": expected one of those that CSI volumes have");
    let mode = access_mode(access).ok_or_else(unknown)?;
    let access_type = match attachment {
        "block-device" => AccessType::Block(Nothing {}),
        "file-system" => {
            AccessType::Mount(MountVolume { fs_type: fs_type.to_string(), mount_flags: mount_flags.to_vec() })
        }
        other => {
            return Err(format!("attachment_mode \"{other}\": expected \"file-system\" or \"block-device\""));
        }
    };
    Ok(VolumeCapability { access_type: Some(access_type), access_mode: Some(AccessMode { mode }) })
}

macro_rules! capabilities {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $number:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(pub $field: bool,)+ }

        impl $name {
            pub(crate) fn of(answer: &GetCapabilitiesResponse) -> $name {
                let has = |number: i32| {
                    let mut all = answer.capabilities.iter().filter_map(|one| one.rpc.as_ref());
                    all.any(|rpc| rpc.kind == number)
                };
                $name { $($field: has($number),)+ }
            }
        }
    };
}

capabilities! {
    /// What a controller plugin can do.
    ControllerCapabilities {
        create_delete = 1,
        publish = 2,
        list_volumes = 3,
        get_capacity = 4,
        snapshots = 5,
        list_snapshots = 6,
        clone_volume = 7,
        publish_readonly = 8,
        expand = 9,
        list_published_nodes = 10,
        condition = 11,
        get_volume = 12,
    }
}

capabilities! {
    /// What a node plugin can do.
    NodeCapabilities {
        stage = 1,
        stats = 2,
        expand = 3,
        condition = 4,
    }
}
