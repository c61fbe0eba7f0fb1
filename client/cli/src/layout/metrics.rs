//! Why a task group could not be placed, and how nodes scored.

use std::collections::BTreeSet;

use model::document::{AllocationMetric, Map};

use super::plural;
use crate::output::{OutputStyle, Paint, Table};

/// The filter that missing drivers are counted under.
const MISSING_DRIVERS: &str = "missing drivers";

/// One line a reason, each after `indent`.
pub(crate) fn reasons(style: &OutputStyle, metric: &AllocationMetric, indent: &str) -> String {
    let mut lines = Vec::new();
    if metric.nodes_evaluated == 0 {
        lines.push("No nodes were eligible for evaluation".to_string());
    }
    for (datacenter, _) in metric.nodes_available.iter().filter(|(_, count)| **count == 0) {
        lines.push(format!("No nodes are available in datacenter \"{datacenter}\""));
    }
    for (class, count) in &metric.class_filtered {
        lines.push(format!("Class \"{class}\": {} excluded by filter", plural(*count, "node")));
    }
    for (constraint, count) in &metric.constraint_filtered {
        let line = format!("Constraint \"{constraint}\": {} excluded by filter", plural(*count, "node"));
        let drivers = constraint == MISSING_DRIVERS;
        lines.push(if drivers { style.paint(Paint::Red, &line) } else { line });
    }
    if metric.nodes_exhausted > 0 {
        lines.push(format!("Resources exhausted on {}", plural(metric.nodes_exhausted, "node")));
    }
    for (class, count) in &metric.class_exhausted {
        lines.push(format!("Class \"{class}\" exhausted on {}", plural(*count, "node")));
    }
    for (dimension, count) in &metric.dimension_exhausted {
        lines.push(format!("Dimension \"{dimension}\" exhausted on {}", plural(*count, "node")));
    }
    for quota in &metric.quota_exhausted {
        lines.push(format!("Quota limit hit \"{quota}\""));
    }
    lines.iter().map(|line| format!("{indent}* {line}\n")).collect()
}

/// How the best nodes scored: a column a scorer.
pub(crate) fn scores(style: &OutputStyle, metric: &AllocationMetric) -> String {
    named_scores(style, metric, &Map::default())
}

/// As [`scores`], with the names of the nodes, by id.
pub(crate) fn named_scores(
    style: &OutputStyle,
    metric: &AllocationMetric,
    names: &Map<String, String>,
) -> String {
    let scorers: BTreeSet<&String> =
        metric.score_meta_data.iter().flat_map(|node| node.scores.keys()).collect();
    let head = ["Node"].into_iter().chain(scorers.iter().map(|name| name.as_str())).chain(["final score"]);
    let mut table = Table::new(head);
    for node in &metric.score_meta_data {
        let id = style.id(&node.node_id);
        let mut row = vec![names.get(&node.node_id).map_or(id.clone(), |name| format!("{name} ({id})"))];
        row.extend(scorers.iter().map(|name| three_digits(node.scores.get(*name).copied().unwrap_or(0.0))));
        row.push(three_digits(node.norm_score));
        table.row(row);
    }
    table.render()
}

/// At most three significant digits, without zeros at the end.
fn three_digits(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{number}");
    }
    let before = number.abs().log10().floor() as i32 + 1;
    let text = format!("{number:.*}", (3 - before).max(0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use model::document::NodeScoreMeta;

    use super::*;

    #[test]
    fn every_reason_has_its_line() {
        let count = |name: &str, n| [(name.to_string(), n)].into_iter().collect();
        let metric = AllocationMetric {
            nodes_evaluated: 3,
            nodes_available: count("dc2", 0),
            class_filtered: count("gpu", 1),
            constraint_filtered: count("${attr.kernel.name} = linux", 2),
            nodes_exhausted: 1,
            dimension_exhausted: count("memory", 1),
            ..AllocationMetric::default()
        };
        assert_eq!(
            reasons(&OutputStyle::for_tests(), &metric, "  "),
            "  * No nodes are available in datacenter \"dc2\"\n\
             \x20 * Class \"gpu\": 1 node excluded by filter\n\
             \x20 * Constraint \"${attr.kernel.name} = linux\": 2 nodes excluded by filter\n\
             \x20 * Resources exhausted on 1 node\n\
             \x20 * Dimension \"memory\" exhausted on 1 node\n"
        );
        let none = reasons(&OutputStyle::for_tests(), &AllocationMetric::default(), "");
        assert_eq!(none, "* No nodes were eligible for evaluation\n");
    }

    #[test]
    fn scores_stand_in_columns_by_scorer() {
        let node = NodeScoreMeta {
            node_id: "5d16e7fe-8a2e".into(),
            scores: [("binpack".to_string(), 0.123456), ("job-anti-affinity".to_string(), -0.5)]
                .into_iter()
                .collect(),
            norm_score: 12.0,
        };
        let metric = AllocationMetric { score_meta_data: vec![node].into(), ..AllocationMetric::default() };
        assert_eq!(
            scores(&OutputStyle::for_tests(), &metric),
            "Node      binpack  job-anti-affinity  final score\n5d16e7fe  0.123    -0.5               12\n"
        );
        let names = [("5d16e7fe-8a2e".to_string(), "n1".to_string())].into_iter().collect();
        let named = named_scores(&OutputStyle::for_tests(), &metric, &names);
        assert!(named.contains("\nn1 (5d16e7fe)  0.123"), "{named}");
    }
}
