//! A fork tells the truth: what it says happens in a cluster in which everything comes late and in any order; and it
//! changes nothing.

use std::collections::BTreeMap;

use base::Rng;
use control::whatif::Change;
use model::Command;
use model::command::DrainWish;
use state::State;
use test_world::node_id;

use super::cluster::{Cluster, running, service};
use super::{ask, busiest, small};

const SEEDS: u64 = 24;

fn drain(node: model::NodeId) -> Command {
    let wish = DrainWish { deadline: base::Duration::from_secs(3600), ignore_system_jobs: false };
    Command::SetNodeDrain { node, drain: Some(wish), mark_eligible: false, meta: BTreeMap::new() }
}

fn lacking(state: &State) -> u64 {
    let blocked = state.evals.blocked().map(|(_, row)| state.evals.get(row));
    let failed = blocked.flat_map(|eval| model::command::failed_groups(&eval.outcome).into_values());
    failed.map(|failed| failed.coalesced_failures as u64 + 1).sum()
}

/// Where the result leaves each allocation.
fn foretold(before: &State, result: &model::document::ForkResult) -> BTreeMap<String, Vec<String>> {
    let mut all = running(before);
    for gone in result.moved.iter().chain(&result.lost).chain(&result.stopped).chain(&result.replaced) {
        let nodes = all.get_mut(&gone.name).unwrap();
        let at = nodes.iter().position(|node| *node == gone.from_node_name).unwrap();
        nodes.remove(at);
        nodes.extend((!gone.to_node_name.is_empty()).then(|| gone.to_node_name.clone()));
    }
    for placed in &result.placed {
        all.entry(placed.name.clone()).or_default().push(placed.to_node_name.clone());
    }
    all.retain(|_, nodes| !nodes.is_empty());
    all
}

/// Racks of two nodes, jobs that run in one rack: where allocations go follows from that, whatever the order.
#[test]
fn a_drain_leads_to_the_placements_that_the_fork_has() {
    let mut moved = 0;
    for seed in 0..SEEDS {
        let mut chance = Rng::new(seed);
        let mut cluster = Cluster::new(seed);
        let racks = 2 + chance.below(3);
        for number in 1..=2 * racks {
            cluster.node(number.into(), |node| {
                node.meta = [("rack".to_string(), format!("r{}", number % racks))].into_iter().collect();
            });
        }
        for rack in 0..racks {
            let count = 1 + chance.below(6) as i64;
            let (max, memory) = (1 + chance.below(3), 100 + 50 * chance.below(3) as i64);
            cluster.register(service(&format!("job{rack}"), count, memory, |value| {
                value["Constraints"] = serde_json::json!([
                    {"LTarget": "${meta.rack}", "Operand": "=", "RTarget": format!("r{rack}")}
                ]);
                value["TaskGroups"][0]["Migrate"] =
                    serde_json::json!({"MaxParallel": max, "MinHealthyTime": "10s", "HealthyDeadline": "5m"});
            }));
        }
        cluster.settle();
        let before = cluster.state();
        let drained = node_id(u128::from(1 + chance.below(2 * racks)));
        let result = ask(&before, vec![Change::Drain(drained)]);
        cluster.submit(drain(drained));
        cluster.settle();
        assert_eq!(foretold(&before, &result), running(&cluster.world.state), "seed {seed}: {result:#?}");
        assert_eq!(result.counts.unplaced, lacking(&cluster.world.state), "seed {seed}");
        moved += result.counts.moved;
        cluster.world.check_replay();
    }
    assert!(moved > SEEDS, "drains moved something: {moved}");
}

/// Allocations of one size on nodes of one size: which node is up to chance, how many find one is not.
#[test]
fn as_many_are_moved_and_left_over_as_in_a_cluster_that_loses_its_nodes() {
    let mut unplaced = 0;
    for seed in 0..SEEDS {
        let mut chance = Rng::new(1_000 + seed);
        let mut cluster = Cluster::new(seed);
        let nodes = 3 + chance.below(4);
        (1..=nodes).for_each(|number| cluster.node(number.into(), |_| {}));
        // Five of them on a node.
        let mut left = nodes * 5 - chance.below(6);
        for number in 0..3 {
            let count = if number == 2 { left } else { chance.below(left) };
            left -= count;
            cluster.register(service(&format!("job{number}"), count as i64, 200, |_| {}));
        }
        cluster.settle();
        let before = cluster.state();
        let mut lost = vec![node_id(u128::from(1 + chance.below(nodes)))];
        lost.extend((seed % 2 == 0).then(|| node_id(u128::from(1 + chance.below(nodes)))));
        let result = ask(&before, vec![Change::Down(lost.clone())]);
        lost.into_iter().for_each(|node| cluster.submit(Command::MissHeartbeat { node }));
        cluster.settle();
        let after = &cluster.world.state;
        let count = |all: BTreeMap<String, Vec<String>>| all.values().map(Vec::len).sum::<usize>();
        assert_eq!(count(foretold(&before, &result)), count(running(after)), "seed {seed}: {result:#?}");
        assert_eq!(result.counts.unplaced, lacking(after), "seed {seed}: {result:#?}");
        let room = |state: &State| -> u64 {
            let working = state.nodes.scan().map(|(_, hot)| hot).filter(|hot| hot.takes_work());
            working.map(|hot| u64::from(hot.capacity.minus(hot.used).memory_mib)).sum()
        };
        assert_eq!(result.free_total.before.free_memory_mb, room(&before), "seed {seed}");
        assert_eq!(result.free_total.after.free_memory_mb, room(after), "seed {seed}");
        unplaced += result.counts.unplaced;
        cluster.world.check_replay();
    }
    assert!(unplaced > 0, "some found no node");
}

#[test]
fn a_fork_leaves_the_state_as_it_is() {
    let state = small().state();
    let (copy, digest) = (State::clone(&state), state.digest());
    let changes = vec![
        Change::Drain(busiest(&state)),
        Change::Add { like: node_id(1), count: 2 },
        Change::Stop(test_world::key("web")),
    ];
    let result = ask(&state, changes);
    assert!(result.steps > 5);
    assert_eq!(state.digest(), digest);
    assert_eq!(state.recomputed_digest(), digest, "also of every row");
    assert!(copy == *state);
}

#[test]
fn the_same_question_has_the_same_answer_byte_for_byte() {
    for seed in 0..4 {
        let mut cluster = Cluster::new(seed);
        (1..=6).for_each(|number| cluster.node(number, |_| {}));
        (0..4).for_each(|job| cluster.register(service(&format!("job{job}"), 7, 150, |_| {})));
        cluster.settle();
        let state = cluster.state();
        let changes = || {
            vec![
                Change::Down(vec![busiest(&state)]),
                Change::Drain(node_id(1)),
                Change::Add { like: node_id(2), count: 1 },
            ]
        };
        let answer = || serde_json::to_string(&ask(&state, changes())).unwrap();
        assert_eq!(answer(), answer());
        // A server that restored its state from an image says the same.
        let restored = state::restore(&state::Imager::default().image(&state)).unwrap();
        let elsewhere = serde_json::to_string(&ask(&std::sync::Arc::new(restored), changes())).unwrap();
        assert_eq!(answer(), elsewhere);
    }
}
