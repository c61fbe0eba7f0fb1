//! The drivers in this program. To add one, write a file that ends in a [`BuiltinDriver`], and add it to [`BUILTIN`].
//!
//! `raw_exec` is the one to copy for tasks that are processes, [`mock`] for tasks that are something else; [`docker`] is an
//! example of tasks that somebody else keeps, and [`containers`] is what these share.

mod containers;
mod docker;
mod exec;
mod java;
mod mock;
mod podman;
mod qemu;
mod raw_exec;

use crate::driver::registry::BuiltinDriver;

/// Every driver, whether or not the configuration enables it.
pub const BUILTIN: &[&BuiltinDriver] = &[
    &raw_exec::BUILTIN,
    &exec::BUILTIN,
    &java::BUILTIN,
    &docker::BUILTIN,
    &podman::BUILTIN,
    &qemu::BUILTIN,
    &mock::BUILTIN,
];

/// The driver of this name, if this program contains it.
pub fn builtin(name: &str) -> Option<&'static BuiltinDriver> {
    BUILTIN.iter().copied().find(|driver| driver.name == name)
}
