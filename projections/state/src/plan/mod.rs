//! Plans: what a scheduler wants, checked against what is true by now.

mod ask;
mod check;
pub(crate) mod decide;
mod fit;
