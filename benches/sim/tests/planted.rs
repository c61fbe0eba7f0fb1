//! A bug that is put in is found within so many seeds; without it the same seeds pass.

use std::collections::BTreeMap;

use sim::layer::{Layer, Run};
use sim::planted::Bug;

/// Seeds within which each planted bug must be found.
const SEEDS_MAX: u64 = 200;

/// Seeds that found much when all were searched last: tried first, so that the gate takes little time.
const TRIED_FIRST: [u64; 7] = [0, 2, 19, 22, 45, 60, 74];

fn violated(layer: Layer, seed: u64, bug: Option<Bug>) -> Option<String> {
    let verdict = layer.run(Run { bug, ..Run::of(seed) });
    verdict.violation.map(|violation| violation.to_string())
}

/// Tells for each bug the first seed that finds it, and fails if some are not found, or if a seed that found one
/// fails without it.
fn all_are_found(layer: Layer, bugs: &[Bug]) {
    let mut found: BTreeMap<u64, Vec<Bug>> = BTreeMap::new();
    let mut missed = Vec::new();
    for bug in bugs {
        let mut seeds = TRIED_FIRST.into_iter().chain(0..SEEDS_MAX);
        match seeds.find_map(|seed| violated(layer, seed, Some(*bug)).map(|how| (seed, how))) {
            Some((seed, how)) => {
                println!("{bug:?}: seed {seed}: {how}");
                found.entry(seed).or_default().push(*bug);
            }
            None => {
                println!("{bug:?}: not found within {SEEDS_MAX} seeds");
                missed.push(*bug);
            }
        }
    }
    for (seed, bugs) in found {
        assert_eq!(violated(layer, seed, None), None, "seed {seed} fails without {bugs:?}");
    }
    assert_eq!(missed, [], "bugs that were not found");
}

#[test]
fn every_bug_planted_in_the_seams_of_the_model_is_found() {
    all_are_found(Layer::Model, &Bug::SEAMS);
}

#[test]
fn every_bug_planted_in_the_seams_of_the_log_is_found() {
    all_are_found(Layer::Log, &Bug::LOG);
}

#[test]
fn every_bug_planted_in_the_controllers_is_found() {
    all_are_found(Layer::Model, &Bug::CONTROLLERS);
}

#[test]
fn every_bug_planted_in_the_rules_is_found() {
    all_are_found(Layer::Model, &Bug::RULES);
}

#[test]
fn every_bug_planted_in_the_rules_of_volumes_is_found() {
    all_are_found(Layer::Model, &Bug::VOLUMES);
}
