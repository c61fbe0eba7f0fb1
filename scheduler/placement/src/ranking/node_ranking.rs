//! The feasibility and the score of every node for one set of requirements, without regard to the job that has them.
//!
//! A ranking outlives the evaluation that made it. The next one with the same requirements updates it node by node, so
//! that its cost depends on what changed and not on the size of the cluster.

use std::collections::BTreeMap;

use state::State;
use state::node::{Amount, NodeCold};

use crate::feasibility::constraint::{Target, escapes};
use crate::feasibility::dedicated::CoresAndDevices;
use crate::feasibility::metrics::ReasonTally;
use crate::feasibility::property_values::{PropertyValues, value_number};
use crate::feasibility::proposed::Proposed;
use crate::feasibility::requirements::Requirements;
use crate::feasibility::static_checks::{ClassResult, ReasonId, StaticChecks};
use crate::ranking::affinity::Affinities;
use crate::ranking::node_columns::NodeColumns;
use crate::ranking::score::{OUT, fit};
use crate::ranking::spread_groups::{ScoreSum, SpreadGroups};
use model::Algorithm;

/// Whether a node meets the requirements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feasibility {
    /// It accepts no new work, or is in another node pool or datacenter than the job asks for.
    OutOfScope,
    Feasible(ScoreSum),
    Infeasible(ReasonId),
}

/// The scores of a node that do not depend on the job's other allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BaseScore {
    pub fit: f64,
    /// Only if the job has affinities; the next one only if those are affinities to devices.
    pub affinity: Option<f64>,
    pub devices: Option<f64>,
}

impl BaseScore {
    /// Added in the same order as a whole column is, so that the bits are the same.
    pub fn sum(&self) -> f64 {
        self.fit + self.devices.unwrap_or(0.0) + self.affinity.unwrap_or(0.0)
    }
}

/// [`Feasibility`] in two bytes: one of these, or the number of a reason.
const OUT_OF_SCOPE: u16 = u16::MAX;
const FEASIBLE: u16 = u16::MAX - 1;

#[derive(Debug)]
pub struct NodeRanking {
    pub requirements: Requirements,
    pub static_checks: StaticChecks,
    traits: NodeTraits,
    feasibility: Vec<u16>,
    pub spread_groups: SpreadGroups,
    pub tally: ReasonTally,
    /// Nodes in scope, by number of the datacenter.
    available: Vec<i64>,
    /// Number of the first change of a node that is not yet included.
    seen: u64,
}

/// What the ranking says of a node before an evaluation changes it.
#[derive(Clone, Copy, Debug)]
pub struct SavedNode {
    feasibility: u16,
    score: f64,
}

/// What is known of nodes besides their free resources.
#[derive(Debug, Default)]
struct NodeTraits {
    affinities: Affinities,
    /// Spreads first, then distinct properties.
    properties: Vec<Target>,
    /// PropertyValues by property.
    values: Vec<PropertyValues>,
    spread_groups: BTreeMap<Vec<u32>, u32>,
    datacenters: Vec<String>,
    /// Some of this differs between nodes of one class, so it is computed for each node.
    each: bool,
    /// By class, once computed.
    classes: Vec<Option<ClassTraits>>,
}

#[derive(Clone, Copy, Debug)]
struct ClassTraits {
    verdict: ClassResult,
    affinity: f64,
    spread_group: u32,
    datacenter: u32,
}

impl NodeRanking {
    pub fn new(state: &State, node_columns: &NodeColumns, requirements: Requirements) -> NodeRanking {
        let mut ranking = NodeRanking {
            static_checks: StaticChecks::of(&requirements),
            traits: NodeTraits::of(&requirements),
            feasibility: Vec::with_capacity(node_columns.len()),
            spread_groups: SpreadGroups::single(Vec::new(), 1),
            tally: ReasonTally::default(),
            available: Vec::new(),
            seen: node_columns.changes(),
            requirements,
        };
        ranking.fill(state, node_columns);
        ranking
    }

    fn fill(&mut self, state: &State, node_columns: &NodeColumns) {
        let mut scores = node_columns.fits(self.requirements.amount, self.requirements.algorithm);
        let mut group_of = Vec::new();
        let (scorers, compares_sums) = (f64::from(self.scorers()), self.compares_sums());
        let grouped = !self.traits.properties.is_empty();
        let untouched = Proposed::new(state);
        for position in 0..node_columns.len() as u32 {
            let known = self.class_traits(state, node_columns, position);
            let at = position as usize;
            if grouped {
                group_of.push(known.spread_group);
            }
            let used = (node_columns.used(position), node_columns.allocs(position));
            let feasibility = match self.check(state, node_columns, position, known, used, &untouched) {
                Ok(equipment) => {
                    let fit = match equipment.cpu_mhz {
                        0 => scores[at],
                        _ => self.fit(node_columns, position, used.0, &equipment),
                    };
                    let sum = fit + equipment.score.unwrap_or(0.0) + known.affinity;
                    scores[at] = if compares_sums { sum } else { sum / scorers };
                    FEASIBLE
                }
                Err(infeasible_reason) => {
                    scores[at] = OUT;
                    infeasible_reason
                }
            };
            self.count(node_columns.class[at], feasibility, 1, known.datacenter);
            self.feasibility.push(feasibility);
        }
        let mut values = vec![Vec::new(); self.traits.spread_groups.len()];
        self.traits
            .spread_groups
            .iter()
            .for_each(|(key, spread_group)| values[*spread_group as usize] = key.clone());
        self.spread_groups = match grouped {
            true => SpreadGroups::new(&group_of, values, &scores, self.scorers(), compares_sums),
            false => SpreadGroups::single(scores, self.scorers()),
        };
    }

    /// Applies the changes of nodes. False if the ranking has to be rebuilt.
    #[must_use]
    pub fn follow(&mut self, state: &State, node_columns: &NodeColumns) -> bool {
        let Some(changed) = node_columns.changed_since(self.seen) else { return false };
        let untouched = Proposed::new(state);
        for change in changed {
            // A node whose class changed may belong to another spread group, and groups are fixed.
            let position = change.position;
            let spread_group = self.class_traits(state, node_columns, position).spread_group;
            if change.of_class || (self.traits.each && spread_group != self.spread_groups.number(position)) {
                return false;
            }
            let feasibility = match self.score_node(state, node_columns, position, &untouched) {
                Ok(speaks) => Feasibility::Feasible(ScoreSum::of(speaks.sum(), self.scorers())),
                Err(feasibility) => feasibility,
            };
            self.put(state, node_columns, position, feasibility);
        }
        self.seen = node_columns.changes();
        true
    }

    pub fn save(&self, position: u32) -> SavedNode {
        SavedNode {
            feasibility: self.feasibility[position as usize],
            score: self.spread_groups.base_score(position),
        }
    }

    pub fn restore(&mut self, state: &State, node_columns: &NodeColumns, position: u32, saved: SavedNode) {
        self.set_feasibility(state, node_columns, position, saved.feasibility);
        self.spread_groups.reset(position, saved.score);
    }

    pub fn is_feasible(&self, position: u32) -> bool {
        self.feasibility[position as usize] == FEASIBLE
    }

    /// See [`Feasibility::OutOfScope`].
    pub fn is_out_of_scope(&self, position: u32) -> bool {
        self.feasibility[position as usize] == OUT_OF_SCOPE
    }

    /// Why a node in scope is infeasible.
    pub fn infeasible_reason(&self, position: u32) -> Option<ReasonId> {
        let feasibility = self.feasibility[position as usize];
        (feasibility != OUT_OF_SCOPE && feasibility != FEASIBLE).then_some(feasibility)
    }

    /// Sets the feasibility and the score of a node.
    pub fn put(
        &mut self,
        state: &State,
        node_columns: &NodeColumns,
        position: u32,
        feasibility: Feasibility,
    ) {
        let (code, score_sum) = match feasibility {
            Feasibility::OutOfScope => (OUT_OF_SCOPE, None),
            Feasibility::Infeasible(reason) => (reason, None),
            Feasibility::Feasible(score_sum) => (FEASIBLE, Some(score_sum)),
        };
        self.set_feasibility(state, node_columns, position, code);
        self.spread_groups.set(position, score_sum);
    }

    fn set_feasibility(
        &mut self,
        state: &State,
        node_columns: &NodeColumns,
        position: u32,
        feasibility: u16,
    ) {
        let before = std::mem::replace(&mut self.feasibility[position as usize], feasibility);
        if before != feasibility {
            let datacenter = self.class_traits(state, node_columns, position).datacenter;
            let class = node_columns.class[position as usize];
            self.count(class, before, -1, datacenter);
            self.count(class, feasibility, 1, datacenter);
        }
    }

    fn count(&mut self, class: u32, feasibility: u16, change: i32, datacenter: u32) {
        if feasibility != OUT_OF_SCOPE {
            let datacenter = datacenter as usize;
            if self.available.len() <= datacenter {
                self.available.resize(datacenter + 1, 0);
            }
            self.available[datacenter] += i64::from(change);
        }
        if feasibility != OUT_OF_SCOPE && feasibility != FEASIBLE {
            self.tally.count(&self.static_checks.reasons, feasibility, class, change);
        }
    }

    /// The scores of the node as the plan in progress leaves it.
    ///
    /// # Errors
    /// Its feasibility, if it is not feasible.
    pub fn score_node(
        &mut self,
        state: &State,
        node_columns: &NodeColumns,
        position: u32,
        proposed: &Proposed,
    ) -> Result<BaseScore, Feasibility> {
        let used = proposed.used(node_columns.rows[position as usize]);
        self.score_node_as_if(state, node_columns, position, proposed, used)
    }

    /// [`NodeRanking::score_node`] with the fit computed as if `weighed` were in use on the node.
    pub fn score_node_as_if(
        &mut self,
        state: &State,
        node_columns: &NodeColumns,
        position: u32,
        proposed: &Proposed,
        weighed: Amount,
    ) -> Result<BaseScore, Feasibility> {
        let known = self.class_traits(state, node_columns, position);
        let row = node_columns.rows[position as usize];
        let used = (proposed.used(row), proposed.allocs(row));
        match self.check(state, node_columns, position, known, used, proposed) {
            Err(OUT_OF_SCOPE) => Err(Feasibility::OutOfScope),
            Err(reason) => Err(Feasibility::Infeasible(reason)),
            Ok(equipment) => Ok(BaseScore {
                fit: self.fit(node_columns, position, weighed, &equipment),
                affinity: (!self.traits.affinities.is_empty()).then_some(known.affinity),
                devices: equipment.score,
            }),
        }
    }

    fn fit(
        &self,
        node_columns: &NodeColumns,
        position: u32,
        used: Amount,
        equipment: &CoresAndDevices,
    ) -> f64 {
        let more = Amount { cpu_mhz: equipment.cpu_mhz, ..Amount::default() };
        let used = used.plus(self.requirements.amount).plus(more);
        fit_of(node_columns.capacity(position).amount, used, self.requirements.algorithm)
    }

    /// The cores and devices that one more allocation would get.
    ///
    /// # Errors
    /// The feasibility code of a node that is not feasible.
    fn check(
        &mut self,
        state: &State,
        node_columns: &NodeColumns,
        position: u32,
        known: ClassTraits,
        (used, allocs): (Amount, u32),
        proposed: &Proposed,
    ) -> Result<CoresAndDevices, u16> {
        let at = position as usize;
        match known.verdict {
            _ if !node_columns.takes_work[at] => return Err(OUT_OF_SCOPE),
            ClassResult::OutOfScope => return Err(OUT_OF_SCOPE),
            ClassResult::Ineligible(reason) => return Err(reason),
            ClassResult::Eligible => {}
        }
        let row = node_columns.rows[at];
        if let Some(reason) = self.static_checks.node(state, row) {
            return Err(reason);
        }
        if let Some(text) = self.requirements.volumes.infeasible_reason(state, row, proposed) {
            return Err(self.static_checks.reasons.filter(&text));
        }
        let mut equipment = CoresAndDevices::default();
        if self.requirements.dedicated.wants_cores_or_devices() {
            let node = &state.nodes.cold(row).document;
            let equipped = self.requirements.dedicated.assign_cores_and_devices(node, &proposed.taken(row));
            equipment = equipped.map_err(|dimension| self.static_checks.reasons.exhausted(&dimension))?;
        }
        let more = Amount { cpu_mhz: equipment.cpu_mhz, ..Amount::default() };
        match node_columns.capacity(position).exceeded_by(used.plus(more), allocs, self.requirements.amount) {
            Some(reason) => Err(reason),
            None => Ok(equipment),
        }
    }

    /// The values of the properties of nodes, spreads first.
    pub fn values(&self) -> &[PropertyValues] {
        &self.traits.values
    }

    /// Classes with nodes in scope, and whether they are eligible.
    pub fn classes(&mut self, state: &State, node_columns: &NodeColumns) -> Vec<(usize, bool)> {
        let static_checks = &mut self.static_checks;
        let asked = node_columns
            .classes()
            .map(|(number, class)| (number, static_checks.class(state, number, class.example)));
        let asked = asked.filter(|(_, verdict)| *verdict != ClassResult::OutOfScope);
        asked.map(|(number, verdict)| (number as usize, verdict == ClassResult::Eligible)).collect()
    }

    /// Nodes in scope, by datacenter.
    pub fn available(&self) -> impl Iterator<Item = (&str, i64)> {
        let names = self.traits.datacenters.iter().map(String::as_str);
        names.zip(self.available.iter().copied()).filter(|(_, nodes)| *nodes > 0)
    }

    /// How many scorers give every node a score.
    fn scorers(&self) -> u8 {
        1 + u8::from(!self.traits.affinities.is_empty()) + u8::from(self.requirements.dedicated.scores())
    }

    fn compares_sums(&self) -> bool {
        !self.requirements.spreads.is_empty()
    }

    fn class_traits(&mut self, state: &State, node_columns: &NodeColumns, position: u32) -> ClassTraits {
        let class = node_columns.class[position as usize];
        if !self.traits.each
            && let Some(Some(known)) = self.traits.classes.get(class as usize)
        {
            return *known;
        }
        let row = node_columns.rows[position as usize];
        let verdict = self.static_checks.class(state, class, row);
        self.traits.learn(class, verdict, state.nodes.cold(row))
    }
}

impl NodeTraits {
    fn of(requirements: &Requirements) -> NodeTraits {
        let descriptions = || requirements.spreads.iter().chain(&requirements.properties);
        let affinities = Affinities::of(&requirements.affinities);
        NodeTraits {
            each: affinities.escape() || descriptions().any(|text| escapes(text)),
            affinities,
            properties: descriptions().map(|text| Target::parse(text)).collect(),
            values: descriptions().map(|_| PropertyValues::new()).collect(),
            ..NodeTraits::default()
        }
    }

    fn learn(&mut self, class: u32, verdict: ClassResult, node: &NodeCold) -> ClassTraits {
        let key: Vec<u32> = self
            .properties
            .iter()
            .zip(&mut self.values)
            .map(|(target, values)| value_number(target, node, values))
            .collect();
        let next = self.spread_groups.len() as u32;
        let spread_group = *self.spread_groups.entry(key).or_insert(next);
        let name = &node.document.datacenter;
        let datacenter = self.datacenters.iter().position(|known| known == name).unwrap_or_else(|| {
            self.datacenters.push(name.clone());
            self.datacenters.len() - 1
        });
        let known = ClassTraits {
            verdict,
            affinity: self.affinities.score(node),
            spread_group,
            datacenter: datacenter as u32,
        };
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
