use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use model::{Chunk, Image};

use super::columns::Fault;
use super::contents::Contents;
use super::released::Released;
use super::{ImageError, Table};
use crate::rows::BlankPages;

/// Threads that take chunks apart, if the machine has so many.
const THREADS_MAX: usize = 8;

/// The chunks of an image, sorted by table.
pub(super) struct Chunks<'a> {
    pub contents: Contents,
    rest: &'a [Chunk],
}

impl<'a> Chunks<'a> {
    pub fn of(image: &'a Image) -> Result<Chunks<'a>, ImageError> {
        let (first, rest) = image.chunks.split_first().ok_or(ImageError::NoImage)?;
        let contents = Contents::decode(first.bytes.as_ref().ok_or(ImageError::NoImage)?)?;
        let expected = Table::ALL.iter().map(|table| contents.chunks(*table)).sum();
        if contents.index != image.index {
            return Err(ImageError::Index { expected: image.index, found: contents.index });
        }
        if rest.len() != expected {
            return Err(ImageError::Chunks { expected, found: rest.len() });
        }
        Ok(Chunks { contents, rest })
    }

    /// Takes apart the chunks of a table, several at once. `decode` gets the number of a chunk's page, its bytes and the
    /// rows of the page.
    pub fn read<T: Send>(
        &self,
        table: Table,
        decode: impl Fn(usize, &Bytes, usize) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, ImageError> {
        let before = Table::ALL[..table as usize].iter().map(|table| self.contents.chunks(*table)).sum();
        let own = &self.rest[before..][..self.contents.chunks(table)];
        let pages: Vec<usize> = self.contents.pages(table).collect();
        let decoded = in_parallel(own.len(), |chunk| {
            let bytes = own[chunk].bytes.as_ref().ok_or("its bytes are missing")?;
            decode(pages[chunk], bytes, self.contents.rows_in(table, pages[chunk]))
        });
        let named =
            |(chunk, decoded): (usize, Result<T, Fault>)| decoded.map_err(|why| table.damaged(chunk, why));
        decoded.into_iter().enumerate().map(named).collect()
    }
}

impl Chunks<'_> {
    /// [`Chunks::read`] for a table whose rows can be released: `decode` gets what was released of the page, and the bytes
    /// of what is held.
    pub fn read_held<T: Send>(
        &self,
        table: Table,
        decode: impl Fn(usize, &Released, &Bytes) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, ImageError> {
        self.read(table, |page, bytes, len| {
            let (released, held) = Released::read(self.contents.format, bytes, len)?;
            decode(page, &released, &held)
        })
    }

    /// What was read of a table's pages by their numbers: `None` for those that are blank.
    pub fn by_page<T>(&self, table: Table, read: Vec<T>) -> Vec<Option<T>> {
        let mut pages: Vec<Option<T>> = Vec::new();
        pages.resize_with(self.contents.all_pages(table), || None);
        self.contents.pages(table).zip(read).for_each(|(page, read)| pages[page] = Some(read));
        pages
    }

    pub fn blank(&self, table: Table) -> BlankPages {
        self.contents.blank(table).cloned().unwrap_or_default()
    }
}

/// What `make` makes of 0, 1, … in this order, made by as many threads as are of use. The caller's is one of them.
fn in_parallel<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX).min(count);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return made;
            }
            made.push((number, make(number)));
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        workers.into_iter().for_each(|worker| all.extend(worker.join().expect("a worker only reads")));
        all
    });
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, made)| made).collect()
}

pub(super) fn at_once<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().expect("lists are built of what was checked"), other)
    })
}
