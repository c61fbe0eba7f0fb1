//! Events as a batch of records.

use serde::Deserialize;

use super::wire::Writer;
use crate::target::{Outgoing, Undelivered};

/// CloudEvents in structured mode, by its binding for Kafka: the value is the whole envelope.
const CONTENT_TYPE: &str = "application/cloudevents+json; charset=UTF-8";
/// Larger records than any broker takes; lengths in records have 31 bits.
const BODY_MAX: usize = 1 << 30;

/// What an event is about, of its envelope.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: About<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct About<'a> {
    #[serde(borrow)]
    topic: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    key: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    namespace: std::borrow::Cow<'a, str>,
    #[serde(default)]
    filter_keys: Option<Vec<String>>,
}

/// `Job/NAMESPACE/ID` for whatever belongs to a job, so that all of it is in one partition, in order; the subject of the
/// envelope for everything else.
pub(super) fn key(event: &Outgoing) -> String {
    let Ok(Envelope { data }) = serde_json::from_slice::<Envelope<'_>>(&event.body) else {
        return event.topic.to_string();
    };
    let filter_keys = data.filter_keys.unwrap_or_default();
    let (topic, key) = feed::subject_in_order(&data.topic, &data.key, &filter_keys);
    let parts = [topic, &data.namespace, key];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// As producers in Java choose it, so that consumers that join topics find the same number.
pub(super) fn partition(key: &str, count: usize) -> usize {
    (murmur2(key.as_bytes()) & 0x7fff_ffff) as usize % count
}

fn murmur2(bytes: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let mut chunks = bytes.chunks_exact(4);
    for chunk in &mut chunks {
        let word = u32::from_le_bytes(chunk.try_into().expect("chunks have four bytes")).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ (word ^ (word >> 24)).wrapping_mul(FACTOR);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| (word << 8) | u32::from(*byte));
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

/// A batch of the second format, with the keys of the events. Records have the events' times, not that of the attempt: they
/// are the same each time.
///
/// # Errors
/// No broker takes so much.
pub(super) fn batch<'a>(
    events: impl Iterator<Item = (&'a Outgoing, &'a String)>,
) -> Result<Vec<u8>, Undelivered> {
    let (mut records, mut count, mut first_ms, mut last_ms) = (Writer::default(), 0_i32, None, 0);
    for (event, key) in events {
        let time_ms = event.time.0 / 1_000_000;
        let first_ms = *first_ms.get_or_insert(time_ms);
        last_ms = time_ms.max(last_ms);
        records.varbytes(&record(event, key, time_ms - first_ms, count)?);
        count += 1;
    }
    let mut checked = Writer::default();
    // Not compressed, and the time is the sender's; the last offset.
    checked.put(&0_i16.to_be_bytes());
    checked.put(&(count - 1).to_be_bytes());
    checked.put(&first_ms.unwrap_or(0).to_be_bytes());
    checked.put(&last_ms.to_be_bytes());
    // No producer whom brokers know: its id, epoch and sequence.
    checked.put(&(-1_i64).to_be_bytes());
    checked.put(&(-1_i16).to_be_bytes());
    checked.put(&(-1_i32).to_be_bytes());
    checked.put(&count.to_be_bytes());
    checked.put(&records.0);
    let mut rest = Writer::default();
    // The epoch of the leader, which it fills in; the format.
    rest.put(&(-1_i32).to_be_bytes());
    rest.put(&[2]);
    rest.put(&crc32c::crc32c(&checked.0).to_be_bytes());
    rest.put(&checked.0);
    let mut batch = Writer::default();
    batch.put(&0_i64.to_be_bytes());
    batch.bytes(&rest.0);
    Ok(batch.0)
}

/// So long after the time of the batch, and so many records after its first one.
fn record(event: &Outgoing, key: &str, after_ms: i64, offset: i32) -> Result<Vec<u8>, Undelivered> {
    if event.body.len() > BODY_MAX {
        let why = format!("a record holds {BODY_MAX} bytes, and this event has {}", event.body.len());
        return Err(Undelivered::Rejected(why));
    }
    let mut record = Writer::default();
    record.put(&[0]);
    record.varint(after_ms);
    record.varint(offset.into());
    record.varbytes(key.as_bytes());
    record.varbytes(&event.body);
    let headers = [("content-type", CONTENT_TYPE), ("ce_id", &event.id)];
    record.varint(headers.len() as i64);
    for (name, value) in headers {
        record.varbytes(name.as_bytes());
        record.varbytes(value.as_bytes());
    }
    Ok(record.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> String {
        key(&Outgoing { body: body.to_string().into(), topic: "Node", ..Outgoing::default() })
    }

    #[test]
    fn what_belongs_to_a_job_has_the_key_of_its_job() {
        let event = |topic: &str, key: &str, others: &str| {
            of(&format!(
                "{{\"id\":\"1\",\"data\":{{\"Topic\":\"{topic}\",\"Key\":\"{key}\",\"Namespace\":\"prod\",\
                 \"FilterKeys\":{others},\"Payload\":{{\"a\":[1,{{}}]}}}}}}"
            ))
        };
        assert_eq!(event("Job", "w\\u0065b", "null"), "Job/prod/web");
        for topic in ["Allocation", "Evaluation", "Deployment", "Service"] {
            assert_eq!(event(topic, "1f", "[\"web\",\"else\"]"), "Job/prod/web");
        }
        assert_eq!(event("Volume", "1f", "[\"web\"]"), "Volume/prod/1f");
        let node = "{\"data\":{\"Topic\":\"Node\",\"Key\":\"7\",\"Namespace\":\"\"}}";
        assert_eq!(of(node), "Node/7");
        assert_eq!(of("no document"), "Node");
    }

    /// Kafka's own tests have these.
    #[test]
    fn a_key_goes_to_the_partition_that_producers_in_java_choose() {
        let known: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (text, hash) in known {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
        assert_eq!(partition("abc", 10), 7);
        assert!((0..99).all(|number| partition(&format!("k{number}"), 3) < 3));
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let written = |value| {
            let mut writer = Writer::default();
            writer.varint(value);
            writer.0
        };
        assert_eq!([written(0), written(-1), written(63)].concat(), [0, 1, 126]);
        assert_eq!([written(64), written(-65)].concat(), [0x80, 1, 0x81, 1]);
        assert_eq!(written(i64::MIN).len(), 10);
    }
}
