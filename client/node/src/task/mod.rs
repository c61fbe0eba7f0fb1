//! One task of an allocation. [`runner`] is its life and [`hooks`] are the steps around it; the other files are what
//! they decide with, each without a clock or I/O of its own.

pub mod environment;
pub mod events;
pub mod hooks;
pub mod lifecycle;
pub mod parts;
pub mod requests;
pub mod restart;
pub mod runner;
pub mod states;
