//! One allocation: [`runner`] starts and stops its tasks and reports what becomes of them.

pub mod handle;
pub mod health;
mod migrate;
pub mod runner;
pub mod status;
