//! Whether a node will do for a group, check by check, in the documented order.

use std::collections::BTreeMap;

use model::document::{Constraint, DriverInfo, Node, TaskGroup};
use state::State;
use state::alloc::Alloc;
use state::job::JobVersion;
use state::node::{Amount, NodeCold, NodeRow};

use crate::ask::Ask;
use crate::candidates::Candidate;
use crate::constraint::{Check, Target};
use crate::ports::NodePorts;
use crate::proposed::Proposed;

/// Why a node will not do, by number in [`Reasons`].
pub type ReasonId = u16;

/// Reasons that every group knows, in the order they are interned.
pub const DISTINCT_HOSTS: ReasonId = 0;
const ALLOCS_MAX: ReasonId = 1;
const DIMENSIONS: [(&str, ReasonId); 3] = [("cpu", 2), ("memory", 3), ("disk", 4)];

#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    pub text: String,
    /// The node fits by its nature, but has no room now.
    pub exhausted: bool,
    /// It can change while the plan grows.
    pub passing: bool,
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
        reasons.intern("max allocation exceeded", true, true);
        for (dimension, _) in DIMENSIONS {
            reasons.intern(dimension, true, true);
        }
        reasons
    }

    pub fn get(&self, id: ReasonId) -> &Reason {
        &self.list[usize::from(id)]
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    fn filter(&mut self, text: &str) -> ReasonId {
        self.intern(text, false, false)
    }

    fn intern(&mut self, text: &str, exhausted: bool, passing: bool) -> ReasonId {
        if let Some(id) = self.by_text.get(text) {
            return *id;
        }
        // Past the last number, further texts share it: counts stay right, one text stands for several.
        let id = ReasonId::try_from(self.list.len()).unwrap_or(ReasonId::MAX).min(ReasonId::MAX - 2);
        if usize::from(id) == self.list.len() {
            self.list.push(Reason { text: text.to_string(), exhausted, passing });
        }
        self.by_text.insert(text.to_string(), id);
        id
    }
}

/// A check that nodes of one class answer alike.
#[derive(Debug)]
enum Rule {
    Constraint(Check),
    /// What this release does not place.
    Refusal(&'static str),
    Drivers(Vec<String>),
    Secrets(Vec<String>),
}

/// Every check of one group.
#[derive(Debug)]
pub struct Judge<'e> {
    state: &'e State,
    pub ask: Ask,
    rules: Vec<Rule>,
    /// Constraints that look beyond the class.
    own: Vec<Check>,
    pub distinct_hosts: Option<Distinct>,
    pub properties: Vec<Property>,
    /// By class: not asked, fine, or the reason.
    verdicts: Vec<Option<Option<ReasonId>>>,
    pub reasons: Reasons,
}

/// How far `distinct_hosts` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinct {
    Job,
    Group,
}

impl<'e> Judge<'e> {
    pub fn new(state: &'e State, version: &JobVersion, group: &TaskGroup) -> Judge<'e> {
        let of_job = version.job.constraints.iter();
        let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
        let of_group = group.constraints.iter().chain(of_tasks);
        let ask = Ask::of(group);
        let constraint = |constraint: &Constraint| Check::of(constraint);
        let (own_of_job, mut rules) = split(of_job.clone().map(constraint));
        rules.extend(ask.refusal.map(Rule::Refusal));
        rules.push(Rule::Drivers(group.tasks.iter().map(|task| task.driver.clone()).collect()));
        let (own_of_group, of_group_rules) = split(of_group.clone().map(constraint));
        rules.extend(of_group_rules);
        let secrets = group.tasks.iter().flat_map(|task| &task.secrets);
        rules.push(Rule::Secrets(secrets.map(|secret| secret.provider.clone()).collect()));
        let properties_of_job = of_job.clone().filter_map(|c| Property::of(c, true));
        Judge {
            state,
            rules,
            own: own_of_job.into_iter().chain(own_of_group).collect(),
            distinct_hosts: distinct_hosts(of_job, of_group.clone()),
            properties: properties_of_job.chain(of_group.filter_map(|c| Property::of(c, false))).collect(),
            verdicts: vec![None; state.nodes.classes().count()],
            reasons: Reasons::new(),
            ask,
        }
    }

    /// Some check looks beyond the class, so that any new room may matter.
    pub fn escapes(&self) -> bool {
        !self.own.is_empty()
    }

    /// What the node's class says, asked once per class.
    pub fn class(&mut self, candidate: &Candidate) -> Option<ReasonId> {
        if let Some(verdict) = self.verdicts[candidate.class.0 as usize] {
            return verdict;
        }
        let node = self.state.nodes.cold(candidate.row);
        let broken = self.rules.iter().find_map(|rule| rule.broken_by(node));
        let verdict = broken.map(|text| self.reasons.filter(&text));
        self.verdicts[candidate.class.0 as usize] = Some(verdict);
        verdict
    }

    /// Classes that were asked, and whether they will do.
    pub fn classes(&self) -> impl Iterator<Item = (usize, bool)> {
        let asked = self.verdicts.iter().enumerate();
        asked.filter_map(|(class, verdict)| verdict.map(|reason| (class, reason.is_none())))
    }

    /// What only this node can say of itself, whatever else the plan holds.
    pub fn node(&mut self, row: NodeRow) -> Option<ReasonId> {
        if self.own.is_empty() && self.ask.host_network.is_none() {
            return None;
        }
        let node = self.state.nodes.cold(row);
        if let Some(broken) = self.own.iter().find(|check| !check.holds(node)) {
            let text = broken.text.clone();
            return Some(self.reasons.filter(&text));
        }
        let missing = missing_network(&self.ask, node)?;
        Some(self.reasons.filter(&missing))
    }

    /// Whether there is room for one more in cpu, memory, disk and number.
    #[inline]
    pub fn room(&self, candidate: &Candidate, used: Amount, allocs: u32) -> Option<ReasonId> {
        if candidate.allocs_max > 0 && allocs >= candidate.allocs_max {
            return Some(ALLOCS_MAX);
        }
        let exceeded = candidate.capacity.exceeded_by(used.plus(self.ask.amount))?;
        DIMENSIONS.iter().find(|(dimension, _)| *dimension == exceeded).map(|(_, id)| *id)
    }

    /// What depends on the node's other allocations beyond their amounts: properties and ports.
    pub fn neighbours(&mut self, row: NodeRow, proposed: &Proposed) -> Option<ReasonId> {
        if self.properties.is_empty() && self.ask.ports.is_empty() {
            return None;
        }
        let node = self.state.nodes.cold(row);
        if let Some(text) = self.properties.iter().find_map(|property| property.refuses(node)) {
            return Some(self.reasons.intern(&text, false, true));
        }
        let ports = NodePorts::new(&node.document, proposed.ports(row));
        let failed = self.ask.ports.check(&ports).err()?;
        Some(self.reasons.intern(&failed, true, true))
    }

    /// Whether an allocation may run on where it is, with what the group asks by now. It holds its ports and
    /// its room already: only more than that has to be free.
    pub fn in_place(&mut self, alloc: &Alloc, candidate: &Candidate, proposed: &Proposed) -> bool {
        let row = candidate.row;
        let grows = alloc.amount().exceeded_by(self.ask.amount).is_some();
        self.class(candidate).is_none()
            && self.node(row).is_none()
            && !(grows && {
                let others = proposed.used(row).minus(alloc.amount());
                self.room(candidate, others, proposed.allocs(row) - u32::from(alloc.takes_room())).is_some()
            })
    }

    /// Every check on one node alone.
    pub fn alone(&mut self, candidate: &Candidate, proposed: &Proposed) -> Option<ReasonId> {
        self.class(candidate)
            .or_else(|| self.node(candidate.row))
            .or_else(|| {
                let row = candidate.row;
                self.room(candidate, proposed.used(row), proposed.allocs(row))
            })
            .or_else(|| self.neighbours(candidate.row, proposed))
    }
}

fn split(checks: impl Iterator<Item = Check>) -> (Vec<Check>, Vec<Rule>) {
    let (own, shared): (Vec<Check>, Vec<Check>) = checks.partition(|check| check.escapes);
    (own, shared.into_iter().map(Rule::Constraint).collect())
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
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn missing_network(ask: &Ask, node: &NodeCold) -> Option<String> {
    let wanted = ask.host_network.as_ref()?;
    let resources = node.document.node_resources.as_ref();
    let is_host = |mode: &str| mode.is_empty() || mode == "host";
    let mut modes = resources.into_iter().flat_map(|r| {
        r.networks.iter().map(|n| n.mode.as_str()).chain(r.node_networks.iter().map(|n| n.mode.as_str()))
    });
    if !modes.any(is_host) {
        return Some("missing network".to_string());
    }
    let networks = resources.into_iter().flat_map(|r| &r.node_networks);
    let aliases: Vec<&str> =
        networks.flat_map(|network| &network.addresses).map(|address| address.alias.as_str()).collect();
    wanted.iter().find_map(|(port, template)| {
        let target = Target::parse(template);
        let Some(name) = target.resolve(node) else {
            return Some(format!("invalid host network \"{template}\" template for port \"{port}\""));
        };
        let missing = name != "default" && !name.is_empty() && !aliases.contains(&&*name);
        missing.then(|| format!("missing host network \"{name}\" for port \"{port}\""))
    })
}

/// On unless its value says otherwise; the first one of a level counts, the job's before the group's.
fn distinct_hosts<'c>(
    of_job: impl Iterator<Item = &'c Constraint>,
    of_group: impl Iterator<Item = &'c Constraint>,
) -> Option<Distinct> {
    fn is_on<'c>(mut constraints: impl Iterator<Item = &'c Constraint>) -> bool {
        let first = constraints.find(|constraint| constraint.operand == "distinct_hosts");
        first.is_some_and(|constraint| boolean(&constraint.r_target) != Some(false))
    }
    if is_on(of_job) {
        return Some(Distinct::Job);
    }
    is_on(of_group).then_some(Distinct::Group)
}

/// `distinct_property`: at most so many allocations per value.
#[derive(Clone, Debug)]
pub struct Property {
    text: String,
    target: Target,
    limit: Result<u32, String>,
    pub job_wide: bool,
    used: BTreeMap<String, u32>,
}

impl Property {
    fn of(constraint: &Constraint, job_wide: bool) -> Option<Property> {
        if constraint.operand != "distinct_property" {
            return None;
        }
        let limit = match constraint.r_target.as_str() {
            "" => Ok(1),
            text => text.parse().map_err(|_| format!("distinct_property: invalid count \"{text}\"")),
        };
        Some(Property {
            text: constraint.l_target.clone(),
            target: Target::parse(&constraint.l_target),
            limit,
            job_wide,
            used: BTreeMap::new(),
        })
    }

    pub fn add(&mut self, node: &NodeCold) {
        if let Some(value) = self.target.resolve(node) {
            *self.used.entry(value.to_string()).or_default() += 1;
        }
    }

    pub fn remove(&mut self, node: &NodeCold) {
        let used = self.target.resolve(node).and_then(|value| self.used.get_mut(&*value));
        if let Some(used) = used {
            *used = used.saturating_sub(1);
        }
    }

    fn refuses(&self, node: &NodeCold) -> Option<String> {
        let limit = match &self.limit {
            Ok(limit) => *limit,
            Err(why) => return Some(why.clone()),
        };
        let Some(value) = self.target.resolve(node) else {
            return Some(format!("missing property \"{}\"", self.text));
        };
        let used = self.used.get(&*value).copied().unwrap_or(0);
        (used >= limit).then(|| format!("distinct_property: {}={value} used by {used} allocs", self.text))
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

    /// H25.
    #[test]
    fn distinct_hosts_is_on_unless_it_says_no() {
        let constraint = |value: &str| Constraint {
            operand: "distinct_hosts".into(),
            r_target: value.into(),
            ..Constraint::default()
        };
        for (value, expected) in [("", true), ("true", true), ("maybe", true), ("false", false)] {
            let list = [constraint(value)];
            let of_job = distinct_hosts(list.iter(), [].iter());
            let of_group = distinct_hosts([].iter(), list.iter());
            assert_eq!(of_job == Some(Distinct::Job), expected, "{value}");
            assert_eq!(of_group == Some(Distinct::Group), expected, "{value}");
        }
    }
}
