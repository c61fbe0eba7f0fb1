//! The job language, from text to canonical jobs.

mod bounds;
mod canonical;
mod config;
mod decode;
mod dynamic;
mod errors;
mod examples;
mod json;
mod judge;
mod language;
mod variables;
