//! The whole cluster from one seed: faults, invariants, oracles.
//!
//! A [`layer`] runs what is real over what is simulated, and shows the checks what happens as [`fact::Fact`]s. The first
//! is [`model`]: everything above the log, over a log that loses what it may. The second is [`replicated`]: the log itself,
//! over disks and links that fail. The third is [`regions`]: several of the first, which
//! follow one of them. Shared by all: [`workload`], [`invariants`], [`oracles`] over the [`witness`] and the
//! [`story`]. No clock is read here, no entropy is drawn, no thread is started: the same seed gives the same steps. Read
//! `model/world.rs`, `replicated/world.rs` and `regions/world.rs` first.

pub mod agenda;
pub mod bookmark;
pub mod checks;
pub mod clock;
pub mod fact;
pub mod invariants;
pub mod layer;
pub mod model;
pub mod options;
pub mod oracles;
pub mod panics;
pub mod planted;
pub mod regions;
pub mod replicated;
pub mod shown;
pub mod story;
pub mod witness;
pub mod words;
pub mod workload;
