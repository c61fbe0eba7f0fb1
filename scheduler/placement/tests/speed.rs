//! How long a decision takes. `cargo test --release -p placement --test speed -- --ignored --nocapture`.

mod support;

use std::time::Instant;

use base::Index;
use model::document::{NetworkResource, Port};
use support::*;

const NODES: u128 = 10_000;

/// The median of some runs, in microseconds.
fn micros(world: &World, eval: model::EvalId) -> (u128, usize) {
    let eval = world.eval(eval);
    let run = |seed| {
        let begun = Instant::now();
        let outcome = placement::schedule(&world.state, eval, seed, world.now);
        (begun.elapsed().as_micros(), placed(&outcome).len())
    };
    let mut runs: Vec<(u128, usize)> = (0..21).map(run).collect();
    runs.sort_unstable();
    runs[10]
}

#[test]
#[ignore = "measures time: run it in release, alone"]
fn a_decision_over_ten_thousand_nodes_is_a_matter_of_milliseconds() {
    let mut world = World::new();
    for n in 1..=NODES {
        world.node(n, |node| {
            let rack = format!("r{}", n % 50);
            node.meta.insert("rack".into(), rack);
            node.node_resources.as_mut().unwrap().cpu.cpu_shares += (n % 7) as i64 * 500;
        });
    }
    assert_ne!(world.state.index, Index::ZERO);
    let linux = || constraint("${attr.kernel.name}", "=", "linux");
    let ports = NetworkResource {
        dynamic_ports: vec![Port { label: "http".into(), ..Port::default() }].into(),
        ..NetworkResource::default()
    };
    for (name, count, with_port, apart) in [
        ("count 1", 1, false, false),
        ("count 1 with a port", 1, true, false),
        ("count 10", 10, false, false),
        ("count 1000", 1000, false, false),
        ("count 1000 with a port", 1000, true, false),
        ("count 1000, one to a host", 1000, false, true),
    ] {
        let id = name.replace([' ', ','], "-");
        let eval = world.register(job("service", count).with(|job| {
            job.id = Some(id);
            job.constraints = vec![linux()].into();
            if apart {
                job.constraints.push(constraint("", "distinct_hosts", ""));
            }
            if with_port {
                group(job).networks.push(ports.clone());
            }
        }));
        let (micros, placed) = micros(&world, eval);
        println!("{name}: {micros} us, {placed} placed");
        assert_eq!(placed as i64, count);
    }
    let eval = world.register(job("system", 1).with(|job| job.id = Some("everywhere".into())));
    let (micros, placed) = micros(&world, eval);
    println!("system: {micros} us, {placed} placed");
}
