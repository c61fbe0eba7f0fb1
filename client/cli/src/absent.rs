//! Commands of Nomad that this release does not have: they answer so, and not as if they had been misspelt.

/// Their names; the groups follow from them.
const ABSENT: &[&str] = &[
    "alloc pause",
    "debug",
    "deployment unblock",
    "license get",
    "operator client-state",
    "operator debug",
    "operator raft logs",
    "operator raft migrate-backend",
    "operator raft state",
    "operator snapshot redact",
    "operator snapshot state",
    "operator utilization",
    "quota apply",
    "quota delete",
    "quota init",
    "quota inspect",
    "quota list",
    "quota status",
    "recommendation apply",
    "recommendation dismiss",
    "recommendation info",
    "recommendation list",
    "sentinel apply",
    "sentinel delete",
    "sentinel list",
    "sentinel read",
    "setup consul",
    "setup vault",
    "volume claim delete",
    "volume claim list",
    "windows service install",
    "windows service uninstall",
];

/// The command or group of Nomad that the words name, if this release does not have it.
pub(crate) fn named(words: &[&str], is_own: impl Fn(&str) -> bool) -> Option<String> {
    (1..=words.len()).rev().find_map(|length| {
        let name = words[..length].join(" ");
        let group = format!("{name} ");
        let is_absent = ABSENT.iter().any(|absent| *absent == name || absent.starts_with(&group));
        (is_absent && !is_own(&name)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_commands_are_told_from_what_nobody_has() {
        let is_own = |name: &str| matches!(name, "operator" | "operator raft");
        let named = |words: &str| named(&words.split(' ').collect::<Vec<_>>(), is_own);
        assert_eq!(named("quota list").as_deref(), Some("quota list"));
        assert_eq!(named("quota x").as_deref(), Some("quota"));
        assert_eq!(named("volume claim list").as_deref(), Some("volume claim list"));
        assert_eq!(named("operator raft logs").as_deref(), Some("operator raft logs"));
        assert_eq!(named("operator raft"), None);
        assert_eq!(named("nothing at all"), None);
    }

    #[test]
    fn what_is_absent_is_not_there() {
        let commands = crate::command::all();
        let names = commands.iter().flat_map(|command| command.aliases.iter().chain([&command.name]));
        let twice: Vec<&&str> = names.filter(|name| ABSENT.contains(name)).collect();
        assert!(twice.is_empty(), "{twice:?}: take them off the list");
    }
}
