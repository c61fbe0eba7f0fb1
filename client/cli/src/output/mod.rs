//! How results look: tables, blocks, times, sizes, colours. Nothing here knows jobs, nodes or servers.

mod style;
mod table;
mod text;

pub use style::{OutputStyle, Paint};
pub use table::{Table, fields};
pub use text::{UNSET, bytes, json, write_err, write_out};
