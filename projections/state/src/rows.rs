use std::fmt;
use std::ops::{Index, Range};
use std::sync::LazyLock;

use base::pages::{Blank, PAGE_ROWS, Pages};

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
    /// The part of the sum that is of rows in pages that were given up as a whole: their hashes are nowhere else.
    blank_sum: u64,
}

/// A row that can be released: what it said leaves memory, and its hash stays in the sum for ever, so that the digest of
/// the table does not depend on what was released when.
pub(crate) trait Release: Clone + 'static {
    /// A page of released rows. Each reads as the row of an object that was forgotten.
    fn blank() -> &'static Blank<Self>;
    fn is_released(&self) -> bool;
    /// The row of a released object.
    fn released() -> Self;
}

/// [`Release`] for a table whose rows stand behind pointers: one object stands for all that were released.
macro_rules! releases {
    ($row:ty, $placeholder:expr) => {
        impl crate::rows::Release for std::sync::Arc<$row> {
            fn blank() -> &'static base::pages::Blank<Self> {
                static BLANK: std::sync::LazyLock<base::pages::Blank<std::sync::Arc<$row>>> =
                    std::sync::LazyLock::new(|| {
                        base::pages::Blank::of(<std::sync::Arc<$row> as crate::rows::Release>::released())
                    });
                &BLANK
            }

            fn is_released(&self) -> bool {
                std::sync::Arc::ptr_eq(self, &RELEASED)
            }

            fn released() -> Self {
                RELEASED.clone()
            }
        }

        static RELEASED: std::sync::LazyLock<std::sync::Arc<$row>> =
            std::sync::LazyLock::new(|| std::sync::Arc::new($placeholder));
    };
}
pub(crate) use releases;

/// The hashes in a page that was given up: nobody reads them.
static NO_HASHES: LazyLock<Blank<u64>> = LazyLock::new(|| Blank::of(OPEN + 1));

/// The pages of a table that hold nothing any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlankPages {
    /// Their numbers, ascending.
    pub pages: Vec<Range<u32>>,
    /// The sum of the hashes of their rows.
    pub sum: u64,
}

impl BlankPages {
    pub fn len(&self) -> usize {
        self.pages.iter().map(ExactSizeIterator::len).sum()
    }

    pub fn contains(&self, page: usize) -> bool {
        let page = page as u32;
        let at = self.pages.partition_point(|range| range.end <= page);
        self.pages.get(at).is_some_and(|range| range.contains(&page))
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Rows { rows: Pages::default(), hashes: Pages::default(), sum: 0, open: Vec::new(), blank_sum: 0 }
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
        Rows { rows: Pages::from_pages(rows), hashes, sum, ..Rows::default() }
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

impl<T: Release> Rows<T> {
    /// A table from those of its pages that hold something, each row with its hash.
    pub fn from_held_pages(pages: Vec<(Vec<T>, Vec<u64>)>, blank: &BlankPages) -> Rows<T> {
        let mut rows = Rows { sum: blank.sum, blank_sum: blank.sum, ..Rows::default() };
        let mut held = pages.into_iter();
        let all = held.len() + blank.len();
        for page in 0..all {
            if blank.contains(page) {
                rows.rows.push_blank(T::blank());
                rows.hashes.push_blank(&NO_HASHES);
            } else {
                let (values, hashes) = held.next().expect("what is not blank is held");
                let hashes: Vec<u64> = hashes.into_iter().map(closed).collect();
                rows.sum = hashes.iter().fold(rows.sum, |sum, hash| sum.wrapping_add(*hash));
                rows.rows.push_page(values);
                rows.hashes.push_page(hashes);
            }
        }
        rows
    }

    /// # Panics
    /// If the row was released: nobody may speak of it any more.
    pub fn held_mut(&mut self, row: u32) -> &mut T {
        assert!(!self[row].is_released(), "what was forgotten does not change");
        self.get_mut(row).expect("the row was given out")
    }

    /// Lets go of what the row says. Its hash stays in the sum.
    pub fn release(&mut self, row: u32) {
        debug_assert!(self.open.is_empty(), "rows are released between batches");
        assert!(!self[row].is_released(), "a row is released once");
        *self.rows.get_mut(row as usize).expect("the row was given out") = T::released();
        let page = row as usize / PAGE_ROWS;
        let rows = self.rows.page(page).expect("the row is in a page");
        if rows.len() == PAGE_ROWS && rows.iter().all(T::is_released) {
            let hashes = self.hashes.page(page).expect("each page has its hashes");
            self.blank_sum = hashes.iter().fold(self.blank_sum, |sum, hash| sum.wrapping_add(*hash));
            self.rows.blank(page, T::blank());
            self.hashes.blank(page, &NO_HASHES);
        }
    }

    /// Rows that were not released, and their numbers.
    pub fn held(&self) -> impl Iterator<Item = (u32, &T)> {
        let pages = (0..self.rows.pages()).filter(|page| !self.rows.is_blank(*page, T::blank()));
        let rows = pages.flat_map(|page| {
            let rows = self.rows.page(page).expect("the page's number lies below theirs");
            ((page * PAGE_ROWS) as u32..).zip(rows)
        });
        rows.filter(|(_, row)| !row.is_released())
    }

    pub fn blank_pages(&self) -> BlankPages {
        let mut pages: Vec<Range<u32>> = Vec::new();
        let blank = (0..self.rows.pages()).filter(|page| self.rows.is_blank(*page, T::blank()));
        for page in blank.map(|page| page as u32) {
            match pages.last_mut().filter(|last| last.end == page) {
                Some(last) => last.end += 1,
                None => pages.push(page..page + 1),
            }
        }
        BlankPages { pages, sum: self.blank_sum }
    }

    /// The hashes of a page that is not blank.
    pub fn page_hashes(&self, page: usize) -> &[u64] {
        self.hashes.page(page).expect("each page has its hashes")
    }

    /// What [`Rows::sum`] has to be: the hashes of what was released are taken as they are.
    pub fn recomputed_held(&self, hash: impl Fn(u32, &T) -> u64) -> u64 {
        let pages = (0..self.rows.pages()).filter(|page| !self.rows.is_blank(*page, T::blank()));
        pages.fold(self.blank_sum, |sum, page| {
            let rows = self.rows.page(page).expect("the page's number lies below theirs");
            let rows = ((page * PAGE_ROWS) as u32..).zip(rows).zip(self.page_hashes(page));
            rows.fold(sum, |sum, ((number, row), kept)| {
                sum.wrapping_add(if row.is_released() { *kept } else { closed(hash(number, row)) })
            })
        })
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
    use std::sync::Arc;

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

    releases!(u64, u64::MAX);

    fn hash_behind(row: u32, value: &Arc<u64>) -> u64 {
        hash(row, value)
    }

    fn table(values: std::ops::Range<u64>) -> Rows<Arc<u64>> {
        let mut rows = Rows::default();
        values.for_each(|value| {
            rows.push(Arc::new(value));
        });
        rows.settle(hash_behind);
        rows
    }

    #[test]
    fn what_is_released_leaves_memory_and_stays_in_the_sum() {
        let mut rows = table(0..1_000);
        let before = rows.clone();
        (256..512).chain([3, 4, 999]).for_each(|row| rows.release(row));
        assert_eq!((rows.sum(), rows.recomputed_held(hash_behind)), (before.sum(), before.sum()));
        assert_eq!(rows.held().count(), 1_000 - 259);
        assert!(rows.held().all(|(row, value)| u64::from(row) == **value));
        assert_eq!((rows.blank_pages().pages.len(), &rows.blank_pages().pages[0]), (1, &(1..2)));
        assert_eq!((*rows[300], *rows[3], *before[3]), (u64::MAX, u64::MAX, 3));

        // Others go on as they would have.
        *rows.held_mut(2) = Arc::new(7);
        rows.push(Arc::new(8));
        rows.settle(hash_behind);
        let mut other = before;
        *other.held_mut(2) = Arc::new(7);
        other.push(Arc::new(8));
        other.settle(hash_behind);
        assert_eq!(rows.sum(), other.sum());
    }

    #[test]
    fn a_table_is_put_together_from_what_it_holds() {
        let mut rows = table(0..1_000);
        (0..512).chain([600, 999]).for_each(|row| rows.release(row));
        let blank = rows.blank_pages();
        let pages =
            [2, 3].map(|page| (rows.pages().page(page).unwrap().to_vec(), rows.page_hashes(page).to_vec()));
        assert!(Rows::from_held_pages(pages.to_vec(), &blank) == rows);
    }

    #[test]
    #[should_panic = "what was forgotten does not change"]
    fn a_released_row_does_not_change() {
        let mut rows = table(0..2);
        rows.release(1);
        rows.held_mut(1);
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
