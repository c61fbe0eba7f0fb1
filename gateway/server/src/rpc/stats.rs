//! Calls of the node RPC, as metrics.

use std::sync::Arc;
use std::time::Instant;

use metrics::Samples;
use wire::messages::method;

const REQUESTS: &str = "nomad.nomad.rpc.request";
const ERRORS: &str = "nomad.nomad.rpc.request_error";
const QUERIES: &str = "nomad.nomad.rpc.query";

/// Calls that are timed, each with its metric.
const TIMED: &[(&str, &str)] = &[
    (method::NODE_REGISTER, "nomad.nomad.client.register"),
    (method::NODE_UPDATE_STATUS, "nomad.nomad.client.update_status"),
    (method::NODE_GET_CLIENT_ALLOCS, "nomad.nomad.client.get_client_allocs"),
    (method::NODE_UPDATE_ALLOC, "nomad.nomad.client.update_alloc"),
    (method::NODE_EMIT_EVENTS, "nomad.nomad.client.emit_events"),
    (method::NODE_GET_NODE, "nomad.nomad.client.get_node"),
    (method::NODE_UPDATE_DRAIN, "nomad.nomad.client.update_drain"),
    (method::NODE_UPDATE_ELIGIBILITY, "nomad.nomad.client.update_eligibility"),
    (method::ALLOC_GET_ALLOC, "nomad.nomad.alloc.get_alloc"),
    (method::ALLOC_GET_ALLOCS, "nomad.nomad.alloc.get_allocs"),
    (method::ALLOC_SIGN_IDENTITIES, "nomad.nomad.alloc.sign_identities"),
];

/// Without calls so far. Counters are shown from the start: who watches them need not wait for the first one.
pub fn announced() -> Arc<Samples> {
    let samples = Samples::default();
    let now = Instant::now();
    [REQUESTS, ERRORS, QUERIES].iter().for_each(|name| samples.announce(name, now));
    Arc::new(samples)
}

pub(super) fn measure(samples: &Samples, method: &str, began: Instant, failed: bool) {
    let now = Instant::now();
    samples.happened(REQUESTS, now);
    if failed {
        samples.happened(ERRORS, now);
    }
    if let Some((_, name)) = TIMED.iter().find(|(timed, _)| *timed == method) {
        samples.took(name, now, now.saturating_duration_since(began));
    }
}

pub(super) fn waiting_read(samples: &Samples) {
    samples.happened(QUERIES, Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timed_call_has_a_metric_in_the_table_and_errors_are_counted() {
        let samples = announced();
        for (method, _) in TIMED {
            measure(&samples, method, Instant::now(), false);
        }
        measure(&samples, "Sojourn.Who", Instant::now(), true);
        let report = samples.report(Instant::now());
        let total = |name: &str| report.iter().find(|one| one.name == name).unwrap().total_count;
        assert_eq!((total(REQUESTS), total(ERRORS), total(QUERIES)), (TIMED.len() as u64 + 1, 1, 0));
        assert_eq!(report.len(), TIMED.len() + 3);
        report.iter().for_each(|one| assert_eq!(metrics::table::of(one.name).name, one.name));
    }
}
