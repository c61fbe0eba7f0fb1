//! Every choice of the scheduler against a simple one that looks at all nodes, one after the other, with the documented
//! formulas. Many small random clusters.

use std::collections::BTreeMap;

use base::Rng;
use model::document::{Affinity, Constraint, Job, Node, Spread, SpreadTarget};
use placement::Outcome;

use crate::support::*;

/// What the oracle knows of a node.
#[derive(Clone, Debug)]
struct Site {
    id: u128,
    capacity: [f64; 2],
    used: [f64; 2],
    rack: Option<String>,
    zone: String,
    here: u32,
}

struct Asked {
    amount: [f64; 2],
    count: f64,
    affinities: Vec<(String, i8)>,
    /// On the zone; `None`: evenly.
    spread: Option<Option<Vec<(String, u8)>>>,
    /// At most so many of a rack.
    per_rack: Option<u32>,
    apart: bool,
}

impl Asked {
    fn draw(rng: &mut Rng) -> Asked {
        let zones = || vec![("z0".to_string(), 60), ("z1".to_string(), 30)];
        Asked {
            amount: [100.0 + rng.below(900) as f64, 64.0 + rng.below(1000) as f64],
            count: (1 + rng.below(25)) as f64,
            affinities: (0..rng.below(3))
                .map(|_| (rack(rng), [-50, 30, 100][rng.below(3) as usize]))
                .collect(),
            spread: [None, Some(None), Some(Some(zones()))][rng.below(3) as usize].clone(),
            per_rack: (rng.below(4) == 0).then_some(3),
            apart: rng.below(3) == 0,
        }
    }

    fn job(&self, id: &str) -> Job {
        job("service", self.count as i64).with(|job| {
            (job.id, job.name) = (Some(id.to_string()), Some(id.to_string()));
            job.constraints.retain(|_| self.apart);
            let most = |most: u32| Constraint {
                l_target: "${meta.rack}".into(),
                operand: "distinct_property".into(),
                r_target: most.to_string(),
            };
            job.constraints.extend(self.per_rack.map(most));
            let affinity = |(value, weight): &(String, i8)| Affinity {
                l_target: "${meta.rack}".into(),
                r_target: value.clone(),
                operand: "=".into(),
                weight: Some(*weight),
            };
            job.affinities = self.affinities.iter().map(affinity).collect();
            let spread = self.spread.iter().map(|targets| Spread {
                attribute: "${meta.zone}".into(),
                weight: Some(50),
                spread_target: targets
                    .iter()
                    .flatten()
                    .map(|(value, percent)| SpreadTarget { value: value.clone(), percent: *percent })
                    .collect(),
            });
            job.spreads = spread.collect();
            let resources = task(job).resources.as_mut().unwrap();
            (resources.cpu, resources.memory_mb) = (Some(self.amount[0] as i64), Some(self.amount[1] as i64));
        })
    }

    fn fits(&self, site: &Site, sites: &[Site]) -> bool {
        let room = (0..2).all(|at| site.used[at] + self.amount[at] <= site.capacity[at]);
        let of_rack: u32 = sites.iter().filter(|other| other.rack == site.rack).map(|other| other.here).sum();
        room && !(self.apart && site.here > 0)
            && self.per_rack.is_none_or(|most| site.rack.is_some() && of_rack < most)
    }

    /// The mean of the scores that apply, and how many there are.
    fn score(&self, site: &Site, sites: &[Site]) -> (f64, f64) {
        let free = |at: usize| 1.0 - (site.used[at] + self.amount[at]) / site.capacity[at];
        let fit = (20.0 - 10_f64.powf(free(0)) - 10_f64.powf(free(1))).clamp(0.0, 18.0) / 18.0;
        let mut said = vec![fit];
        if site.here > 0 {
            said.push(-f64::from(site.here + 1) / self.count);
        }
        if !self.affinities.is_empty() {
            let weight = |affinity: &&(String, i8)| f64::from(affinity.1);
            let met = self.affinities.iter().filter(|(value, _)| site.rack.as_deref() == Some(value));
            let all: f64 = self.affinities.iter().map(|affinity| weight(&affinity).abs()).sum();
            said.push(met.map(|affinity| weight(&affinity)).sum::<f64>() / all);
        }
        said.extend(self.spread_score(site, sites).filter(|score| *score != 0.0));
        let sum: f64 = said.iter().sum();
        (sum / said.len() as f64, sum)
    }

    fn spread_score(&self, site: &Site, sites: &[Site]) -> Option<f64> {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for other in sites.iter().filter(|other| other.here > 0) {
            *counts.entry(&other.zone).or_default() += f64::from(other.here);
        }
        let Some(targets) = self.spread.as_ref()? else {
            let here = counts.get(&*site.zone).copied().unwrap_or(0.0);
            let least = counts.values().copied().reduce(f64::min)?;
            let most = counts.values().copied().fold(0.0, f64::max);
            return Some(match () {
                () if here != least => (least - here) / least,
                () if least == most => -1.0,
                () => (most - least) / least,
            });
        };
        let share = |value: &str| targets.iter().find(|target| target.0 == value);
        let rest =
            self.count - targets.iter().map(|target| f64::from(target.1) / 100.0 * self.count).sum::<f64>();
        let (desired, used) = match share(&site.zone) {
            Some((_, percent)) => {
                (f64::from(*percent) / 100.0 * self.count, counts.get(&*site.zone).copied().unwrap_or(0.0))
            }
            None => (rest, counts.iter().filter(|(value, _)| share(value).is_none()).map(|(_, n)| n).sum()),
        };
        Some((desired - (used + 1.0)) / desired)
    }

    fn place(&self, site: &mut Site) {
        site.here += 1;
        (0..2).for_each(|at| site.used[at] += self.amount[at]);
    }
}

fn rack(rng: &mut Rng) -> String {
    format!("r{}", rng.below(5))
}

/// As a node registers, and as the oracle sees it.
fn draw(n: u128, rng: &mut Rng) -> (Node, Site) {
    let mut document = node(n);
    let resources = document.node_resources.as_mut().unwrap();
    resources.cpu.cpu_shares = 2100 + 1000 * rng.below(4) as i64;
    resources.memory.memory_mb = 2304 + 1024 * rng.below(4) as i64;
    let capacity = [(resources.cpu.cpu_shares - 100) as f64, (resources.memory.memory_mb - 256) as f64];
    let (rack, zone) = ((rng.below(6) > 0).then(|| rack(rng)), format!("z{}", rng.below(3)));
    document.meta.insert("zone".into(), zone.clone());
    rack.iter().for_each(|rack| _ = document.meta.insert("rack".into(), rack.clone()));
    (document, Site { id: n, capacity, used: [0.0; 2], rack, zone, here: 0 })
}

/// Goes through the plan's choices, one by one.
fn check(asked: &Asked, outcome: &Outcome, sites: &mut [Site], seed: u64) {
    let placed = &outcome.settlement.plan.placed;
    let chosen: Vec<u128> = placed.iter().flat_map(|event| &event.nodes).map(|node| number(*node)).collect();
    for (step, choice) in chosen.iter().enumerate() {
        let at = sites.iter().position(|site| site.id == *choice).unwrap();
        assert!(asked.fits(&sites[at], sites), "seed {seed}, step {step}: node {choice} does not fit");
        let (mean, sum) = asked.score(&sites[at], sites);
        for other in sites.iter().filter(|other| other.id != *choice && asked.fits(other, sites)) {
            let (theirs, their_sum) = asked.score(other, sites);
            let told = format!(
                "seed {seed}, step {step}: {choice} with {mean} ({sum}), but {} has {theirs} ({their_sum})",
                other.id
            );
            assert!(theirs <= mean + 1e-12, "{told}");
            assert!(
                (theirs, their_sum) != (mean, sum) || other.id > *choice,
                "{told}: the lower id is first"
            );
        }
        asked.place(&mut sites[at]);
    }
    let wanted = asked.count as usize;
    let full = sites.iter().all(|site| !asked.fits(site, sites));
    assert!(chosen.len() == wanted || full, "seed {seed}: {} of {wanted}, and there was room", chosen.len());
}

#[test]
fn no_other_node_would_have_been_better() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut world = World::new();
        let drawn: Vec<(Node, Site)> =
            (1..=5 + u128::from(rng.below(30))).map(|n| draw(n, &mut rng)).collect();
        let mut sites: Vec<Site> = drawn.iter().map(|(_, site)| site.clone()).collect();
        // The same cluster, met in another order.
        let mut mirrored = World::new();
        for ((document, site), (last, other)) in drawn.iter().zip(drawn.iter().rev()) {
            world.node(site.id, |node| *node = document.clone());
            mirrored.node(other.id, |node| *node = last.clone());
        }
        for round in 0..3 {
            let asked = Asked::draw(&mut rng);
            sites.iter_mut().for_each(|site| site.here = 0);
            let [outcome, same] = [&mut world, &mut mirrored].map(|world| {
                let eval = world.register(asked.job(&format!("job{round}")));
                world.settle(eval)
            });
            assert_eq!(outcome.settlement, same.settlement, "the order of rows makes no difference");
            check(&asked, &outcome, &mut sites, seed);
        }
    }
}
