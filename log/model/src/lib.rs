//! The words of the field: nouns, commands, events, rejections and documents.
//!
//! Nothing here decides or does anything. Read [`document`] for what users write and read.

pub mod document;
