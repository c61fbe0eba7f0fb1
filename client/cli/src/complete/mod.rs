//! Completion of command lines in shells.
//!
//! A shell calls the program with the line in `COMP_LINE` and reads one candidate per line: the protocol of
//! Go's complete library, so existing shell setups for Nomad keep working.

pub(crate) mod install;

use std::collections::BTreeSet;
use std::time::Duration;

use api::SearchRequest;

use crate::call::{Call, Command};
use crate::environment::Environment;
use crate::flags::{self, Completion, FlagSpec, Takes};
use crate::reference::Reference;

/// How long a search for candidates may take.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);

/// Flags of the program itself.
const OWN_FLAGS: [&str; 4] = ["-autocomplete-install", "-autocomplete-uninstall", "-help", "-version"];

/// Older spellings that are still understood but no longer shown.
pub(crate) const HIDDEN: [&str; 9] = [
    "alloc-status",
    "client-config",
    "eval-status",
    "node-drain",
    "node-status",
    "server-force-leave",
    "server-join",
    "server-members",
    "check",
];

/// The candidates for the word under the cursor.
pub(crate) fn candidates(
    program: &str,
    commands: &[&'static Command],
    line: &str,
    environment: &Environment,
) -> Vec<String> {
    let line = environment.completed_point.and_then(|point| line.get(..point)).unwrap_or(line);
    let mut words: Vec<String> = line.split_whitespace().skip(1).map(str::to_string).collect();
    let last =
        if line.ends_with(char::is_whitespace) { String::new() } else { words.pop().unwrap_or_default() };
    let mut found: BTreeSet<String> = next_words(commands, &words).collect();
    if words.is_empty() {
        found.extend(OWN_FLAGS.map(str::to_string));
    }
    if let Some((command, rest)) = find_command(commands, &words) {
        found.extend(candidates_of(program, command, rest, &last, environment));
    }
    // Flags are offered only after a dash.
    let wanted = |word: &String| word.starts_with(&last) && (last.starts_with('-') || !word.starts_with('-'));
    found.into_iter().filter(wanted).collect()
}

/// The next word of each command that begins with these words.
fn next_words(commands: &[&'static Command], words: &[String]) -> impl Iterator<Item = String> {
    let names = commands.iter().flat_map(|command| command.aliases.iter().chain([&command.name]));
    let shown = names.filter(|name| !HIDDEN.contains(name));
    let next = |name: &&str| {
        let mut own = name.split(' ');
        words.iter().all(|word| own.next() == Some(word)).then(|| own.next().map(str::to_string)).flatten()
    };
    shown.filter_map(next).collect::<Vec<_>>().into_iter()
}

/// The command with the longest name that the words begin with, and the words after that.
fn find_command<'a>(
    commands: &[&'static Command],
    words: &'a [String],
) -> Option<(&'static Command, &'a [String])> {
    let (command, length) = crate::find(commands, words)?;
    Some((command, &words[length..]))
}

fn candidates_of(
    program: &str,
    command: &'static Command,
    words: &[String],
    last: &str,
    environment: &Environment,
) -> Vec<String> {
    if last.starts_with('-') {
        return command.flag_specs().map(|flag| format!("-{}", flag.name)).collect();
    }
    let open = words.last().and_then(|word| word.strip_prefix('-')).map(|word| word.trim_start_matches('-'));
    let takes = |flag: &&FlagSpec| Some(flag.name) == open && flag.takes != Takes::Switch;
    let completion = match command.flag_specs().find(takes) {
        Some(flag) => flag.completion,
        None => argument_completion(command.arguments),
    };
    let given = flags::parse(command.flag_specs(), words).unwrap_or_default();
    match completion {
        Completion::Nothing => Vec::new(),
        Completion::Files => files(last),
        Completion::Reference => names_of_reference(last),
        Completion::Ids(context) => {
            let environment = environment.clone();
            search_ids(
                &Call { program: program.to_string(), command, args: given, environment, frozen: None },
                context,
                last,
            )
        }
    }
}

fn argument_completion(arguments: &str) -> Completion {
    const ARGUMENTS: [(&str, Completion); 15] = [
        ("<block or key>", Completion::Reference),
        ("<allocation>", Completion::Ids("allocs")),
        ("<deployment id>", Completion::Ids("deployment")),
        ("<evaluation>", Completion::Ids("evals")),
        ("<identifier>", Completion::Ids("all")),
        ("<job", Completion::Ids("jobs")),
        ("<parameterized job>", Completion::Ids("jobs")),
        ("<name> or <file>", Completion::Ids("namespaces")),
        ("<namespace>", Completion::Ids("namespaces")),
        ("<node-pool>", Completion::Ids("node_pools")),
        ("<node>", Completion::Ids("nodes")),
        ("<policy_id>", Completion::Ids("scaling_policy")),
        ("<path>", Completion::Files),
        ("<input>", Completion::Files),
        ("<file", Completion::Files),
    ];
    let starts = |(text, _): &&(&str, Completion)| arguments.trim_start_matches('[').starts_with(text);
    ARGUMENTS.iter().find(starts).map_or(Completion::Nothing, |(_, completion)| *completion)
}

/// What `explain` knows, name by name as paths of files are completed: whole paths, or the ends of them.
fn names_of_reference(last: &str) -> Vec<String> {
    let reference = Reference::read();
    if last.is_empty() {
        return reference.top().iter().map(|entry| entry.path.clone()).collect();
    }
    let mut found = BTreeSet::new();
    for path in reference.paths() {
        let inner = path.match_indices('.').map(|(at, _)| at + 1);
        let ends = [0].into_iter().chain(inner).map(|at| &path[at..]);
        for end in ends.filter(|end| end.starts_with(last)) {
            let next = end[last.len()..].find('.').map_or(end.len(), |at| last.len() + at);
            found.insert(end[..next].to_string());
        }
    }
    found.into_iter().collect()
}

/// Ids that begin with the word, from a server's search. Errors are not shown while the user types.
fn search_ids(call: &Call, context: &str, last: &str) -> Vec<String> {
    let Ok(client) = call.client() else { return Vec::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let request = SearchRequest { prefix: last.to_string(), context: context.to_string() };
    let found =
        runtime.block_on(async { tokio::time::timeout(SEARCH_TIMEOUT, client.search(&request)).await });
    let Ok(Ok(found)) = found else { return Vec::new() };
    found.matches.0.into_values().flat_map(|ids| ids.0).collect()
}

fn files(last: &str) -> Vec<String> {
    let (folder, given) =
        last.rsplit_once('/').map_or((".", ""), |(folder, _)| (folder, &last[..=folder.len()]));
    let folder = if folder.is_empty() { "/" } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let entry = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let end = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("{given}{name}{end}"))
    };
    entries.filter_map(|found| entry(found.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Vec<String> {
        candidates("nomad", &crate::command::all(), line, &Environment::default())
    }

    #[test]
    fn words_of_commands_follow_each_other() {
        assert_eq!(typed("nomad jo"), ["job"]);
        assert_eq!(typed("nomad job re"), ["restart", "revert"]);
        assert_eq!(typed("nomad job tag "), ["apply", "unset"]);
        assert_eq!(typed("nomad alloc-"), [""; 0]);
        assert!(typed("nomad ").contains(&"plan".to_string()));
        assert!(!typed("nomad ").iter().any(|word| word.starts_with('-')));
        assert_eq!(typed("nomad -v"), ["-version"]);
    }

    #[test]
    fn flags_are_offered_after_a_dash() {
        assert_eq!(typed("nomad job run -det"), ["-detach"]);
        assert_eq!(typed("nomad run -preserve-c"), ["-preserve-counts"]);
        assert_eq!(typed("nomad job run -output -det"), ["-detach"]);
    }

    #[test]
    fn the_rest_of_the_line_does_not_count() {
        let environment = Environment { completed_point: Some(8), ..Environment::default() };
        let found = candidates("nomad", &crate::command::all(), "nomad jo status", &environment);
        assert_eq!(found, ["job"]);
    }

    #[test]
    fn job_files_are_found_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("web.nomad.hcl"), "").unwrap();
        let line = format!("nomad job plan {}/we", folder.path().display());
        assert_eq!(typed(&line), [format!("{}/web.nomad.hcl", folder.path().display())]);
        assert_eq!(typed(&format!("nomad plan -var-file {}/w", folder.path().display())).len(), 1);
    }

    #[test]
    fn blocks_and_keys_are_offered_name_by_name() {
        assert_eq!(typed("nomad explain "), ["agent", "job", "locals", "variable", "variables"]);
        assert_eq!(typed("nomad explain job.gro"), ["job.group"]);
        let below = typed("nomad explain job.group.net");
        assert_eq!(below, ["job.group.network"]);
        assert!(typed("nomad explain network.mo").contains(&"network.mode".to_string()));
        assert!(typed("nomad explain node_cl").contains(&"node_class".to_string()));
        assert_eq!(typed("nomad explain no_such_key"), [""; 0]);
        assert_eq!(typed("nomad explain -j"), ["-json"]);
    }

    #[test]
    fn every_argument_is_known_for_what_it_names() {
        assert_eq!(argument_completion("<job> [<group>] <count>"), Completion::Ids("jobs"));
        assert_eq!(argument_completion("[<job>]"), Completion::Ids("jobs"));
        assert_eq!(argument_completion("<allocation> [<task>]"), Completion::Ids("allocs"));
        assert_eq!(argument_completion("<path>"), Completion::Files);
        assert_eq!(argument_completion(""), Completion::Nothing);
    }
}
