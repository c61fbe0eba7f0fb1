//! Where volumes are on the host, and what that is called inside of the plugin's task.
//!
//! ```text
//! <state_dir>/csi/
//!   sockets/<alloc>/<task>/csi.sock                            the plugin answers there
//!   mounts/<plugin>/staging/<namespace>/<volume>/<usage>       prepared once for all that use it so
//!   mounts/<plugin>/per-alloc/<alloc>/<namespace>/<volume>/<usage>   what tasks mount
//! ```
//!
//! They follow from names alone: an agent that was killed finds what is left of its predecessor.

use std::io;
use std::path::{Path, PathBuf};

use model::document::VolumeRequest;

/// The name of a plugin's socket in its directory.
pub const SOCKET: &str = "csi.sock";

/// The directory of a plugin's socket.
pub fn socket_dir(state_dir: &Path, alloc_id: &str, task: &str) -> PathBuf {
    state_dir.join("csi/sockets").join(alloc_id).join(component(task))
}

/// Below it everything of one plugin is mounted.
pub fn mounts(state_dir: &Path, plugin_id: &str) -> PathBuf {
    state_dir.join("csi/mounts").join(component(plugin_id))
}

/// Any name as the name of one file. What a name of the kind has stays readable.
fn component(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_[]".contains(&byte);
    let mut text = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if at > 0 => text.push('.'),
            byte if is_plain(byte) => text.push(char::from(byte)),
            byte => text += &format!("%{byte:02X}"),
        }
    }
    if text.is_empty() { "%".to_string() } else { text }
}

/// Who uses a volume in which way.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    pub plugin_id: String,
    pub namespace: String,
    pub volume_id: String,
    /// As the plugin calls it.
    pub external_id: String,
    pub alloc_id: String,
    pub read_only: bool,
    pub access_mode: String,
    pub attachment_mode: String,
}

impl Usage {
    /// Whether these are ways of the same request.
    pub fn is_of(&self, request: &VolumeRequest) -> bool {
        self.read_only == request.read_only
            && self.access_mode == request.access_mode
            && self.attachment_mode == request.attachment_mode
    }

    /// Allocations with the same one share what is staged.
    fn way(&self) -> String {
        let how = if self.read_only { "ro" } else { "rw" };
        component(&format!("{how}-{}-{}", self.attachment_mode, self.access_mode))
    }

    fn of_volume(&self) -> PathBuf {
        Path::new(&component(&self.namespace)).join(component(&self.volume_id)).join(self.way())
    }

    pub fn staging(&self, state_dir: &Path) -> PathBuf {
        mounts(state_dir, &self.plugin_id).join("staging").join(self.of_volume())
    }

    pub fn target(&self, state_dir: &Path) -> PathBuf {
        self.per_alloc(state_dir).join(component(&self.alloc_id)).join(self.of_volume())
    }

    fn per_alloc(&self, state_dir: &Path) -> PathBuf {
        mounts(state_dir, &self.plugin_id).join("per-alloc")
    }

    /// Whether another allocation needs what is staged. Its directory is there before anything is mounted for it, and as
    /// long as anything is.
    ///
    /// # Errors
    /// When the directory cannot be read: then nothing may be undone.
    pub fn is_shared(&self, state_dir: &Path) -> io::Result<bool> {
        let own = component(&self.alloc_id);
        for entry in std::fs::read_dir(self.per_alloc(state_dir))? {
            let entry = entry?;
            if entry.file_name() != *own && has_way(&entry.path().join(self.of_volume())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes what is left of the directories when the volume is unmounted. What is still mounted cannot be removed, and no
    /// file is touched.
    ///
    /// # Errors
    /// Something is mounted or stored there.
    pub fn remove_target(&self, state_dir: &Path) -> io::Result<()> {
        let target = self.target(state_dir);
        remove(&target)?;
        remove_marker(&target)?;
        remove_empty_parents(&target, &self.per_alloc(state_dir));
        Ok(())
    }

    /// Makes the directory above the target, and a mark that it is used.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn prepare_target(&self, state_dir: &Path) -> io::Result<PathBuf> {
        let target = self.target(state_dir);
        std::fs::create_dir_all(target.parent().unwrap_or(&target))?;
        std::fs::write(marker(&target), b"")?;
        Ok(target)
    }

    /// # Errors
    /// As above.
    pub fn remove_staging(&self, state_dir: &Path) -> io::Result<()> {
        let staging = self.staging(state_dir);
        remove(&staging)?;
        remove_empty_parents(&staging, &mounts(state_dir, &self.plugin_id).join("staging"));
        Ok(())
    }
}

/// Beside a target: making the target is the plugin's business, and whether it is there says nothing.
fn marker(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".used");
    target.with_file_name(name)
}

fn has_way(target: &Path) -> bool {
    marker(target).exists()
}

fn remove_marker(target: &Path) -> io::Result<()> {
    absent(std::fs::remove_file(marker(target)))
}

/// An empty directory, a link, or the place of a device.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => absent(std::fs::remove_dir(path)),
        Ok(_) => absent(std::fs::remove_file(path)),
    }
}

fn absent(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remove_empty_parents(path: &Path, up_to: &Path) {
    let parents = path.ancestors().skip(1).take_while(|parent| *parent != up_to);
    for parent in parents {
        if std::fs::remove_dir(parent).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(alloc_id: &str) -> Usage {
        Usage {
            plugin_id: "ebs".into(),
            namespace: "default".into(),
            volume_id: "data[0]".into(),
            external_id: "vol-1".into(),
            alloc_id: alloc_id.into(),
            read_only: false,
            access_mode: "single-node-writer".into(),
            attachment_mode: "file-system".into(),
        }
    }

    #[test]
    fn names_of_strangers_lead_nowhere_else() {
        assert_eq!(component("data[0]"), "data[0]");
        assert_eq!(component("../../etc"), "%2E.%2F..%2Fetc");
        assert_eq!(component(".."), "%2E.");
        assert_eq!(component("a/b c"), "a%2Fb%20c");
        assert_eq!(component(""), "%");
        let state = Path::new("/state");
        let own = Usage { volume_id: "../x".into(), ..usage("a") };
        let target = own.target(state);
        assert!(target.starts_with("/state/csi/mounts/ebs/per-alloc/a/default"));
        assert_eq!(target.components().count(), usage("a").target(state).components().count());
    }

    #[test]
    fn what_is_staged_is_shared_as_long_as_another_has_its_mark() {
        let base = tempfile::tempdir().unwrap();
        let (one, other) = (usage("a"), usage("b"));
        assert_eq!(one.staging(base.path()), other.staging(base.path()));
        one.prepare_target(base.path()).unwrap();
        assert!(!one.is_shared(base.path()).unwrap());
        other.prepare_target(base.path()).unwrap();
        assert!(one.is_shared(base.path()).unwrap());
        let reader = Usage { read_only: true, ..usage("c") };
        assert!(!reader.is_shared(base.path()).unwrap(), "in another way");
        other.remove_target(base.path()).unwrap();
        other.remove_target(base.path()).unwrap();
        assert!(!one.is_shared(base.path()).unwrap());
        std::fs::create_dir(one.target(base.path())).unwrap();
        std::fs::write(one.target(base.path()).join("precious"), "x").unwrap();
        one.remove_target(base.path()).unwrap_err();
        assert!(one.target(base.path()).join("precious").exists(), "nothing that is stored is removed");
    }
}
