//! Servers as they are put together.

mod cluster;
mod identities;
mod routes;
mod scrub;
