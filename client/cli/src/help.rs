//! Help pages: one a command, one for each group of commands, one for all.

use crate::call::Command;
use crate::complete::HIDDEN;
use crate::flags::{FlagSpec, Takes};

/// Commands that are listed first.
const COMMON: [&str; 7] = ["run", "stop", "status", "alloc", "job", "node", "agent"];

/// Summaries of command groups.
const GROUPS: [(&str, &str); 18] = [
    ("acl", "Manage policies, roles, tokens, and how one logs in."),
    ("alloc", "Show allocations, their files and logs, and act on their tasks."),
    ("bench", "Put load on a cluster, and measure what comes of it."),
    ("config", "Check configurations of agents."),
    ("deployment", "Show, promote, pause and fail deployments."),
    ("eval", "Show and delete evaluations."),
    ("history", "Show past changes."),
    ("job", "Run, show and change jobs."),
    ("namespace", "Create, show and delete namespaces."),
    ("node", "Show nodes and node pools, drain and change nodes."),
    ("operator", "Manage the servers, their log and their configuration."),
    ("scaling", "Show scaling policies."),
    ("server", "Show servers, join them and force them to leave."),
    ("service", "Show and delete services registered in the cluster itself."),
    ("system", "Collect garbage."),
    ("tls", "Make and show certificates."),
    ("var", "Set, show and lock variables, and show what they held."),
    ("why", "Explain placement decisions."),
];

/// Aliases that are listed too; other aliases are not listed.
const SHOWN_ALIASES: [&str; 2] = ["exec", "start"];

fn is_known(name: &str, commands: &[&Command]) -> bool {
    commands.iter().any(|command| command.aliases.contains(&name))
}

/// The page of all commands.
pub(crate) fn overview(program: &str, commands: &[&Command]) -> String {
    let common = COMMON.map(|name| (name.to_string(), summary_of(name, commands)));
    let mut others: Vec<(String, String)> = Vec::new();
    for command in commands.iter() {
        let first = command.name.split(' ').next().unwrap_or_default();
        if !COMMON.contains(&first)
            && !HIDDEN.contains(&first)
            && others.iter().all(|(name, _)| name != first)
        {
            others.push((first.to_string(), summary_of(first, commands)));
        }
    }
    others.extend(
        SHOWN_ALIASES
            .iter()
            .filter(|name| is_known(name, commands))
            .map(|name| (name.to_string(), summary_of(name, commands))),
    );
    others.sort();
    format!(
        "Usage: {program} [-version] [-help] [-autocomplete-(un)install] <command> [args]\n\n\
         Common commands:\n{}\nOther commands:\n{}",
        columns(&common),
        columns(&others)
    )
}

/// The page of the commands that begin with `group`.
pub(crate) fn group(program: &str, group: &str, commands: &[&Command]) -> String {
    let inside: Vec<_> = commands
        .iter()
        .filter_map(|command| Some((command.name.strip_prefix(group)?.strip_prefix(' ')?, command.summary)))
        .map(|(name, summary)| (name.to_string(), summary.to_string()))
        .collect();
    format!("Usage: {program} {group} <subcommand> [flags] [args]\n\nSubcommands:\n{}", columns(&inside))
}

/// The page of one command.
pub(crate) fn page(program: &str, command: &Command) -> String {
    let mut text = format!("{}\n\n  {}\n", usage(program, command), command.summary);
    if !command.details.is_empty() {
        text.push('\n');
        text.push_str(&command.details.lines().map(|line| format!("  {line}\n")).collect::<String>());
    }
    if !command.aliases.is_empty() {
        text.push_str(&format!("\n  Also: {}\n", command.aliases.join(", ")));
    }
    // Flags without help are accepted only to be rejected with a reason.
    let flags = command.flag_specs().filter(|flag| !flag.help.is_empty());
    let flags: Vec<_> = flags.map(flag_line).collect();
    if !flags.is_empty() {
        text.push_str(&format!("\nFlags:\n{}", columns(&flags)));
    }
    text
}

/// The first line of a command's page.
pub(crate) fn usage(program: &str, command: &Command) -> String {
    let mut text = format!("Usage: {program} {}", command.name);
    if !command.flags.is_empty() {
        text.push_str(" [flags]");
    }
    if !command.arguments.is_empty() {
        text.push(' ');
        text.push_str(command.arguments);
    }
    text
}

fn flag_line(flag: &FlagSpec) -> (String, String) {
    let name = match flag.takes {
        Takes::Switch => format!("-{}", flag.name),
        Takes::Value(what) => format!("-{} {what}", flag.name),
    };
    (name, flag.help.to_string())
}

/// The line of a command by any of its names, or of a group of commands.
fn summary_of(name: &str, commands: &[&Command]) -> String {
    let named = |command: &&&Command| command.name == name || command.aliases.contains(&name);
    if let Some(command) = commands.iter().find(named) {
        return command.summary.to_string();
    }
    if let Some((_, summary)) = GROUPS.iter().find(|(group, _)| *group == name) {
        return summary.to_string();
    }
    let group = format!("{name} ");
    let inside: Vec<_> =
        commands.iter().filter_map(|command| command.name.strip_prefix(group.as_str())).collect();
    format!("Subcommands: {}", inside.join(", "))
}

fn columns(lines: &[(String, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines
        .iter()
        .map(|(name, text)| format!("  {name:width$}  {text}").trim_end().to_string() + "\n")
        .collect()
}
