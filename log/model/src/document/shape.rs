//! The shapes of Nomad's API that differ from Rust's own: lists and maps that are null when empty,
//! durations as nanoseconds, timestamps as RFC 3339 (binary in msgpack), bytes as base64 (raw in msgpack).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

pub use super::timestamp::Timestamp;

/// True for what Nomad leaves out: zero, empty, unset.
pub fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A list that is `null` when empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        List(Vec::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for List<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        List(items)
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        List(items.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut List<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() { serializer.serialize_none() } else { self.0.serialize(serializer) }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(List(Option::deserialize(deserializer)?.unwrap_or_default()))
    }
}

/// A map with sorted keys that is `null` when empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map<K, V>(pub BTreeMap<K, V>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map(BTreeMap::new())
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K, V> Deref for Map<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

impl<K, V> DerefMut for Map<K, V> {
    fn deref_mut(&mut self) -> &mut BTreeMap<K, V> {
        &mut self.0
    }
}

impl<K, V> From<BTreeMap<K, V>> for Map<K, V> {
    fn from(entries: BTreeMap<K, V>) -> Self {
        Map(entries)
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Map(entries.into_iter().collect())
    }
}

impl<'a, K, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = std::collections::btree_map::Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Map<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() { serializer.serialize_none() } else { self.0.serialize(serializer) }
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Map<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Map(Option::deserialize(deserializer)?.unwrap_or_default()))
    }
}

/// A map that is an object also when it is empty, where Nomad's servers always make one. In JSON only: what is stored, and
/// what nodes are sent, keeps its form.
///
/// # Errors
/// Those of the serializer.
pub fn object<K: Serialize, V: Serialize, S: Serializer>(
    map: &Map<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() { map.0.serialize(serializer) } else { map.serialize(serializer) }
}

/// As [`object`], with null for each zero value: what Nomad's servers have pointers to.
///
/// # Errors
/// Those of the serializer.
pub fn object_of_options<K: Serialize, V: Serialize + Default + PartialEq, S: Serializer>(
    map: &Map<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return map.serialize(serializer);
    }
    serializer.collect_map(map.iter().map(|(key, value)| (key, (!is_zero(value)).then_some(value))))
}

/// A span of time: integer nanoseconds on the wire; text such as `30s` is also understood.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub base::Duration);

impl Duration {
    pub const fn from_secs(secs: i64) -> Duration {
        Duration(base::Duration::from_secs(secs))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Duration {
    type Target = base::Duration;

    fn deref(&self) -> &base::Duration {
        &self.0
    }
}

impl From<base::Duration> for Duration {
    fn from(span: base::Duration) -> Self {
        Duration(span)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.0)
    }
}

impl Duration {
    /// The name it has for readers that take numbers only.
    pub(super) const NAME: &'static str = "Duration";
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(Duration::NAME, DurationVisitor)
    }
}

struct DurationVisitor;

impl<'de> Visitor<'de> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a duration: whole nanoseconds, or text like \"30s\"")
    }

    fn visit_i64<E: de::Error>(self, nanos: i64) -> Result<Duration, E> {
        Ok(Duration(base::Duration(nanos)))
    }

    fn visit_u64<E: de::Error>(self, nanos: u64) -> Result<Duration, E> {
        i64::try_from(nanos).map(|n| Duration(base::Duration(n))).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        text.parse().map(Duration).map_err(E::custom)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Duration, E> {
        Ok(Duration::default())
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Duration, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A duration that clients send as empty text when it is unset.
///
/// # Errors
/// As for [`Duration`].
pub fn duration_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct OrEmpty;

    impl Visitor<'_> for OrEmpty {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            DurationVisitor.expecting(f)
        }

        fn visit_i64<E: de::Error>(self, nanos: i64) -> Result<Duration, E> {
            DurationVisitor.visit_i64(nanos)
        }

        fn visit_u64<E: de::Error>(self, nanos: u64) -> Result<Duration, E> {
            DurationVisitor.visit_u64(nanos)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
            if text.is_empty() { Ok(Duration::default()) } else { DurationVisitor.visit_str(text) }
        }

        fn visit_unit<E: de::Error>(self) -> Result<Duration, E> {
            Ok(Duration::default())
        }
    }

    deserializer.deserialize_any(OrEmpty)
}

/// Bytes: base64 in JSON (null when empty), raw in msgpack.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            serializer.serialize_none()
        } else if serializer.is_human_readable() {
            serializer.serialize_str(&STANDARD.encode(&self.0))
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.is_human_readable();
        deserializer.deserialize_any(BytesVisitor { text })
    }
}

struct BytesVisitor {
    text: bool,
}

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("bytes, as base64 text in JSON")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
        if !self.text {
            return Ok(Bytes(text.as_bytes().to_vec()));
        }
        STANDARD.decode(text).map(Bytes).map_err(|e| E::custom(format!("not base64: {e}")))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(bytes.to_vec()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Bytes, E> {
        Ok(Bytes::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<Bytes, E> {
        Ok(Bytes::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bytes, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(Bytes(bytes))
    }
}
