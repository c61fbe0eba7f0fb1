use model::{VolumeKey, VolumeKind};

use super::columns::{Column, Fault, Reader, Writer, state};
use crate::volume::{Document, Registered, Volumes};

/// All volumes in the order of their keys.
pub(super) fn encode(volumes: &Volumes) -> Vec<u8> {
    let mut to = Writer::default();
    to.u8s(volumes.iter().map(|(key, _)| key.kind as u8));
    to.texts(volumes.iter().map(|(key, _)| key.namespace.as_bytes()));
    to.texts(volumes.iter().map(|(key, _)| key.id.as_bytes()));
    to.texts(volumes.iter().map(|(_, volume)| volume.document.bytes()));
    to.indexes(volumes.iter().map(|(_, volume)| volume.created));
    to.indexes(volumes.iter().map(|(_, volume)| volume.modified));
    to.times(volumes.iter().map(|(_, volume)| volume.create_time));
    to.times(volumes.iter().map(|(_, volume)| volume.modify_time));
    to.0
}

pub(super) fn decode(bytes: &[u8], len: usize) -> Result<Vec<(VolumeKey, Registered)>, Fault> {
    let mut from = Reader(bytes);
    let kinds = from.u8s(len)?;
    let (namespaces, ids) = (from.strings(len)?, from.strings(len)?);
    let documents = from.texts(len)?;
    let (created, modified): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let (create_time, modify_time): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    from.end()?;
    let row = |at: usize| {
        let kind = state(VolumeKind::from_number, kinds[at])?;
        let volume = Registered {
            document: Document::new(kind, documents[at].to_vec()),
            created: created.index(at),
            modified: modified.index(at),
            create_time: create_time.time(at),
            modify_time: modify_time.time(at),
        };
        Ok((VolumeKey::new(kind, namespaces[at], ids[at]), volume))
    };
    (0..len).map(row).collect()
}
