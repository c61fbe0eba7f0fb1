//! Rows of a page that were released: of those only the hashes are stored, so that the digest of what is read back is the
//! one that it was.
//!
//! | size | column, before those of the rows that are held |
//! |---|---|
//! | 2 | how many were released |
//! | 1 each | their places in the page, ascending |
//! | 8 each | their hashes |
//!
//! Chunks of format 2 have no such columns: releases that wrote it held every row.

use bytes::Bytes;

use super::columns::{Fault, Reader, Writer};
use super::contents::EARLIER_FORMAT;
use crate::rows::{Release, Rows};

/// A page of a table as bytes. `encode` gets the rows that are held.
pub(super) fn encode<T: Release>(
    rows: &Rows<T>,
    page: usize,
    encode: impl FnOnce(&[T]) -> Vec<u8>,
) -> Vec<u8> {
    let all = rows.pages().page(page).expect("the page's number lies below theirs");
    let hashes = rows.page_hashes(page);
    let released = || (0..all.len()).filter(|at| all[*at].is_released());
    let mut to = Writer::default();
    to.u16s(std::iter::once(released().count() as u16));
    to.u8s(released().map(|at| at as u8));
    to.u64s(released().map(|at| hashes[at]));
    let held = if released().next().is_none() {
        encode(all)
    } else {
        encode(&all.iter().filter(|row| !row.is_released()).cloned().collect::<Vec<T>>())
    };
    to.0.extend_from_slice(&held);
    to.0
}

/// The released rows of one page.
#[derive(Clone)]
pub(super) struct Released {
    /// Places in the page and hashes, ascending.
    rows: Vec<(usize, u64)>,
    /// Rows of the page.
    len: usize,
}

impl Released {
    /// Takes them off the chunk of a page of so many rows.
    pub fn read(format: u16, chunk: &Bytes, len: usize) -> Result<(Released, Bytes), Fault> {
        if format == EARLIER_FORMAT {
            return Ok((Released { rows: Vec::new(), len }, chunk.clone()));
        }
        let mut from = Reader(chunk);
        let count = usize::from(from.column::<2>(1)?.u16(0));
        let (places, hashes) = (from.u8s(count)?, from.column::<8>(count)?);
        let rows: Vec<(usize, u64)> =
            places.iter().enumerate().map(|(at, place)| (usize::from(*place), hashes.u64(at))).collect();
        if !rows.is_sorted_by(|a, b| a.0 < b.0) || rows.last().is_some_and(|(place, _)| *place >= len) {
            return Err("a released row has no place in its page");
        }
        Ok((Released { rows, len }, chunk.slice_ref(from.0)))
    }

    /// Rows that are stored.
    pub fn held(&self) -> usize {
        self.len - self.rows.len()
    }

    /// The whole page from the rows that are stored, in their order. `released` makes the others.
    pub fn fill<T>(&self, held: Vec<T>, released: impl Fn() -> T) -> Vec<T> {
        debug_assert_eq!(held.len(), self.held());
        let (mut held, mut gone) = (held.into_iter(), self.rows.iter().peekable());
        let row = |place: usize| match gone.next_if(|(released, _)| *released == place) {
            Some(_) => released(),
            None => held.next().expect("what is not released is held"),
        };
        (0..self.len).map(row).collect()
    }

    /// The hashes of the whole page. `hash` is asked for the rows that are held.
    pub fn hashes(&self, hash: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut hashes: Vec<u64> = Vec::with_capacity(self.len);
        let mut gone = self.rows.iter().peekable();
        hashes.extend((0..self.len).map(|place| match gone.next_if(|(released, _)| *released == place) {
            Some((_, kept)) => *kept,
            None => hash(place),
        }));
        hashes
    }
}
