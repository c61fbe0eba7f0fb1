//! The `sojourn` program: every command, and the agent.
//!
//! Each command is declared and run in one file under `command`; `layout` turns API objects into text and sends no
//! requests; `output` formats tables, times and sizes; `settings` reads the agent's configuration. The rules
//! of the cluster are on the servers, which the program calls through `sdk`. Called through a link named `nomad` it
//! prints that name. Read [`call`] first, then any command.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(unreachable_pub)]

mod absent;
mod acknowledging;
mod agent;
mod attend;
mod call;
mod changes;
mod command;
mod complete;
mod confirm;
mod drain_monitor;
mod environment;
mod eval_monitor;
mod flags;
mod hcl_format;
mod help;
mod hint;
mod job_file;
mod layout;
mod object_format;
mod other_cluster;
mod output;
mod past;
mod periodic_launch;
mod raw;
mod reference;
mod regions;
mod resolve;
mod settings;
mod tables;
mod tail;
mod task_log;
mod top;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use call::{Call, Command, Failure, Outcome, Run};
use environment::Environment;
use flags::FlagError;
use output::{write_err, write_out};

/// The exit code of an unknown command, and of a call without arguments.
const NO_COMMAND: u8 = 127;

/// Most words in the name of a command.
const NAME_WORDS_MAX: usize = 4;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().as_deref().map(program_name).unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    // The node agent starts this program as the executor of each task, and to fetch artifacts: that has to be checked
    // before anything else.
    match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some((executor::spec::SUBCOMMAND, rest)) => return executor::main(rest.iter().cloned()),
        Some((artifact::SUBCOMMAND, [])) => return artifact::main(),
        _ => {}
    }
    ExitCode::from(dispatch(&program, &arguments, Environment::read(std::env::vars_os())))
}

/// `nomad` for a link of that name, `sojourn` for any other.
fn program_name(path: &str) -> String {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.filter(|name| *name == "nomad").unwrap_or("sojourn").to_string()
}

fn dispatch(program: &str, arguments: &[String], environment: Environment) -> u8 {
    let commands = command::all();
    if let Some(line) = environment.completed_line.as_ref().filter(|line| !line.is_empty()) {
        let found = complete::candidates(program, &commands, line, &environment);
        write_out(found.iter().map(|word| format!("{word}\n")).collect::<String>());
        return 0;
    }
    if let Some((command, words)) = find(&commands, arguments) {
        return run(program, command, &arguments[words..], environment);
    }
    match arguments.first().map(String::as_str) {
        Some("-autocomplete-install" | "--autocomplete-install") => {
            set_up(complete::install::install(program, &environment), "installed in")
        }
        Some("-autocomplete-uninstall" | "--autocomplete-uninstall") => {
            set_up(complete::install::uninstall(program, &environment), "removed from")
        }
        Some("-version" | "--version" | "-v") => run(program, &command::version::COMMAND, &[], environment),
        Some("-h" | "-help" | "--help") => {
            write_out(help::overview(program, &commands));
            0
        }
        None => {
            write_out(help::overview(program, &commands));
            NO_COMMAND
        }
        Some(first) => no_command(program, first, arguments, &commands),
    }
}

fn set_up(done: anyhow::Result<Vec<PathBuf>>, how: &str) -> u8 {
    match done {
        Ok(files) => {
            let line = |file: &PathBuf| format!("Autocompletion {how} {}\n", file.display());
            write_out(files.iter().map(line).collect::<String>());
            0
        }
        Err(error) => {
            write_err(format!("{error:#}"));
            1
        }
    }
}

/// The command with the longest name that the arguments begin with, and how many words that name takes.
fn find(commands: &[&'static Command], arguments: &[String]) -> Option<(&'static Command, usize)> {
    (1..=NAME_WORDS_MAX.min(arguments.len())).rev().find_map(|words| {
        let name = arguments[..words].join(" ");
        let named =
            |command: &&&'static Command| command.name == name || command.aliases.contains(&name.as_str());
        commands.iter().find(named).map(|command| (*command, words))
    })
}

/// The help page of a group, or of all commands when the first word is unknown.
fn no_command(program: &str, first: &str, arguments: &[String], commands: &[&'static Command]) -> u8 {
    let words = arguments.iter().take_while(|word| !word.starts_with('-')).map(String::as_str);
    let words: Vec<_> = words.take(NAME_WORDS_MAX).collect();
    let is_own = |name: &str| {
        let group = format!("{name} ");
        commands.iter().any(|command| {
            command.name == name || command.name.starts_with(&group) || command.aliases.contains(&name)
        })
    };
    if let Some((name, reason)) = absent::named(&words, is_own) {
        write_err(format!("{program} {name}: {reason}"));
        return 1;
    }
    for length in (1..=words.len()).rev() {
        let group = words[..length].join(" ");
        if commands.iter().any(|command| command.name.starts_with(&format!("{group} "))) {
            if length < words.len() {
                let word = words[length];
                let known = commands.iter().filter_map(|command| command.name.strip_prefix(&group));
                let hint = did_you_mean(word, known.filter_map(first_word));
                write_err(format!("{program} {group} has no subcommand \"{word}\"{hint}"));
            }
            write_out(help::group(program, &group, commands));
            let asked = arguments.get(length).is_some_and(|word| is_help(word));
            return u8::from(!asked);
        }
    }
    let names = commands.iter().flat_map(|command| command.aliases.iter().chain([&command.name]));
    let hint = did_you_mean(first, names.filter_map(|name| first_word(name)));
    write_err(format!("{program} has no command \"{first}\"{hint}"));
    write_out(help::overview(program, commands));
    NO_COMMAND
}

fn first_word(name: &str) -> Option<&str> {
    name.split_whitespace().next()
}

fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    jobspec::nearest(written, known).map(|name| format!(": did you mean \"{name}\"?")).unwrap_or_default()
}

fn is_help(word: &str) -> bool {
    matches!(word, "-h" | "-help" | "--help")
}

fn run(program: &str, command: &'static Command, arguments: &[String], environment: Environment) -> u8 {
    let outcome = match flags::parse(command.flag_specs(), arguments) {
        Ok(args) => start(Call { program: program.to_string(), command, args, environment, frozen: None }),
        Err(error) => Err(Failure::Flag(error)),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => report(program, command, failure),
    }
}

fn start(call: Call) -> Outcome {
    match call.command.run {
        Run::Process(run) => run(call),
        Run::Task(run) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| anyhow::anyhow!("the runtime cannot start: {error}"))?;
            runtime.block_on(run(call))
        }
    }
}

fn report(program: &str, command: &Command, failure: Failure) -> u8 {
    let hint = format!("For additional help try '{program} {} -help'", command.name);
    match failure {
        Failure::Flag(FlagError::Help) => {
            write_out(help::page(program, command));
            return 0;
        }
        Failure::Flag(error) => {
            write_err(format!("{error}\n{}\n{hint}", help::usage(program, command)));
            return mistake(command);
        }
        Failure::Usage(message) => {
            write_err(format!("{message}\n{hint}"));
            return mistake(command);
        }
        Failure::Failed(error) => write_err(format!("{error:#}")),
        Failure::Code(code, message) => {
            write_err(message);
            return code;
        }
    }
    1
}

/// The exit code of wrong arguments. Some commands use 1 for a result.
fn mistake(command: &Command) -> u8 {
    match command.name {
        "job plan" | "job validate" => 255,
        "check" => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<(&'static str, usize)> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        find(&command::all(), &words).map(|(command, words)| (command.name, words))
    }

    #[test]
    fn the_longest_name_wins_and_aliases_mean_the_same() {
        assert_eq!(found("job status web"), Some(("job status", 2)));
        assert_eq!(found("status web"), Some(("status", 1)));
        assert_eq!(found("run x.hcl"), Some(("job run", 1)));
        assert_eq!(found("history alloc 1234"), Some(("history alloc", 2)));
        assert_eq!(found("node-status"), Some(("node status", 1)));
        assert_eq!(found("job"), None);
        assert_eq!(found("-version"), None);
    }

    #[test]
    fn no_two_commands_have_the_same_name() {
        let mut names: Vec<_> = command::all()
            .iter()
            .flat_map(|command| command.aliases.iter().chain([&command.name]))
            .copied()
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_command_has_a_page_that_names_each_flag_once() {
        for command in command::all() {
            let page = help::page("sojourn", command);
            assert!(page.starts_with(&format!("Usage: sojourn {}", command.name)), "{page}");
            let mut flags: Vec<_> = command.flag_specs().map(|flag| flag.name).collect();
            let count = flags.len();
            flags.sort_unstable();
            flags.dedup();
            assert_eq!(flags.len(), count, "{}", command.name);
        }
    }

    #[test]
    fn the_overview_lists_what_a_newcomer_needs_first() {
        let page = help::overview("nomad", &command::all());
        assert!(
            page.starts_with(
                "Usage: nomad [-version] [-help] [-autocomplete-(un)install] <command> [args]\n\nCommon commands:\n  run "
            )
        );
        assert!(page.contains("\nOther commands:\n"), "{page}");
        assert!(page.contains("\n  events "), "{page}");
    }

    #[test]
    fn only_a_link_named_nomad_changes_the_name() {
        assert_eq!(program_name("/usr/bin/nomad"), "nomad");
        assert_eq!(program_name("./sojourn"), "sojourn");
        assert_eq!(program_name("renamed"), "sojourn");
    }
}
