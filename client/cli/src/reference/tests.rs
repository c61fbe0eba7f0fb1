//! The pages name what the readers of files accept, all of it and nothing else, and their examples are files that these read.

use std::collections::BTreeSet;

use jobspec::config::Asked;
use jobspec::{NoFiles, Source, Variables};

use super::*;
use crate::settings::accepted;

fn is_of_agents(path: &str) -> bool {
    path == "agent" || path.starts_with("agent.")
}

/// Every place of every block and key of the pages.
fn places(reference: &Reference) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    let mut open: Vec<Entry<'_>> = reference.top();
    while let Some(outer) = open.pop() {
        places.extend(outer.block.keys.iter().map(|key| format!("{}.{}", outer.path, key.name)));
        open.extend(reference.inside(&outer));
        places.insert(outer.path);
    }
    places
}

#[test]
fn every_block_and_key_of_job_files_is_explained_with_its_type() {
    let reference = Reference::read();
    let all = jobspec::accepted();
    assert!(all.len() > 1000, "{}", all.len());
    for name in &all {
        let entry = reference.at(&name.path).unwrap_or_else(|| panic!("{} is not explained", name.path));
        assert_eq!(entry.path, name.path);
        let kind = entry.key.map_or("block", |key| key.kind.as_str());
        assert_eq!(kind, name.kind, "{}", name.path);
        let is_required = entry.key.is_some_and(|key| key.default.starts_with("required"));
        assert!(is_required || !name.required, "{} is required", name.path);
    }
    let known: BTreeSet<String> = all.into_iter().map(|name| name.path).collect();
    let explained = places(&reference);
    let unknown: Vec<&String> =
        explained.iter().filter(|path| !is_of_agents(path) && !known.contains(*path)).collect();
    assert!(unknown.is_empty(), "no file may hold {unknown:?}");
}

#[test]
fn every_block_and_key_of_agent_configuration_is_explained() {
    let reference = Reference::read();
    let asked = accepted::names();
    assert!(asked.len() > 200, "{}", asked.len());
    for (path, how) in &asked {
        let found = reference.at(path);
        match how {
            Asked::Block => assert!(found.is_some_and(|entry| entry.key.is_none()), "{path} is no block"),
            Asked::Value => assert!(found.is_some_and(|entry| entry.key.is_some()), "{path} is no key"),
            // Read for what it refuses.
            Asked::Nothing => {}
        }
    }
    let known: BTreeSet<&String> = asked.iter().map(|(path, _)| path).collect();
    for path in places(&reference).iter().filter(|path| is_of_agents(path) && *path != "agent") {
        assert!(known.contains(path), "no configuration may hold {path}");
    }
}

#[test]
fn every_example_is_a_file_that_is_read() {
    let reference = Reference::read();
    for block in reference.blocks() {
        assert!(!block.example.is_empty() && !block.text.is_empty(), "{}", block.path);
        if is_of_agents(&block.path) {
            let text = within(&block.path, &block.example);
            assert_eq!(accepted::problems(&text), [""; 0], "{}\n{text}", block.path);
            continue;
        }
        let mut text = within(&block.path, &block.example);
        if !text.starts_with("job ") {
            text.push_str("job \"x\" {\n group \"g\" {\n task \"t\" {\n driver = \"exec\"\n}\n}\n}\n");
        }
        let variables = Variables { flags: vec![], files: vec![], env: vec![], text: None, strict: true };
        let read = jobspec::parse(&Source::new("example.hcl", &text), &variables, &NoFiles);
        assert!(read.is_ok(), "{}: {}\n{text}", block.path, read.err().unwrap());
    }
}

/// The example in the blocks that its block stands in.
fn within(path: &str, example: &str) -> String {
    let mut outer: Vec<&str> = path.split('.').collect();
    outer.pop();
    let mut text = example.to_string();
    for name in outer.into_iter().rev().filter(|name| *name != "agent") {
        text = match name {
            "job" | "group" | "volume" | "sink" => format!("{name} \"x\" {{\n{text}}}\n"),
            "task" => format!("task \"x\" {{\n driver = \"exec\"\n{text}}}\n"),
            "plugin" => format!("plugin \"raw_exec\" {{\n{text}}}\n"),
            "variable" => format!("variable \"image\" {{\n default = \"x\"\n{text}}}\n"),
            _ => format!("{name} {{\n{text}}}\n"),
        };
    }
    text
}

#[test]
fn names_are_found_by_their_ends_and_misspelt_ones_have_neighbours() {
    let reference = Reference::read();
    let paths = |name: &str| match reference.find(name) {
        Found::Entries(found) => found.into_iter().map(|entry| entry.path).collect::<Vec<_>>(),
        Found::Nothing { near } => panic!("{name}: only {near:?}"),
    };
    assert_eq!(paths("job.group.network.mode"), ["job.group.network.mode"]);
    assert_eq!(paths("network.mode"), ["job.group.network.mode"]);
    assert_eq!(paths("job.task.restart.mode"), ["job.task.restart.mode"], "as it was asked for");
    assert_eq!(paths("node_class"), ["agent.client.node_class"]);
    assert!(paths("constraint").contains(&"job.constraint".to_string()));
    let near = |name: &str| match reference.find(name) {
        Found::Entries(found) => panic!("{name} is {}", found.len()),
        Found::Nothing { near } => near,
    };
    assert_eq!(near("job.group.netwrok"), ["job.group.network"]);
    assert_eq!(near("job.group.network.mdoe")[0], "job.group.network.mode");
    assert_eq!(near("agent.client.node_clas"), ["agent.client.node_class"]);
    assert!(near("job.group.network.mode.x").len() <= NEAR_MAX);
}

#[test]
fn links_are_printed_as_files() {
    assert_eq!(unlinked("See [a.md](../a.md), and [b.md](../b.md)."), "See docs/a.md, and docs/b.md.");
    let reference = Reference::read();
    let linked = |text: &str| text.contains("](");
    for block in reference.blocks() {
        let keys = block.keys.iter().map(|key| &key.text);
        let texts = keys.chain([&block.text]).chain(&block.differs);
        assert!(!texts.into_iter().any(|text| linked(text)), "{}", block.path);
    }
}
