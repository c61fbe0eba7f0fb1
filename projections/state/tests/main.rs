//! What is kept of events: folds, digests, images.

mod digest;
mod history;
mod image;
mod museum;
