use base::pages::PAGE_ROWS;

/// Values by row, without the pages of which nothing is held.
pub(super) struct Sparse<T> {
    pages: Vec<Option<Vec<T>>>,
}

impl<T> Sparse<T> {
    /// By page; the last one may be short.
    pub fn new(pages: Vec<Option<Vec<T>>>) -> Sparse<T> {
        Sparse { pages }
    }

    /// So many rows, every one of them held.
    pub fn dense(rows: usize) -> Sparse<T>
    where
        T: Clone + Default,
    {
        let len = |page: usize| PAGE_ROWS.min(rows - page * PAGE_ROWS);
        Sparse {
            pages: (0..rows.div_ceil(PAGE_ROWS)).map(|page| Some(vec![T::default(); len(page)])).collect(),
        }
    }

    pub fn get(&self, row: u32) -> Option<&T> {
        self.pages.get(row as usize / PAGE_ROWS)?.as_ref()?.get(row as usize % PAGE_ROWS)
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut T> {
        self.pages.get_mut(row as usize / PAGE_ROWS)?.as_mut()?.get_mut(row as usize % PAGE_ROWS)
    }

    /// Takes a value out.
    pub fn take(&mut self, row: u32) -> T
    where
        T: Default,
    {
        self.get_mut(row).map(std::mem::take).unwrap_or_default()
    }

    /// Other values for the same rows.
    pub fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> Sparse<U> {
        let page = |page: &Option<Vec<T>>| page.as_ref().map(|page| page.iter().map(&mut make).collect());
        Sparse { pages: self.pages.iter().map(page).collect() }
    }

    /// The pages that are held.
    pub fn into_pages(self) -> impl Iterator<Item = Vec<T>> {
        self.pages.into_iter().flatten()
    }
}
