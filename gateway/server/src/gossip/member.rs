//! A server as gossip describes it, and how that is written into a packet.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::Uuid;
use bytes::{Buf, BufMut};

/// Longest name or address in bytes. Two whole members and two references still fit into one packet.
pub const TEXT_MAX: usize = 96;

/// What a server sends about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Drawn once for a data directory. A server that lost its directory comes back as another one.
    pub id: Uuid,
    /// Grows whenever the server starts or changes its description: the highest one counts.
    pub generation: u64,
    /// Its number in raft.
    pub number: u64,
    /// Unique in its region.
    pub name: String,
    pub region: String,
    pub datacenter: String,
    /// Where it takes gossip.
    pub serf: SocketAddr,
    /// `HOST:PORT` of its node and server RPC.
    pub rpc: String,
    pub http: String,
    pub version: String,
    /// Servers it waits for before a cluster is founded; 0 never founds one.
    pub bootstrap_expect: u32,
    /// Its log is not empty: a cluster was founded, here or by the server that sent the log.
    pub has_log: bool,
    pub parting: Parting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    Staying,
    /// Is about to leave, or was made to by an operator: what follows is no failure.
    Leaving,
    /// As `Leaving`, and no longer shown once it has gone.
    Pruned,
}

impl Member {
    /// Its name among the servers of all regions.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.name, self.region)
    }

    /// The first text that is too long or empty, by the name of its field.
    pub(super) fn unfit(&self) -> Option<&'static str> {
        let (names, fields) = (["name", "region", "datacenter", "rpc", "http", "version"], self.texts());
        let unfit = |text: &&String| text.is_empty() || text.len() > TEXT_MAX;
        fields.iter().position(unfit).map(|at| names[at])
    }

    fn texts(&self) -> [&String; 6] {
        [&self.name, &self.region, &self.datacenter, &self.rpc, &self.http, &self.version]
    }
}

/// Why bytes are no member, or cannot be taken as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CodecError {
    #[error("the packet ends within an item")]
    Short,
    #[error("{0} is no known {1}")]
    Unknown(u8, &'static str),
    #[error("a text is not UTF-8")]
    Text,
    #[error("there is no room in the packet")]
    Full,
    #[error("more servers than this one keeps")]
    TooMany,
}

impl From<bytes::TryGetError> for CodecError {
    fn from(_: bytes::TryGetError) -> CodecError {
        CodecError::Short
    }
}

const HAS_LOG: u8 = 1;
const LEAVING: u8 = 2;
const PRUNED: u8 = 4;

/// A member as gossip identifies members: by server and generation.
#[derive(Clone, Debug)]
pub struct Identity(pub Arc<Member>);

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        (self.0.id, self.0.generation) == (other.0.id, other.0.generation)
    }
}

impl Eq for Identity {}

impl foca::Identity for Identity {
    type Addr = Uuid;

    /// A server that was taken for dead comes back with a newer generation, unless it is leaving.
    fn renew(&self) -> Option<Identity> {
        if self.0.parting != Parting::Staying {
            return None;
        }
        let generation = self.0.generation.checked_add(1)?;
        Some(Identity(Arc::new(Member { generation, ..Member::clone(&self.0) })))
    }

    fn addr(&self) -> Uuid {
        self.0.id
    }

    fn win_addr_conflict(&self, other: &Identity) -> bool {
        self.0.generation > other.0.generation
    }
}

impl Identity {
    /// Enough to compare with and to send to.
    fn reference(id: Uuid, generation: u64, serf: SocketAddr) -> Identity {
        Identity(Arc::new(Member {
            id,
            generation,
            number: 0,
            name: String::new(),
            region: String::new(),
            datacenter: String::new(),
            serf,
            rpc: String::new(),
            http: String::new(),
            version: String::new(),
            bootstrap_expect: 0,
            has_log: false,
            parting: Parting::Staying,
        }))
    }

    fn encode_reference(&self, mut to: impl BufMut) {
        to.put_slice(&self.0.id.0);
        to.put_u64_le(self.0.generation);
        put_address(&mut to, self.0.serf);
    }

    fn decode_reference(from: &mut impl Buf) -> Result<Identity, CodecError> {
        let (id, generation) = (get_id(from)?, from.try_get_u64_le()?);
        Ok(Identity::reference(id, generation, get_address(from)?))
    }
}

/// | bytes | what |
/// |---|---|
/// | 16 | id |
/// | 8, 8 | generation, number |
/// | 1 | has a log 1, leaving 2, pruned 4 |
/// | 4 | bootstrap_expect |
/// | 7 or 19 | serf address: 4 or 6, the IP address, the port |
/// | 1 + n each | name, region, datacenter, rpc, http, version |
pub(super) fn encode(member: &Member, to: &mut impl BufMut) {
    to.put_slice(&member.id.0);
    to.put_u64_le(member.generation);
    to.put_u64_le(member.number);
    let parting = match member.parting {
        Parting::Staying => 0,
        Parting::Leaving => LEAVING,
        Parting::Pruned => PRUNED,
    };
    to.put_u8(parting | if member.has_log { HAS_LOG } else { 0 });
    to.put_u32_le(member.bootstrap_expect);
    put_address(to, member.serf);
    for text in member.texts() {
        put_text(to, text);
    }
}

/// # Errors
/// [`CodecError`] if the bytes are no member, or a text is longer than [`TEXT_MAX`].
pub(super) fn decode(from: &mut impl Buf) -> Result<Member, CodecError> {
    let id = get_id(from)?;
    let (generation, number) = (from.try_get_u64_le()?, from.try_get_u64_le()?);
    let flags = from.try_get_u8()?;
    let parting = match flags & !HAS_LOG {
        0 => Parting::Staying,
        LEAVING => Parting::Leaving,
        PRUNED => Parting::Pruned,
        _ => return Err(CodecError::Unknown(flags, "set of flags")),
    };
    let bootstrap_expect = from.try_get_u32_le()?;
    let serf = get_address(from)?;
    Ok(Member {
        id,
        generation,
        number,
        name: get_text(from)?,
        region: get_text(from)?,
        datacenter: get_text(from)?,
        serf,
        rpc: get_text(from)?,
        http: get_text(from)?,
        version: get_text(from)?,
        bootstrap_expect,
        has_log: flags & HAS_LOG != 0,
        parting,
    })
}

fn encoded_len(member: &Member) -> usize {
    let address = if member.serf.is_ipv4() { 7 } else { 19 };
    16 + 8 + 8 + 1 + 4 + address + member.texts().iter().map(|text| 1 + text.len()).sum::<usize>()
}

fn put_address(to: &mut impl BufMut, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            to.put_u8(4);
            to.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            to.put_u8(6);
            to.put_slice(&ip.octets());
        }
    }
    to.put_u16_le(address.port());
}

fn get_address(from: &mut impl Buf) -> Result<SocketAddr, CodecError> {
    let ip = match from.try_get_u8()? {
        4 => IpAddr::from(get_bytes::<4>(from)?),
        6 => IpAddr::from(get_bytes::<16>(from)?),
        other => return Err(CodecError::Unknown(other, "kind of address")),
    };
    Ok(SocketAddr::new(ip, from.try_get_u16_le()?))
}

/// The caller has checked the length: [`Member::unfit`].
pub(super) fn put_text(to: &mut impl BufMut, text: &str) {
    to.put_u8(u8::try_from(text.len()).expect("texts were found short enough"));
    to.put_slice(text.as_bytes());
}

pub(super) fn get_text(from: &mut impl Buf) -> Result<String, CodecError> {
    let length = usize::from(from.try_get_u8()?);
    if length > from.remaining() {
        return Err(CodecError::Short);
    }
    if length > TEXT_MAX {
        return Err(CodecError::Text);
    }
    let mut bytes = vec![0; length];
    from.copy_to_slice(&mut bytes);
    String::from_utf8(bytes).map_err(|_| CodecError::Text)
}

fn get_id(from: &mut impl Buf) -> Result<Uuid, CodecError> {
    get_bytes(from).map(Uuid)
}

pub(super) fn get_bytes<const N: usize>(from: &mut impl Buf) -> Result<[u8; N], CodecError> {
    let mut bytes = [0; N];
    from.try_copy_to_slice(&mut bytes)?;
    Ok(bytes)
}

/// Writes and reads what foca sends. Only the sender and the members that changed are sent whole.
///
/// Header: sender, incarnation (2), recipient's reference, message kind (1), probe number (1) and a reference where
/// the kind has them. Member: member, incarnation (2), state (1).
pub(super) struct Codec<Room> {
    /// Whether a server may be taken in.
    pub room: Room,
}

impl<Room: FnMut(Uuid) -> bool> foca::Codec<Identity> for Codec<Room> {
    type Error = CodecError;

    fn encode_header(
        &mut self,
        header: &foca::Header<Identity>,
        mut to: impl BufMut,
    ) -> Result<(), CodecError> {
        use foca::Message::*;
        // Two references and the fixed fields take less than 100 bytes.
        if to.remaining_mut() < encoded_len(&header.src.0) + 100 {
            return Err(CodecError::Full);
        }
        encode(&header.src.0, &mut to);
        to.put_u16_le(header.src_incarnation);
        header.dst.encode_reference(&mut to);
        let mut probe = |kind: u8, number: u8, other: Option<&Identity>| {
            to.put_slice(&[kind, number]);
            if let Some(other) = other {
                other.encode_reference(&mut to);
            }
        };
        match &header.message {
            Ping(number) => probe(0, *number, None),
            Ack(number) => probe(1, *number, None),
            PingReq { target, probe_number } => probe(2, *probe_number, Some(target)),
            IndirectPing { origin, probe_number } => probe(3, *probe_number, Some(origin)),
            IndirectAck { target, probe_number } => probe(4, *probe_number, Some(target)),
            ForwardedAck { origin, probe_number } => probe(5, *probe_number, Some(origin)),
            Announce => to.put_u8(6),
            Feed => to.put_u8(7),
            Gossip => to.put_u8(8),
            Broadcast => to.put_u8(9),
            TurnUndead => to.put_u8(10),
        }
        Ok(())
    }

    fn decode_header(&mut self, mut from: impl Buf) -> Result<foca::Header<Identity>, CodecError> {
        use foca::Message::*;
        let src = decode(&mut from)?;
        if !(self.room)(src.id) {
            return Err(CodecError::TooMany);
        }
        let src_incarnation = from.try_get_u16_le()?;
        let dst = Identity::decode_reference(&mut from)?;
        let kind = from.try_get_u8()?;
        let probe_number = if kind < 6 { from.try_get_u8()? } else { 0 };
        let mut other = || Identity::decode_reference(&mut from);
        let message = match kind {
            0 => Ping(probe_number),
            1 => Ack(probe_number),
            2 => PingReq { target: other()?, probe_number },
            3 => IndirectPing { origin: other()?, probe_number },
            4 => IndirectAck { target: other()?, probe_number },
            5 => ForwardedAck { origin: other()?, probe_number },
            6 => Announce,
            7 => Feed,
            8 => Gossip,
            9 => Broadcast,
            10 => TurnUndead,
            other => return Err(CodecError::Unknown(other, "message")),
        };
        Ok(foca::Header { src: Identity(Arc::new(src)), src_incarnation, dst, message })
    }

    fn encode_member(
        &mut self,
        member: &foca::Member<Identity>,
        mut to: impl BufMut,
    ) -> Result<(), CodecError> {
        if to.remaining_mut() < encoded_len(&member.id().0) + 3 {
            return Err(CodecError::Full);
        }
        encode(&member.id().0, &mut to);
        to.put_u16_le(member.incarnation());
        to.put_u8(match member.state() {
            foca::State::Alive => 0,
            foca::State::Suspect => 1,
            foca::State::Down => 2,
        });
        Ok(())
    }

    fn decode_member(&mut self, mut from: impl Buf) -> Result<foca::Member<Identity>, CodecError> {
        let member = decode(&mut from)?;
        if !(self.room)(member.id) {
            return Err(CodecError::TooMany);
        }
        let incarnation = from.try_get_u16_le()?;
        let state = match from.try_get_u8()? {
            0 => foca::State::Alive,
            1 => foca::State::Suspect,
            2 => foca::State::Down,
            other => return Err(CodecError::Unknown(other, "state")),
        };
        Ok(foca::Member::new(Identity(Arc::new(member)), incarnation, state))
    }
}

#[cfg(test)]
mod tests {
    use foca::Identity as _;

    use super::*;

    #[test]
    fn a_server_taken_for_dead_comes_back_unless_it_leaves() {
        let mut own = Identity::reference(Uuid::from(1), 7, SocketAddr::from(([10, 0, 0, 1], 4648)));
        let newer = own.renew().unwrap();
        assert!(newer.win_addr_conflict(&own) && newer != own && newer.0.generation == 8);
        Arc::get_mut(&mut own.0).unwrap().parting = Parting::Leaving;
        assert!(own.renew().is_none());
    }
}
