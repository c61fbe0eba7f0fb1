//! Which blocks and keys the reader of configuration files asks for: what it accepts.

use std::collections::BTreeSet;

use jobspec::Source;
use jobspec::config::{Asked, Section};

use super::unsupported::Refused;
use super::{AgentSettings, decode, tls};

/// Blocks with a label, which is all that their reader needs to look into them.
const LABELLED: [&str; 6] = ["plugin", "host_volume", "host_network", "sink", "filter", "keyring"];

/// Every name, behind those of its blocks. A block that is asked for is given, until none is left that was not.
pub(crate) fn names() -> BTreeSet<(String, Asked)> {
    let mut blocks: BTreeSet<Vec<String>> = BTreeSet::new();
    loop {
        let found = asked(&text(&blocks, &[]));
        let inner: BTreeSet<Vec<String>> =
            found.iter().filter(|(_, how)| *how == Asked::Block).map(|(path, _)| path.clone()).collect();
        if inner.is_subset(&blocks) {
            let name = |(path, how): &(Vec<String>, Asked)| (format!("agent.{}", path.join(".")), *how);
            return found.iter().map(name).collect();
        }
        blocks.extend(inner);
    }
}

/// What is wrong with a file, without what only several settings together can do wrong.
pub(crate) fn problems(text: &str) -> Vec<String> {
    read(text).1
}

fn asked(text: &str) -> Vec<(Vec<String>, Asked)> {
    read(text).0
}

fn read(text: &str) -> (Vec<(Vec<String>, Asked)>, Vec<String>) {
    let source = Source::new("agent.hcl", text);
    let top = Section::parse(&source).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let record = top.record();
    let (mut settings, mut refused) = (AgentSettings::defaults(), Refused::default());
    decode::file(&mut settings, top, &mut tls::Places::new(), &mut refused);
    (record.names(), refused.finish().iter().map(ToString::to_string).collect())
}

/// Empty blocks in each other.
fn text(blocks: &BTreeSet<Vec<String>>, outer: &[String]) -> String {
    let inner = blocks.iter().filter(|path| path.len() == outer.len() + 1 && path.starts_with(outer));
    let block = |path: &Vec<String>| {
        let name = path.last().expect("a path has a name");
        let label = match name.as_str() {
            "keyring" => " \"aead\"",
            "fingerprint" => " \"env_aws\"",
            name if LABELLED.contains(&name) => " \"x\"",
            _ => "",
        };
        format!("{name}{label} {{\n{}}}\n", text(blocks, path))
    };
    inner.map(block).collect()
}
