//! The program as its users run it: agents are processes with directories and ports of their own, and some of them
//! are killed.
//!
//! No test sleeps for a fixed time: each polls for the expected state until a deadline.

mod access_control;
mod artifacts;
mod audit;
mod canaries;
mod cluster;
mod crash;
mod damaged_log;
mod docker;
mod drains;
mod exec;
mod getting_started;
mod gossip_keys;
mod identities;
mod invalid_input;
mod isolated;
mod logins;
mod many_callers;
mod networks;
mod reconnecting_nodes;
mod reload;
mod separate_processes;
mod services;
mod snapshot;
mod support;
mod templates;
mod tls;
mod variables;
