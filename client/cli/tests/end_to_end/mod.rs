//! The program as its users run it: agents are processes with directories and ports of their own, and some of them
//! are killed.
//!
//! No test sleeps for a fixed time: each polls for the expected state until a deadline.

mod access_control;
mod artifacts;
mod audit;
mod bench;
mod canaries;
mod causes;
mod cluster;
mod consul;
mod crash;
mod csi;
mod cut_off;
mod damaged_log;
mod debug_bundle;
mod dns;
mod docker;
mod drains;
mod endurance;
mod event_cursors;
mod event_sinks;
mod exec;
mod forgetting;
mod getting_started;
mod gossip_keys;
mod host_volumes;
mod identities;
mod invalid_input;
mod isolated;
mod logins;
mod machine;
mod many_callers;
mod migrated_disks;
mod migrating;
mod networks;
mod package;
mod past;
mod plugins;
mod reconnecting_nodes;
mod recording;
mod regions;
mod reload;
mod separate_processes;
mod services;
mod snapshot;
mod stopped_client;
mod stopped_server;
mod support;
mod templates;
mod tls;
mod top;
mod variables;
mod vault;
mod watching;
mod whatif;
