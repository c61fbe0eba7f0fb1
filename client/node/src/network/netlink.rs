//! Netlink: how the kernel is asked for links, addresses, routes and packet filters.
//!
//! Requests block for as long as the kernel takes, which is short; a socket belongs to the network namespace of the
//! thread that opens it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size_force, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

pub const REQUEST: u16 = 0x1;
pub const ACK: u16 = 0x4;
pub const EXCL: u16 = 0x200;
pub const CREATE: u16 = 0x400;
const DUMP: u16 = 0x300;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const NESTED: u16 = 0x8000;
const HEADER_BYTES: usize = 16;

/// How long the kernel may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// As much as one request may hold: the filters of a whole node.
const SEND_BYTES: usize = 64 * 1024 * 1024;

/// What is received at once; the kernel sends no longer pieces.
const RECEIVE_BYTES: usize = 64 * 1024;

/// Attributes of a message: numbers with values, some of which hold attributes.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    pub fn new() -> Attributes {
        Attributes::default()
    }

    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Attributes {
        let length = u16::try_from(value.len() + 4).expect("callers split what is longer");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn number(self, kind: u16, value: u32) -> Attributes {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Packet filters have theirs in the order of the network.
    pub fn big_endian(self, kind: u16, value: u32) -> Attributes {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub fn text(self, kind: u16, value: &str) -> Attributes {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub fn nested(self, kind: u16, inner: Attributes) -> Attributes {
        self.bytes(kind | NESTED, &inner.0)
    }

    /// `header` first: for attributes that hold a whole request.
    pub fn nested_after(self, kind: u16, header: &[u8], inner: Attributes) -> Attributes {
        let mut bytes = header.to_vec();
        bytes.extend(inner.0);
        self.bytes(kind | NESTED, &bytes)
    }
}

/// The attributes in received bytes.
pub fn parse(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let Some((head, _)) = bytes.split_first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & 0x3fff;
        let Some(value) = bytes.get(4..length) else { break };
        found.push((kind, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Which part of the kernel is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Links, addresses and routes.
    Route,
    /// Packet filters.
    Netfilter,
}

/// A request, or a part of one.
#[derive(Clone, Debug)]
pub struct Message {
    pub kind: u16,
    pub flags: u16,
    /// The fixed part before the attributes.
    pub header: Vec<u8>,
    pub attributes: Attributes,
}

impl Message {
    fn encode(&self, sequence: u32, out: &mut Vec<u8>) {
        let length = HEADER_BYTES + self.header.len() + self.attributes.0.len();
        out.extend((length as u32).to_ne_bytes());
        out.extend(self.kind.to_ne_bytes());
        out.extend(self.flags.to_ne_bytes());
        out.extend(sequence.to_ne_bytes());
        out.extend(0_u32.to_ne_bytes());
        out.extend(&self.header);
        out.extend(&self.attributes.0);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// One message of an answer.
struct Received {
    kind: u16,
    sequence: u32,
    body: Vec<u8>,
}

impl Received {
    /// The kernel's decision, if that is what this is.
    fn decision(&self) -> Option<io::Result<()>> {
        if self.kind != ERROR {
            return None;
        }
        let code = self.body.first_chunk::<4>().map_or(0, |code| i32::from_ne_bytes(*code));
        Some(if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) })
    }
}

#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// In the network namespace of this thread.
    pub fn open(family: Family) -> io::Result<Socket> {
        let protocol = match family {
            // Number 0, which is what no protocol means.
            Family::Route => None,
            Family::Netfilter => Some(netlink::NETFILTER),
        };
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
        Ok(Socket { fd, sequence: 1 })
    }

    /// Asks for a change, and waits until the kernel has decided.
    pub fn change(&mut self, kind: u16, flags: u16, header: &[u8], attributes: Attributes) -> io::Result<()> {
        let flags = flags | REQUEST | ACK;
        let message = Message { kind, flags, header: header.to_vec(), attributes };
        let (sequence, _) = self.send(std::slice::from_ref(&message))?;
        loop {
            for received in self.receive()? {
                if let Some(decision) = received.decision().filter(|_| received.sequence == sequence) {
                    return decision;
                }
            }
        }
    }

    /// All objects of a kind: the bodies of the kernel's messages.
    pub fn dump(&mut self, kind: u16, header: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let flags = REQUEST | DUMP;
        let message = Message { kind, flags, header: header.to_vec(), attributes: Attributes::new() };
        let (sequence, _) = self.send(std::slice::from_ref(&message))?;
        let mut found = Vec::new();
        loop {
            for received in self.receive()?.into_iter().filter(|received| received.sequence == sequence) {
                match received.decision() {
                    Some(decision) => return decision.map(|()| found),
                    None if received.kind == DONE => return Ok(found),
                    None => found.push(received.body),
                }
            }
        }
    }

    /// Sends several messages that the kernel obeys together or not at all. The last but one asks for an answer.
    pub fn transact(&mut self, messages: &[Message]) -> io::Result<()> {
        // More than the host allows to those who are not root.
        set_socket_send_buffer_size_force(&self.fd, SEND_BYTES)?;
        let (first, last) = self.send(messages)?;
        let mut failed = None;
        loop {
            for received in self.receive()? {
                let Some(decision) = received.decision() else { continue };
                failed = failed.or(decision.err());
                // The whole is refused with the number of its first message, and nothing comes after that.
                if received.sequence + 1 == last || received.sequence == first {
                    return failed.map_or(Ok(()), Err);
                }
            }
        }
    }

    /// The numbers of the first and the last message.
    fn send(&mut self, messages: &[Message]) -> io::Result<(u32, u32)> {
        let first = self.sequence;
        let mut bytes = Vec::new();
        for message in messages {
            message.encode(self.sequence, &mut bytes);
            self.sequence += 1;
        }
        retry_on_intr(|| send(&self.fd, &bytes, SendFlags::empty()))?;
        Ok((first, self.sequence - 1))
    }

    fn receive(&self) -> io::Result<Vec<Received>> {
        let mut buffer = vec![0; RECEIVE_BYTES];
        // A socket with a time limit does not go on by itself after a signal, such as that of a child that has ended.
        let (_, length) = retry_on_intr(|| recv(&self.fd, &mut buffer[..], RecvFlags::empty()))?;
        let mut rest = &buffer[..length.min(RECEIVE_BYTES)];
        let mut messages = Vec::new();
        while let Some((head, _)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let number = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let length = number(0) as usize;
            let Some(body) = rest.get(HEADER_BYTES..length) else { break };
            let kind = u16::from_ne_bytes([head[4], head[5]]);
            messages.push(Received { kind, sequence: number(8), body: body.to_vec() });
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_read_again() {
        let inner = Attributes::new().text(3, "eth0");
        let all = Attributes::new().number(1, 7).nested(2, inner);
        let found = parse(&all.0);
        assert_eq!(found[0], (1, &7_u32.to_ne_bytes()[..]));
        assert_eq!(parse(found[1].1), [(3, &b"eth0\0"[..])]);
        assert_eq!(all.0.len() % 4, 0);
    }

    #[test]
    fn what_is_cut_off_is_not_read() {
        assert!(parse(&[9, 0, 1, 0, 5]).is_empty());
        assert!(parse(&[1, 2]).is_empty());
    }
}
