//! The key trees of this server: kept in files that can be rewritten without a trace, and brought up to date with what was
//! forgotten.

mod files;
mod keeper;
#[cfg(test)]
mod tests;

pub(crate) use files::KeyTreeFiles;
pub(crate) use keeper::Keeper;
