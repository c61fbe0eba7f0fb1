//! The program as its users run it: agents are processes with directories and ports of their own, and are
//! killed where users would see them killed.
//!
//! Nothing here waits for a time to pass: everything looks, until a deadline, for what has to happen.

mod canaries;
mod cluster;
mod crash;
mod damaged_log;
mod drains;
mod exec;
mod getting_started;
mod invalid_input;
mod many_callers;
mod reconnecting_nodes;
mod separate_processes;
mod snapshot;
mod support;
