//! Manual pages, from the table of commands: what `-help` prints, in the form that `man` reads.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::call::{Call, Command, Outcome, Run};
use crate::flags::{FlagSpec, Takes};
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "man",
    aliases: &[],
    arguments: "<directory>",
    summary: "Write manual pages into a directory.",
    details: "One for the program and one for each command, like sojourn-job-run.1. Files of these names are replaced.",
    flags: &[],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    let folder = Path::new(call.one_argument()?);
    let commands = super::all();
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut pages = vec![(call.program.clone(), overview(&call.program, &commands))];
    pages.extend(commands.iter().map(|command| (file(&call.program, command), page(&call.program, command))));
    for (name, text) in &pages {
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    write_out(format!("{} manual pages written to {}\n", pages.len(), folder.display()));
    Ok(0)
}

/// The name of a command's page, without the section.
fn file(program: &str, command: &Command) -> String {
    format!("{program}-{}", command.name.replace(' ', "-"))
}

fn overview(program: &str, commands: &[&Command]) -> String {
    let mut text = heading(program, "a workload orchestrator on an event log");
    text.push_str(&format!(
        ".SH SYNOPSIS\n.B {0}\n[\\-version] [\\-help] [\\-autocomplete\\-install] \\fIcommand\\fR [\\fIflags\\fR] [\\fIarguments\\fR]\n\
         .SH DESCRIPTION\n{1}\n.SH COMMANDS\n",
        roff(program),
        roff("Flags come before arguments. Each command has a page of its own, and shows it with -help."),
    ));
    for command in commands {
        let page = file(program, command);
        text.push_str(&format!(".TP\n.BR {} (1)\n{}\n", roff(&page), line(command.summary)));
    }
    text.push_str(".SH ENVIRONMENT\n");
    for (name, what) in VARIABLES {
        text.push_str(&format!(".TP\n.B {}\n{}\n", roff(name), line(what)));
    }
    text
}

/// What most commands read; the pages name the rest beside their flags.
const VARIABLES: [(&str, &str); 4] = [
    ("NOMAD_ADDR", "The agent's address. Default: http://127.0.0.1:4646."),
    ("NOMAD_NAMESPACE", "The namespace to query."),
    ("NOMAD_REGION", "The region to query."),
    ("NOMAD_TOKEN", "The ACL token."),
];

fn page(program: &str, command: &Command) -> String {
    let mut text = heading(&file(program, command), command.summary.trim_end_matches('.'));
    text.push_str(&format!(".SH SYNOPSIS\n.B {} {}\n", roff(program), roff(command.name)));
    if !command.flags.is_empty() {
        text.push_str("[\\fIflags\\fR]\n");
    }
    if !command.arguments.is_empty() {
        text.push_str(&line(command.arguments));
        text.push('\n');
    }
    text.push_str(&format!(".SH DESCRIPTION\n{}\n", line(command.summary)));
    if !command.details.is_empty() {
        text.push_str(".PP\n");
        text.push_str(&command.details.lines().map(|given| line(given) + "\n").collect::<String>());
    }
    if !command.aliases.is_empty() {
        text.push_str(&format!(".PP\nAlso: {}\n", roff(&command.aliases.join(", "))));
    }
    let mut flags = command.flag_specs().filter(|flag| !flag.help.is_empty()).peekable();
    if flags.peek().is_some() {
        text.push_str(".SH OPTIONS\n");
    }
    text.extend(flags.map(option));
    text.push_str(&format!(".SH SEE ALSO\n.BR {} (1)\n", roff(program)));
    text
}

fn option(flag: &FlagSpec) -> String {
    let value = match flag.takes {
        Takes::Switch => String::new(),
        Takes::Value(what) => format!(" \\fI{}\\fR", roff(what)),
    };
    format!(".TP\n\\fB\\-{}\\fR{value}\n{}\n", roff(flag.name), line(flag.help))
}

/// The first lines of a page. They name no day: the same program writes the same pages.
fn heading(name: &str, what: &str) -> String {
    format!(
        ".TH \"{}\" 1 \"\" \"sojourn {}\" \"Sojourn\"\n.SH NAME\n{} \\- {}\n",
        roff(&name.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        roff(name),
        roff(what)
    )
}

/// Text that stands anywhere in a line.
fn roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Text that begins a line, where a dot or an apostrophe would be a request. Blanks there are kept.
fn line(text: &str) -> String {
    let text = text.trim_end();
    let inner = text.trim_start();
    let indent = text.len() - inner.len();
    match indent {
        0 => format!("\\&{}", roff(inner)),
        // An example: a line of its own.
        _ => format!(".br\n\\&{}{}\n.br", "\\ ".repeat(indent), roff(inner)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_names_its_flags() {
        for command in crate::command::all() {
            let text = page("sojourn", command);
            assert!(text.starts_with(".TH \"SOJOURN"), "{text}");
            for flag in command.flag_specs().filter(|flag| !flag.help.is_empty()) {
                let option = format!("\n.TP\n\\fB\\-{}\\fR", roff(flag.name));
                assert!(text.contains(&option), "{}: {option}", command.name);
            }
        }
    }

    #[test]
    fn text_cannot_be_mistaken_for_a_request() {
        assert_eq!(line(".x -y \\z"), "\\&.x \\-y \\ez");
        assert_eq!(line("  sojourn x"), ".br\n\\&\\ \\ sojourn x\n.br");
        let known = [".TH", ".SH", ".B", ".BR", ".TP", ".PP", ".br"];
        for command in crate::command::all() {
            for given in page("sojourn", command).lines().filter(|given| given.starts_with(['.', '\''])) {
                let word = given.split(' ').next().unwrap();
                assert!(known.contains(&word), "{}: {given}", command.name);
            }
        }
    }
}
