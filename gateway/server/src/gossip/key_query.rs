//! Keyring operations on all servers: each is first asked for its keys, and nothing changes unless all of them can follow.
//!
//! Both rounds are packets like any others, so a key is only ever sent sealed with another one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Uuid;
use bytes::{Buf, BufMut};

use super::keyring::{KEYS_MAX, KeyOperation};
use super::member::{CodecError, Member, get_bytes};
use super::seal::Key;

/// Operations under way at one server. One more is refused.
const QUERIES_MAX: usize = 8;

/// How long the servers may take to answer one round. A question is asked again each second.
const ROUND_PATIENCE: Duration = Duration::from_secs(5);

/// Longest reason of a server that does not follow, in bytes.
const WHY_MAX: usize = 400;

/// What one server answered: its keys, the one that seals first, or why it does not follow.
pub type KeyReply = Result<Vec<Key>, String>;

/// What became of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReport {
    /// By name and region of the server.
    pub replies: BTreeMap<String, KeyReply>,
}

impl KeyReport {
    /// How many servers have each key.
    pub fn counts(&self) -> Vec<(&Key, usize)> {
        let mut counts: Vec<(&Key, usize)> = Vec::new();
        for key in self.replies.values().flatten().flatten() {
            match counts.iter_mut().find(|(known, _)| *known == key) {
                Some((_, count)) => *count += 1,
                None => counts.push((key, 1)),
            }
        }
        counts
    }

    pub fn failures(&self) -> impl Iterator<Item = (&String, &String)> {
        self.replies.iter().filter_map(|(server, reply)| Some((server, reply.as_ref().err()?)))
    }
}

/// "Do this with your keys."
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRequest {
    pub number: u64,
    pub operation: KeyOperation,
}

/// The answer, with the keys as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyAnswer {
    pub number: u64,
    pub from: Uuid,
    pub reply: KeyReply,
}

/// Operations that wait for answers.
#[derive(Default)]
pub(super) struct KeyQueries(BTreeMap<u64, KeyQuery>);

struct KeyQuery {
    operation: KeyOperation,
    round: Round,
    waiting: BTreeMap<Uuid, Arc<Member>>,
    replies: BTreeMap<String, KeyReply>,
    until: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Look,
    Change,
}

/// What follows when a round has ended.
pub(super) enum Next {
    Change(KeyOperation),
    End(Result<KeyReport, String>),
}

impl KeyQueries {
    /// # Errors
    /// There are too many.
    pub(super) fn begin(&mut self, number: u64, operation: KeyOperation) -> Result<(), String> {
        if self.0.len() >= QUERIES_MAX {
            return Err(format!("{QUERIES_MAX} operations on keys are under way already"));
        }
        let (waiting, replies) = (BTreeMap::new(), BTreeMap::new());
        let query = KeyQuery { operation, round: Round::Look, waiting, replies, until: Duration::ZERO };
        self.0.insert(number, query);
        Ok(())
    }

    /// Waits for the others, once this server itself has followed.
    pub(super) fn ask(
        &mut self,
        number: u64,
        (own, keys): (&Member, &[Key]),
        others: Vec<Arc<Member>>,
        now: Duration,
    ) {
        let Some(query) = self.0.get_mut(&number) else { return };
        query.replies = BTreeMap::from([(own.full_name(), Ok(keys.to_vec()))]);
        query.waiting = others.into_iter().map(|member| (member.id, member)).collect();
        query.until = now + ROUND_PATIENCE;
    }

    /// What to send to whom, now and again until there are answers.
    pub(super) fn requests(&self, of: Option<u64>) -> Vec<(Arc<Member>, KeyRequest)> {
        let wanted = self.0.iter().filter(|(number, _)| of.is_none_or(|of| of == **number));
        let each = wanted.flat_map(|(number, query)| {
            let operation = match query.round {
                Round::Look => KeyOperation::List,
                Round::Change => query.operation.clone(),
            };
            let request = KeyRequest { number: *number, operation };
            query.waiting.values().map(move |member| (member.clone(), request.clone()))
        });
        each.collect()
    }

    pub(super) fn answered(&mut self, answer: KeyAnswer) {
        let Some(query) = self.0.get_mut(&answer.number) else { return };
        if let Some(member) = query.waiting.remove(&answer.from) {
            query.replies.insert(member.full_name(), answer.reply);
        }
    }

    /// Operations that wait no longer, with what follows.
    pub(super) fn due(&mut self, now: Duration) -> Vec<(u64, Next)> {
        let over = |query: &KeyQuery| query.waiting.is_empty() || query.until <= now;
        let numbers: Vec<u64> =
            self.0.iter().filter(|(_, query)| over(query)).map(|(number, _)| *number).collect();
        numbers.into_iter().map(|number| (number, self.advance(number))).collect()
    }

    fn advance(&mut self, number: u64) -> Next {
        let mut query = self.0.remove(&number).expect("the number was just found");
        for member in std::mem::take(&mut query.waiting).into_values() {
            query.replies.insert(member.full_name(), Err("it did not answer".to_string()));
        }
        let report = KeyReport { replies: std::mem::take(&mut query.replies) };
        if query.round == Round::Change || query.operation == KeyOperation::List {
            return Next::End(Ok(report));
        }
        let objections = objections(&query.operation, &report);
        if !objections.is_empty() {
            return Next::End(Err(format!("no key was changed: {}", objections.join("; "))));
        }
        let operation = query.operation.clone();
        query.round = Round::Change;
        self.0.insert(number, query);
        Next::Change(operation)
    }

    pub(super) fn end(&mut self, number: u64) {
        self.0.remove(&number);
    }
}

/// Why an operation would cut servers off from each other, or do nothing.
fn objections(operation: &KeyOperation, report: &KeyReport) -> Vec<String> {
    let objection = |keys: &Vec<Key>| match operation {
        KeyOperation::List => None,
        KeyOperation::Install(key) => (keys.len() >= KEYS_MAX && !keys.contains(key))
            .then(|| format!("has {KEYS_MAX} keys already: remove one first")),
        KeyOperation::Use(key) => (!keys.contains(key)).then(|| "has not installed the key".to_string()),
        KeyOperation::Remove(key) => (keys.first() == Some(key))
            .then(|| "encrypts with the key: use another key before it is removed".to_string()),
    };
    let of_server = |(server, reply): (&String, &KeyReply)| match reply {
        Err(why) => Some(format!("{server}: {why}")),
        Ok(keys) => objection(keys).map(|why| format!("{server} {why}")),
    };
    let mut found: Vec<String> = report.replies.iter().filter_map(of_server).collect();
    if let KeyOperation::Remove(key) = operation
        && found.is_empty()
        && report.counts().iter().all(|(known, _)| *known != key)
    {
        found.push("no server has installed the key".to_string());
    }
    found
}

impl KeyRequest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(64);
        to.put_u64_le(self.number);
        let (kind, key) = match &self.operation {
            KeyOperation::List => (0, None),
            KeyOperation::Install(key) => (1, Some(key)),
            KeyOperation::Use(key) => (2, Some(key)),
            KeyOperation::Remove(key) => (3, Some(key)),
        };
        to.put_u8(kind);
        key.into_iter().for_each(|key| put_key(&mut to, key));
        to
    }

    /// # Errors
    /// [`CodecError`] if the bytes are no request.
    pub(super) fn decode(mut from: &[u8]) -> Result<KeyRequest, CodecError> {
        let number = from.try_get_u64_le()?;
        let operation = match from.try_get_u8()? {
            0 => KeyOperation::List,
            1 => KeyOperation::Install(get_key(&mut from)?),
            2 => KeyOperation::Use(get_key(&mut from)?),
            3 => KeyOperation::Remove(get_key(&mut from)?),
            other => return Err(CodecError::Unknown(other, "keyring operation")),
        };
        Ok(KeyRequest { number, operation })
    }
}

impl KeyAnswer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(128);
        to.put_u64_le(self.number);
        to.put_slice(&self.from.0);
        match &self.reply {
            Ok(keys) => {
                to.put_u8(u8::try_from(keys.len()).expect("keys are bounded"));
                keys.iter().for_each(|key| put_key(&mut to, key));
            }
            Err(why) => {
                to.put_u8(REFUSED);
                to.put_slice(&why.as_bytes()[..why.floor_char_boundary(WHY_MAX)]);
            }
        }
        to
    }

    /// # Errors
    /// [`CodecError`] if the bytes are no answer.
    pub(super) fn decode(mut from: &[u8]) -> Result<KeyAnswer, CodecError> {
        let number = from.try_get_u64_le()?;
        let server = Uuid(get_bytes(&mut from)?);
        let reply = match from.try_get_u8()? {
            REFUSED => {
                let why = std::str::from_utf8(from).map_err(|_| CodecError::Text)?;
                // It goes to terminals: what steers them stays out.
                Err(why.chars().take(WHY_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect())
            }
            count if usize::from(count) <= KEYS_MAX => {
                Ok((0..count).map(|_| get_key(&mut from)).collect::<Result<_, _>>()?)
            }
            count => return Err(CodecError::Unknown(count, "number of keys")),
        };
        Ok(KeyAnswer { number, from: server, reply })
    }
}

/// Stands where the number of keys would.
const REFUSED: u8 = 255;

fn put_key(to: &mut Vec<u8>, key: &Key) {
    to.put_u8(u8::try_from(key.bytes().len()).expect("keys are short"));
    to.put_slice(key.bytes());
}

fn get_key(from: &mut &[u8]) -> Result<Key, CodecError> {
    let length = from.try_get_u8()?;
    let (bytes, rest) = from.split_at_checked(usize::from(length)).ok_or(CodecError::Short)?;
    *from = rest;
    Key::from_bytes(bytes.to_vec()).map_err(|_| CodecError::Unknown(length, "length of a key"))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::super::seal::CONTENT_MAX;
    use super::*;

    #[test]
    fn requests_and_answers_arrive_as_they_were_sent() {
        let key = |byte: u8, length| Key::parse(&STANDARD.encode(vec![byte; length])).unwrap();
        let operations = [
            KeyOperation::List,
            KeyOperation::Install(key(1, 16)),
            KeyOperation::Use(key(2, 24)),
            KeyOperation::Remove(key(3, 32)),
        ];
        for operation in operations {
            let request = KeyRequest { number: u64::MAX, operation };
            let bytes = request.encode();
            assert_eq!(KeyRequest::decode(&bytes), Ok(request));
            assert!(KeyRequest::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        let most = (0..KEYS_MAX as u8).map(|byte| key(byte, 32)).collect();
        for reply in [Ok(Vec::new()), Ok(most), Err("the disk is full".to_string())] {
            let answer = KeyAnswer { number: 7, from: Uuid::from(9), reply };
            let bytes = answer.encode();
            assert!(bytes.len() < CONTENT_MAX, "{} bytes fit into a packet", bytes.len());
            assert_eq!(KeyAnswer::decode(&bytes), Ok(answer));
        }
        let long = KeyAnswer { number: 7, from: Uuid::from(9), reply: Err("é\n".repeat(500)) };
        let read = KeyAnswer::decode(&long.encode()).unwrap().reply.unwrap_err();
        assert!(read.len() <= WHY_MAX && !read.contains('\n'), "{read}");
    }
}
