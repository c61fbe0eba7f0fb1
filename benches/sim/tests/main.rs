//! The gate on every change: seeds hold, and planted bugs are found.

mod planted;
mod seeds;
