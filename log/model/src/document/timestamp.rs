use std::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Seconds from the year 1, where Go's clock begins, to 1970.
const YEAR_ONE_TO_UNIX: i64 = 62_135_596_800;

/// A moment in UTC as Nomad's API writes it. `None` is Go's zero time, `0001-01-01T00:00:00Z`.
///
/// RFC 3339 text in JSON; in msgpack the 15 bytes of Go's binary form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub Option<base::Time>);

impl Timestamp {
    pub fn is_zero(&self) -> bool {
        self.0.is_none()
    }

    /// The moment, with "never" as time zero.
    pub fn time(&self) -> base::Time {
        self.0.unwrap_or_default()
    }

    fn to_binary(self) -> [u8; 15] {
        let (secs, nanos) = match self.0 {
            None => (0, 0),
            Some(time) => (time.secs() + YEAR_ONE_TO_UNIX, time.0.rem_euclid(1_000_000_000) as i32),
        };
        let mut bytes = [0; 15];
        bytes[0] = 1;
        bytes[1..9].copy_from_slice(&secs.to_be_bytes());
        bytes[9..13].copy_from_slice(&nanos.to_be_bytes());
        bytes[13..15].copy_from_slice(&(-1_i16).to_be_bytes());
        bytes
    }

    fn from_binary(bytes: &[u8]) -> Option<Timestamp> {
        let whole = matches!((bytes.first()?, bytes.len()), (1, 15) | (2, 16));
        if !whole {
            return None;
        }
        let secs = i64::from_be_bytes(bytes[1..9].try_into().ok()?);
        let nanos = i32::from_be_bytes(bytes[9..13].try_into().ok()?);
        if secs == 0 && nanos == 0 {
            return Some(Timestamp(None));
        }
        let unix = secs.checked_sub(YEAR_ONE_TO_UNIX)?.checked_mul(1_000_000_000)?;
        Some(Timestamp(Some(base::Time(unix.checked_add(i64::from(nanos))?))))
    }
}

impl From<base::Time> for Timestamp {
    fn from(time: base::Time) -> Timestamp {
        Timestamp((time != base::Time::ZERO).then_some(time))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(|time| jiff::Timestamp::from_nanosecond(i128::from(time.0)).ok()) {
            Some(stamp) => stamp.fmt(f),
            None => f.write_str("0001-01-01T00:00:00Z"),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Timestamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Timestamp, String> {
        let wrong = |_| format!("\"{text}\" is not a time: expected RFC 3339, like 2026-01-02T15:04:05Z");
        let stamp: jiff::Timestamp = text.parse().map_err(wrong)?;
        if stamp.as_second() == -YEAR_ONE_TO_UNIX {
            return Ok(Timestamp(None));
        }
        let nanos =
            i64::try_from(stamp.as_nanosecond()).map_err(|_| format!("\"{text}\" is out of range"))?;
        Ok(Timestamp(Some(base::Time(nanos))))
    }
}

/// How servers write what has not happened to a task yet: clients that were written for them ask for null.
pub(super) fn null_if_zero<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    match moment.is_zero() && serializer.is_human_readable() {
        true => serializer.serialize_none(),
        false => moment.serialize(serializer),
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.to_binary())
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl<'de> Visitor<'de> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an RFC 3339 time")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        if text.is_empty() {
            return Ok(Timestamp(None));
        }
        // Go's binary form, where its first byte is below any printable one, may arrive as a raw string.
        match Timestamp::from_binary(text.as_bytes()) {
            Some(stamp) => Ok(stamp),
            None => text.parse().map_err(E::custom),
        }
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Timestamp, E> {
        Timestamp::from_binary(bytes).ok_or_else(|| E::custom("not a time in Go's binary form"))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Timestamp, E> {
        Ok(Timestamp(None))
    }

    fn visit_none<E: de::Error>(self) -> Result<Timestamp, E> {
        Ok(Timestamp(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Timestamp, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element::<u8>()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_survive_a_round_trip() {
        for text in ["0001-01-01T00:00:00Z", "2026-11-21T03:02:43.123456789Z", "1969-12-31T23:59:59.5Z"] {
            let stamp: Timestamp = text.parse().unwrap();
            assert_eq!(stamp.to_string(), text);
            assert_eq!(Timestamp::from_binary(&stamp.to_binary()), Some(stamp));
        }
    }

    #[test]
    fn the_binary_form_is_the_one_go_writes() {
        let stamp: Timestamp = "2009-11-10T23:00:00Z".parse().unwrap();
        // 1257894000 s since 1970 plus 62135596800 s since year 1 = 0x0e_c28b_e770.
        assert_eq!(stamp.to_binary(), [1, 0, 0, 0, 14, 194, 139, 231, 112, 0, 0, 0, 0, 255, 255]);
    }
}
