//! The log of several servers.

mod cluster;
mod images;
mod journal;
mod members;
mod reads;
mod speed;
mod steps;
mod support;
