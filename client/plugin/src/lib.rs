//! Plugins that are programs of their own, as Nomad's are: drivers and devices that others have written.
//!
//! [`launch`] starts one and reads its handshake, [`call`] makes the calls of its services, [`hclspec`] turns the blocks of
//! configuration files into what it expects, and [`supervisor`] keeps one running. What is done with a driver or a device is the node agent's
//! business. [`serve`] is the other side: what a plugin in Rust needs.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod call;
pub mod hclog;
pub mod hclspec;
pub mod identify;
pub mod launch;
pub mod proto;
pub mod serve;
pub mod supervisor;

pub use call::{CallError, Caller};
