//! The gate on every change: a swarm of seeds holds, and a seed names its steps.

use sim::model::{Run, run};

/// Seeds run on every change; more run by hand.
const SEEDS: u64 = 120;

fn the_run(seed: u64) -> Run {
    Run { seed, bug: None, story: false, steps_max: u64::MAX }
}

#[test]
fn everything_holds_whatever_the_seed() {
    for seed in 0..SEEDS {
        let verdict = run(the_run(seed));
        if let Some(violation) = &verdict.violation {
            let story = verdict.story.join("\n");
            panic!("seed {seed}: {violation}\n{}\n{story}\nseed {seed}: {violation}", verdict.options);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    for seed in [1, 5, 12] {
        let (one, two) = (run(the_run(seed)), run(the_run(seed)));
        assert_eq!((one.hash, one.steps), (two.hash, two.steps), "seed {seed}");
    }
    assert_ne!(run(the_run(1)).hash, run(the_run(5)).hash);
}
