//! Servers as they are put together.

mod archive;
mod attackers;
#[path = "../../tls/tests/certificates/mod.rs"]
mod certificates;
mod cluster;
mod identities;
mod regions;
mod replicated;
mod routes;
mod scrub;
#[allow(dead_code, reason = "the tests of buckets use more of it")]
#[path = "../../bucket/tests/store.rs"]
mod store;
