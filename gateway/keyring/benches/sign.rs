//! `cargo bench -p keyring`: what the identity of a task costs its server, once, when the node fetches it.
//!
//! Placements are committed without any signature. What is signed here is as long as the header and the claims of a default
//! identity.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keyring::SigningKey;
use model::SigningAlgorithm;

const CONTENT_BYTES: usize = 600;

fn sign(criterion: &mut Criterion) {
    for (name, algorithm) in [("RS256", SigningAlgorithm::Rs256), ("EdDSA", SigningAlgorithm::EdDsa)] {
        let key = SigningKey::generate(algorithm).expect("a key is generated");
        let content = vec![b'a'; CONTENT_BYTES];
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| key.sign(black_box(&content)).expect("a message is signed"));
        });
    }
}

criterion_group!(benches, sign);
criterion_main!(benches);
