//! The output of `whatif`: what a change would lead to.

use model::document::{ForkAllocation, ForkCounts, ForkFree, ForkResult, ForkRoom, List};

use super::{cell, fork, metrics, plural};
use crate::output::{OutputStyle, Paint, Table};

/// Lines of a table that are shown: `-verbose` and `-json` have more.
const LINES_MAX: usize = 20;

pub(crate) fn whole(style: &OutputStyle, result: &ForkResult) -> String {
    let mut text = format!("{}\n", style.paint(Paint::Bold, &counts(&result.counts)));
    text.push_str(&ended(result));
    if let Some(kept) = &result.kept {
        text.push_str(&format!(
            "  kept as fork {} for {}: read it with -fork\n",
            kept.id,
            fork::remaining(kept)
        ));
    }
    text.extend(result.notes.iter().map(|note| format!("  {}\n", style.paint(Paint::Warning, note))));
    for (title, list) in [
        ("Moved", &result.moved),
        ("Placed", &result.placed),
        ("Replaced", &result.replaced),
        ("Preempted", &result.preempted),
        ("Lost", &result.lost),
        ("Stopped", &result.stopped),
    ] {
        text.push_str(&allocations(style, title, list));
    }
    text + &unplaced(style, result)
        + &violated(style, result)
        + &deployments(style, result)
        + &free(style, result)
}

pub(super) fn counts(counts: &ForkCounts) -> String {
    let named = [
        (counts.moved, "moved"),
        (counts.placed, "placed"),
        (counts.replaced, "replaced"),
        (counts.updated_in_place, "updated in place"),
        (counts.preempted, "preempted"),
        (counts.lost, "lost"),
        (counts.stopped, "stopped"),
        (counts.unknown, "unknown"),
        (counts.unplaced, "without a node"),
        (counts.violated, "violated"),
    ];
    let some: Vec<String> =
        named.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if some.is_empty() { "Nothing would change".to_string() } else { some.join(", ") }
}

fn ended(result: &ForkResult) -> String {
    let took = &result.virtual_time.0;
    let end = match result.ended_by.as_str() {
        "quiet" => format!("quiet after {took}"),
        "until" => format!("{took} later, and not quiet yet"),
        other => format!("{took} later, ended by {other}"),
    };
    let (steps, evaluations) = (plural(result.steps, "step"), plural(result.evaluations, "evaluation"));
    format!("  from index {} on: {end} ({steps}, {evaluations})\n", result.index)
}

fn allocations(style: &OutputStyle, title: &str, list: &List<ForkAllocation>) -> String {
    if list.is_empty() {
        return String::new();
    }
    let known = list.iter().any(|one| !one.id.is_empty());
    let goes = list.iter().any(|one| !one.to_node_id.is_empty());
    let mut head = vec!["Allocation", "Name", "Job", "From", "To", "Why"];
    head.retain(|column| match *column {
        "Allocation" | "From" | "Why" => known,
        "To" => goes,
        _ => true,
    });
    let mut table = Table::new(head.clone());
    for one in shown(style, list) {
        let cells = head.iter().map(|column| match *column {
            "Allocation" => style.id(&one.id),
            "Name" => one.name.clone(),
            "Job" => format!("{}/{}", one.namespace, one.job_id),
            "From" => one.from_node_name.clone(),
            "To" if one.to_node_id.is_empty() => "-".to_string(),
            "To" => one.to_node_name.clone(),
            _ => one.cause.clone(),
        });
        table.row(cells.collect::<Vec<_>>());
    }
    style.section(title, &(table.render() + &more(style, list.len())))
}

fn shown<'l, T>(style: &OutputStyle, list: &'l List<T>) -> impl Iterator<Item = &'l T> {
    list.iter().take(if style.verbose { usize::MAX } else { LINES_MAX })
}

fn more(style: &OutputStyle, lines: usize) -> String {
    match lines.saturating_sub(LINES_MAX) {
        more if more > 0 && !style.verbose => format!("... and {more} more: -verbose and -json show all\n"),
        _ => String::new(),
    }
}

fn unplaced(style: &OutputStyle, result: &ForkResult) -> String {
    let mut text = String::new();
    for group in shown(style, &result.unplaced) {
        let (job, of, after) = (&group.job_id, &group.group, plural(group.after, "allocation"));
        let before = if group.before > 0 { format!(", {} before", group.before) } else { String::new() };
        text.push_str(&style.paint(Paint::Red, &format!("{}/{job} {of}: {after}{before}", group.namespace)));
        text.push('\n');
        text.push_str(&metrics::reasons(style, &group.failed, "  "));
    }
    if text.is_empty() {
        text
    } else {
        style.section("Without a node", &(text + &more(style, result.unplaced.len())))
    }
}

fn violated(style: &OutputStyle, result: &ForkResult) -> String {
    if result.violated.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Job", "Group", "Wanted", "Allowed", "Before", "Lowest", "After"]);
    for group in shown(style, &result.violated) {
        let numbers = [group.wanted, group.allowed, group.running_before, group.lowest, group.running_after];
        let names = [format!("{}/{}", group.namespace, group.job_id), group.group.clone()];
        table.row(names.into_iter().chain(numbers.map(cell)));
    }
    style.section("Fewer running than allowed", &(table.render() + &more(style, result.violated.len())))
}

fn deployments(style: &OutputStyle, result: &ForkResult) -> String {
    if result.deployments.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Job", "Version", "Status", "Description"]);
    for one in shown(style, &result.deployments) {
        let status = if one.failed { style.paint(Paint::Red, &one.status) } else { one.status.clone() };
        let job = format!("{}/{}", one.namespace, one.job_id);
        table.row([job, cell(one.job_version), status, one.status_description.clone()]);
    }
    style.section("Deployments", &(table.render() + &more(style, result.deployments.len())))
}

fn free(style: &OutputStyle, result: &ForkResult) -> String {
    let mut table = Table::new(["Datacenter", "Nodes", "CPU (MHz)", "Memory (MiB)"]);
    let total = (result.free.len() > 1).then_some(&result.free_total);
    for free in shown(style, &result.free).chain(total) {
        let ForkFree { datacenter, before, after } = free;
        let number = |of: fn(&ForkRoom) -> u64| change(of(before), of(after));
        let name = if datacenter.is_empty() { "all" } else { datacenter };
        let cells =
            [number(|room| room.nodes), number(|room| room.free_cpu), number(|room| room.free_memory_mb)];
        table.row([name.to_string()].into_iter().chain(cells));
    }
    style.section("Free on nodes that take work", &(table.render() + &more(style, result.free.len())))
}

fn change(before: u64, after: u64) -> String {
    if before == after { before.to_string() } else { format!("{before} -> {after}") }
}

#[cfg(test)]
mod tests {
    use model::document::{AllocationMetric, ForkGroup, ForkUnplaced};

    use super::*;

    #[test]
    fn a_result_is_shown_as_tables_and_nothing_is_said_of_what_is_empty() {
        let style = OutputStyle::for_tests();
        let nothing =
            whole(&style, &ForkResult { ended_by: "quiet".into(), index: 7, ..ForkResult::default() });
        assert!(nothing.starts_with("Nothing would change\n  from index 7 on: quiet after 0s"), "{nothing}");
        assert!(!nothing.contains("Moved") && !nothing.contains("Without a node"));
        let moved = ForkAllocation {
            id: "0123456789".into(),
            name: "web.g[0]".into(),
            job_id: "web".into(),
            namespace: "default".into(),
            from_node_name: "n1".into(),
            to_node_id: "x".into(),
            to_node_name: "n2".into(),
            cause: "alloc is being migrated".into(),
            ..ForkAllocation::default()
        };
        let failed =
            AllocationMetric { nodes_evaluated: 2, nodes_exhausted: 2, ..AllocationMetric::default() };
        let unplaced = ForkUnplaced {
            job_id: "web".into(),
            group: "g".into(),
            before: 1,
            after: 3,
            failed,
            ..Default::default()
        };
        let group = ForkGroup {
            job_id: "web".into(),
            group: "g".into(),
            wanted: 4,
            allowed: 3,
            lowest: 1,
            ..ForkGroup::default()
        };
        let free = ForkFree {
            datacenter: "dc1".into(),
            before: ForkRoom { nodes: 3, free_cpu: 100, free_memory_mb: 50, ..ForkRoom::default() },
            after: ForkRoom { nodes: 2, free_cpu: 100, free_memory_mb: 20, ..ForkRoom::default() },
        };
        let text = whole(
            &style,
            &ForkResult {
                counts: ForkCounts { moved: 21, unplaced: 3, violated: 1, ..ForkCounts::default() },
                moved: vec![moved; 21].into(),
                unplaced: vec![unplaced].into(),
                violated: vec![group].into(),
                free: vec![free].into(),
                ended_by: "time".into(),
                ..ForkResult::default()
            },
        );
        for line in [
            "21 moved, 3 without a node, 1 violated\n",
            "0s later, ended by time",
            "01234567    web.g[0]  default/web  n1    n2  alloc is being migrated\n",
            "... and 1 more: -verbose and -json show all\n",
            "/web g: 3 allocations, 1 before\n  * Resources exhausted on 2 nodes\n",
            "/web  g      4       3        0       1       0\n",
            "dc1         3 -> 2  100        50 -> 20\n",
        ] {
            assert!(text.contains(line), "{line:?} in:\n{text}");
        }
    }
}
