//! The messages by which two processes accept each other before they gossip.

use bytes::{Buf, BufMut};

use super::member::{self, CodecError, Member, get_bytes};
use super::replay::Cookie;

/// Longest reason for a rejection, in bytes.
const WHY_MAX: usize = 400;

/// "This is who I am": answered in kind, until both have shown the other's cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The number that the initiator drew for it; 0 if no caller waits.
    pub number: u64,
    /// The recipient's cookie, once it is known.
    pub cookie: Option<Cookie>,
    /// What the recipient is to show.
    pub own_cookie: Cookie,
    /// The recipient is accepted.
    pub welcome: bool,
    /// It is to be answered.
    pub asks: bool,
    /// The recipient's generation as the sender remembers it; 0 if it does not.
    pub known_generation: u64,
    pub member: Member,
}

/// The answer to a greeting of a server that is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The recipient's cookie: so this is no recording.
    pub cookie: Cookie,
    pub number: u64,
    pub why: String,
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(256);
        to.put_u64_le(self.number);
        to.put_slice(&self.cookie.unwrap_or_default());
        to.put_slice(&self.own_cookie);
        to.put_u8(u8::from(self.cookie.is_some()) | u8::from(self.asks) << 1 | u8::from(self.welcome) << 2);
        to.put_u64_le(self.known_generation);
        member::encode(&self.member, &mut to);
        to
    }

    /// # Errors
    /// [`CodecError`] if the bytes are no greeting.
    pub(super) fn decode(mut from: &[u8]) -> Result<Hello, CodecError> {
        let number = from.try_get_u64_le()?;
        let (cookie, own_cookie) = (get_bytes(&mut from)?, get_bytes(&mut from)?);
        let flags = from.try_get_u8()?;
        let known_generation = from.try_get_u64_le()?;
        let member = member::decode(&mut from)?;
        if flags > 7 || from.has_remaining() {
            return Err(CodecError::Unknown(flags, "greeting"));
        }
        let cookie = (flags & 1 != 0).then_some(cookie);
        let (asks, welcome) = (flags & 2 != 0, flags & 4 != 0);
        Ok(Hello { number, cookie, own_cookie, welcome, asks, known_generation, member })
    }
}

impl Refused {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(64 + self.why.len());
        to.put_slice(&self.cookie);
        to.put_u64_le(self.number);
        to.put_slice(&self.why.as_bytes()[..self.why.floor_char_boundary(WHY_MAX)]);
        to
    }

    /// # Errors
    /// [`CodecError`] if the bytes are no rejection.
    pub(super) fn decode(mut from: &[u8]) -> Result<Refused, CodecError> {
        let (cookie, number) = (get_bytes(&mut from)?, from.try_get_u64_le()?);
        let why = std::str::from_utf8(from).map_err(|_| CodecError::Text)?;
        // It goes to a log: what steers terminals stays out.
        let why = why.chars().take(WHY_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Ok(Refused { cookie, number, why })
    }
}
