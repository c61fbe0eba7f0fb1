//! Sinks: where the leader sends the event stream. How far each has come is kept by its cursor.

mod fold;
mod state;

pub use state::{Parked, Sink, Sinks, Status};
