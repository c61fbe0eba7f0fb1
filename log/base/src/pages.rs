//! Copy-on-write pages: a vector whose clones share everything that neither has changed since.
//!
//! Two levels: a spine of chunks, each of up to 256 pages of 256 rows. A clone copies one pointer per
//! 65,536 rows; a write copies the page it touches if another snapshot still holds it.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// Rows in a page and pages in a chunk. 256 was measured best for batches of small updates.
const FAN: usize = 256;

/// Rows in each page but the last.
pub const PAGE_ROWS: usize = FAN;

type Page<T> = Arc<Vec<T>>;
type Chunk<T> = Arc<Vec<Page<T>>>;

/// A growing table of rows, addressed by dense number. Rows are never removed, only overwritten; a page of rows that are
/// all of no use any more can be replaced by one that all tables share, see [`Blank`].
pub struct Pages<T> {
    chunks: Vec<Chunk<T>>,
    len: usize,
}

impl<T> Clone for Pages<T> {
    fn clone(&self) -> Self {
        Pages { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages { chunks: Vec::new(), len: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: PartialEq> PartialEq for Pages<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T> Pages<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, row: usize) -> Option<&T> {
        (row < self.len).then(|| &self.chunks[row / FAN / FAN][row / FAN % FAN][row % FAN])
    }

    pub fn pages(&self) -> usize {
        self.len.div_ceil(FAN)
    }

    /// The rows of one page: [`PAGE_ROWS`], or what is left for the last.
    pub fn page(&self, number: usize) -> Option<&[T]> {
        self.held(number).map(|page| &page[..])
    }

    /// Both have the page, and neither has written to it since one was cloned from the other.
    pub fn shares_page(&self, other: &Pages<T>, number: usize) -> bool {
        self.held(number).zip(other.held(number)).is_some_and(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Every row of the page was given up with [`Pages::blank`].
    pub fn is_blank(&self, number: usize, blank: &Blank<T>) -> bool {
        self.held(number).is_some_and(|page| Arc::ptr_eq(page, &blank.page))
    }

    /// Gives up every row of a page: it takes no room of its own from now on, and its rows read as that of `blank`.
    ///
    /// # Panics
    /// If the page is the last one and not full: rows are still added to it.
    pub fn blank(&mut self, number: usize, blank: &Blank<T>) {
        assert!((number + 1) * FAN <= self.len, "only a full page is given up");
        if self.is_blank(number, blank) {
            return;
        }
        let chunk = &mut self.chunks[number / FAN];
        Arc::make_mut(chunk)[number % FAN] = blank.page.clone();
        blank.share_chunk(chunk);
    }

    /// Appends a page.
    ///
    /// # Panics
    /// If it is empty or too long, or the page before it is not full.
    pub fn push_page(&mut self, page: Vec<T>) {
        assert!((1..=FAN).contains(&page.len()), "a page has its number of rows");
        self.push_shared(Arc::new(page));
    }

    /// Appends a page of rows that were given up.
    ///
    /// # Panics
    /// If the page before it is not full.
    pub fn push_blank(&mut self, blank: &Blank<T>) {
        self.push_shared(blank.page.clone());
        self.chunks.last_mut().into_iter().for_each(|chunk| blank.share_chunk(chunk));
    }

    fn push_shared(&mut self, page: Page<T>) {
        assert!(self.len.is_multiple_of(FAN), "only the last page may be short");
        if self.len.is_multiple_of(FAN * FAN) {
            self.chunks.push(Arc::default());
        }
        self.len += page.len();
        Arc::make_mut(self.chunks.last_mut().expect("a chunk was pushed for row 0")).push(page);
    }

    fn held(&self, number: usize) -> Option<&Page<T>> {
        (number < self.pages()).then(|| &self.chunks[number / FAN][number % FAN])
    }

    /// The table whose pages are these.
    ///
    /// # Panics
    /// If a page but the last has not [`PAGE_ROWS`] rows, or the last has more or none.
    pub fn from_pages(pages: impl IntoIterator<Item = Vec<T>>) -> Pages<T> {
        let mut table = Pages::default();
        pages.into_iter().for_each(|page| table.push_page(page));
        table
    }

    /// Every row in the order it was pushed.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).flat_map(|page| page.iter())
    }
}

/// The page that stands for every page of rows that were given up, so that such pages cost nothing.
#[derive(Debug)]
pub struct Blank<T> {
    page: Page<T>,
    chunk: Chunk<T>,
}

impl<T: Clone> Blank<T> {
    /// `row` is how rows read that were given up.
    pub fn of(row: T) -> Blank<T> {
        let page = Arc::new(vec![row; FAN]);
        Blank { chunk: Arc::new(vec![page.clone(); FAN]), page }
    }
}

impl<T> Blank<T> {
    fn share_chunk(&self, chunk: &mut Chunk<T>) {
        if chunk.len() == FAN && chunk.iter().all(|page| Arc::ptr_eq(page, &self.page)) {
            *chunk = self.chunk.clone();
        }
    }
}

impl<T: Clone> Pages<T> {
    /// Appends a row and returns its number.
    pub fn push(&mut self, value: T) -> usize {
        let row = self.len;
        if row.is_multiple_of(FAN * FAN) {
            self.chunks.push(Arc::new(Vec::new()));
        }
        let chunk = Arc::make_mut(self.chunks.last_mut().expect("a chunk was pushed for row 0"));
        if row.is_multiple_of(FAN) {
            chunk.push(Arc::new(Vec::with_capacity(FAN)));
        }
        Arc::make_mut(chunk.last_mut().expect("a page was pushed for the chunk's row 0")).push(value);
        self.len += 1;
        row
    }

    pub fn get_mut(&mut self, row: usize) -> Option<&mut T> {
        if row >= self.len {
            return None;
        }
        let chunk = Arc::make_mut(&mut self.chunks[row / FAN / FAN]);
        Some(&mut Arc::make_mut(&mut chunk[row / FAN % FAN])[row % FAN])
    }
}

impl<T> Index<usize> for Pages<T> {
    type Output = T;

    fn index(&self, row: usize) -> &T {
        self.get(row).expect("the row number was given out by this table")
    }
}

impl<T: Clone> FromIterator<T> for Pages<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut pages = Pages::default();
        for row in rows {
            pages.push(row);
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut pages: Pages<u32> = (0..200_000).collect();
        let before = pages.clone();
        *pages.get_mut(70_000).unwrap() = 1;
        pages.push(7);
        assert_eq!((before[70_000], before.len()), (70_000, 200_000));
        assert_eq!((pages[70_000], pages[200_000]), (1, 7));
        assert_eq!(before.get(200_000), None);
    }

    #[test]
    fn a_write_copies_one_page_and_shares_the_rest() {
        let mut pages: Pages<u32> = (0..100_000).collect();
        let before = pages.clone();
        *pages.get_mut(5).unwrap() = 9;
        let shared = |n: usize| Arc::ptr_eq(&pages.chunks[0][n], &before.chunks[0][n]);
        assert!(!shared(0));
        assert!((1..256).all(shared));
        assert!(Arc::ptr_eq(&pages.chunks[1], &before.chunks[1]));
    }

    #[test]
    fn whole_pages_make_the_same_table() {
        for count in [0, 1, 255, 256, 257, 65_535, 65_536, 65_537, 70_000] {
            let pushed: Pages<usize> = (0..count).collect();
            let pages = (0..pushed.pages()).map(|number| pushed.page(number).unwrap().to_vec());
            let mut whole = Pages::from_pages(pages);
            assert!(whole == pushed, "{count} rows");
            assert_eq!(pushed.page(pushed.pages()), None);
            whole.push(7);
            assert_eq!((whole.len(), whole[count]), (count + 1, 7));
        }
    }

    #[test]
    fn pages_that_were_given_up_are_shared_by_all() {
        let blank = Blank::of(7);
        let mut pages: Pages<u32> = (0..140_000).collect();
        let before = pages.clone();
        (0..256).chain([300, 300]).for_each(|number| pages.blank(number, &blank));
        assert!(Arc::ptr_eq(&pages.chunks[0], &blank.chunk), "a whole chunk takes one pointer");
        assert_eq!((pages[65_535], pages[65_536], pages[300 * 256], pages.len()), (7, 65_536, 7, 140_000));
        assert!(pages.is_blank(300, &blank) && !pages.is_blank(301, &blank));
        assert_eq!(before[0], 0);

        let mut again = Pages::default();
        for number in 0..pages.pages() {
            match pages.is_blank(number, &blank) {
                true => again.push_blank(&blank),
                false => again.push_page(pages.page(number).unwrap().to_vec()),
            }
        }
        assert!(again == pages && Arc::ptr_eq(&again.chunks[0], &blank.chunk));
        pages.push(1);
        assert_eq!(pages[140_000], 1);
    }

    #[test]
    fn a_page_is_shared_until_it_is_written_to() {
        let mut pages: Pages<u32> = (0..1_000).collect();
        let before = pages.clone();
        assert!((0..4).all(|number| pages.shares_page(&before, number)));
        *pages.get_mut(300).unwrap() = 9;
        pages.push(7);
        let shared: Vec<bool> = (0..6).map(|number| pages.shares_page(&before, number)).collect();
        assert_eq!(shared, [true, false, true, false, false, false]);
    }

    #[test]
    fn rows_come_in_the_order_they_were_pushed() {
        let pages: Pages<usize> = (0..70_000).collect();
        assert!(pages.iter().copied().eq(0..70_000));
    }
}
