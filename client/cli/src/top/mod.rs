//! `top`: the cluster on one screen, live or at a moment of the past.
//!
//! `machine` decides what each key and each answer means, and is pure, as is `draw`; `model` holds what is drawn, `read` asks
//! the agent for it, and `screen` owns the terminal and the one thing that is waited for.

mod draw;
mod machine;
mod model;
mod read;
mod screen;
mod table;

pub(crate) use draw::plain;
pub(crate) use machine::State;
pub(crate) use model::{Request, View};
pub(crate) use read::Reader;
pub(crate) use screen::{is_possible, run};

#[cfg(test)]
mod tests;
