use std::fmt;
use std::str::FromStr;

use rkyv::{Archive, Deserialize, Serialize};

/// A 128-bit identifier, written as 36 lowercase hex characters with dashes.
///
/// It is never drawn here: the sequencer mints ids, and placement derives them from an evaluation's seed.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Uuid(pub [u8; 16]);

/// The text is not a UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a UUID")]
pub struct IdError(pub String);

impl Uuid {
    /// No thing has this id: it stands for "unset".
    pub const NIL: Uuid = Uuid([0; 16]);

    /// A version-4 UUID out of 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Uuid {
        Uuid(uuid::Builder::from_random_bytes(bytes).into_uuid().into_bytes())
    }

    pub fn is_nil(&self) -> bool {
        *self == Uuid::NIL
    }

    pub fn as_u128(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl From<u128> for Uuid {
    fn from(number: u128) -> Uuid {
        Uuid(number.to_be_bytes())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Uuid, IdError> {
        if text.len() != 36 {
            return Err(IdError(text.to_string()));
        }
        match uuid::Uuid::try_parse(text) {
            Ok(id) => Ok(Uuid(id.into_bytes())),
            Err(_) => Err(IdError(text.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_being_printed() {
        let text = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";
        let id: Uuid = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(Uuid::from(id.as_u128()), id);
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in
            ["", "5d16e7fe", "5d16e7fe8a2e4b449c0a3c7ab13b9f01", "zd16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01"]
        {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }
}
