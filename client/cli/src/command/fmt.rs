use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use jobspec::config::Section;
use jobspec::{Diagnostics, Source};

use crate::call::{Call, Command, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::hcl_format::format;
use crate::output::{write_err, write_out};

const CHECK: Flag<bool> = Flag::switch("check", "Write nothing; only report what would change.");
const WRITE: Flag<bool> = Flag::switch("write", "Write the files. Default: true.");
const LIST: Flag<bool> = Flag::switch("list", "List the files that change. Default: true.");
const RECURSIVE: Flag<bool> = Flag::switch("recursive", "Process subdirectories too.");

pub(super) static COMMAND: Command = Command {
    name: "fmt",
    aliases: &[],
    arguments: "[<path>...]",
    summary: "Format job files and configurations.",
    details: "The paths are files or directories. Default: the current directory. - formats standard input to\n\
              standard output. With -check nothing is written, and the exit code is 1 when something would change. A file with\n\
              a broken syntax is reported and left as it is, and the exit code is 1.",
    flags: &[&[&CHECK, &WRITE, &LIST, &RECURSIVE]],
    run: Run::Process(run),
};

/// Deepest directory that is read: links may form a cycle.
const DEPTH_MAX: usize = 64;

fn run(call: Call) -> Outcome {
    let check = call.args.switch(&CHECK);
    let writes = call.args.given_switch(&WRITE).unwrap_or(true) && !check;
    let lists = call.args.given_switch(&LIST).unwrap_or(true);
    if call.args.words.as_slice() == ["-"] {
        return from_standard_input(check);
    }
    let here = [".".to_string()];
    let paths = if call.args.words.is_empty() { &here[..] } else { &call.args.words[..] };
    let mut files = Vec::new();
    for path in paths {
        find(Path::new(path), call.args.switch(&RECURSIVE), 0, &mut files)?;
    }
    let (mut changed, mut broken) = (0, false);
    for file in files {
        let shown = file.display();
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {shown}"))?;
        if let Err(wrong) = check_syntax(&shown.to_string(), &text) {
            write_err(wrong);
            broken = true;
            continue;
        }
        let formatted = format(&text);
        if formatted == text {
            continue;
        }
        changed += 1;
        if lists {
            write_out(format!("{shown}\n"));
        }
        if writes {
            std::fs::write(&file, formatted).with_context(|| format!("cannot write {shown}"))?;
        }
    }
    Ok(u8::from(broken || (check && changed > 0)))
}

/// What is broken is left as it is: moving its parts around would hide where it broke. A job file, or the configuration of
/// an agent, whose syntax is an older one.
fn check_syntax(name: &str, text: &str) -> Result<(), Diagnostics> {
    let source = Source::new(name, text);
    jobspec::outline(&source).map(drop).or_else(|wrong| match Section::parse(&source) {
        Ok(_) => Ok(()),
        Err(_) => Err(wrong),
    })
}

fn from_standard_input(check: bool) -> Outcome {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
    check_syntax("<stdin>", &text).map_err(|wrong| anyhow::anyhow!("{wrong}"))?;
    let formatted = format(&text);
    if !check {
        write_out(&formatted);
    }
    Ok(u8::from(check && formatted != text))
}

/// The given file, or the HCL files of a directory.
fn find(path: &Path, recursive: bool, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        if !path.exists() {
            return Err(anyhow::anyhow!("No file or directory at {}", path.display()).into());
        }
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries = path.read_dir().with_context(|| format!("cannot read {}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for entry in entries {
        let is_hcl = entry.extension().is_some_and(|kind| kind == "hcl" || kind == "nomad");
        let is_dir = entry.is_dir();
        if (is_hcl && !is_dir) || (is_dir && recursive && depth < DEPTH_MAX) {
            find(&entry, recursive, depth + 1, files)?;
        }
    }
    Ok(())
}
