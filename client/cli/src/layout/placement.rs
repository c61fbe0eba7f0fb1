//! Why a group's allocations have no place: a part of the output of `why`, and of what monitors an evaluation.

use api::EvalWhy;
use model::document::{GroupReasons, Lack, NearMiss, Reconnect};

use super::why::named_counts;
use super::{metrics, plural};
use crate::output::{OutputStyle, Paint};

pub(crate) fn of_group(style: &OutputStyle, name: &str, group: &GroupReasons) -> String {
    let changes = changes(style, group);
    let Some(failed) = &group.failed else {
        return style.section(&format!("Group {name:?}"), &changes);
    };
    let version = group.older_version.map(|version| format!(" of version {version}")).unwrap_or_default();
    let title = format!("Group {name:?}: no place for {}{version}", plural(group.missing, "allocation"));
    let seen = format!(
        "{} looked at, {} ruled out by checks, {} without room",
        plural(failed.nodes_evaluated, "node"),
        failed.nodes_filtered,
        failed.nodes_exhausted
    );
    let content = format!("{changes}  {seen}\n{}", metrics::reasons(style, failed, "    "));
    let mut text = style.section(&title, &content);
    if !group.missing_names.is_empty() {
        let more = group.missing.saturating_sub(group.missing_names.len() as u64);
        let more = if more > 0 { ", ..." } else { "" };
        text.push_str(&format!("  Missing: {}{more}\n", group.missing_names.join(", ")));
    }
    if !group.nearest.is_empty() {
        text.push_str("  Closest nodes:\n");
        text.extend(group.nearest.iter().map(near));
    }
    text + &hints(style, group)
}

/// Closest nodes that a short answer names.
const NEAREST_SHORT: usize = 3;

/// Only what would give the missing allocations of an evaluation a place.
pub(crate) fn short(style: &OutputStyle, why: &EvalWhy) -> String {
    let mut text = String::new();
    for (name, group) in why.groups.iter().filter(|(_, group)| group.failed.is_some()) {
        text.push_str(&format!(
            "Task Group {name:?} has no place for {}:\n",
            plural(group.missing, "allocation")
        ));
        if !group.nearest.is_empty() {
            text.push_str("  Closest nodes:\n");
            text.extend(group.nearest.iter().take(NEAREST_SHORT).map(near));
        }
        text.push_str(&hints(style, group));
    }
    if !text.is_empty() {
        text.push_str(&format!("More: {} why eval {}\n", style.program, style.id(&why.id)));
    }
    text
}

/// What was to become of the group's allocations, and who stays of those that came back.
fn changes(style: &OutputStyle, group: &GroupReasons) -> String {
    let desired = &group.desired;
    let named = [
        (desired.place, "placed"),
        (desired.canary, "canaries"),
        (desired.in_place_update, "updated in place"),
        (desired.destructive_update, "replaced"),
        (desired.migrate, "moved"),
        (desired.stop, "stopped"),
        (desired.preemptions, "preempted"),
        (desired.disconnect, "disconnected"),
        (desired.reconnect, "reconnected"),
        (desired.reschedule_now, "rescheduled"),
        (desired.reschedule_later, "rescheduled later"),
        (desired.ignore, "left as they are"),
    ];
    let wanted = match named_counts(&named).as_str() {
        "none" if group.failed.is_some() => String::new(),
        "none" => "  nothing to do\n".to_string(),
        some if group.failed.is_some() => format!("  wanted: {some}\n"),
        some => format!("  {some}\n"),
    };
    let choices = group.reconnects.iter().map(|choice| format!("  {}\n", reconnect(style, choice)));
    wanted + &choices.collect::<String>()
}

fn hints(style: &OutputStyle, group: &GroupReasons) -> String {
    let tried = match group.tried {
        1 => "1 change was tried".to_string(),
        tried => format!("{tried} changes were tried"),
    };
    if !group.would_fit_if.is_empty() {
        let title = style.paint(Paint::Green, "Would fit if (each one tried out):");
        let hints = group.would_fit_if.iter().map(|change| format!("    * {change}\n"));
        return format!("  {title}\n{}", hints.collect::<String>());
    }
    if group.nodes == 0 {
        return "  The cluster has no nodes.\n".to_string();
    }
    let rest = if group.hints_cut_short { ", not all there are" } else { "" };
    format!("  Nothing tried here helps by itself ({tried}{rest}).\n")
}

fn near(miss: &NearMiss) -> String {
    let lacks: Vec<String> = miss.lacks.iter().map(lack).collect();
    format!("    * {}: {}\n", miss.node_name, lacks.join("; "))
}

pub(super) fn lack(lack: &Lack) -> String {
    if lack.asked == 0 {
        return lack.what.clone();
    }
    let unit = if lack.unit.is_empty() { String::new() } else { format!(" {}", lack.unit) };
    let stopping = match lack.stopping {
        0 => String::new(),
        stopping => format!(", {stopping} more once what is being stopped there has ended"),
    };
    format!("{}{unit} more {} (asked {}, free {}{stopping})", lack.short, lack.what, lack.asked, lack.free)
}

pub(super) fn reconnect(style: &OutputStyle, choice: &Reconnect) -> String {
    let score = |score: Option<f64>| score.map_or("none".to_string(), |score| format!("{score:.3}"));
    let (original, replacement) = (style.id(&choice.original), style.id(&choice.replacement));
    let kept = if choice.keeps_original { "the original stays" } else { "the replacement stays" };
    let strategy = &choice.strategy;
    format!(
        "{original} came back, replaced by {replacement} ({strategy}; scores {} and {}): {kept}, {}",
        score(choice.original_score),
        score(choice.replacement_score),
        choice.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_answer_names_the_closest_nodes_and_what_would_help() {
        let group = GroupReasons {
            failed: Some(Default::default()),
            missing: 1,
            nodes: 4,
            nearest: vec![NearMiss { node_name: "n1".into(), ..NearMiss::default() }].into(),
            would_fit_if: vec!["memory were 64 MiB".to_string()].into(),
            ..GroupReasons::default()
        };
        let groups = [("g".to_string(), group), ("placed".to_string(), GroupReasons::default())];
        let why =
            EvalWhy { id: "11111111-2".into(), groups: groups.into_iter().collect(), ..EvalWhy::default() };
        assert_eq!(
            short(&OutputStyle::for_tests(), &why),
            "Task Group \"g\" has no place for 1 allocation:\n  Closest nodes:\n    * n1: \n\
             \x20 Would fit if (each one tried out):\n    * memory were 64 MiB\n\
             More: sojourn why eval 11111111\n"
        );
        assert_eq!(short(&OutputStyle::for_tests(), &EvalWhy::default()), "");
    }

    #[test]
    fn only_what_was_tried_is_said_not_to_help() {
        let style = OutputStyle::for_tests();
        let group = GroupReasons { nodes: 2, tried: 12, ..GroupReasons::default() };
        assert_eq!(hints(&style, &group), "  Nothing tried here helps by itself (12 changes were tried).\n");
        let cut = GroupReasons { hints_cut_short: true, ..group.clone() };
        let text = "  Nothing tried here helps by itself (12 changes were tried, not all there are).\n";
        assert_eq!(hints(&style, &cut), text);
        let none = GroupReasons { nodes: 0, ..group };
        assert_eq!(hints(&style, &none), "  The cluster has no nodes.\n");
    }

    #[test]
    fn room_that_is_being_freed_is_told() {
        let lacks = Lack {
            what: "memory".into(),
            unit: "MiB".into(),
            asked: 500,
            free: 100,
            short: 400,
            stopping: 450,
        };
        let text =
            "400 MiB more memory (asked 500, free 100, 450 more once what is being stopped there has ended)";
        assert_eq!(lack(&lacks), text);
    }

    #[test]
    fn a_choice_after_a_reconnect_is_one_line() {
        let choice: Reconnect = model::document::input::from_slice(
            br#"{"Original": "0123456789", "Replacement": "abcdefghij", "Strategy": "best_score", "OriginalScore": 0.5,
                "ReplacementScore": 0.75, "Why": "the replacement was placed with a better score"}"#,
        )
        .unwrap();
        assert_eq!(
            reconnect(&OutputStyle::for_tests(), &choice),
            "01234567 came back, replaced by abcdefgh (best_score; scores 0.500 and 0.750): \
            the replacement stays, the replacement was placed with a better score"
        );
    }
}
