//! How results look: tables, blocks, times, sizes, colours. No word of the domain, and no decision.

mod look;
mod table;
mod text;

pub use look::{Look, Paint};
pub use table::{Table, fields};
pub use text::{UNSET, bytes, json, write_err, write_out};
