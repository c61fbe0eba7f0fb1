//! Answers, made of what is known.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base::Rng;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, SOA, SRV};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use super::DnsSettings;
use super::names::{self, Asked};

/// Most instances in one answer, chosen anew for each: with their addresses they fit into a message of TCP.
pub const INSTANCES_MAX: usize = 512;

/// Largest answer over UDP, whatever the question allows: larger ones are cut to pieces on their way, which get lost.
pub const UDP_BYTES_MAX: u16 = 1232;

/// What UDP carries for those who say nothing else.
const UDP_BYTES: u16 = 512;

/// One instance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// An address, or a name that somebody else knows.
    pub address: String,
    pub port: u16,
    pub tags: BTreeSet<String>,
}

/// What was found out about what a question asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Instances(Vec<Instance>),
    Address(IpAddr),
    /// There is such a name, and it has no instances.
    Name,
    Absent,
    /// The servers were not reached, for longer than what was known then is good for.
    Unknown,
}

/// What answers are made with.
#[derive(Debug)]
pub struct Zone {
    domain: Name,
    ttl: u32,
    /// Others are asked what this zone does not have.
    has_recursors: bool,
}

/// Whose a question is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    Own(Asked),
    /// About a name outside of the domain.
    OfOthers,
}

impl Zone {
    /// # Errors
    /// When the domain is not a name.
    pub fn new(settings: &DnsSettings) -> Result<Zone, String> {
        let domain = Name::from_ascii(format!("{}.", settings.domain)).map_err(|error| error.to_string())?;
        let ttl = u32::try_from(settings.ttl.as_secs()).unwrap_or(i32::MAX as u32).min(i32::MAX as u32);
        Ok(Zone { domain: domain.to_lowercase(), ttl, has_recursors: !settings.recursors.is_empty() })
    }

    /// What a question asks for.
    ///
    /// # Errors
    /// With what it is refused.
    pub fn question(&self, request: &Message) -> Result<Question, ResponseCode> {
        if request.metadata.op_code != OpCode::Query {
            return Err(ResponseCode::NotImp);
        }
        let [query] = request.queries.as_slice() else { return Err(ResponseCode::FormErr) };
        if request.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
            return Err(ResponseCode::BADVERS);
        }
        let name = query.name().to_lowercase();
        if !self.domain.zone_of(&name) {
            return if self.has_recursors { Ok(Question::OfOthers) } else { Err(ResponseCode::Refused) };
        }
        if !matches!(query.query_class(), DNSClass::IN | DNSClass::ANY) {
            return Err(ResponseCode::Refused);
        }
        let before = usize::from(name.num_labels() - self.domain.num_labels());
        let labels: Option<Vec<&str>> =
            name.iter().take(before).map(|label| std::str::from_utf8(label).ok()).collect();
        Ok(Question::Own(labels.map_or(Asked::Nothing, |labels| names::asked(&labels))))
    }

    /// The answer to a question of [`Zone::question`].
    pub fn answer(&self, request: &Message, found: Found, rng: &mut Rng) -> Message {
        let mut reply = self.reply(request, ResponseCode::NoError);
        reply.metadata.authoritative = true;
        let Some(query) = request.queries.first() else { return reply };
        let (owner, wanted) = (query.name(), query.query_type());
        match found {
            Found::Unknown => return self.reply(request, ResponseCode::ServFail),
            Found::Absent => reply.metadata.response_code = ResponseCode::NXDomain,
            Found::Address(address) => reply.answers.extend(self.address(owner, address, wanted)),
            Found::Name => {
                let is_soa = matches!(wanted, RecordType::SOA | RecordType::ANY) && *owner == self.domain;
                reply.answers.extend(is_soa.then(|| self.authority()));
            }
            Found::Instances(mut instances) => {
                shuffle(&mut instances, rng);
                instances.truncate(INSTANCES_MAX);
                self.instances(&mut reply, owner, wanted, &instances);
            }
        }
        if reply.answers.is_empty() {
            reply.authorities.push(self.authority());
        }
        reply
    }

    fn instances(&self, reply: &mut Message, owner: &Name, wanted: RecordType, instances: &[Instance]) {
        let mut seen = BTreeSet::new();
        for instance in instances {
            let address: Option<IpAddr> = instance.address.parse().ok();
            let is_new = seen.insert(instance.address.as_str());
            if let Some(address) = address.filter(|_| is_new) {
                reply.answers.extend(self.address(owner, address, wanted));
            }
            if !matches!(wanted, RecordType::SRV | RecordType::ANY) {
                continue;
            }
            let Some(target) = self.target(&instance.address, address) else { continue };
            if let Some(address) = address.filter(|_| is_new) {
                reply.additionals.extend(self.address(&target, address, RecordType::ANY));
            }
            let srv = RData::SRV(SRV::new(1, 1, instance.port, target));
            reply.answers.push(Record::from_rdata(owner.clone(), self.ttl, srv));
        }
    }

    /// The host of an instance; `None` if its address cannot be a name.
    fn target(&self, text: &str, address: Option<IpAddr>) -> Option<Name> {
        let Some(address) = address else {
            let mut name = Name::from_ascii(text).ok()?;
            name.set_fqdn(true);
            return Some(name);
        };
        let host = self.domain.prepend_label("addr").ok()?;
        host.prepend_label(names::label_of(address).as_str()).ok()
    }

    fn address(&self, owner: &Name, address: IpAddr, wanted: RecordType) -> Option<Record> {
        let data = match address {
            IpAddr::V4(v4) if matches!(wanted, RecordType::A | RecordType::ANY) => RData::A(A(v4)),
            IpAddr::V6(v6) if matches!(wanted, RecordType::AAAA | RecordType::ANY) => RData::AAAA(AAAA(v6)),
            _ => return None,
        };
        Some(Record::from_rdata(owner.clone(), self.ttl, data))
    }

    /// How long it may be remembered that nothing is there: as long as an answer.
    fn authority(&self) -> Record {
        let of = |label: &str| self.domain.prepend_label(label).unwrap_or_else(|_| self.domain.clone());
        let soa = SOA::new(of("ns"), of("hostmaster"), 1, 3600, 600, 86_400, self.ttl);
        Record::from_rdata(self.domain.clone(), self.ttl, RData::SOA(soa))
    }

    /// A reply without records.
    pub fn reply(&self, request: &Message, code: ResponseCode) -> Message {
        let mut reply = Message::response(request.metadata.id, request.metadata.op_code);
        reply.metadata.recursion_desired = request.metadata.recursion_desired;
        reply.metadata.recursion_available = self.has_recursors;
        reply.metadata.response_code = code;
        reply.queries = request.queries.iter().take(1).cloned().collect();
        if request.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_BYTES_MAX).set_rcode_high(code.high());
            reply.edns = Some(edns);
        }
        reply
    }
}

/// Whether this is a question at all: an answer is never answered, or two servers would never stop.
pub fn is_question(request: &Message) -> bool {
    request.metadata.message_type == MessageType::Query
}

/// The answer as it goes over UDP: without what is only a help, or without records and marked, if it is too large.
///
/// # Errors
/// When it cannot be written.
pub fn datagram(request: &Message, mut reply: Message) -> Result<Vec<u8>, String> {
    let asked = request.edns.as_ref().map_or(UDP_BYTES, |edns| edns.max_payload());
    let bytes_max = usize::from(asked.clamp(UDP_BYTES, UDP_BYTES_MAX));
    let bytes = encoded(&reply)?;
    if bytes.len() <= bytes_max {
        return Ok(bytes);
    }
    reply.additionals.clear();
    let bytes = encoded(&reply)?;
    if bytes.len() <= bytes_max {
        return Ok(bytes);
    }
    encoded(&reply.truncate())
}

/// # Errors
/// When it cannot be written.
pub fn encoded(reply: &Message) -> Result<Vec<u8>, String> {
    reply.to_vec().map_err(|error| error.to_string())
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
