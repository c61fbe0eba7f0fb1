//! The messages of plugins, as their services exchange them. Numbers and types are the protocol: nothing here is ours to change.
//!
//! They are written by hand, so that nothing is generated when this is built.

pub mod base;
pub mod device;
pub mod driver;
pub mod go_plugin;
pub mod hclspec;
pub mod structs;
pub mod task;
