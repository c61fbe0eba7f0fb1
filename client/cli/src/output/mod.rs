//! How results look: tables, blocks, times, sizes, colours. Nothing here knows jobs, nodes or servers.

mod style;
mod table;
mod text;

pub(crate) use style::{OutputStyle, Paint};
pub(crate) use table::{Table, fields};
pub(crate) use text::{UNSET, bytes, hold, json, write_err, write_out};
