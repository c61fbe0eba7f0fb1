//! Services of provider nomad: what an allocation registers, and the checks that this node runs for it.
//!
//! `wanted.rs`, `address.rs` and `check.rs` say what a job asks for, without any power. [`Registry`] holds what is
//! registered of each allocation, and `sync.rs` keeps the servers up to date. `checks.rs` runs checks, `probe.rs` makes
//! their requests, [`Results`] holds how they went, and `unhealthy.rs` says when one that fails restarts its task. The hooks
//! of allocations and tasks say when.

mod address;
mod check;
mod checks;
pub mod consul;
pub(crate) mod probe;
mod registry;
mod results;
pub(crate) mod sync;
mod unhealthy;
mod wanted;

pub use checks::{Checks, Owner, Restarter};
pub use probe::Prober;
pub use registry::{Registered, Registry, Workload};
pub use results::{AllocChecks, ExpectedChecks, Results, ServiceHealth};
pub use wanted::{Providers, Unsupported, Wanted, of_group, of_task, refused};
