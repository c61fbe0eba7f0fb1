//! Checks of services, as the node runs them.

use model::document::Map;
use sdk::AllocCheckStatus;

use super::cell;
use crate::output::{OutputStyle, Table, fields};

/// Every check, a block each.
pub(crate) fn all(style: &OutputStyle, checks: &Map<String, AllocCheckStatus>) -> String {
    let mut text = format!("Status of {} Nomad Service Checks\n", checks.len());
    for check in sorted(checks) {
        let mut entries = vec![
            ("ID", check.id.clone()),
            ("Name", check.check.clone()),
            ("Group", check.group.clone()),
            ("Task", task(check)),
            ("Service", check.service.clone()),
            ("Status", check.status.clone()),
        ];
        if check.status_code != 0 {
            entries.push(("StatusCode", cell(check.status_code)));
        }
        entries.extend([
            ("Mode", check.mode.clone()),
            ("Timestamp", style.when(check.timestamp.saturating_mul(1_000_000_000))),
            ("Output", check.output.clone()),
        ]);
        text.push_str(&format!("\n{}", fields(&entries)));
    }
    text
}

/// A line a check, as a part of an allocation; empty when there are none.
pub(crate) fn table(style: &OutputStyle, checks: &Map<String, AllocCheckStatus>) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Service", "Task", "Name", "Mode", "Status"]);
    for check in sorted(checks) {
        let cells = [&check.service, &task(check), &check.check, &check.mode, &check.status];
        table.row(cells.map(String::clone));
    }
    style.section("Nomad Service Checks:", &table.render())
}

fn task(check: &AllocCheckStatus) -> String {
    if check.task.is_empty() { "(group)".to_string() } else { check.task.clone() }
}

fn sorted(checks: &Map<String, AllocCheckStatus>) -> Vec<&AllocCheckStatus> {
    let mut checks: Vec<_> = checks.values().collect();
    checks.sort_by_key(|check| (&check.service, &check.task, &check.check));
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_the_group_are_marked() {
        let check = AllocCheckStatus {
            id: "c1".into(),
            check: "alive".into(),
            group: "web.api[0]".into(),
            mode: "healthiness".into(),
            output: "nomad: http ok".into(),
            service: "web".into(),
            status: "success".into(),
            status_code: 200,
            timestamp: 1_767_323_040,
            ..AllocCheckStatus::default()
        };
        let checks: Map<String, AllocCheckStatus> = [("c1".to_string(), check)].into_iter().collect();
        assert_eq!(
            table(&OutputStyle::for_tests(), &checks),
            "\nNomad Service Checks:\n\
             Service  Task     Name   Mode         Status\n\
             web      (group)  alive  healthiness  success\n"
        );
        let text = all(&OutputStyle::for_tests(), &checks);
        assert!(text.starts_with("Status of 1 Nomad Service Checks\n\nID         = c1\n"), "{text}");
        assert!(text.contains("\nTimestamp  = 5s ago\nOutput     = nomad: http ok\n"), "{text}");
        assert_eq!(table(&OutputStyle::for_tests(), &Map::default()), "");
    }
}
