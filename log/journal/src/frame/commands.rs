//! The command table: request id (16 bytes), command kind (2), sort of actor (1), length of the actor's name
//! (2), the name. A node's name is its id, 16 bytes.

use base::Uuid;
use model::{Actor, CommandRecord, NodeId, RequestId};
use rkyv::util::AlignedVec;

use super::FrameError;

const FIXED: usize = 21;

// Numbers on disk, never reused.
const ANONYMOUS: u8 = 0;
const NODE: u8 = 1;
const SERVER: u8 = 2;
const TOKEN: u8 = 3;

pub(super) fn write<const ALIGN: usize>(bytes: &mut AlignedVec<ALIGN>, record: &CommandRecord) {
    let (sort, name) = match &record.actor {
        Actor::Anonymous => (ANONYMOUS, &[] as &[u8]),
        Actor::Node(id) => (NODE, id.0.0.as_slice()),
        Actor::Server(name) => (SERVER, name.as_bytes()),
        Actor::Token(accessor) => (TOKEN, accessor.as_bytes()),
    };
    let len = u16::try_from(name.len()).expect("an actor's name is short");
    bytes.extend_from_slice(&record.request.0.0);
    bytes.extend_from_slice(&record.kind.to_le_bytes());
    bytes.push(sort);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(name);
}

pub(super) fn read(mut table: &[u8], count: u16) -> Result<Vec<CommandRecord>, FrameError> {
    let mut records = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (fixed, rest) = table.split_at_checked(FIXED).ok_or(SHORT)?;
        let len = usize::from(u16::from_le_bytes([fixed[19], fixed[20]]));
        let (name, rest) = rest.split_at_checked(len).ok_or(SHORT)?;
        let request = RequestId(Uuid(fixed[..16].try_into().expect("16 bytes were sliced")));
        let kind = u16::from_le_bytes([fixed[16], fixed[17]]);
        records.push(CommandRecord { request, kind, actor: actor(fixed[18], name)? });
        table = rest;
    }
    if !table.is_empty() {
        return Err(FrameError::Malformed("the command table is longer than its commands"));
    }
    Ok(records)
}

const SHORT: FrameError = FrameError::Malformed("the command table ends within a command");

fn actor(sort: u8, name: &[u8]) -> Result<Actor, FrameError> {
    let text = || {
        let text =
            std::str::from_utf8(name).map_err(|_| FrameError::Malformed("an actor's name is not text"))?;
        Ok(text.to_string())
    };
    match sort {
        ANONYMOUS if name.is_empty() => Ok(Actor::Anonymous),
        NODE => {
            let id = name.try_into().map_err(|_| FrameError::Malformed("a node's id has 16 bytes"))?;
            Ok(Actor::Node(NodeId(Uuid(id))))
        }
        SERVER => text().map(Actor::Server),
        TOKEN => text().map(Actor::Token),
        _ => Err(FrameError::Malformed("the sort of actor is not known")),
    }
}
