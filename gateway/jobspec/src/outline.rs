//! Where the blocks and attributes of a job file stand, for what is said of each.

use crate::diagnostic::{Diagnostics, Source};
use crate::hcl::{Body, Dialect, parse_body};

/// A block or an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub line: usize,
    /// How many blocks it stands in.
    pub depth: usize,
    /// The blocks it stands in and itself, each as a file writes it: `group "web"`, `task "main"`, `template`.
    pub path: Vec<String>,
    pub is_block: bool,
}

impl Part {
    /// The group and the task it stands in, or is; empty for none.
    pub fn owner(&self) -> (&str, &str) {
        let label = |kind: &str| {
            let found = self.path.iter().find_map(|step| step.strip_prefix(kind)?.strip_prefix(" \""));
            found.and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
        };
        (label("group"), label("task"))
    }
}

/// Every part of a file in HCL version 2, in the order of the file; of blocks that `dynamic` makes, the one that makes
/// them.
///
/// # Errors
/// What is wrong with the syntax, with its position.
pub fn outline(source: &Source) -> Result<Vec<Part>, Diagnostics> {
    let body = parse_body(source, Dialect::Native).map_err(|fault| fault.at(source))?;
    let mut parts = Vec::new();
    walk(source, &body, &[], &mut parts);
    parts.sort_by_key(|part| part.line);
    Ok(parts)
}

/// The depth is that of blocks, which the parser bounds.
fn walk(source: &Source, body: &Body, above: &[String], parts: &mut Vec<Part>) {
    let line = |at: usize| source.text[..at.min(source.text.len())].matches('\n').count() + 1;
    let mut push = |name: String, at: usize, is_block: bool| {
        let path: Vec<String> = above.iter().cloned().chain([name]).collect();
        parts.push(Part { line: line(at), depth: above.len(), path: path.clone(), is_block });
        path
    };
    for attribute in &body.attributes {
        push(attribute.name.text.clone(), attribute.name.span.start, false);
    }
    let mut inner = Vec::new();
    for block in &body.blocks {
        let labels = block.labels.iter().map(|label| format!(" \"{}\"", label.text)).collect::<String>();
        let dynamic = block.kind.text == "dynamic" && block.labels.len() == 1;
        let name = match block.labels.first() {
            Some(label) if dynamic => label.text.clone(),
            _ => block.kind.text.clone() + &labels,
        };
        inner.push((push(name, block.header.start, true), block));
    }
    for (path, block) in inner {
        walk(source, &block.body, &path, parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_listed_where_they_stand() {
        let text = "job \"j\" {\n  type = \"batch\"\n  group \"g\" {\n    task \"t\" {\n      driver = \"x\"\n\
                    dynamic \"template\" {\n content {}\n }\n    }\n  }\n}\n";
        let parts = outline(&Source::new("a.hcl", text)).unwrap();
        let seen: Vec<(usize, String)> =
            parts.iter().map(|part| (part.line, part.path.join(" > "))).collect();
        let task = "job \"j\" > group \"g\" > task \"t\"";
        assert_eq!(seen[0], (1, "job \"j\"".to_string()));
        assert_eq!(seen[1], (2, "job \"j\" > type".to_string()));
        assert_eq!(seen[4], (5, format!("{task} > driver")));
        assert_eq!(seen[5], (6, format!("{task} > template")));
        assert_eq!(parts[5].owner(), ("g", "t"));
        assert_eq!(parts[2].owner(), ("g", ""));
    }
}
