use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use model::{Chunk, Image};

use super::columns::Fault;
use super::contents::Contents;
use super::{ImageError, Table};

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

    /// Takes apart the chunks of a table, several at once. `decode` gets a chunk's number, its bytes and its rows.
    pub fn read<T: Send>(
        &self,
        table: Table,
        decode: impl Fn(usize, &Bytes, usize) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, ImageError> {
        let before = Table::ALL[..table as usize].iter().map(|table| self.contents.chunks(*table)).sum();
        let own = &self.rest[before..][..self.contents.chunks(table)];
        let decoded = in_parallel(own.len(), |chunk| {
            let bytes = own[chunk].bytes.as_ref().ok_or("its bytes are missing")?;
            decode(chunk, bytes, self.contents.rows_in(table, chunk))
        });
        let named =
            |(chunk, decoded): (usize, Result<T, Fault>)| decoded.map_err(|why| table.damaged(chunk, why));
        decoded.into_iter().enumerate().map(named).collect()
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
