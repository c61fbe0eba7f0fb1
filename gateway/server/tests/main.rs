//! Servers as they are put together.

mod archive;
mod attackers;
#[path = "../../tls/tests/certificates/mod.rs"]
mod certificates;
mod cluster;
mod decisions;
mod heartbeats;
mod identities;
#[allow(dead_code, reason = "the tests of routes use more of it")]
#[path = "../../http/tests/http/provider.rs"]
mod provider;
mod regions;
mod replicated;
mod replicated_faults;
mod replicated_logins;
mod rollouts;
mod routes;
mod scrub;
#[allow(dead_code, reason = "the tests of buckets use more of it")]
#[path = "../../bucket/tests/store.rs"]
mod store;
