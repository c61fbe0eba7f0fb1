//! A bug that is put in is found within so many seeds; without it the same seeds pass.

use std::cell::Cell;
use std::collections::BTreeMap;

use sim::model::{Run, run};
use sim::planted::Bug;

/// Seeds within which each planted bug must be found.
const SEEDS_MAX: u64 = 200;

fn violated(seed: u64, bug: Option<Bug>) -> Option<String> {
    let verdict = run(Run { seed, bug, story: false, steps_max: u64::MAX });
    verdict.violation.map(|violation| violation.to_string())
}

/// Tells for each bug the first seed that finds it, and fails if some are not found, or if a seed that found one
/// fails without it.
fn all_are_found(bugs: &[Bug]) {
    let mut found: BTreeMap<u64, Vec<Bug>> = BTreeMap::new();
    let missed = Cell::new(0);
    for bug in bugs {
        match (0..SEEDS_MAX).find_map(|seed| violated(seed, Some(*bug)).map(|how| (seed, how))) {
            Some((seed, how)) => {
                println!("{bug:?}: seed {seed}: {how}");
                found.entry(seed).or_default().push(*bug);
            }
            None => {
                println!("{bug:?}: not found within {SEEDS_MAX} seeds");
                missed.set(missed.get() + 1);
            }
        }
    }
    for (seed, bugs) in found {
        assert_eq!(violated(seed, None), None, "seed {seed} fails without {bugs:?}");
    }
    assert_eq!(missed.get(), 0, "bugs that were not found");
}

#[test]
fn every_bug_planted_in_the_seams_is_found() {
    all_are_found(&Bug::SEAMS);
}

#[cfg(feature = "planted")]
#[test]
fn every_bug_planted_in_the_rules_is_found() {
    all_are_found(&Bug::RULES);
}
