//! The job language, from text to canonical jobs.

mod bounds;
mod canonical;
mod config;
mod decode;
mod dynamic;
mod errors;
mod every_name;
mod examples;
mod functions;
mod jobs;
mod json;
mod judge;
mod language;
mod mesh;
mod mutated;
mod nomad_api;
mod services;
mod variables;
mod wrong_types;
