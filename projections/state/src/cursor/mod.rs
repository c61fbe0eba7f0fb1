//! Cursors of the event stream: how far its readers have come.

mod fold;
mod state;

pub use state::{Acknowledged, Cursor, Cursors, Member};
