use serde_json::json;

use crate::call::{Call, Command, Failure, JSON, Outcome, Run};
use crate::output::{self, write_out};
use crate::reference::{Entry, Found, Reference};

pub(super) static COMMAND: Command = Command {
    name: "explain",
    aliases: &[],
    arguments: "[<block or key>]",
    summary: "Print what a block or a key of job files and agent configuration means.",
    details: "Names have dots between them, like job.group.network.mode or agent.client; the end of one will do, like\n\
              network.mode. Without a name it lists where to begin. The same text stands in docs/reference.",
    flags: &[&[&JSON]],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    let reference = Reference::read();
    let json = call.args.switch(&JSON);
    let Some(name) = call.optional_argument()? else {
        let top = reference.top();
        write_out(if json { output::json(&as_json(&reference, &top)) } else { list(&top) });
        return Ok(0);
    };
    let entries = match reference.find(name) {
        Found::Entries(entries) => entries,
        Found::Nothing { near } => return Err(unknown(&call, name, &near)),
    };
    write_out(match (json, entries.as_slice()) {
        (true, entries) => output::json(&as_json(&reference, entries)),
        (false, [entry]) => page(&reference, entry),
        (false, entries) => format!("{name} is more than one thing:\n\n{}", list(entries)),
    });
    Ok(0)
}

fn unknown(call: &Call, name: &str, near: &[String]) -> Failure {
    let hint = match near {
        [] => format!("{} explain lists where to begin", call.program),
        near => format!("did you mean {}?", near.join(", ")),
    };
    Failure::Code(1, format!("No block or key is called \"{name}\": {hint}"))
}

/// One line for each.
fn list(entries: &[Entry]) -> String {
    let wide = entries.iter().map(|entry| entry.path.chars().count()).max().unwrap_or(0);
    entries.iter().map(|entry| format!("{:wide$}  {}\n", entry.path, entry.first_sentence())).collect()
}

fn page(reference: &Reference, entry: &Entry) -> String {
    let mut text = format!("{}\n\n{}\n", entry.path, entry.text);
    if let Some(key) = &entry.key {
        text.push_str(&format!("\nType:    {}\nDefault: {}\n", key.kind, key.default));
        if let Some(differs) = entry.block.differs.as_ref().filter(|differs| differs.contains(&key.name)) {
            text.push_str(&format!("\nDiffers from Nomad: {differs}\n"));
        }
        text.push_str(&format!("\nExample:\n\n{}", indented(&entry.block.example)));
        return text;
    }
    if let Some(differs) = &entry.block.differs {
        text.push_str(&format!("\nDiffers from Nomad: {differs}\n"));
    }
    text.push_str(&format!("\nExample:\n\n{}", indented(&entry.block.example)));
    if !entry.block.keys.is_empty() {
        let width = |of: fn(&crate::reference::Key) -> &str| {
            entry.block.keys.iter().map(|key| of(key).chars().count()).max().unwrap_or(0)
        };
        let (name, kind) = (width(|key| &key.name), width(|key| &key.kind));
        text.push_str("\nKeys:\n\n");
        for key in &entry.block.keys {
            let default = match key.default.as_str() {
                "none" => String::new(),
                "required" => " Required.".to_string(),
                default => format!(" Default: {default}."),
            };
            text.push_str(&format!("  {:name$}  {:kind$}  {}{default}\n", key.name, key.kind, key.text));
        }
    }
    let inner = reference.inside(entry);
    if !inner.is_empty() {
        text.push_str(&format!("\nBlocks:\n\n{}", indented(&list(&inner))));
    }
    text
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_string() } else { format!("  {line}\n") };
    text.lines().map(line).collect()
}

fn as_json(reference: &Reference, entries: &[Entry]) -> serde_json::Value {
    let one = |entry: &Entry| match &entry.key {
        Some(key) => json!({
            "Path": entry.path,
            "Kind": "key",
            "Type": key.kind,
            "Default": key.default,
            "Text": entry.text,
            "Example": entry.block.example,
            "DiffersFromNomad": entry.block.differs,
        }),
        None => json!({
            "Path": entry.path,
            "Kind": "block",
            "Text": entry.text,
            "Example": entry.block.example,
            "DiffersFromNomad": entry.block.differs,
            "Keys": entry.block.keys.iter().map(|key| &key.name).collect::<Vec<_>>(),
            "Blocks": reference.inside(entry).iter().map(|inner| inner.path.clone()).collect::<Vec<_>>(),
        }),
    };
    entries.iter().map(one).collect()
}
