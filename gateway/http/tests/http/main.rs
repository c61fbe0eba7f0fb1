//! The routes over a running control, in one process and without a socket.

mod access;
mod acl;
mod agent;
mod allocations;
mod audit;
mod client;
mod deployments;
mod evaluations;
mod exec;
mod families;
mod guarded;
mod jobs;
mod keyring;
mod logins;
mod monitor;
mod nodes;
mod operator;
mod provider;
mod robust;
mod rules;
mod scheduler;
mod stream;
mod support;
mod volumes;
mod waiting;
mod why;
