use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::fmt;

use crate::head::{self, Head};
use crate::{Error, ser};

/// By this name the codec recognises a [`Raw`] among newtypes.
pub(crate) const RAW: &str = "$msgpack::Raw";

/// One encoded value, kept as it is. Means something to this codec only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(pub Vec<u8>);

impl Raw {
    /// One map with the entries of all: how Go writes a struct that embeds others.
    ///
    /// # Errors
    /// [`Error::NotMap`] when a part is anything else, [`Error::TooLong`] when their entries exceed 32 bits.
    pub fn embed(parts: &[Vec<u8>]) -> Result<Raw, Error> {
        let mut entries = Vec::new();
        let mut count = 0;
        for part in parts {
            let Some((Head::Map(pairs), size)) = head::parse(part)? else { return Err(Error::NotMap) };
            count += pairs as usize;
            entries.extend_from_slice(&part[size..]);
        }
        let mut whole = ser::map_head(count)?;
        whole.extend(entries);
        Ok(Raw(whole))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return Err(S::Error::custom("raw msgpack belongs in msgpack only"));
        }
        serializer.serialize_newtype_struct(RAW, &Verbatim(&self.0))
    }
}

struct Verbatim<'a>(&'a [u8]);

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, RawVisitor)
    }
}

struct RawVisitor;

impl Visitor<'_> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a msgpack value")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Raw, E> {
        Ok(Raw(bytes.to_vec()))
    }
}
