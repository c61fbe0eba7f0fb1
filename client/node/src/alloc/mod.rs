//! One allocation: [`runner`] starts and stops its tasks and reports what becomes of them; [`hooks`]
//! are the steps around that.

pub mod handle;
pub mod health;
pub mod hooks;
pub mod runner;
pub mod status;
