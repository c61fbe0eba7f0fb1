//! Ids of traces and spans: those that the log has, as far as they go, so that who has one finds the other.

use std::fmt;

use base::Uuid;
use model::RequestId;
use sha2::{Digest, Sha256};

use crate::entries::Position;

/// Of W3C and OpenTelemetry: 16 bytes, never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(u128);

/// The same with 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(u64);

impl TraceId {
    /// That of what a request led to is its name.
    pub fn of_request(request: RequestId) -> TraceId {
        TraceId(request.0.as_u128())
    }

    /// Of what began without a name: a hash of where it stands in the log.
    pub fn of_text(text: &str) -> TraceId {
        let hash = Sha256::digest(text.as_bytes());
        let bytes: &[u8; 16] = hash.first_chunk().expect("the hash has 32 bytes");
        TraceId(u128::from_be_bytes(*bytes).max(1))
    }
}

impl SpanId {
    /// The first half of an object's id; the second one where that is zero.
    pub(super) fn of_object(id: Uuid) -> SpanId {
        let halves = ((id.as_u128() >> 64) as u64, id.as_u128() as u64);
        SpanId(if halves.0 == 0 { halves.1.max(1) } else { halves.0 })
    }

    /// Of what has no id: a hash of where it stands in the log.
    pub fn of_text(text: &str) -> SpanId {
        let hash = Sha256::digest(text.as_bytes());
        let bytes: &[u8; 8] = hash.first_chunk().expect("the hash has 32 bytes");
        SpanId(u64::from_be_bytes(*bytes).max(1))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A fact with its cluster, as ids of events name both: `42:0@9f3c2a71`.
pub(super) fn fact(at: Position, cluster: Uuid) -> String {
    let [a, b, c, d, ..] = cluster.0;
    format!("{}:{}@{:08x}", at.index, at.ordinal, u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use base::Index;

    use super::*;

    /// Collectors keep what they were sent: another id for the same thing would be another thing.
    #[test]
    fn ids_are_those_of_the_log_or_a_hash_that_anybody_can_compute() {
        let request = "7b1d0c55-8d1f-4f0e-9a54-0d9f2b6d1c11".parse().unwrap();
        assert_eq!(TraceId::of_request(request).to_string(), "7b1d0c558d1f4f0e9a540d9f2b6d1c11");
        let id: Uuid = "24ed3e28-0b5c-4f0e-9a54-0d9f2b6d1c11".parse().unwrap();
        assert_eq!(SpanId::of_object(id).to_string(), "24ed3e280b5c4f0e");
        assert_eq!(SpanId::of_object(7.into()).to_string(), "0000000000000007");
        assert_eq!(SpanId::of_object(Uuid::NIL).to_string(), "0000000000000001");
        let mut cluster = [0; 16];
        cluster[..4].copy_from_slice(&[0x9f, 0x3c, 0x2a, 0x71]);
        let text = fact(Position { index: Index(42), ordinal: 0 }, Uuid(cluster));
        assert_eq!(text, "42:0@9f3c2a71");
        // printf 42:0@9f3c2a71 | sha256sum
        assert_eq!(TraceId::of_text(&text).to_string(), "046f6ece5d40abb6798cdffceaa271ca");
        assert_eq!(SpanId::of_text(&text).to_string(), "046f6ece5d40abb6");
    }
}
