//! A shape held against all nodes: who will do, and how well, before anybody's own allocations are looked at.
//!
//! Boards outlive evaluations. A board that is taken up again is brought up to the state node by node, so that an
//! evaluation pays for what changed and not for the size of the cluster.

use std::collections::BTreeMap;

use state::State;
use state::node::{Amount, NodeCold};

use crate::affinity::Affinities;
use crate::constraint::{Target, escapes};
use crate::fixtures::Equipment;
use crate::fleet::{Fleet, Room};
use crate::lanes::{Lanes, Values, Worth, learn};
use crate::metrics::Tally;
use crate::proposed::Proposed;
use crate::rules::{ALLOCS_MAX, ReasonId, Rules, Verdict, dimension};
use crate::score::{OUT, fit};
use crate::shape::Shape;
use model::Algorithm;

/// What a node is to a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// It takes no work, or nobody asked for its pool and datacenter.
    Outside,
    Plays(Worth),
    Barred(ReasonId),
}

/// What speaks for a node, whoever's it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speaks {
    pub fit: f64,
    /// Only if the job has affinities, to nodes and to devices.
    pub affinity: Option<f64>,
    pub devices: Option<f64>,
}

impl Speaks {
    /// In the order in which a whole column is added up.
    pub fn sum(&self) -> f64 {
        self.fit + self.devices.unwrap_or(0.0) + self.affinity.unwrap_or(0.0)
    }
}

/// [`Standing`] in two bytes: these, or the number of a reason.
const OUTSIDE: u16 = u16::MAX;
const PLAYS: u16 = u16::MAX - 1;

#[derive(Debug)]
pub struct Board {
    pub shape: Shape,
    pub rules: Rules,
    traits: Traits,
    standing: Vec<u16>,
    pub lanes: Lanes,
    pub tally: Tally,
    /// Nodes that were asked for, by number of the datacenter.
    available: Vec<i64>,
    /// The fleet's changes up to here are in.
    seen: u64,
}

/// What a node was before it was looked at in the light of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    standing: u16,
    score: f64,
}

/// What is to be known of nodes besides their room.
#[derive(Debug, Default)]
struct Traits {
    affinities: Affinities,
    /// Spreads first, then distinct properties.
    properties: Vec<Target>,
    /// Values by property.
    values: Vec<Values>,
    lanes: BTreeMap<Vec<u32>, u32>,
    datacenters: Vec<String>,
    /// Every node is asked, since some of this is not the same throughout a class.
    each: bool,
    /// By class, once asked.
    classes: Vec<Option<Trait>>,
}

#[derive(Clone, Copy, Debug)]
struct Trait {
    verdict: Verdict,
    affinity: f64,
    lane: u32,
    datacenter: u32,
}

impl Board {
    pub fn new(state: &State, fleet: &Fleet, shape: Shape) -> Board {
        let mut board = Board {
            rules: Rules::of(&shape),
            traits: Traits::of(&shape),
            standing: Vec::with_capacity(fleet.len()),
            lanes: Lanes::single(Vec::new(), 1),
            tally: Tally::default(),
            available: Vec::new(),
            seen: fleet.changes(),
            shape,
        };
        board.fill(state, fleet);
        board
    }

    fn fill(&mut self, state: &State, fleet: &Fleet) {
        let mut scores = fleet.fits(self.shape.amount, self.shape.algorithm);
        let mut of_lane = Vec::new();
        let (said, sums) = (f64::from(self.said()), self.sums());
        let laned = !self.traits.properties.is_empty();
        let untouched = Proposed::new(state);
        for position in 0..fleet.len() as u32 {
            let known = self.trait_of(state, fleet, position);
            let at = position as usize;
            if laned {
                of_lane.push(known.lane);
            }
            let used = (fleet.used(position), fleet.allocs(position));
            let standing = match self.bar(state, fleet, position, known, used, &untouched) {
                Ok(equipment) => {
                    let fit = match equipment.cpu_mhz {
                        0 => scores[at],
                        _ => self.fit(fleet, position, used.0, &equipment),
                    };
                    let sum = fit + equipment.score.unwrap_or(0.0) + known.affinity;
                    scores[at] = if sums { sum } else { sum / said };
                    PLAYS
                }
                Err(barred) => {
                    scores[at] = OUT;
                    barred
                }
            };
            self.count(fleet.class[at], standing, 1, known.datacenter);
            self.standing.push(standing);
        }
        let mut values = vec![Vec::new(); self.traits.lanes.len()];
        self.traits.lanes.iter().for_each(|(key, lane)| values[*lane as usize] = key.clone());
        self.lanes = match laned {
            true => Lanes::new(&of_lane, values, &scores, self.said(), sums),
            false => Lanes::single(scores, self.said()),
        };
    }

    /// Brings the board up to the fleet. False if it has to be built anew.
    #[must_use]
    pub fn follow(&mut self, state: &State, fleet: &Fleet) -> bool {
        let Some(changed) = fleet.changed_since(self.seen) else { return false };
        let untouched = Proposed::new(state);
        for change in changed {
            // A node of another class may stand in another lane, and lanes are for ever.
            let position = change.position;
            let lane = self.trait_of(state, fleet, position).lane;
            if change.of_class || (self.traits.each && lane != self.lanes.number(position)) {
                return false;
            }
            let standing = match self.judge(state, fleet, position, &untouched) {
                Ok(speaks) => Standing::Plays(Worth::of(speaks.sum(), self.said())),
                Err(standing) => standing,
            };
            self.put(state, fleet, position, standing);
        }
        self.seen = fleet.changes();
        true
    }

    pub fn save(&self, position: u32) -> Saved {
        Saved { standing: self.standing[position as usize], score: self.lanes.base_score(position) }
    }

    pub fn restore(&mut self, state: &State, fleet: &Fleet, position: u32, saved: Saved) {
        self.turn(state, fleet, position, saved.standing);
        self.lanes.reset(position, saved.score);
    }

    pub fn plays(&self, position: u32) -> bool {
        self.standing[position as usize] == PLAYS
    }

    /// Nobody asked for the node, or it takes no work.
    pub fn is_outside(&self, position: u32) -> bool {
        self.standing[position as usize] == OUTSIDE
    }

    /// Why it does not play, although it was asked for.
    pub fn barred(&self, position: u32) -> Option<ReasonId> {
        let standing = self.standing[position as usize];
        (standing != OUTSIDE && standing != PLAYS).then_some(standing)
    }

    /// What the node is from now on.
    pub fn put(&mut self, state: &State, fleet: &Fleet, position: u32, standing: Standing) {
        let (code, worth) = match standing {
            Standing::Outside => (OUTSIDE, None),
            Standing::Barred(reason) => (reason, None),
            Standing::Plays(worth) => (PLAYS, Some(worth)),
        };
        self.turn(state, fleet, position, code);
        self.lanes.set(position, worth);
    }

    fn turn(&mut self, state: &State, fleet: &Fleet, position: u32, standing: u16) {
        let before = std::mem::replace(&mut self.standing[position as usize], standing);
        if before != standing {
            let datacenter = self.trait_of(state, fleet, position).datacenter;
            let class = fleet.class[position as usize];
            self.count(class, before, -1, datacenter);
            self.count(class, standing, 1, datacenter);
        }
    }

    fn count(&mut self, class: u32, standing: u16, change: i32, datacenter: u32) {
        if standing != OUTSIDE {
            let datacenter = datacenter as usize;
            if self.available.len() <= datacenter {
                self.available.resize(datacenter + 1, 0);
            }
            self.available[datacenter] += i64::from(change);
        }
        if standing != OUTSIDE && standing != PLAYS {
            self.tally.count(&self.rules.reasons, standing, class, change);
        }
    }

    /// What speaks for the node as the plan leaves it.
    ///
    /// # Errors
    /// What it is instead, if it does not play.
    pub fn judge(
        &mut self,
        state: &State,
        fleet: &Fleet,
        position: u32,
        proposed: &Proposed,
    ) -> Result<Speaks, Standing> {
        let used = proposed.used(fleet.rows[position as usize]);
        self.judge_as(state, fleet, position, proposed, used)
    }

    /// [`Board::judge`] where the node fits as well as if so much of it were used.
    pub fn judge_as(
        &mut self,
        state: &State,
        fleet: &Fleet,
        position: u32,
        proposed: &Proposed,
        weighed: Amount,
    ) -> Result<Speaks, Standing> {
        let known = self.trait_of(state, fleet, position);
        let row = fleet.rows[position as usize];
        let used = (proposed.used(row), proposed.allocs(row));
        match self.bar(state, fleet, position, known, used, proposed) {
            Err(OUTSIDE) => Err(Standing::Outside),
            Err(reason) => Err(Standing::Barred(reason)),
            Ok(equipment) => Ok(Speaks {
                fit: self.fit(fleet, position, weighed, &equipment),
                affinity: (!self.traits.affinities.is_empty()).then_some(known.affinity),
                devices: equipment.score,
            }),
        }
    }

    fn fit(&self, fleet: &Fleet, position: u32, used: Amount, equipment: &Equipment) -> f64 {
        let more = Amount { cpu_mhz: equipment.cpu_mhz, ..Amount::default() };
        let used = used.plus(self.shape.amount).plus(more);
        fit_of(fleet.room(position).capacity, used, self.shape.algorithm)
    }

    /// What one more would be given of the node's cores and devices, unless something bars it.
    fn bar(
        &mut self,
        state: &State,
        fleet: &Fleet,
        position: u32,
        known: Trait,
        (used, allocs): (Amount, u32),
        proposed: &Proposed,
    ) -> Result<Equipment, u16> {
        let at = position as usize;
        match known.verdict {
            _ if !fleet.takes_work[at] => return Err(OUTSIDE),
            Verdict::Outside => return Err(OUTSIDE),
            Verdict::Broken(reason) => return Err(reason),
            Verdict::Fine => {}
        }
        let row = fleet.rows[at];
        if let Some(reason) = self.rules.node(state, row) {
            return Err(reason);
        }
        if let Some(text) = self.shape.volumes.refused(state, row, proposed) {
            return Err(self.rules.reasons.filter(&text));
        }
        let mut equipment = Equipment::default();
        if self.shape.fixtures.equips() {
            let node = &state.nodes.cold(row).document;
            let equipped = self.shape.fixtures.equip(node, &proposed.taken(row));
            equipment = equipped.map_err(|dimension| self.rules.reasons.exhausted(&dimension))?;
        }
        let more = Amount { cpu_mhz: equipment.cpu_mhz, ..Amount::default() };
        match short_of(fleet.room(position), used.plus(more), allocs, self.shape.amount) {
            Some(reason) => Err(reason),
            None => Ok(equipment),
        }
    }

    /// The values of the properties of nodes, spreads first.
    pub fn values(&self) -> &[Values] {
        &self.traits.values
    }

    /// Classes with nodes that take work and were asked for, and whether they will do.
    pub fn classes(&mut self, state: &State, fleet: &Fleet) -> Vec<(usize, bool)> {
        let rules = &mut self.rules;
        let asked =
            fleet.classes().map(|(number, class)| (number, rules.class(state, number, class.example)));
        let asked = asked.filter(|(_, verdict)| *verdict != Verdict::Outside);
        asked.map(|(number, verdict)| (number as usize, verdict == Verdict::Fine)).collect()
    }

    /// Nodes that take work and were asked for, by datacenter.
    pub fn available(&self) -> impl Iterator<Item = (&str, i64)> {
        let names = self.traits.datacenters.iter().map(String::as_str);
        names.zip(self.available.iter().copied()).filter(|(_, nodes)| *nodes > 0)
    }

    /// How many scorers speak of every node.
    fn said(&self) -> u8 {
        1 + u8::from(!self.traits.affinities.is_empty()) + u8::from(self.shape.fixtures.scores())
    }

    fn sums(&self) -> bool {
        !self.shape.spreads.is_empty()
    }

    fn trait_of(&mut self, state: &State, fleet: &Fleet, position: u32) -> Trait {
        let class = fleet.class[position as usize];
        if !self.traits.each
            && let Some(Some(known)) = self.traits.classes.get(class as usize)
        {
            return *known;
        }
        let row = fleet.rows[position as usize];
        let verdict = self.rules.class(state, class, row);
        self.traits.learn(class, verdict, state.nodes.cold(row))
    }
}

impl Traits {
    fn of(shape: &Shape) -> Traits {
        let texts = || shape.spreads.iter().chain(&shape.properties);
        let affinities = Affinities::of(&shape.affinities);
        Traits {
            each: affinities.escape() || texts().any(|text| escapes(text)),
            affinities,
            properties: texts().map(|text| Target::parse(text)).collect(),
            values: texts().map(|_| Values::new()).collect(),
            ..Traits::default()
        }
    }

    fn learn(&mut self, class: u32, verdict: Verdict, node: &NodeCold) -> Trait {
        let key: Vec<u32> = self
            .properties
            .iter()
            .zip(&mut self.values)
            .map(|(target, values)| learn(target, node, values))
            .collect();
        let next = self.lanes.len() as u32;
        let lane = *self.lanes.entry(key).or_insert(next);
        let name = &node.document.datacenter;
        let datacenter = self.datacenters.iter().position(|known| known == name).unwrap_or_else(|| {
            self.datacenters.push(name.clone());
            self.datacenters.len() - 1
        });
        let known =
            Trait { verdict, affinity: self.affinities.score(node), lane, datacenter: datacenter as u32 };
        if self.classes.len() <= class as usize {
            self.classes.resize(class as usize + 1, None);
        }
        self.classes[class as usize] = Some(known);
        known
    }
}

pub fn fit_of(capacity: Amount, used: Amount, algorithm: Algorithm) -> f64 {
    fit((capacity.cpu_mhz, capacity.memory_mib), (used.cpu_mhz, used.memory_mib), algorithm)
}

/// Whether there is room for one more in cpu, memory, disk and number.
#[inline]
pub fn short_of(room: Room, used: Amount, allocs: u32, ask: Amount) -> Option<ReasonId> {
    if room.allocs_max > 0 && allocs >= room.allocs_max {
        return Some(ALLOCS_MAX);
    }
    room.capacity.exceeded_by(used.plus(ask)).map(dimension)
}
