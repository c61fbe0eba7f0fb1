//! The stream over a log that grows when a test says so.

mod access;
mod pools;
mod readers;
mod recording;
mod resume;
mod shape;
mod support;
mod volumes;
mod waiting;
