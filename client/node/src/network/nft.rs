//! Packet filters of the kernel (nf_tables): tables, chains, rules and maps as messages.
//!
//! A table is replaced whole, in one transaction: so what the kernel does follows from what is wanted now, and not
//! from what was done to it before.

use std::io;

use rustix::io::Errno;

use super::netlink::{ACK, Attributes, CREATE, Family, Message, REQUEST, Socket, parse};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEWTABLE: u16 = SUBSYSTEM << 8;
const GETTABLE: u16 = NEWTABLE + 1;
const DELTABLE: u16 = NEWTABLE + 2;
const NEWCHAIN: u16 = NEWTABLE + 3;
const NEWRULE: u16 = NEWTABLE + 6;
const NEWSET: u16 = NEWTABLE + 9;
const NEWSETELEM: u16 = NEWTABLE + 12;
const APPEND: u16 = 0x800;

/// Attributes are at most 64 KiB long.
const ELEMENTS_AT_ONCE: usize = 256;

/// Of which packets a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// IPv4 and IPv6.
    Inet = 1,
    /// Frames that pass a bridge.
    Bridge = 7,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    Prerouting = 0,
    Forward = 2,
    Output = 3,
    Postrouting = 4,
}

/// Where a chain begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// `nat` or `filter`.
    pub kind: &'static str,
    pub hook: Hook,
    pub priority: i32,
}

#[derive(Clone, Debug)]
pub struct Chain {
    pub name: &'static str,
    pub base: Base,
    pub rules: Vec<Rule>,
}

/// A set, or a map if its elements have data. Keys and data consist of words of four bytes.
#[derive(Clone, Debug)]
pub struct Set {
    pub name: &'static str,
    /// What the parts of a key are, and those of the data: numbers that `nft` shows them by.
    pub key: Vec<Part>,
    pub data: Vec<Part>,
    pub elements: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A part of a key, by the number that `nft` has for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Ip4 = 7,
    Ip6 = 8,
    Protocol = 12,
    Port = 13,
    Interface = 41,
}

impl Part {
    fn bytes(self) -> u32 {
        match self {
            Part::Ip4 | Part::Protocol | Part::Port => 4,
            Part::Ip6 | Part::Interface => 16,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub layer: Layer,
    pub sets: Vec<Set>,
    pub chains: Vec<Chain>,
}

/// A register: one of sixteen words of four bytes.
pub type Word = u32;

/// The expressions of one rule, each after the other for as long as they match.
#[derive(Clone, Debug, Default)]
pub struct Rule(Vec<(&'static str, Attributes)>);

/// What packets say about themselves.
#[derive(Clone, Copy, Debug)]
pub enum Meta {
    /// What a frame carries, by its number on the wire.
    Frame = 1,
    InputName = 6,
    OutputName = 7,
    NetworkProtocol = 15,
    TransportProtocol = 16,
}

#[derive(Clone, Copy, Debug)]
pub enum Header {
    Network = 1,
    Transport = 2,
}

#[derive(Clone, Copy, Debug)]
pub enum Is {
    Equal = 0,
    Unequal = 1,
}

/// Registers are numbered from 8.
fn register(word: Word) -> u32 {
    word + 8
}

fn value(bytes: &[u8]) -> Attributes {
    Attributes::new().bytes(1, bytes)
}

impl Rule {
    pub fn new() -> Rule {
        Rule::default()
    }

    fn with(mut self, name: &'static str, attributes: Attributes) -> Rule {
        self.0.push((name, attributes));
        self
    }

    pub fn load_meta(self, key: Meta, into: Word) -> Rule {
        self.with("meta", Attributes::new().big_endian(2, key as u32).big_endian(1, register(into)))
    }

    pub fn load(self, header: Header, offset: u32, length: u32, into: Word) -> Rule {
        let attributes = Attributes::new()
            .big_endian(1, register(into))
            .big_endian(2, header as u32)
            .big_endian(3, offset)
            .big_endian(4, length);
        self.with("payload", attributes)
    }

    pub fn compare(self, word: Word, is: Is, bytes: &[u8]) -> Rule {
        let attributes =
            Attributes::new().big_endian(1, register(word)).big_endian(2, is as u32).nested(3, value(bytes));
        self.with("cmp", attributes)
    }

    pub fn mask(self, word: Word, mask: &[u8]) -> Rule {
        let attributes = Attributes::new()
            .big_endian(1, register(word))
            .big_endian(2, register(word))
            .big_endian(3, mask.len() as u32)
            .nested(4, value(mask))
            .nested(5, value(&vec![0; mask.len()]));
        self.with("bitwise", attributes)
    }

    /// The packet is for an address of this host.
    pub fn for_this_host(self) -> Rule {
        const DESTINATION: u32 = 2;
        const TYPE: u32 = 3;
        const LOCAL: u32 = 2;
        let attributes =
            Attributes::new().big_endian(1, register(0)).big_endian(2, TYPE).big_endian(3, DESTINATION);
        self.with("fib", attributes).compare(0, Is::Equal, &LOCAL.to_ne_bytes())
    }

    /// The connection was redirected by a rule, or was not.
    pub fn redirected(self, is: bool) -> Rule {
        const STATUS: u32 = 2;
        const REDIRECTED: u32 = 1 << 5;
        let load = Attributes::new().big_endian(2, STATUS).big_endian(1, register(0));
        self.with("ct", load).mask(0, &REDIRECTED.to_ne_bytes()).compare(
            0,
            if is { Is::Unequal } else { Is::Equal },
            &0_u32.to_ne_bytes(),
        )
    }

    pub fn interface(self, key: Meta, is: Is, name: &str) -> Rule {
        self.load_meta(key, 0).compare(0, is, &interface(name))
    }

    /// The words from the first on are in the set.
    pub fn in_set(self, set: &str) -> Rule {
        self.with("lookup", Attributes::new().text(1, set).big_endian(2, register(0)))
    }

    /// Replaces the words from the first on by what the map has for them.
    pub fn look_up(self, map: &str) -> Rule {
        let attributes = Attributes::new().text(1, map).big_endian(2, register(0)).big_endian(3, register(0));
        self.with("lookup", attributes)
    }

    /// Sends the connection elsewhere: the address stands in the first words, the port in `port`.
    pub fn redirect(self, protocol: u8, port: Word) -> Rule {
        const DESTINATION: u32 = 1;
        let attributes = Attributes::new()
            .big_endian(1, DESTINATION)
            .big_endian(2, protocol.into())
            .big_endian(3, register(0))
            .big_endian(5, register(port));
        self.with("nat", attributes)
    }

    /// The connection leaves with the address of the interface.
    pub fn masquerade(self) -> Rule {
        self.with("masq", Attributes::new())
    }

    pub fn accept(self) -> Rule {
        self.verdict(1)
    }

    pub fn drop(self) -> Rule {
        self.verdict(0)
    }

    fn verdict(self, code: u32) -> Rule {
        let verdict = Attributes::new().nested(2, Attributes::new().big_endian(1, code));
        self.with("immediate", Attributes::new().big_endian(1, 0).nested(2, verdict))
    }

    fn expressions(&self) -> Attributes {
        let one = |list: Attributes, (name, attributes): &(&str, Attributes)| {
            let expression = Attributes::new().text(1, name).nested(2, attributes.clone());
            list.nested(1, expression)
        };
        self.0.iter().fold(Attributes::new(), one)
    }
}

/// The name of an interface as packets carry it.
pub fn interface(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// Puts `tables` in the place of those of the same names.
pub fn replace(tables: &[Table]) -> io::Result<()> {
    let mut messages = Vec::new();
    for table in tables {
        // Made first, so that there is one to be removed.
        messages.push(of_table(NEWTABLE, CREATE, table));
        messages.push(of_table(DELTABLE, 0, table));
        messages.push(of_table(NEWTABLE, CREATE, table));
        for (number, set) in (1..).zip(&table.sets) {
            add_set(&mut messages, table, set, number);
        }
        for chain in &table.chains {
            add_chain(&mut messages, table, chain);
        }
    }
    transact(messages)
}

/// Removes the table of that name. It is no error when there is none.
pub fn remove(name: &str, layer: Layer) -> io::Result<()> {
    let table = Table { name: name.to_string(), layer, sets: Vec::new(), chains: Vec::new() };
    transact(vec![of_table(NEWTABLE, CREATE, &table), of_table(DELTABLE, 0, &table)])
}

/// True when packets can be filtered on this layer.
pub fn is_possible(layer: Layer) -> bool {
    tables(layer).is_ok()
}

/// True when the kernel has no packet filters on this layer, so that there are none to be removed.
pub fn is_unsupported(error: &io::Error) -> bool {
    let codes = [Errno::AFNOSUPPORT, Errno::OPNOTSUPP, Errno::PROTONOSUPPORT, Errno::NOENT];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

/// The names of all tables of the layer.
pub fn tables(layer: Layer) -> io::Result<Vec<String>> {
    let found = Socket::open(Family::Netfilter)?.dump(GETTABLE, &header(layer as u8, 0))?;
    let name = |body: &Vec<u8>| {
        let attributes = parse(body.get(4..)?);
        let (_, name) = attributes.into_iter().find(|(kind, _)| *kind == 1)?;
        Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_string())
    };
    Ok(found.iter().filter_map(name).collect())
}

fn transact(tables: Vec<Message>) -> io::Result<()> {
    let edge = |kind| {
        let (flags, attributes) = (REQUEST, Attributes::new());
        Message { kind, flags, header: header(0, SUBSYSTEM), attributes }
    };
    let mut messages = vec![edge(BATCH_BEGIN)];
    messages.extend(tables);
    if let Some(last) = messages.last_mut() {
        last.flags |= ACK;
    }
    messages.push(edge(BATCH_END));
    Socket::open(Family::Netfilter)?.transact(&messages)
}

/// `struct nfgenmsg`.
fn header(family: u8, resource: u16) -> Vec<u8> {
    let [high, low] = resource.to_be_bytes();
    vec![family, 0, high, low]
}

fn message(kind: u16, flags: u16, table: &Table, attributes: Attributes) -> Message {
    Message { kind, flags: flags | REQUEST, header: header(table.layer as u8, 0), attributes }
}

fn of_table(kind: u16, flags: u16, table: &Table) -> Message {
    message(kind, flags, table, Attributes::new().text(1, &table.name))
}

fn add_chain(messages: &mut Vec<Message>, table: &Table, chain: &Chain) {
    const ACCEPT: u32 = 1;
    let hook =
        Attributes::new().big_endian(1, chain.base.hook as u32).big_endian(2, chain.base.priority as u32);
    let attributes = Attributes::new()
        .text(1, &table.name)
        .text(3, chain.name)
        .nested(4, hook)
        .big_endian(5, ACCEPT)
        .text(7, chain.base.kind);
    messages.push(message(NEWCHAIN, CREATE, table, attributes));
    for rule in &chain.rules {
        let attributes =
            Attributes::new().text(1, &table.name).text(2, chain.name).nested(4, rule.expressions());
        messages.push(message(NEWRULE, CREATE | APPEND, table, attributes));
    }
}

fn add_set(messages: &mut Vec<Message>, table: &Table, set: &Set, number: u32) {
    const MAP: u32 = 8;
    let kind = |parts: &[Part]| parts.iter().fold(0, |kind, part| kind << 6 | *part as u32);
    let bytes = |parts: &[Part]| parts.iter().map(|part| part.bytes()).sum();
    let is_map = !set.data.is_empty();
    let mut attributes = Attributes::new()
        .text(1, &table.name)
        .text(2, set.name)
        .big_endian(3, if is_map { MAP } else { 0 })
        .big_endian(4, kind(&set.key))
        .big_endian(5, bytes(&set.key));
    if is_map {
        attributes = attributes.big_endian(6, kind(&set.data)).big_endian(7, bytes(&set.data));
    }
    messages.push(message(NEWSET, CREATE, table, attributes.big_endian(10, number)));
    for some in set.elements.chunks(ELEMENTS_AT_ONCE) {
        let list = some.iter().fold(Attributes::new(), |list, (key, data)| {
            let mut element = Attributes::new().nested(1, value(key));
            if is_map {
                element = element.nested(2, value(data));
            }
            list.nested(1, element)
        });
        let attributes =
            Attributes::new().text(1, &table.name).text(2, set.name).nested(3, list).big_endian(4, number);
        messages.push(message(NEWSETELEM, CREATE, table, attributes));
    }
}
