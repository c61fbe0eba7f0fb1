//! How two moments differ, and where the fields of an object come from.

use serde_json::Value;

use crate::layout::history::who;
use crate::output::{OutputStyle, Paint, Table};
use crate::past::allocations::AllocationChange;
use crate::past::difference::Change;
use crate::past::origin::Origin;

/// Lines of a difference of the whole cluster that are shown: `-json` has all.
const LINES_MAX: usize = 200;

/// `+` is new, `-` is gone, `~` has another value.
pub(crate) fn changes(style: &OutputStyle, changes: &[Change], bounded: bool) -> String {
    let shown = if bounded && !style.verbose { LINES_MAX } else { usize::MAX };
    let mut text: String = changes.iter().take(shown).map(|change| line(style, change) + "\n").collect();
    if changes.len() > shown {
        text += &format!("... and {} more: -verbose and -json show all\n", changes.len() - shown);
    }
    if changes.is_empty() { "Nothing is different\n".to_string() } else { text }
}

fn line(style: &OutputStyle, change: &Change) -> String {
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => {
            style.paint(Paint::Yellow, &format!("~ {}: {} -> {}", change.path, value(from), value(to)))
        }
        (Some(from), None) => style.paint(Paint::Red, &one_sided('-', &change.path, from)),
        (None, to) => {
            style.paint(Paint::Green, &one_sided('+', &change.path, to.as_ref().unwrap_or(&Value::Null)))
        }
    }
}

fn one_sided(sign: char, path: &str, now: &Value) -> String {
    let now = value(now);
    if now.is_empty() { format!("{sign} {path}") } else { format!("{sign} {path}: {now}") }
}

/// Text as it is, as long as it is one line; of a whole object its status; everything else as JSON.
fn value(value: &Value) -> String {
    match value {
        Value::Object(object) => object.get("Status").and_then(Value::as_str).unwrap_or_default().to_string(),
        Value::String(text) if !text.is_empty() && !text.contains('\n') => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn allocations(style: &OutputStyle, changes: &[AllocationChange]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Allocation", "Name", "Job", "What", "Node"]);
    for change in changes {
        let (id, name, job, what, node) = match change {
            AllocationChange::Gained { name, job, id, node } => {
                (id, name, job, "gained".into(), node.clone())
            }
            AllocationChange::Lost { name, job, id, node, status } => {
                let what =
                    if status.is_empty() { "lost, and forgotten".into() } else { format!("lost: {status}") };
                (id, name, job, what, node.clone())
            }
            AllocationChange::Replaced { name, job, id, node, by, new_node } if node == new_node => {
                (id, name, job, format!("replaced by {}", style.id(by)), node.clone())
            }
            AllocationChange::Replaced { name, job, id, node, by, new_node } => {
                (id, name, job, format!("moved, as {}", style.id(by)), format!("{node} -> {new_node}"))
            }
            AllocationChange::Changed { name, job, id, from, to } => {
                (id, name, job, format!("{from} -> {to}"), String::new())
            }
        };
        table.row([style.id(id), name.clone(), job.clone(), what, node]);
    }
    style.section("Allocations", &table.render())
}

/// Each field with its value, and the fact that gave it.
pub(crate) fn origins(style: &OutputStyle, origins: &[Origin]) -> String {
    let mut table = Table::new(["Index", "Time", "Event", "Who", "Field", "Value"]);
    for Origin { path, value: now, fact } in origins {
        let (index, time, event, actor) = match fact {
            Some(fact) => (
                fact.index.to_string(),
                style.time(fact.time.time().0),
                fact.event.clone(),
                who(&fact.actor, fact.requester.as_ref()),
            ),
            None => Default::default(),
        };
        table.row([index, time, event, actor, path.clone(), value(now)]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_one_line() {
        let style = OutputStyle::for_tests();
        let change =
            |path: &str, from: Option<Value>, to: Option<Value>| Change { path: path.into(), from, to };
        let all = [
            change("Count", Some(json!(1)), Some(json!(3))),
            change("Meta.a", None, Some(json!("x\ny"))),
            change("Type", Some(json!("batch")), None),
        ];
        assert_eq!(changes(&style, &all, false), "~ Count: 1 -> 3\n+ Meta.a: \"x\\ny\"\n- Type: batch\n");
        let entry = change("Jobs[default/a]", None, Some(json!({"Status": "running"})));
        assert_eq!(changes(&style, &[entry], true), "+ Jobs[default/a]: running\n");
        let bare = change("Nodes[1]", Some(json!({})), None);
        assert_eq!(changes(&style, &[bare], true), "- Nodes[1]\n");
        assert_eq!(changes(&style, &[], false), "Nothing is different\n");
        let many = vec![all[0].clone(); LINES_MAX + 2];
        assert!(changes(&style, &many, true).ends_with("... and 2 more: -verbose and -json show all\n"));
    }
}
