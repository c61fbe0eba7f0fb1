//! The command table: request id (16 bytes), command kind (2), sort of actor (1), length of the actor's name
//! (2), the name. A node's name is its id, 16 bytes. That of a caller is the length of the address (1), the address,
//! the length of the accessor (2), the accessor, the token's name; where the caller's program is known, the length of its
//! name (2) and that name come before all of this. Who is only anonymous, only has an accessor, or no program, is written
//! as by releases that knew no more.

use std::net::IpAddr;

use base::Uuid;
use model::{Actor, Caller, CommandRecord, NodeId, RequestId};
use rkyv::util::AlignedVec;

use super::FrameError;

const FIXED: usize = 21;

// Numbers on disk, never reused.
const ANONYMOUS: u8 = 0;
const NODE: u8 = 1;
const SERVER: u8 = 2;
const TOKEN: u8 = 3;
const CALLER: u8 = 4;
const CALLER_WITH_AGENT: u8 = 5;

pub(super) fn write<const ALIGN: usize>(bytes: &mut AlignedVec<ALIGN>, record: &CommandRecord) {
    let described;
    let (sort, name) = match &record.actor {
        Actor::Node(id) => (NODE, id.0.0.as_slice()),
        Actor::Server(name) => (SERVER, name.as_bytes()),
        Actor::Caller(Caller { accessor, name, address: None, agent })
            if name.is_empty() && agent.is_empty() =>
        {
            (if accessor.is_empty() { ANONYMOUS } else { TOKEN }, accessor.as_bytes())
        }
        Actor::Caller(caller) => {
            described = describe(caller);
            let sort = if caller.agent.is_empty() { CALLER } else { CALLER_WITH_AGENT };
            (sort, described.as_slice())
        }
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
    match sort {
        ANONYMOUS if name.is_empty() => Ok(Actor::ANONYMOUS),
        NODE => {
            let id = name.try_into().map_err(|_| FrameError::Malformed("a node's id has 16 bytes"))?;
            Ok(Actor::Node(NodeId(Uuid(id))))
        }
        SERVER => text(name).map(Actor::Server),
        TOKEN => Ok(Actor::Caller(Caller { accessor: text(name)?, ..Caller::default() })),
        CALLER => caller(name).map(Actor::Caller),
        CALLER_WITH_AGENT => {
            let (agent, rest) = prefixed(name)?;
            Ok(Actor::Caller(Caller { agent: text(agent)?, ..caller(rest)? }))
        }
        _ => Err(FrameError::Malformed("the sort of actor is not known")),
    }
}

fn describe(caller: &Caller) -> Vec<u8> {
    let address = match caller.address {
        None => Vec::new(),
        Some(IpAddr::V4(address)) => address.octets().to_vec(),
        Some(IpAddr::V6(address)) => address.octets().to_vec(),
    };
    let mut bytes = Vec::new();
    if !caller.agent.is_empty() {
        prefix(&mut bytes, &caller.agent);
    }
    bytes.push(address.len() as u8);
    bytes.extend(address);
    prefix(&mut bytes, &caller.accessor);
    bytes.extend_from_slice(caller.name.as_bytes());
    bytes
}

/// The length of the text (2), and the text.
fn prefix(bytes: &mut Vec<u8>, text: &str) {
    let len = u16::try_from(text.len()).expect("what is known of a caller is short");
    bytes.extend(len.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn prefixed(bytes: &[u8]) -> Result<(&[u8], &[u8]), FrameError> {
    let (len, rest) = bytes.split_first_chunk().ok_or(ENDS_EARLY)?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*len))).ok_or(ENDS_EARLY)
}

const ENDS_EARLY: FrameError = FrameError::Malformed("a caller ends early");

fn caller(bytes: &[u8]) -> Result<Caller, FrameError> {
    let (len, rest) = bytes.split_first().ok_or(ENDS_EARLY)?;
    let (address, rest) = rest.split_at_checked(usize::from(*len)).ok_or(ENDS_EARLY)?;
    let address = match address.len() {
        0 => None,
        4 => <[u8; 4]>::try_from(address).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(address).ok().map(IpAddr::from),
        _ => return Err(FrameError::Malformed("an address has 4 or 16 bytes")),
    };
    let (accessor, name) = prefixed(rest)?;
    Ok(Caller { accessor: text(accessor)?, name: text(name)?, address, agent: String::new() })
}

fn text(bytes: &[u8]) -> Result<String, FrameError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| FrameError::Malformed("an actor's name is not text"))?;
    Ok(text.to_string())
}
