//! `sim --seed N` replays one seed; `sim --seeds A..B` runs many.

use std::ops::Range;

use anyhow::{Context, bail};
use base::Duration;
use sim::layer::{Layer, Run, Verdict};

const USAGE: &str = "sim (--seed N | --seeds A..B) [--layer model|log|regions] [--story] [--steps MAX]
  --layer  model: everything above the log, over a model of it; log: consensus and the store; regions: several clusters and
           the links between them; all unless one is named
  --story  tell every step of a single seed; a seed that fails always tells its last ones
  --steps  stop after so many steps";

struct Asked {
    seeds: Range<u64>,
    layers: Vec<Layer>,
    story: bool,
    steps_max: u64,
}

/// Of all runs of one layer so far.
#[derive(Default)]
struct Sum {
    steps: u64,
    batches: usize,
    /// The farthest that clocks ran away from the true time, and in how many seeds they did.
    astray: Duration,
    drifting: u64,
    failed: Vec<u64>,
}

fn main() -> anyhow::Result<()> {
    let asked = read(std::env::args().skip(1)).context(USAGE)?;
    let mut failed = false;
    for layer in &asked.layers {
        failed |= !run(*layer, &asked).failed.is_empty();
    }
    std::process::exit(i32::from(failed));
}

/// Runs all seeds through one layer, and prints the result.
fn run(layer: Layer, asked: &Asked) -> Sum {
    let one = asked.seeds.end - asked.seeds.start == 1;
    let mut sum = Sum::default();
    for seed in asked.seeds.clone() {
        let verdict = layer.run(Run { seed, bug: None, story: asked.story, steps_max: asked.steps_max });
        (sum.steps, sum.batches) = (sum.steps + verdict.steps, sum.batches + verdict.batches);
        sum.astray = sum.astray.max(verdict.astray);
        sum.drifting += u64::from(verdict.astray > Duration::ZERO);
        // Where many seeds fail, the story of one is enough to begin with.
        if one || (verdict.violation.is_some() && sum.failed.is_empty()) {
            tell(layer, seed, &verdict, asked.story);
        } else if let Some(violation) = &verdict.violation {
            println!("{} seed {seed}: VIOLATED {violation}", layer.name());
        }
        if verdict.violation.is_some() {
            sum.failed.push(seed);
        }
        let count = seed + 1 - asked.seeds.start;
        if count.is_multiple_of(100) || seed + 1 == asked.seeds.end {
            let Sum { steps, batches, failed, astray, drifting } = &sum;
            println!(
                "{}: {count} seeds, {steps} steps, {batches} batches, clocks drifted in {drifting}, by up to {} ms, failed: {failed:?}",
                layer.name(),
                astray.as_millis()
            );
        }
    }
    sum
}

fn read(mut args: impl Iterator<Item = String>) -> anyhow::Result<Asked> {
    let mut asked = Asked { seeds: 0..0, layers: Layer::ALL.to_vec(), story: false, steps_max: u64::MAX };
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg}: a value was expected"));
        match arg.as_str() {
            "--seed" => {
                let seed: u64 = value()?.parse().context("--seed: a number was expected")?;
                asked.seeds = seed..seed + 1;
            }
            "--seeds" => {
                let text = value()?;
                let (first, end) = text.split_once("..").context("--seeds: expected A..B")?;
                asked.seeds = first.parse().context("--seeds A")?..end.parse().context("--seeds B")?;
            }
            "--layer" => {
                let name = value()?;
                let named = Layer::ALL.into_iter().find(|layer| layer.name() == name);
                asked.layers = vec![named.context("--layer: expected model, log or regions")?];
            }
            "--steps" => asked.steps_max = value()?.parse().context("--steps: a number was expected")?,
            "--story" => asked.story = true,
            other => bail!("{other:?} is not known"),
        }
    }
    if asked.seeds.is_empty() {
        bail!("no seed was given");
    }
    Ok(asked)
}

fn tell(layer: Layer, seed: u64, verdict: &Verdict, story: bool) {
    println!("{} seed {seed}\n{}", layer.name(), verdict.options);
    if let Some(violation) = &verdict.violation {
        println!("\nVIOLATED {violation}\n");
    }
    if story || verdict.violation.is_some() {
        verdict.story.iter().for_each(|line| println!("{line}"));
    }
    match &verdict.violation {
        Some(violation) => println!("\nVIOLATED {violation}"),
        None => println!("everything holds"),
    }
    let Verdict { steps, batches, hash, astray, .. } = verdict;
    println!("{steps} steps, {batches} batches, clocks up to {} ms astray, trace {hash}", astray.as_millis());
}
