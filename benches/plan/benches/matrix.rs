//! `cargo bench -p plan-bench --bench matrix`: how long an evaluation takes, in 120 clusters and jobs.
//!
//! 500 to 10,000 nodes in 25, 50 or 75 racks, and a service of 50 to 1,200 allocations, spread evenly over the racks or not.
//! An evaluation is the whole decision: reconcile, find places, and make the plan with ids, names and metrics; nothing is
//! submitted. Between two decisions one node leaves and another comes back, so that no plan can be remembered. `cold`
//! begins with nothing, `warm` with what the last decision left: columns of the nodes and their scores.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plan_bench::evaluations::{Evaluation, racks, service, spread};
use plan_bench::is_trial;
use serde_json::json;

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400));
    targets = matrix
}
criterion_main!(benches);

fn matrix(c: &mut Criterion) {
    let (sizes, racked, counts): (&[usize], &[usize], &[usize]) = match is_trial() {
        true => (&[500], &[25], &[50]),
        false => (&[500, 1_000, 5_000, 10_000], &[25, 50, 75], &[50, 300, 600, 900, 1_200]),
    };
    for &nodes in sizes {
        for &racked in racked {
            let cluster = racks(nodes, racked);
            let mut group = c.benchmark_group(format!("{nodes} nodes, {racked} racks"));
            for &count in counts {
                for (how, with) in [("spread", spread()), ("any rack", json!({}))] {
                    let mut evaluation = Evaluation::new(&cluster, service("web", count, with), count);
                    group.throughput(Throughput::Elements(count as u64));
                    for (start, warm) in [("cold", false), ("warm", true)] {
                        group.bench_function(format!("{count}, {how}, {start}"), |b| {
                            b.iter_custom(|rounds| (0..rounds).map(|_| evaluation.decide(warm)).sum());
                        });
                    }
                }
            }
            group.finish();
        }
    }
}
