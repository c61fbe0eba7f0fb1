//! MessagePack as the node RPC uses it: structs are maps keyed by field name, text and bytes share the old
//! raw family, integers take their shortest form, nil stands for the zero value.
//!
//! Never here: sockets, framing, message types. Decoding borrows no more memory than its input justifies and
//! never recurses deeper than [`DEPTH_MAX`], whatever a peer sends. Read `head.rs` next: it is the format.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

mod de;
mod error;
mod head;
mod raw;
mod scan;
mod ser;

pub use de::DEPTH_MAX;
pub use error::Error;
pub use raw::Raw;
pub use scan::{Scan, measure};

use serde::{Deserialize, Serialize};

/// Encodes one value.
///
/// # Errors
/// [`Error::TooLong`] for text, lists or maps beyond 32 bits of length; [`Error::Message`] when the value's own
/// `Serialize` refuses.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let mut encoder = ser::Encoder::default();
    value.serialize(&mut encoder)?;
    Ok(encoder.into_bytes())
}

/// Decodes exactly one value.
///
/// Unknown map keys are ignored where the type ignores them; nil leaves the zero value of a field.
///
/// # Errors
/// [`Error::Truncated`] when `input` ends early, [`Error::Trailing`] when it goes on, [`Error::TooDeep`] beyond
/// [`DEPTH_MAX`], and whatever the type says about values of the wrong shape.
pub fn from_slice<'de, T: Deserialize<'de>>(input: &'de [u8]) -> Result<T, Error> {
    let mut decoder = de::Decoder::new(input);
    let value = T::deserialize(&mut decoder)?;
    decoder.finish()?;
    Ok(value)
}
