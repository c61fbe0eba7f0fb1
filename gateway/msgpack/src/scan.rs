//! Finds the end of a value without decoding it: the RPC puts values one after the other, without lengths.

use crate::Error;
use crate::head::{self, Head};

/// The length of the first value in `input`; `None` when it is not complete yet.
///
/// # Errors
/// [`Error::Reserved`] when a byte begins no value.
pub fn measure(input: &[u8]) -> Result<Option<usize>, Error> {
    Scan::default().advance(input)
}

/// A measurement that remembers how far it came, so that a value arriving in pieces is looked at once.
///
/// Iterative: nesting costs a number, not stack.
#[derive(Clone, Debug)]
pub struct Scan {
    at: usize,
    /// Values still to come, the outermost included. Each head adds at most 2^33, so 2^31 heads would have to
    /// be buffered before this could overflow.
    pending: u64,
}

impl Default for Scan {
    fn default() -> Self {
        Scan { at: 0, pending: 1 }
    }
}

impl Scan {
    /// Goes on with the same bytes as last time, and those that have come since.
    ///
    /// Returns the value's whole length once it is complete.
    ///
    /// # Errors
    /// [`Error::Reserved`] when a byte begins no value.
    pub fn advance(&mut self, input: &[u8]) -> Result<Option<usize>, Error> {
        while self.pending > 0 {
            let Some(rest) = input.get(self.at..) else { return Ok(None) };
            let Some((head, size)) = head::parse(rest)? else { return Ok(None) };
            self.at = self.at.saturating_add(size);
            self.pending -= 1;
            match head {
                Head::Nil | Head::Bool(_) | Head::Unsigned(_) | Head::Signed(_) | Head::Float(_) => {}
                Head::Raw(length) | Head::Extension(length) => {
                    self.at = self.at.saturating_add(length as usize);
                }
                Head::Array(items) => self.pending += u64::from(items),
                Head::Map(pairs) => self.pending += 2 * u64::from(pairs),
            }
        }
        Ok((self.at <= input.len()).then_some(self.at))
    }

    /// The least number of bytes the value can have, going by what was seen: enough to refuse one early.
    pub fn least(&self) -> u64 {
        (self.at as u64).saturating_add(self.pending)
    }
}
