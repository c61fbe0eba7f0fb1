//! Requests and answers of Kafka's protocol, as they are on the wire.

use std::collections::BTreeMap;
use std::time::Duration;

/// A kind of request, in the version that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Api {
    pub key: i16,
    pub version: i16,
    pub name: &'static str,
}

/// The first with batches of records, which have headers.
pub(super) const PRODUCE: Api = Api { key: 0, version: 3, name: "Produce" };
pub(super) const METADATA: Api = Api { key: 3, version: 1, name: "Metadata" };
pub(super) const SASL_HANDSHAKE: Api = Api { key: 17, version: 1, name: "SaslHandshake" };
pub(super) const API_VERSIONS: Api = Api { key: 18, version: 0, name: "ApiVersions" };
pub(super) const SASL_AUTHENTICATE: Api = Api { key: 36, version: 0, name: "SaslAuthenticate" };

/// As brokers log and limit who asks.
const CLIENT: &str = "sojourn";
/// All replicas that are in sync have it.
const ACKS_ALL: i16 = -1;

/// The mechanism is not one of the broker's.
pub(super) const UNSUPPORTED_MECHANISM: i16 = 33;

/// What a broker says instead of having done it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Later(String),
    /// The same record is refused each time.
    Never(String),
}

/// `None`: it was done.
pub(super) fn refusal(code: i16) -> Option<Refusal> {
    let (never, why) = match code {
        0 => return None,
        3 => (false, "there is no such topic or partition"),
        5 => (false, "nobody leads it at present"),
        6 => (false, "another broker leads it"),
        7 => (false, "other brokers took too long to have the record"),
        10 => (true, "the record is larger than the topic or the broker takes"),
        17 => (true, "brokers do not take the name of the topic"),
        18 => (true, "the record is larger than a segment of the topic"),
        19 | 20 => (false, "fewer replicas are in sync than the topic asks for"),
        29 => (false, "the user may not write to the topic"),
        31 => (false, "the user may not do that in the cluster"),
        32 => (true, "the topic does not take the time of the record"),
        34 => (false, "the broker wants no user here"),
        58 => (false, "the user or the password is wrong"),
        87 => (true, "the broker does not take the record"),
        89 => (false, "the broker has too much to do"),
        _ => return Some(Refusal::Later(format!("the broker answered error {code}"))),
    };
    let why = format!("{why} (error {code})");
    Some(if never { Refusal::Never(why) } else { Refusal::Later(why) })
}

/// What is written.
#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        let length = i16::try_from(text.len()).expect("rules keep names short");
        self.put(&length.to_be_bytes());
        self.put(text.as_bytes());
    }

    /// What is longer than 2 GiB is in no message of ours.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let length = i32::try_from(bytes.len()).expect("messages are shorter than 2 GiB");
        self.put(&length.to_be_bytes());
        self.put(bytes);
    }

    /// In steps of seven bits, the smallest first, with the sign in the lowest one.
    pub(super) fn varint(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    pub(super) fn varbytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as i64);
        self.put(bytes);
    }
}

/// What is read of an answer. Whatever it says, no more is taken than is there.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| "an answer of the broker is cut short".to_string())?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("as many were taken"))
    }

    pub(super) fn i16(&mut self) -> Result<i16, String> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, String> {
        self.array().map(i32::from_be_bytes)
    }

    /// Empty for none.
    pub(super) fn text(&mut self) -> Result<String, String> {
        let length = usize::try_from(self.i16()?).unwrap_or(0);
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(length)
    }

    /// As many as the answer says, each read by `one`; it ends where the answer does.
    pub(super) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Reader<'a>) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let count = self.i32()?.max(0);
        (0..count).map(|_| one(self)).collect()
    }
}

/// A whole request, with its length.
pub(super) fn framed(api: Api, correlation: i32, body: &[u8]) -> Vec<u8> {
    let mut header = Writer::default();
    header.put(&api.key.to_be_bytes());
    header.put(&api.version.to_be_bytes());
    header.put(&correlation.to_be_bytes());
    header.text(CLIENT);
    header.put(body);
    let mut whole = Writer::default();
    whole.bytes(&header.0);
    whole.0
}

/// Who is there, and where the topic is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// `HOST:PORT` by number.
    pub brokers: BTreeMap<i32, String>,
    /// Of the topic.
    pub code: i16,
    /// In the order of their numbers.
    pub partitions: Vec<Partition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Partition {
    pub number: i32,
    pub leader: i32,
    pub code: i16,
}

pub(super) fn metadata(topic: &str) -> Vec<u8> {
    let mut body = Writer::default();
    body.put(&1_i32.to_be_bytes());
    body.text(topic);
    body.0
}

/// # Errors
/// It is no such answer, or not about the topic.
pub(super) fn described(answer: &[u8], topic: &str) -> Result<Metadata, String> {
    let mut read = Reader(answer);
    let brokers = read.list(|read| {
        let (number, host, port) = (read.i32()?, read.text()?, read.i32()?);
        let _rack = read.text()?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Ok((number, format!("{host}:{port}")))
    })?;
    let _controller = read.i32()?;
    let topics = read.list(|read| {
        let (code, name) = (read.i16()?, read.text()?);
        let _internal = read.take(1)?;
        let mut partitions = read.list(|read| {
            let (code, number, leader) = (read.i16()?, read.i32()?, read.i32()?);
            let _replicas = read.list(Reader::i32)?;
            let _in_sync = read.list(Reader::i32)?;
            // A replica that is away (9) is no concern of who writes.
            let code = if code == 9 { 0 } else { code };
            Ok(Partition { number, leader, code })
        })?;
        partitions.sort_unstable();
        Ok((name, code, partitions))
    })?;
    let found = topics.into_iter().find(|(name, _, _)| name == topic);
    let (_, code, partitions) = found.ok_or_else(|| format!("the broker says nothing of {topic}"))?;
    Ok(Metadata { brokers: brokers.into_iter().collect(), code, partitions })
}

pub(super) fn produce(topic: &str, partition: i32, timeout: Duration, batch: &[u8]) -> Vec<u8> {
    let mut body = Writer::default();
    // No transaction.
    body.put(&(-1_i16).to_be_bytes());
    body.put(&ACKS_ALL.to_be_bytes());
    body.put(&i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).to_be_bytes());
    body.put(&1_i32.to_be_bytes());
    body.text(topic);
    body.put(&1_i32.to_be_bytes());
    body.put(&partition.to_be_bytes());
    body.bytes(batch);
    body.0
}

/// What became of the batch, as a code.
///
/// # Errors
/// It is no such answer, or not about the partition.
pub(super) fn produced(answer: &[u8], topic: &str, partition: i32) -> Result<i16, String> {
    let mut read = Reader(answer);
    let topics = read.list(|read| {
        let name = read.text()?;
        let partitions = read.list(|read| {
            let (number, code) = (read.i32()?, read.i16()?);
            let _offset_and_time = read.take(16)?;
            Ok((number, code))
        })?;
        Ok((name, partitions))
    })?;
    let of_topic = topics.into_iter().filter(|(name, _)| name == topic);
    let mut partitions = of_topic.flat_map(|(_, partitions)| partitions);
    let found = partitions.find(|(number, _)| *number == partition).map(|(_, code)| code);
    found.ok_or_else(|| format!("the broker says nothing of partition {partition} of {topic}"))
}

/// # Errors
/// The broker does not speak a version that is spoken here.
pub(super) fn check_versions(answer: &[u8], needed: &[Api]) -> Result<(), String> {
    let mut read = Reader(answer);
    if let Some(Refusal::Later(why) | Refusal::Never(why)) = refusal(read.i16()?) {
        return Err(why);
    }
    let spoken = read.list(|read| Ok((read.i16()?, read.i16()?, read.i16()?)))?;
    for Api { key, version, name } in needed {
        match spoken.iter().find(|(known, _, _)| known == key) {
            Some((_, least, most)) if (least..=most).contains(&version) => {}
            Some((_, least, most)) => {
                return Err(format!("it speaks {name} {least} to {most}, and {version} is needed"));
            }
            None => return Err(format!("it does not speak {name}")),
        }
    }
    Ok(())
}
