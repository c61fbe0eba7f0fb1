//! The gate on every change: seeds hold, and planted bugs are found.

mod agenda;
mod clock;
mod panics;
mod planted;
mod seeds;
