//! The job language, from text to canonical jobs.

mod bounds;
mod canonical;
mod config;
mod contract;
mod decode;
mod dynamic;
mod errors;
mod examples;
mod functions;
mod json;
mod judge;
mod language;
mod variables;
