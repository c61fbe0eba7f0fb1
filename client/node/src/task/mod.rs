//! One task of an allocation. [`runner`] is its life; the other files are what it decides with, each without
//! a clock or I/O of its own.

pub mod environment;
pub mod events;
pub mod lifecycle;
pub mod prestart;
pub mod restart;
pub mod runner;
mod snappy;
pub mod states;
