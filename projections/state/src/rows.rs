use std::fmt;
use std::ops::Index;

use base::pages::Pages;

/// The hash of a row that is being changed. No other row has it: see [`Rows::settle`].
const OPEN: u64 = 0;

/// The rows of a table and the sum of their hashes.
///
/// Taking a row to change it takes its hash out of the sum; at the end of the batch [`Rows::settle`] adds the new
/// ones. So no change can be missed, and a row that changes often in one batch is hashed once. Each hash covers the
/// row's number, so that the sum identifies the whole table whatever the order of adding.
#[derive(Clone)]
pub(crate) struct Rows<T> {
    rows: Pages<T>,
    hashes: Pages<u64>,
    sum: u64,
    /// Rows whose hash is not in the sum; none between batches.
    open: Vec<u32>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Rows { rows: Pages::default(), hashes: Pages::default(), sum: 0, open: Vec::new() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        self.sum == other.sum && self.rows == other.rows && self.hashes == other.hashes
    }
}

impl<T> Rows<T> {
    /// A table from whole pages, each row with its hash.
    pub fn from_pages(pages: Vec<(Vec<T>, Vec<u64>)>) -> Rows<T> {
        let hashes = pages.iter().flat_map(|(_, hashes)| hashes);
        let sum = hashes.fold(0, |sum: u64, hash| sum.wrapping_add(closed(*hash)));
        let (rows, hashes): (Vec<_>, Vec<_>) = pages.into_iter().unzip();
        let closed = |page: Vec<u64>| page.into_iter().map(closed).collect();
        let hashes = Pages::from_pages(hashes.into_iter().map(closed));
        Rows { rows: Pages::from_pages(rows), hashes, sum, open: Vec::new() }
    }

    pub fn pages(&self) -> &Pages<T> {
        &self.rows
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.rows.iter()
    }

    /// The sum of the hashes of all rows.
    pub fn sum(&self) -> u64 {
        debug_assert!(self.open.is_empty(), "a digest is that of a whole batch");
        self.sum
    }

    /// What [`Rows::sum`] has to be.
    pub fn recomputed(&self, hash: impl Fn(u32, &T) -> u64) -> u64 {
        (0..)
            .zip(self.rows.iter())
            .fold(0, |sum: u64, (row, value)| sum.wrapping_add(closed(hash(row, value))))
    }
}

impl<T: Clone> Rows<T> {
    /// Appends a row and returns its number.
    pub fn push(&mut self, value: T) -> u32 {
        let row = self.rows.push(value) as u32;
        self.hashes.push(OPEN);
        self.open.push(row);
        row
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut T> {
        let hash = *self.hashes.get(row as usize)?;
        if hash != OPEN {
            *self.hashes.get_mut(row as usize)? = OPEN;
            self.sum = self.sum.wrapping_sub(hash);
            self.open.push(row);
        }
        self.rows.get_mut(row as usize)
    }

    /// Hashes the rows that were changed since it was last called.
    pub fn settle(&mut self, hash: impl Fn(u32, &T) -> u64) {
        for row in self.open.drain(..) {
            let hash = closed(hash(row, &self.rows[row as usize]));
            *self.hashes.get_mut(row as usize).expect("each row has its hash") = hash;
            self.sum = self.sum.wrapping_add(hash);
        }
    }
}

impl<T> Index<u32> for Rows<T> {
    type Output = T;

    fn index(&self, row: u32) -> &T {
        &self.rows[row as usize]
    }
}

fn closed(hash: u64) -> u64 {
    hash.max(OPEN + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(row: u32, value: &u64) -> u64 {
        let mut hash = base::StableHash::new(1);
        hash.pair(u64::from(row), *value);
        hash.finish()
    }

    fn settled(values: &[u64]) -> Rows<u64> {
        let mut rows = Rows::default();
        for value in values {
            rows.push(*value);
        }
        rows.settle(hash);
        rows
    }

    #[test]
    fn the_sum_follows_every_change() {
        let mut rows = settled(&[1, 2, 3]);
        assert_eq!(rows.sum(), rows.recomputed(hash));
        let before = rows.clone();
        for value in 10..20 {
            *rows.get_mut(1).unwrap() = value;
        }
        rows.push(4);
        rows.settle(hash);
        assert_eq!(rows.sum(), rows.recomputed(hash));
        assert_ne!(rows.sum(), before.sum());
        *rows.get_mut(1).unwrap() = 2;
        rows.settle(hash);
        assert_eq!(rows.sum(), settled(&[1, 2, 3, 4]).sum());
        assert_eq!(before.sum(), settled(&[1, 2, 3]).sum());
    }

    #[test]
    fn which_row_holds_a_value_counts() {
        assert_ne!(settled(&[1, 2]).sum(), settled(&[2, 1]).sum());
        assert_ne!(settled(&[1]).sum(), settled(&[1, 1]).sum());
    }

    #[test]
    fn whole_pages_make_the_same_table() {
        let values: Vec<u64> = (0..600).collect();
        let page = |at: usize| values[at..values.len().min(at + 256)].to_vec();
        let hashed = |page: &[u64]| page.iter().map(|value| hash(*value as u32, value)).collect();
        let pages = [0, 256, 512].map(|at| (page(at), hashed(&page(at))));
        assert!(Rows::from_pages(pages.to_vec()) == settled(&values));
    }

    #[test]
    fn a_hash_that_looks_open_is_not() {
        let mut rows = Rows::default();
        rows.push(5_u64);
        rows.settle(|_, _| OPEN);
        *rows.get_mut(0).unwrap() = 6;
        rows.settle(|_, value| *value);
        assert_eq!(rows.sum(), 6);
    }
}
