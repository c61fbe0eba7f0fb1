//! The routes over a running control, in one process and without a socket.

mod agent;
mod allocations;
mod client;
mod deployments;
mod evaluations;
mod exec;
mod families;
mod jobs;
mod keyring;
mod monitor;
mod nodes;
mod operator;
mod robust;
mod rules;
mod scheduler;
mod stream;
mod support;
mod volumes;
mod waiting;
mod why;
