//! The log of several servers.

mod cluster;
mod forged;
mod images;
mod journal;
mod members;
mod reads;
mod speed;
mod steps;
mod support;
