//! The log of one server.

mod crash;
mod damage;
mod golden;
mod images;
mod recovery;
mod speed;
mod store;
mod support;
