//! Whether a node will do for a group by its nature: what it is and has, not what runs on it.

use std::collections::BTreeMap;

use model::document::{Constraint, DriverInfo, Node};
use state::State;
use state::node::{NodeCold, NodeRow};

use crate::constraint::{Check, Target, escapes};
use crate::devices::DeviceAsk;
use crate::networks::NetworkAsk;
use crate::shape::Shape;

/// Why a node will not do, by number in [`Reasons`].
pub type ReasonId = u16;

/// Reasons that every group knows, in the order they are interned.
pub const DISTINCT_HOSTS: ReasonId = 0;
pub const ALLOCS_MAX: ReasonId = 1;
const DIMENSIONS: [(&str, ReasonId); 3] = [("cpu", 2), ("memory", 3), ("disk", 4)];

#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    pub text: String,
    /// The node fits by its nature, but has no room now.
    pub exhausted: bool,
    /// It is only looked for on a node that is about to be chosen.
    pub late: bool,
}

/// The reasons met so far.
#[derive(Debug, Default)]
pub struct Reasons {
    list: Vec<Reason>,
    by_text: BTreeMap<String, ReasonId>,
}

impl Reasons {
    fn new() -> Reasons {
        let mut reasons = Reasons::default();
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

    /// Met on a node that was about to be chosen.
    pub fn exhausted_late(&mut self, text: &str) -> ReasonId {
        self.intern(text, true, true)
    }

    fn intern(&mut self, text: &str, exhausted: bool, late: bool) -> ReasonId {
        if let Some(id) = self.by_text.get(text) {
            return *id;
        }
        // Past the last number, further texts share it: counts stay right, one text stands for several.
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

/// What a class of nodes says to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another pool or datacenter: nobody asked.
    Outside,
    Broken(ReasonId),
    Fine,
}

/// Every check of a group that looks at nodes alone, in the documented order.
#[derive(Debug)]
pub struct Rules {
    scope: Scope,
    shared: Vec<Rule>,
    /// Checks that look beyond the class.
    own: Vec<Rule>,
    network: NetworkAsk,
    devices: DeviceAsk,
    /// By class, once asked.
    verdicts: Vec<Option<Verdict>>,
    pub reasons: Reasons,
}

#[derive(Debug)]
struct Scope {
    pool: Option<String>,
    datacenters: Vec<String>,
}

/// A check of what a node is. Nodes of one class answer alike, unless it looks at a `unique.` key.
#[derive(Debug)]
enum Rule {
    Constraint(Check),
    /// What this release does not place.
    Refusal(&'static str),
    Drivers(Vec<String>),
    Secrets(Vec<String>),
    /// Properties that must not be missing.
    Property(Target, String),
}

impl Rules {
    pub fn of(shape: &Shape) -> Rules {
        let (mut own, mut shared) = split(&shape.of_job);
        shared.extend(shape.refusal.map(Rule::Refusal));
        shared.push(Rule::Drivers(shape.drivers.clone()));
        let (own_of_group, of_group) = split(&shape.of_group);
        own.extend(own_of_group);
        shared.extend(of_group);
        shared.push(Rule::Secrets(shape.secrets.clone()));
        for text in &shape.properties {
            let rules = if escapes(text) { &mut own } else { &mut shared };
            rules.push(Rule::Property(Target::parse(text), text.clone()));
        }
        Rules {
            scope: Scope { pool: shape.pool.clone(), datacenters: shape.datacenters.clone() },
            shared,
            own,
            network: shape.fixtures.network.clone(),
            devices: shape.fixtures.devices.clone(),
            verdicts: Vec::new(),
            reasons: Reasons::new(),
        }
    }

    /// Some check looks beyond the class, so that any new room may matter.
    pub fn escapes(&self) -> bool {
        !self.own.is_empty()
    }

    /// Some check has to be asked of each node.
    pub fn asks_each_node(&self) -> bool {
        self.escapes() || !self.network.is_empty() || !self.devices.is_empty()
    }

    /// What the class said when it was asked.
    pub fn known(&self, class: u32) -> Option<Verdict> {
        self.verdicts.get(class as usize).copied().flatten()
    }

    /// What the class says, asked of one of its nodes, once.
    pub fn class(&mut self, state: &State, class: u32, example: NodeRow) -> Verdict {
        if let Some(verdict) = self.known(class) {
            return verdict;
        }
        let node = state.nodes.cold(example);
        let verdict = if self.scope.contains(&node.document) {
            let broken = self.shared.iter().find_map(|rule| rule.broken_by(node));
            broken.map_or(Verdict::Fine, |text| Verdict::Broken(self.reasons.filter(&text)))
        } else {
            Verdict::Outside
        };
        if self.verdicts.len() <= class as usize {
            self.verdicts.resize(class as usize + 1, None);
        }
        self.verdicts[class as usize] = Some(verdict);
        verdict
    }

    /// What only this node can say of itself.
    pub fn node(&mut self, state: &State, row: NodeRow) -> Option<ReasonId> {
        if !self.asks_each_node() {
            return None;
        }
        let node = state.nodes.cold(row);
        if let Some(text) = self.own.iter().find_map(|rule| rule.broken_by(node)) {
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

/// A job that names no pool, or `all`, sees every pool.
pub fn is_in_pool(pool: Option<&str>, node: &Node) -> bool {
    match pool {
        None | Some("" | "all") => true,
        Some(pool) => pool == node.node_pool || (pool == "default" && node.node_pool.is_empty()),
    }
}

pub fn is_in_datacenters(datacenters: &[String], node: &Node) -> bool {
    datacenters.is_empty() || datacenters.iter().any(|pattern| base::matches_glob(pattern, &node.datacenter))
}

/// Those that look beyond the class, and the others.
fn split(constraints: &[Constraint]) -> (Vec<Rule>, Vec<Rule>) {
    let (own, shared): (Vec<Check>, Vec<Check>) =
        constraints.iter().map(Check::of).partition(|check| check.escapes);
    let rules = |checks: Vec<Check>| checks.into_iter().map(Rule::Constraint).collect();
    (rules(own), rules(shared))
}

impl Rule {
    fn broken_by(&self, node: &NodeCold) -> Option<String> {
        match self {
            Rule::Constraint(check) => (!check.holds(node)).then(|| check.text.clone()),
            Rule::Refusal(text) => Some(text.to_string()),
            Rule::Drivers(drivers) => {
                let missing = drivers.iter().any(|driver| !has_driver(&node.document, driver));
                missing.then(|| "missing drivers".to_string())
            }
            Rule::Secrets(providers) => {
                let version = |provider: &String| format!("plugins.secrets.{provider}.version");
                let missing = providers.iter().any(|p| !node.document.attributes.contains_key(&version(p)));
                missing.then(|| "missing secrets provider".to_string())
            }
            Rule::Property(target, text) => {
                target.resolve(node).is_none().then(|| format!("missing property \"{text}\""))
            }
        }
    }
}

fn has_driver(node: &Node, driver: &str) -> bool {
    match node.drivers.get(driver) {
        Some(DriverInfo { detected, healthy, .. }) => *detected && *healthy,
        None => {
            node.attributes.get(&format!("driver.{driver}")).is_some_and(|text| boolean(text) == Some(true))
        }
    }
}

/// As the reference reads booleans.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
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
