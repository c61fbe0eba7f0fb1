//! Decisions that were made again from the log.

use api::{DecisionAgain, DecisionsAgain};

use super::plural;
use crate::output::{OutputStyle, Paint};

/// One that differs, or could not be made again.
pub(crate) fn one(style: &OutputStyle, decision: &DecisionAgain) -> String {
    let DecisionAgain { namespace, job_id, triggered_by, index, snapshot, reason, .. } = decision;
    let job =
        if job_id.is_empty() { String::new() } else { format!(" of {namespace}/{job_id} ({triggered_by})") };
    let title = format!("{index}: evaluation {}{job}", style.id(&decision.eval_id));
    if !decision.made {
        return format!("{}\n  not made again: {reason}\n", style.paint(Paint::Warning, &title));
    }
    let mut text = format!("{}\n", style.paint(Paint::Red, &title));
    text.push_str(&format!("  decided on the state of index {snapshot}"));
    text.push_str(&if reason.is_empty() { "\n".to_string() } else { format!("; {reason}\n") });
    for placed in &decision.placements {
        let (before, now) = (node(&placed.logged_node_name), node(&placed.node_name));
        text.push_str(&format!("  * allocation {}: {before} -> {now}\n", style.id(&placed.id)));
    }
    if decision.cut_short {
        text.push_str("  * and more allocations\n");
    }
    text.extend(decision.changes.iter().map(|change| format!("  * {change}\n")));
    text
}

fn node(name: &str) -> &str {
    if name.is_empty() { "not placed" } else { name }
}

pub(crate) fn summary(whole: &DecisionsAgain, seconds: f64) -> String {
    let DecisionsAgain { from, to, decisions, same, differing, not_made, .. } = whole;
    let rate = *decisions as f64 / seconds.max(0.001);
    let unlisted = if whole.cut_short { "; not all of them are listed" } else { "" };
    let unmade = match not_made {
        0 => String::new(),
        count => format!(", {count} could not be made again"),
    };
    format!(
        "{} after index {from} up to {to}: {same} the same, {differing} different{unmade}{unlisted}; {rate:.0} a second\n",
        plural(*decisions, "decision")
    )
}

#[cfg(test)]
mod tests {
    use api::PlacementAgain;

    use super::*;

    #[test]
    fn a_decision_says_what_differs_and_why() {
        let style = OutputStyle::for_tests();
        let placed = PlacementAgain {
            id: "0123456789".into(),
            logged_node_name: "n1".into(),
            ..PlacementAgain::default()
        };
        let differs = DecisionAgain {
            index: 12,
            snapshot: 10,
            eval_id: "9876543210".into(),
            namespace: "default".into(),
            job_id: "web".into(),
            triggered_by: "job-register".into(),
            made: true,
            reason: "scheduled by spread".into(),
            placements: vec![placed].into(),
            changes: vec!["ends blocked instead of complete".to_string()].into(),
            cut_short: true,
        };
        assert_eq!(
            one(&style, &differs),
            "12: evaluation 98765432 of default/web (job-register)\n  decided on the state of index 10; scheduled by spread\n  \
             * allocation 01234567: n1 -> not placed\n  * and more allocations\n  * ends blocked instead of complete\n"
        );
        let unmade = DecisionAgain { made: false, job_id: String::new(), reason: "gone".into(), ..differs };
        assert_eq!(one(&style, &unmade), "12: evaluation 98765432\n  not made again: gone\n");
        let whole = DecisionsAgain {
            from: 1,
            to: 20,
            decisions: 4,
            same: 2,
            differing: 1,
            not_made: 1,
            cut_short: true,
            ..DecisionsAgain::default()
        };
        assert_eq!(
            summary(&whole, 2.0),
            "4 decisions after index 1 up to 20: 2 the same, 1 different, 1 could not be made again; not all of them are listed; \
             2 a second\n"
        );
    }
}
