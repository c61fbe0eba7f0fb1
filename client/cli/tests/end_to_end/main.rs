//! The program as its users run it: agents are processes with directories and ports of their own, and are
//! killed where users would see them killed.
//!
//! Nothing here waits for a time to pass: everything looks, until a deadline, for what has to happen.

mod apart;
mod canaries;
mod cluster;
mod crash;
mod crowd;
mod damage;
mod disconnect;
mod drains;
mod exec;
mod first_hour;
mod snapshot;
mod support;
mod wrong_input;
