//! Files of key trees. What such a file held before is overwritten with zeros before its name is given up.
//!
//! Whenever the power goes, one of these is found, and [`KeyTreeFiles::open`] ends what was begun:
//!
//! | `ID` | `ID.next` | `ID.erase` | what was going on |
//! |---|---|---|---|
//! | yes | perhaps torn | no | the next one was being written: it is destroyed, and made again |
//! | no | whole | yes | the next one takes its name |
//! | yes | no | yes | the one before was being destroyed |

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base::Uuid;
use keyring::{KeyTree, ServerSecret};

use crate::identity::{entropy, sync};

/// Its private half opens the tree that others seal for this server. It is destroyed once the tree has a file.
const ONCE: &str = "once";
const NEXT: &str = "next";
const ERASE: &str = "erase";
/// BLAKE3 at the end of a file: a flipped bit would be a key that opens nothing.
const CHECKSUM: usize = 32;
/// Zeros that are written at a time.
const ZEROS: [u8; 4096] = [0; 4096];

/// `server/key-trees` in the data directory.
#[derive(Debug)]
pub(crate) struct KeyTreeFiles {
    dir: PathBuf,
}

impl KeyTreeFiles {
    /// The files, and the trees in them.
    ///
    /// # Errors
    /// The directory cannot be used, or a file in it is no key tree.
    pub(crate) fn open(server_dir: &Path) -> io::Result<(KeyTreeFiles, Vec<KeyTree>)> {
        let files = KeyTreeFiles { dir: server_dir.join("key-trees") };
        std::fs::create_dir_all(&files.dir)?;
        sync(server_dir)?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&files.dir)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        let of_kind = |kind: &str| {
            let ending = format!(".{kind}");
            names.iter().filter_map(move |name| name.strip_suffix(&ending).map(str::to_string))
        };
        for name in of_kind(NEXT) {
            let next = files.path(&name).with_extension(NEXT);
            let is_due = !files.path(&name).exists() && files.path(&name).with_extension(ERASE).exists();
            if is_due { files.rename(&next, &files.path(&name))? } else { files.destroy(&next)? }
        }
        for name in of_kind(ERASE) {
            files.destroy(&files.path(&name).with_extension(ERASE))?;
        }
        let mut trees = Vec::new();
        for entry in std::fs::read_dir(&files.dir)? {
            let path = entry?.path();
            let id =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<Uuid>().ok());
            if let Some(id) = id {
                trees.push(read(id, &path)?);
            }
        }
        Ok((files, trees))
    }

    /// In place of the file that the tree has.
    ///
    /// # Errors
    /// The disk's: the one or the other is there.
    pub(crate) fn write(&self, tree: &KeyTree) -> io::Result<()> {
        let mut bytes = tree.to_bytes();
        let checksum = blake3::hash(&bytes);
        bytes.extend(checksum.as_bytes());
        self.replace(&self.path(&tree.id().to_string()), &bytes)
    }

    /// What the tree is to be sealed for, if it was requested and is still to come.
    ///
    /// # Errors
    /// The file cannot be read, or is no key.
    pub(crate) fn once(&self, server: Uuid) -> io::Result<Option<ServerSecret>> {
        match std::fs::read(self.path(ONCE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(bytes) => {
                let private = bytes.try_into().map_err(|_| invalid(&self.path(ONCE), "expected 32 bytes"))?;
                ServerSecret::new(server, &private).map(Some).map_err(io::Error::other)
            }
        }
    }

    /// Another key than there was.
    ///
    /// # Errors
    /// The disk's, or the system has no entropy.
    pub(crate) fn draw_once(&self, server: Uuid) -> io::Result<ServerSecret> {
        let private = entropy()?;
        self.replace(&self.path(ONCE), &private)?;
        ServerSecret::new(server, &private).map_err(io::Error::other)
    }

    /// # Errors
    /// The disk's.
    pub(crate) fn destroy_once(&self) -> io::Result<()> {
        if self.path(ONCE).exists() { self.destroy(&self.path(ONCE)) } else { Ok(()) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (next, erase) = (path.with_extension(NEXT), path.with_extension(ERASE));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        sync(&self.dir)?;
        if !path.exists() {
            return self.rename(&next, path);
        }
        self.rename(path, &erase)?;
        self.rename(&next, path)?;
        self.destroy(&erase)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)?;
        sync(&self.dir)
    }

    /// Overwrites it where it lies, as far as the file system does so.
    fn destroy(&self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        let mut left = file.metadata()?.len();
        while left > 0 {
            let part = left.min(ZEROS.len() as u64);
            file.write_all(&ZEROS[..part as usize])?;
            left -= part;
        }
        file.sync_all()?;
        std::fs::remove_file(path)?;
        sync(&self.dir)
    }
}

fn read(id: Uuid, path: &Path) -> io::Result<KeyTree> {
    let bytes = std::fs::read(path)?;
    let content = bytes.len().checked_sub(CHECKSUM).map(|at| bytes.split_at(at));
    let content = content.filter(|(content, checksum)| blake3::hash(content).as_bytes() == checksum);
    let tree = content.and_then(|(content, _)| KeyTree::from_bytes(id, content));
    tree.ok_or_else(|| {
        invalid(
            path,
            "expected a key tree: it is damaged. Moved away, this server gets the tree from another one",
        )
    })
}

fn invalid(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    /// Held open, a file shows what becomes of its bytes after its name is gone.
    fn held(path: &Path) -> File {
        File::open(path).unwrap()
    }

    fn content(mut file: File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_a_file_held_before_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (files, none) = KeyTreeFiles::open(dir.path()).unwrap();
        assert_eq!(none, []);
        let tree = KeyTree::generate().unwrap();
        files.write(&tree).unwrap();
        let before = held(&files.path(&tree.id().to_string()));
        let next = {
            let trees = keyring::KeyTrees::default();
            trees.put(tree.clone());
            trees.without(&[Uuid::from(7)]).remove(0)
        };
        files.write(&next).unwrap();
        assert!(content(before).iter().all(|byte| *byte == 0));
        assert_eq!(KeyTreeFiles::open(dir.path()).unwrap().1, [next]);

        let drawn = files.draw_once(1.into()).unwrap();
        assert_eq!(files.once(1.into()).unwrap().unwrap().public(), drawn.public());
        let once = held(&files.path(ONCE));
        files.destroy_once().unwrap();
        files.destroy_once().unwrap();
        assert_eq!(content(once), [0; 32]);
        assert!(files.once(1.into()).unwrap().is_none());
        let left: Vec<_> = std::fs::read_dir(&files.dir).unwrap().collect();
        assert_eq!(left.len(), 1, "the tree alone");
    }

    /// Each state that a power cut may leave behind leads to one of both trees, and nothing is left of the other one.
    #[test]
    fn whatever_was_begun_is_ended_at_the_next_start() {
        let (old, new) = (KeyTree::generate().unwrap(), KeyTree::generate().unwrap());
        let id = old.id();
        let file = |tree: &KeyTree| {
            let bytes = tree.to_bytes();
            [&bytes[..], blake3::hash(&bytes).as_bytes()].concat()
        };
        let (old, new) = (file(&old), file(&new));
        let torn = &new[..20];
        type Found<'a> = &'a [(&'a str, &'a [u8])];
        let cases: [(Found, &[u8]); 5] = [
            (&[("", &old), (NEXT, torn)], &old),
            (&[("", &old), (NEXT, &new)], &old),
            (&[(ERASE, &old), (NEXT, &new)], &new),
            (&[(ERASE, &old), ("", &new)], &new),
            (&[("", &old)], &old),
        ];
        for (nth, (found, expected)) in cases.into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let home = dir.path().join("key-trees");
            std::fs::create_dir(&home).unwrap();
            let mut lost = Vec::new();
            for (kind, bytes) in found {
                let path = home.join(id.to_string()).with_extension(kind);
                std::fs::write(&path, bytes).unwrap();
                if bytes != &expected {
                    lost.push(held(&path));
                }
            }
            let (_, trees) = KeyTreeFiles::open(dir.path()).unwrap();
            assert_eq!(
                trees.iter().map(KeyTree::to_bytes).collect::<Vec<_>>(),
                [&expected[..expected.len() - 32]],
                "{nth}"
            );
            assert_eq!(std::fs::read_dir(&home).unwrap().count(), 1, "{nth}");
            assert!(lost.into_iter().flat_map(content).all(|byte| byte == 0), "{nth}");
        }
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (files, _) = KeyTreeFiles::open(dir.path()).unwrap();
        let tree = KeyTree::generate().unwrap();
        files.write(&tree).unwrap();
        let path = files.path(&tree.id().to_string());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[10] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = KeyTreeFiles::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&tree.id().to_string()) && error.contains("damaged"), "{error}");
    }
}
