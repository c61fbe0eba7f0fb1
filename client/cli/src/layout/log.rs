//! The result of a log repair.

use std::path::Path;

use base::Index;
use journal::store::Repair;

use crate::output::Table;

pub(crate) fn repair(log: &Path, found: Option<&Repair>, accepted: bool) -> String {
    let log = log.display();
    let Some(found) = found else { return format!("Nothing in the log in {log} is damaged.\n") };
    let mut damage = Table::new(["File", "Offset", "Damage"]);
    for it in &found.damage {
        damage.row([it.file.clone(), it.offset.to_string(), it.why.clone()]);
    }
    let price = format!("{}\n{}\n{}\n", kept(found), history(found), lost(found));
    let mut text = format!("The log in {log} is damaged.\n\n{}\n{price}", damage.render());
    if accepted {
        text.push_str("\nThe log is repaired.");
        text.push_str(if found.aside.is_empty() { "\n" } else { " Put aside in its directory:\n" });
    }
    text.extend(found.aside.iter().map(|name| format!("    {name}\n")));
    text
}

fn kept(found: &Repair) -> String {
    match found.keeps {
        Index::ZERO => "Kept:    nothing".to_string(),
        last => format!("Kept:    the state after batch {last}"),
    }
}

fn history(found: &Repair) -> String {
    match found.horizon > found.keeps {
        true => "History: none".to_string(),
        false => format!("History: from batch {}", found.horizon),
    }
}

fn lost(found: &Repair) -> String {
    match &found.lost {
        None => "Lost:    no batch".to_string(),
        Some(lost) => {
            let count = lost.end().0 - lost.start().0 + 1;
            format!("Lost:    batches {} to {} ({count} in all)", lost.start(), lost.end())
        }
    }
}
