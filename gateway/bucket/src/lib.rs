//! A bucket of an S3 store as the files of an archive of history.
//!
//! The archive writes a file under a name that does not count yet, reads it back, and names it; it does so in memory here, and
//! the object is made when the file gets its name. An object is there as a whole or not at all, so nothing unfinished is ever in
//! the bucket. `client.rs` makes the calls, `files.rs` is what the archive sees.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod client;
mod credentials;
mod files;
mod settings;

pub use files::{AHEAD, Bucket};
pub use reqwest::Url;
pub use settings::{Address, Settings};
