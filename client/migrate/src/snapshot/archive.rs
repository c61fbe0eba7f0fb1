use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::SnapshotError;

/// Longest of the files beside the state.
const SMALL_FILE_MAX: u64 = 64 << 10;

/// Most zeros behind the last file that are read.
const PADDING_MAX: u64 = 1 << 20;

/// Bytes of the state that are held at a time, besides the record that is arriving.
const PIECE: usize = 256 << 10;

const META: &str = "meta.json";
const STATE: &str = "state.bin";
const SUMS: &str = "SHA256SUMS";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Meta {
    index: u64,
}

/// Unpacks the gzip-compressed tar that a server wrote, hands on the state in pieces, and checks all of it by its checksums.
/// Returns the index of the state.
///
/// # Errors
/// What was handed on is not to be used after any of them.
pub(super) fn unpack(
    file: impl Read,
    take: &mut dyn FnMut(&[u8]) -> Result<(), SnapshotError>,
) -> Result<u64, SnapshotError> {
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let (mut digests, mut index, mut sums) = (BTreeMap::new(), None, None);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        match name.as_str() {
            STATE => drop(digests.insert(name, hand_on(&mut entry, take)?)),
            META => {
                let text = small(&mut entry, META)?;
                let meta: Meta = serde_json::from_slice(&text).map_err(SnapshotError::Meta)?;
                index = Some(meta.index);
                digests.insert(name, format!("{:x}", Sha256::digest(&text)));
            }
            SUMS => sums = Some(small(&mut entry, SUMS)?),
            _ => return Err(SnapshotError::Unexpected(name)),
        }
    }
    // A tar ends before its file does: what compresses it has a checksum at the end.
    io::copy(&mut archive.into_inner().take(PADDING_MAX), &mut io::sink())?;
    let index = index.ok_or(SnapshotError::Missing(META))?;
    let sums = sums.ok_or(SnapshotError::Missing(SUMS))?;
    let stated = stated(&String::from_utf8_lossy(&sums));
    for file in [META, STATE] {
        let digest = digests.get(file).ok_or(SnapshotError::Missing(file))?;
        if stated.get(file) != Some(digest) {
            return Err(SnapshotError::Checksum(file));
        }
    }
    Ok(index)
}

fn hand_on(
    from: &mut impl Read,
    take: &mut dyn FnMut(&[u8]) -> Result<(), SnapshotError>,
) -> Result<String, SnapshotError> {
    let (mut digest, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(format!("{:x}", digest.finalize())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        digest.update(&piece[..read]);
        take(&piece[..read])?;
    }
}

fn small(from: &mut impl Read, name: &'static str) -> Result<Vec<u8>, SnapshotError> {
    let mut text = Vec::new();
    from.take(SMALL_FILE_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > SMALL_FILE_MAX {
        return Err(SnapshotError::TooLong(name));
    }
    Ok(text)
}

/// Lines as `sha256sum` writes them: the digest in hexadecimal, two spaces, the file.
fn stated(sums: &str) -> BTreeMap<String, String> {
    let lines = sums.lines().filter_map(|line| line.split_once(char::is_whitespace));
    lines.map(|(digest, file)| (file.trim_start().to_string(), digest.to_lowercase())).collect()
}
