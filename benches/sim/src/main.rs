//! `sim --seed N` replays one seed; `sim --seeds A..B` runs many.

use std::ops::Range;

use anyhow::{Context, bail};
use sim::model::{Run, Verdict, run};

const USAGE: &str = "sim (--seed N | --seeds A..B) [--story] [--steps MAX]";

struct Asked {
    seeds: Range<u64>,
    story: bool,
    steps_max: u64,
}

fn main() -> anyhow::Result<()> {
    let asked = read(std::env::args().skip(1)).context(USAGE)?;
    // A violated assertion is told with the story; the hook would tell it first, and for every seed.
    std::panic::set_hook(Box::new(|_| {}));
    let one = asked.seeds.end - asked.seeds.start == 1;
    let (mut steps, mut batches, mut failed) = (0, 0, Vec::new());
    for seed in asked.seeds.clone() {
        let verdict = run(Run { seed, bug: None, story: asked.story, steps_max: asked.steps_max });
        (steps, batches) = (steps + verdict.steps, batches + verdict.batches);
        // Where many seeds fail, the story of one is enough to begin with.
        if one || (verdict.violation.is_some() && failed.is_empty()) {
            tell(seed, &verdict, asked.story);
        } else if let Some(violation) = &verdict.violation {
            println!("seed {seed}: VIOLATED {violation}");
        }
        if verdict.violation.is_some() {
            failed.push(seed);
        }
        if (seed + 1 - asked.seeds.start).is_multiple_of(100) {
            println!(
                "{} seeds, {steps} steps, {batches} batches, {} failed",
                seed + 1 - asked.seeds.start,
                failed.len()
            );
        }
    }
    let count = asked.seeds.end - asked.seeds.start;
    println!("{count} seeds, {steps} steps, {batches} batches, failed: {failed:?}");
    std::process::exit(i32::from(!failed.is_empty()));
}

fn read(mut args: impl Iterator<Item = String>) -> anyhow::Result<Asked> {
    let mut asked = Asked { seeds: 0..0, story: false, steps_max: u64::MAX };
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

fn tell(seed: u64, verdict: &Verdict, story: bool) {
    println!("seed {seed}\n{}", verdict.options);
    if let Some(violation) = &verdict.violation {
        println!("\nVIOLATED {violation}\n");
    }
    if story || verdict.violation.is_some() {
        verdict.story.iter().for_each(|line| println!("{line}"));
    }
    if let Some(violation) = &verdict.violation {
        println!("\nVIOLATED {violation}");
    }
    println!("{} steps, {} batches, trace {}", verdict.steps, verdict.batches, verdict.hash);
}
