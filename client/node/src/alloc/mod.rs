//! One allocation: [`runner`] drives its tasks, [`board`] is where they write down what becomes of them.

pub mod board;
pub mod handle;
pub mod health;
mod migrate;
pub mod runner;
pub mod status;
