//! Commands of Nomad that this program does not have: they answer so, with what to do instead, and not as if they had been
//! misspelt.

const WINDOWS: &str = "for Windows only: here a service manager starts the agent, as docs/install.md shows";

/// Their names, and why they are not here; the groups follow from the names.
const ABSENT: &[(&str, &str)] = &[
    ("operator raft migrate-backend", "nothing to do: there is one kind of log, and it needs no migration"),
    ("volume claim delete", "there are no sticky claims of host volumes here"),
    ("volume claim list", "there are no sticky claims of host volumes here"),
    ("windows service install", WINDOWS),
    ("windows service uninstall", WINDOWS),
];

/// The command or group of Nomad that the words name, if this program does not have it, and why.
pub(crate) fn named(words: &[&str], is_own: impl Fn(&str) -> bool) -> Option<(String, &'static str)> {
    (1..=words.len()).rev().find_map(|length| {
        let name = words[..length].join(" ");
        let group = format!("{name} ");
        let absent = ABSENT.iter().find(|(absent, _)| *absent == name || absent.starts_with(&group));
        absent.filter(|_| !is_own(&name)).map(|(_, reason)| (name, *reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_commands_are_told_from_what_nobody_has() {
        let is_own = |name: &str| matches!(name, "operator" | "operator raft");
        let named = |words: &str| {
            let found = named(&words.split(' ').collect::<Vec<_>>(), is_own);
            found.map(|(name, _)| name)
        };
        assert_eq!(named("windows service install").as_deref(), Some("windows service install"));
        assert_eq!(named("windows x").as_deref(), Some("windows"));
        assert_eq!(named("volume claim list").as_deref(), Some("volume claim list"));
        assert_eq!(named("operator raft migrate-backend").as_deref(), Some("operator raft migrate-backend"));
        assert_eq!(named("operator raft"), None);
        assert_eq!(named("nothing at all"), None);
    }

    #[test]
    fn what_is_absent_is_not_there() {
        let commands = crate::command::all();
        let names = commands.iter().flat_map(|command| command.aliases.iter().chain([&command.name]));
        let is_absent = |name: &&&str| ABSENT.iter().any(|(absent, _)| absent == *name);
        let twice: Vec<&&str> = names.filter(is_absent).collect();
        assert!(twice.is_empty(), "{twice:?}: take them off the list");
    }
}
