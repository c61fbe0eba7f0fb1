//! A bug that is put in is found within so many seeds; without it the same seeds pass.

use std::collections::BTreeMap;
use std::iter;

use sim::layer::{Layer, Run};
use sim::planted::Bug;

use crate::seeds::seeds_of_gate;

/// Seeds within which each planted bug must be found.
const SEEDS_MAX: u64 = 200;

/// The seed that finds a bug, unless it is 0, where every search begins: tried first, since searching for all of them takes
/// minutes. The test fails on a line that is out of date and says the new one.
const FOUND_BY: [(Layer, Bug, u64); 23] = [
    (Layer::Model, Bug::NoTermFence, 6),
    (Layer::Model, Bug::CursorOffByOne, 22),
    (Layer::Model, Bug::ForeignClock, 2),
    (Layer::Model, Bug::ForeignSpeed, 1),
    (Layer::Log, Bug::FailedSyncIgnored, 5),
    (Layer::Log, Bug::SameNumber, 45),
    (Layer::Log, Bug::FoundsAgain, 45),
    (Layer::Log, Bug::CursorOffByOne, 5),
    (Layer::Model, Bug::LeadsBlind("broker"), 4),
    (Layer::Model, Bug::LeadsBlind("heartbeats"), 26),
    (Layer::Model, Bug::LeadsBlind("launches"), 16),
    (Layer::Model, Bug::LeadsBlind("locks"), 95),
    (Layer::Model, Bug::Forgets("deployments"), 3),
    (Layer::Model, Bug::Forgets("locks"), 5),
    (Layer::Model, Bug::SettledTwice, 60),
    (Layer::Model, Bug::AckCancelsNothing, 1),
    (Layer::Model, Bug::OldReturnsEnd, 170),
    (Layer::Model, Bug::AheadAcknowledged, 11),
    (Layer::Model, Bug::ForgottenWritten, 52),
    (Layer::Model, Bug::ManyWriters, 62),
    (Layer::Model, Bug::ForgottenInUse, 62),
    (Layer::Model, Bug::StickyWanders, 26),
    (Layer::Model, Bug::VolumesWakeNobody, 22),
];

fn violated(layer: Layer, seed: u64, bug: Option<Bug>) -> Option<String> {
    let verdict = layer.run(Run { bug, ..Run::of(seed) });
    verdict.violation.map(|violation| violation.to_string())
}

/// Tells for each bug the first seed that finds it, and fails if some are not found, if they are not found where
/// [`FOUND_BY`] says, or if a seed that found one fails without it.
fn all_are_found(layer: Layer, bugs: &[Bug]) {
    let mut found: BTreeMap<u64, Vec<Bug>> = BTreeMap::new();
    let (mut missed, mut moved) = (Vec::new(), Vec::new());
    for bug in bugs {
        let known =
            FOUND_BY.into_iter().find(|line| (line.0, line.1) == (layer, *bug)).map_or(0, |line| line.2);
        let mut seeds = iter::once(known).chain(0..SEEDS_MAX);
        match seeds.find_map(|seed| violated(layer, seed, Some(*bug)).map(|how| (seed, how))) {
            Some((seed, how)) => {
                println!("{bug:?}: seed {seed}: {how}");
                if seed != known {
                    moved.push(format!("(Layer::{layer:?}, Bug::{bug:?}, {seed}),"));
                }
                found.entry(seed).or_default().push(*bug);
            }
            None => {
                println!("{bug:?}: not found within {SEEDS_MAX} seeds");
                missed.push(*bug);
            }
        }
    }
    // The gate runs the others without a bug anyway.
    for (seed, bugs) in found.into_iter().filter(|(seed, _)| *seed >= seeds_of_gate(layer)) {
        assert_eq!(violated(layer, seed, None), None, "seed {seed} fails without {bugs:?}");
    }
    assert_eq!(missed, [], "bugs that were not found");
    assert!(moved.is_empty(), "lines of FOUND_BY that are out of date:\n{}", moved.join("\n"));
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
fn every_bug_planted_between_regions_is_found() {
    all_are_found(Layer::Regions, &Bug::REGIONS);
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
