//! The checks of what a node is and has, not of what runs on it.

use std::collections::BTreeMap;

use model::document::{Constraint, DriverInfo, Node};
use state::State;
use state::node::{NodeCold, NodeRow};

use crate::feasibility::constraint::{ConstraintCheck, Target, boolean, escapes};
use crate::feasibility::devices::DeviceRequests;
use crate::feasibility::networks::NetworkRequest;
use crate::feasibility::requirements::Requirements;

/// Why a node is infeasible: a number in [`ReasonTable`].
pub type ReasonId = u16;

/// Reasons that every group has, in the order in which they are interned.
pub const DISTINCT_HOSTS: ReasonId = 0;
pub const ALLOCS_MAX: ReasonId = 1;
const DIMENSIONS: [(&str, ReasonId); 3] = [("cpu", 2), ("memory", 3), ("disk", 4)];

#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    pub text: String,
    /// The node passes the static checks but lacks free resources.
    pub exhausted: bool,
    /// It is checked only on a node that is about to be chosen.
    pub late: bool,
}

/// The reasons found so far.
#[derive(Debug, Default)]
pub struct ReasonTable {
    list: Vec<Reason>,
    by_text: BTreeMap<String, ReasonId>,
}

impl ReasonTable {
    fn new() -> ReasonTable {
        let mut reasons = ReasonTable::default();
        reasons.filter("distinct_hosts");
        reasons.exhausted("max allocation exceeded");
        for (dimension, _) in DIMENSIONS {
            reasons.exhausted(dimension);
        }
        reasons
    }

    pub fn get(&self, id: ReasonId) -> &Reason {
        &self.list[usize::from(id)]
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn filter(&mut self, text: &str) -> ReasonId {
        self.intern(text, false, false)
    }

    pub fn exhausted(&mut self, text: &str) -> ReasonId {
        self.intern(text, true, false)
    }

    /// Found on a node that was about to be chosen.
    pub fn exhausted_late(&mut self, text: &str) -> ReasonId {
        self.intern(text, true, true)
    }

    fn intern(&mut self, text: &str, exhausted: bool, late: bool) -> ReasonId {
        if let Some(id) = self.by_text.get(text) {
            return *id;
        }
        // When the numbers run out, further texts share the last one: the counts stay right.
        let id = ReasonId::try_from(self.list.len()).unwrap_or(ReasonId::MAX);
        if usize::from(id) == self.list.len() {
            self.list.push(Reason { text: text.to_string(), exhausted, late });
        }
        self.by_text.insert(text.to_string(), id);
        id
    }
}

/// The reason for a dimension as `Amount::exceeded_by` names it.
pub fn dimension(name: &str) -> ReasonId {
    let found = DIMENSIONS.iter().find(|(dimension, _)| *dimension == name);
    found.map_or(ALLOCS_MAX, |(_, id)| *id)
}

/// Whether the nodes of a class are eligible for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassResult {
    /// They are in another node pool or datacenter than the job asks for.
    OutOfScope,
    Ineligible(ReasonId),
    Eligible,
}

/// All static checks of a group, in the order in which Nomad makes them.
#[derive(Debug)]
pub struct StaticChecks {
    scope: Scope,
    shared: Vec<StaticCheck>,
    /// Checks that depend on more than the class.
    own: Vec<StaticCheck>,
    network: NetworkRequest,
    devices: DeviceRequests,
    /// By class, once computed.
    results: Vec<Option<ClassResult>>,
    pub reasons: ReasonTable,
}

#[derive(Debug)]
struct Scope {
    pool: Option<String>,
    datacenters: Vec<String>,
}

/// One check. Its result is the same for all nodes of a class, unless it looks at a `unique.` attribute.
#[derive(Debug)]
enum StaticCheck {
    Constraint(ConstraintCheck),
    /// The group uses something that is not implemented.
    Refusal(&'static str),
    Drivers(Vec<String>),
    Secrets(Vec<String>),
    /// An attribute that `distinct_property` needs.
    DistinctProperty(Target, String),
}

impl StaticChecks {
    pub fn of(requirements: &Requirements) -> StaticChecks {
        let (mut own, mut shared) = split(&requirements.of_job);
        shared.extend(requirements.unsupported.map(StaticCheck::Refusal));
        shared.push(StaticCheck::Drivers(requirements.drivers.clone()));
        let (own_of_group, of_group) = split(&requirements.of_group);
        own.extend(own_of_group);
        shared.extend(of_group);
        shared.push(StaticCheck::Secrets(requirements.secrets.clone()));
        for text in &requirements.properties {
            let rules = if escapes(text) { &mut own } else { &mut shared };
            rules.push(StaticCheck::DistinctProperty(Target::parse(text), text.clone()));
        }
        StaticChecks {
            scope: Scope { pool: requirements.pool.clone(), datacenters: requirements.datacenters.clone() },
            shared,
            own,
            network: requirements.dedicated.network.clone(),
            devices: requirements.dedicated.devices.clone(),
            results: Vec::new(),
            reasons: ReasonTable::new(),
        }
    }

    /// Some check depends on more than the class, so that free resources on any node may help.
    pub fn escapes(&self) -> bool {
        !self.own.is_empty()
    }

    /// Some check has to be made for each node.
    pub fn asks_each_node(&self) -> bool {
        self.escapes() || !self.network.is_empty() || !self.devices.is_empty()
    }

    /// The result of a class, if it was computed.
    pub fn known(&self, class: u32) -> Option<ClassResult> {
        self.results.get(class as usize).copied().flatten()
    }

    /// The result of a class, computed once on one of its nodes.
    pub fn class(&mut self, state: &State, class: u32, example: NodeRow) -> ClassResult {
        if let Some(result) = self.known(class) {
            return result;
        }
        let node = state.nodes.cold(example);
        let result = if self.scope.contains(&node.document) {
            let failed = self.shared.iter().find_map(|static_check| static_check.failure(node));
            failed.map_or(ClassResult::Eligible, |text| ClassResult::Ineligible(self.reasons.filter(&text)))
        } else {
            ClassResult::OutOfScope
        };
        if self.results.len() <= class as usize {
            self.results.resize(class as usize + 1, None);
        }
        self.results[class as usize] = Some(result);
        result
    }

    /// Which of the checks that depend on the node itself fails.
    pub fn node(&mut self, state: &State, row: NodeRow) -> Option<ReasonId> {
        if !self.asks_each_node() {
            return None;
        }
        let node = state.nodes.cold(row);
        if let Some(text) = self.own.iter().find_map(|static_check| static_check.failure(node)) {
            return Some(self.reasons.filter(&text));
        }
        if !self.devices.is_empty() && !self.devices.exists(&node.document) {
            return Some(self.reasons.filter("missing devices"));
        }
        let missing = self.network.missing(node)?;
        Some(self.reasons.filter(&missing))
    }
}

impl Scope {
    fn contains(&self, node: &Node) -> bool {
        is_in_pool(self.pool.as_deref(), node) && is_in_datacenters(&self.datacenters, node)
    }
}

/// A job without a pool, or with the pool `all`, may use every pool.
pub fn is_in_pool(pool: Option<&str>, node: &Node) -> bool {
    match pool {
        None | Some("" | "all") => true,
        Some(pool) => pool == node.node_pool || (pool == "default" && node.node_pool.is_empty()),
    }
}

pub fn is_in_datacenters(datacenters: &[String], node: &Node) -> bool {
    datacenters.is_empty() || datacenters.iter().any(|pattern| base::matches_glob(pattern, &node.datacenter))
}

/// Checks that depend on more than the class, and the others.
fn split(constraints: &[Constraint]) -> (Vec<StaticCheck>, Vec<StaticCheck>) {
    let (own, shared): (Vec<ConstraintCheck>, Vec<ConstraintCheck>) =
        constraints.iter().map(ConstraintCheck::of).partition(|check| check.escapes);
    let rules = |checks: Vec<ConstraintCheck>| checks.into_iter().map(StaticCheck::Constraint).collect();
    (rules(own), rules(shared))
}

impl StaticCheck {
    fn failure(&self, node: &NodeCold) -> Option<String> {
        match self {
            StaticCheck::Constraint(check) => (!check.holds(node)).then(|| check.text.clone()),
            StaticCheck::Refusal(text) => Some(text.to_string()),
            StaticCheck::Drivers(drivers) => {
                let missing = drivers.iter().any(|driver| !has_driver(&node.document, driver));
                missing.then(|| "missing drivers".to_string())
            }
            StaticCheck::Secrets(providers) => {
                let version = |provider: &String| format!("plugins.secrets.{provider}.version");
                let missing = providers.iter().any(|p| !node.document.attributes.contains_key(&version(p)));
                missing.then(|| "missing secrets provider".to_string())
            }
            StaticCheck::DistinctProperty(target, text) => {
                target.resolve(node).is_none().then(|| format!("missing property \"{text}\""))
            }
        }
    }
}

pub fn has_driver(node: &Node, driver: &str) -> bool {
    match node.drivers.get(driver) {
        Some(DriverInfo { detected, healthy, .. }) => *detected && *healthy,
        None => {
            node.attributes.get(&format!("driver.{driver}")).is_some_and(|text| boolean(text) == Some(true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H36-H38.
    #[test]
    fn a_driver_is_healthy_or_named_by_an_attribute() {
        let mut node = Node::default();
        let info = |detected, healthy| DriverInfo { detected, healthy, ..DriverInfo::default() };
        node.drivers.insert("exec".into(), info(true, true));
        node.drivers.insert("java".into(), info(true, false));
        for (driver, value) in [("raw", "1"), ("old", "0"), ("odd", "foo")] {
            node.attributes.insert(format!("driver.{driver}"), value.to_string());
        }
        let has = |drivers: &[&str]| drivers.iter().all(|driver| has_driver(&node, driver));
        assert!(has(&["exec"]) && has(&["raw", "exec"]));
        assert!(!has(&["java"]) && !has(&["old"]) && !has(&["odd"]) && !has(&["none"]));
        assert!(!has(&["exec", "none"]));
    }
}
