//! Files of an archive in a bucket of a store that checks who asks.

mod files;
mod foreign;
pub mod store;
