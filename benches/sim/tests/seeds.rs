//! The gate on every change: a swarm of seeds holds, and a seed names its steps.

use std::process::Command;

use base::Duration;
use sim::layer::{Layer, Run, Verdict};

/// Seeds run on every change, from 0 on; more run by hand.
pub fn seeds_of_gate(layer: Layer) -> u64 {
    match layer {
        Layer::Model => 30,
        Layer::Log => 20,
        Layer::Regions => 2,
    }
}

/// In so many of the first seeds it is looked at how far clocks run away from the true time.
const CLOCKS_SEEN: u64 = 6;

fn holds(layer: Layer, seed: u64) -> Verdict {
    let verdict = layer.run(Run::of(seed));
    if let Some(violation) = &verdict.violation {
        let story = verdict.story.join("\n");
        panic!("seed {seed}: {violation}\n{}\n{story}\nseed {seed}: {violation}", verdict.options);
    }
    verdict
}

fn everything_holds(layer: Layer) {
    let (mut most_astray, mut drifting) = (Duration::ZERO, 0);
    for seed in 0..seeds_of_gate(layer) {
        let verdict = holds(layer, seed);
        if seed < CLOCKS_SEEN {
            most_astray = most_astray.max(verdict.astray);
            drifting += u64::from(verdict.astray > Duration::ZERO);
        }
    }
    // What nobody sees happen would not be missed either.
    let clocks_run_away = most_astray > Duration::from_secs(1) && drifting > 2;
    assert!(clocks_run_away, "{}: {most_astray:?} in {drifting}", layer.name());
}

#[test]
fn everything_holds_above_the_log() {
    everything_holds(Layer::Model);
}

#[test]
fn everything_holds_in_the_log() {
    everything_holds(Layer::Log);
}

#[test]
fn everything_holds_between_regions() {
    for seed in 0..seeds_of_gate(Layer::Regions) {
        holds(Layer::Regions, seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for layer in Layer::ALL {
        // What all layers share is in the others.
        let seeds: &[u64] = if layer == Layer::Regions { &[1] } else { &[1, 5, 12] };
        for seed in seeds.iter().copied() {
            let (one, two) = (layer.run(Run::of(seed)), layer.run(Run::of(seed)));
            assert_eq!((one.hash, one.steps), (two.hash, two.steps), "seed {seed}");
        }
        let differs = layer == Layer::Regions || layer.run(Run::of(1)).hash != layer.run(Run::of(5)).hash;
        assert!(differs, "{}", layer.name());
    }
}

/// Hash keys, addresses and the like are others in another process.
#[test]
fn the_same_seed_gives_the_same_steps_in_every_process() {
    for layer in Layer::ALL {
        let seed = 7;
        let program = Command::new(env!("CARGO_BIN_EXE_sim"))
            .args(["--seed", &seed.to_string(), "--layer", layer.name()])
            .output()
            .unwrap();
        let (said, hash) = (String::from_utf8(program.stdout).unwrap(), layer.run(Run::of(seed)).hash);
        assert!(said.contains(&format!("trace {hash}")), "not {hash}:\n{said}");
    }
}
