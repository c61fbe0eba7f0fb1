//! Affinities: attributes of nodes that a job prefers.

use model::document::{Affinity, Constraint};
use state::node::NodeCold;

use crate::feasibility::constraint::ConstraintCheck;

/// The default weight of an affinity.
const WEIGHT: i8 = 50;

/// All affinities of a job, a group and its tasks.
#[derive(Debug, Default)]
pub struct Affinities {
    list: Vec<(ConstraintCheck, f64)>,
    /// The sum of the weights, whatever their signs.
    total: f64,
}

impl Affinities {
    pub fn of(affinities: &[Affinity]) -> Affinities {
        let list: Vec<(ConstraintCheck, f64)> = affinities
            .iter()
            .map(|affinity| {
                let Affinity { l_target, r_target, operand, weight } = affinity.clone();
                let check = ConstraintCheck::of(&Constraint { l_target, r_target, operand });
                (check, f64::from(weight.unwrap_or(WEIGHT)))
            })
            .collect();
        let total = list.iter().map(|(_, weight)| weight.abs()).sum();
        Affinities { list, total }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Some of them depend on more than the class.
    pub fn escape(&self) -> bool {
        self.list.iter().any(|(check, _)| check.escapes)
    }

    /// From -1 to 1: the share of the weights that the node satisfies.
    pub fn score(&self, node: &NodeCold) -> f64 {
        let satisfied = self.list.iter().filter(|(check, _)| check.holds(node));
        let sum: f64 = satisfied.map(|(_, weight)| weight).sum();
        if self.total == 0.0 { 0.0 } else { sum / self.total }
    }
}

#[cfg(test)]
mod tests {
    use base::{Index, Time, Uuid};
    use model::NodeId;
    use model::document::Node;

    use super::*;

    fn affinity(value: &str, weight: i8) -> Affinity {
        let (l_target, operand) = ("${node.datacenter}".to_string(), "=".to_string());
        Affinity { l_target, r_target: value.to_string(), operand, weight: Some(weight) }
    }

    /// I21-I23.
    #[test]
    fn the_score_is_the_satisfied_share_of_the_weights() {
        let node = NodeCold {
            id: NodeId(Uuid::from(1)),
            document: state::LazyDoc::of(&Node { datacenter: "dc1".into(), ..Node::default() }),
            secret_hash: [0; 32],
            created: Index(1),
            status_updated: Time::ZERO,
            messages: Vec::new(),
            drain: None,
        };
        let score = |list: &[Affinity]| Affinities::of(list).score(&node);
        assert_eq!(score(&[affinity("dc1", 100), affinity("dc2", 50), affinity("dc3", 50)]), 0.5);
        assert_eq!(score(&[affinity("dc2", 100), affinity("dc1", -50)]), -1.0 / 3.0);
        assert_eq!(score(&[affinity("dc2", 100)]), 0.0);
        assert_eq!(score(&[]), 0.0);
    }
}
