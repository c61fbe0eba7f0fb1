//! `cargo bench -p http-gateway`: what it costs every request to know who asks and whether they may.
//!
//! Warm: the token was used before, and no token, policy or role has changed since.

#![allow(dead_code, unused_imports, reason = "the tests, which have it too, use all of it")]

#[path = "../tests/http/guarded.rs"]
mod guarded;
#[path = "../tests/http/operator.rs"]
mod operator;
#[path = "../tests/http/support.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::FutureExt;

use guarded::Guarded;

/// Tokens beside the one that is measured, each with a policy of its own.
const OTHERS: usize = 100;

fn resolve(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    let (guarded, secret) = runtime.block_on(async {
        let guarded = Guarded::start().await;
        for number in 0..OTHERS {
            guarded.caller(&format!("other-{number}"), r#"namespace "default" { policy = "read" }"#).await;
        }
        let rules =
            r#"namespace "prod-*" { policy = "write" } agent { policy = "read" } node { policy = "read" }"#;
        let secret = guarded.caller("measured", rules).await;
        (guarded, secret)
    });
    let _entered = runtime.enter();
    // Without anything to wait for it is ready at once: what is measured is the work.
    let checked = |token: &str| guarded.cluster.gate.reads_agent(token).now_or_never();
    assert_eq!(checked(&secret), Some(Ok(())));
    criterion.bench_function("a token, warm", |bencher| {
        bencher.iter(|| checked(black_box(&secret)));
    });
    assert!(checked("").expect("nothing is waited for").is_err());
    criterion.bench_function("without a token, warm", |bencher| bencher.iter(|| checked(black_box(""))));
}

criterion_group!(benches, resolve);
criterion_main!(benches);
