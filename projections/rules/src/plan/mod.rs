//! Plans: what a scheduler wants, checked against what is true by now.

mod check;
pub(crate) mod decide;
mod demand;
mod fit;
mod volumes;
