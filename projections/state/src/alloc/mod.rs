//! Allocations: what was placed where, what is wanted of it and what is known of it.

pub mod endings;
pub(crate) mod fold;
pub(crate) mod hash;
pub mod reschedule;
mod state;
mod totals;
mod view;

pub use crate::row::AllocRow;
pub use state::{Alloc, Allocs, Health, KnownState, Transition, name};
pub use view::{allocated_resources, document, first_address, job_document, requested, stub, without_job};
