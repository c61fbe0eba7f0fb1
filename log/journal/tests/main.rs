//! The log of one server.

mod archive;
mod crash;
mod damage;
mod golden;
mod images;
mod kept_facts;
mod recovery;
mod samples;
mod samples_cursors;
mod samples_erasure;
mod samples_logins;
mod samples_recording;
mod samples_services;
mod samples_sinks;
mod samples_variables;
mod samples_volumes;
mod speed;
mod store;
mod support;
