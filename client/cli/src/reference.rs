//! What blocks and keys mean: the pages of `docs/reference`, read by their headings, so that `explain` and the documentation
//! are one text.
//!
//! A page has one section a block: `## PATH`, perhaps `Also in:` with further places, text, perhaps `Differs from Nomad:`, an
//! example in a fence, and a table of keys.

use std::collections::BTreeSet;

/// The pages, by their names in `docs/reference`.
const PAGES: [(&str, &str); 2] = [
    ("job.md", include_str!("../../../docs/reference/job.md")),
    ("agent.md", include_str!("../../../docs/reference/agent.md")),
];

/// Most names that are proposed for one that is not there.
const NEAR_MAX: usize = 5;

/// One block, wherever it stands.
#[derive(Debug)]
pub(crate) struct Block {
    /// Where it stands first, with its own name at the end.
    pub path: String,
    /// Blocks in which it stands too, by their paths.
    pub also_in: Vec<String>,
    pub text: String,
    pub differs: Option<String>,
    pub example: String,
    pub keys: Vec<Key>,
}

/// One row of a block's table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: String,
    pub kind: String,
    pub default: String,
    pub text: String,
}

/// What is explained: a block, or a key of it.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// As it was found: of the places of a block the one that was meant.
    pub path: String,
    pub block: &'a Block,
    pub key: Option<&'a Key>,
    pub text: &'a str,
}

/// What a name leads to.
pub(crate) enum Found<'a> {
    Entries(Vec<Entry<'a>>),
    Nothing { near: Vec<String> },
}

/// All pages.
pub(crate) struct Reference {
    blocks: Vec<Block>,
}

impl Block {
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// It stands directly in that one.
    fn is_in(&self, parent: &Block) -> bool {
        let own = self.path.rsplit_once('.').map(|(place, _)| place);
        own == Some(parent.path.as_str()) || self.also_in.contains(&parent.path)
    }
}

impl Entry<'_> {
    pub(crate) fn first_sentence(&self) -> &str {
        let end = self.text.find(". ").map_or(self.text.len(), |at| at + 1);
        self.text[..end].lines().next().unwrap_or_default()
    }
}

impl Reference {
    pub(crate) fn read() -> Reference {
        Reference { blocks: PAGES.iter().flat_map(|(_, page)| sections(page)).collect() }
    }

    /// The blocks that stand in no other.
    pub(crate) fn top(&self) -> Vec<Entry<'_>> {
        let top = self.blocks.iter().filter(|block| !block.path.contains('.'));
        top.map(|block| entry(block.path.clone(), block)).collect()
    }

    /// The blocks that stand in this one.
    pub(crate) fn inside(&self, outer: &Entry<'_>) -> Vec<Entry<'_>> {
        let inner = self.blocks.iter().filter(|block| block.is_in(outer.block));
        inner.map(|block| entry(format!("{}.{}", outer.path, block.name()), block)).collect()
    }

    /// What has that path; else everything of which the path ends so.
    pub(crate) fn find(&self, name: &str) -> Found<'_> {
        if let Some(found) = self.at(name) {
            return Found::Entries(vec![found]);
        }
        let end = format!(".{name}");
        let mut found: Vec<Entry<'_>> = Vec::new();
        for block in &self.blocks {
            let places = block.also_in.iter().map(|place| format!("{place}.{}", block.name()));
            let paths: Vec<String> = [block.path.clone()].into_iter().chain(places).collect();
            if paths.iter().any(|path| path.ends_with(&end)) {
                found.push(entry(block.path.clone(), block));
            }
            let own = |key: &&Key| paths.iter().any(|path| format!("{path}.{}", key.name).ends_with(&end));
            found.extend(block.keys.iter().filter(own).map(|key| entry_of(block.path.clone(), block, key)));
        }
        match found.is_empty() {
            true => Found::Nothing { near: self.near(name) },
            false => Found::Entries(found),
        }
    }

    /// What stands at this path.
    pub(crate) fn at(&self, path: &str) -> Option<Entry<'_>> {
        let mut names = path.split('.');
        let first = names.next()?;
        let mut block = self.blocks.iter().find(|block| block.path == first)?;
        let mut names = names.peekable();
        while let Some(name) = names.next() {
            match self.blocks.iter().find(|inner| inner.name() == name && inner.is_in(block)) {
                Some(inner) => block = inner,
                None => {
                    let key = block.key(name).filter(|_| names.peek().is_none())?;
                    let place = path.rsplit_once('.').map_or(path, |(place, _)| place);
                    return Some(entry_of(place.to_string(), block, key));
                }
            }
        }
        Some(entry(path.to_string(), block))
    }

    /// Paths that may be meant: those whose last name is the nearest one, below what is right of the path.
    fn near(&self, name: &str) -> Vec<String> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let all = self.paths();
        let names = all.iter().filter_map(|path| path.rsplit('.').next());
        let known: BTreeSet<&str> = names.collect();
        let nearest = jobspec::nearest(last, known.iter().copied()).unwrap_or(last);
        let same = |path: &&String| path.rsplit('.').next() == Some(nearest);
        let shared = |path: &&String| {
            let begins = path.split('.').zip(name.split('.')).take_while(|(one, two)| one == two).count();
            std::cmp::Reverse(begins)
        };
        let mut near: Vec<&String> = all.iter().filter(same).collect();
        near.sort_by_key(shared);
        near.into_iter().take(NEAR_MAX).cloned().collect()
    }

    /// Every block and key, at the first of its places.
    pub(crate) fn paths(&self) -> Vec<String> {
        let of = |block: &Block| {
            let keys = block.keys.iter().map(|key| format!("{}.{}", block.path, key.name));
            [block.path.clone()].into_iter().chain(keys).collect::<Vec<_>>()
        };
        self.blocks.iter().flat_map(of).collect()
    }

    #[cfg(test)]
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

fn entry(path: String, block: &Block) -> Entry<'_> {
    Entry { path, block, key: None, text: &block.text }
}

fn entry_of<'a>(place: String, block: &'a Block, key: &'a Key) -> Entry<'a> {
    Entry { path: format!("{place}.{}", key.name), block, key: Some(key), text: &key.text }
}

fn sections(page: &str) -> impl Iterator<Item = Block> + '_ {
    page.split("\n## ").skip(1).map(section)
}

fn section(text: &str) -> Block {
    let (path, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut block = Block {
        path: path.trim().to_string(),
        also_in: Vec::new(),
        text: String::new(),
        differs: None,
        example: String::new(),
        keys: Vec::new(),
    };
    let mut paragraphs = Vec::new();
    let (mut in_example, mut paragraph) = (false, String::new());
    for line in rest.lines().chain([""]) {
        if line.starts_with("```") {
            in_example = !in_example;
        } else if in_example {
            block.example.push_str(&format!("{line}\n"));
        } else if let Some(row) = line.strip_prefix("| `") {
            block.keys.extend(key(row));
        } else if line.is_empty() {
            paragraphs.extend(Some(std::mem::take(&mut paragraph)).filter(|done| !done.is_empty()));
        } else if !line.starts_with('|') {
            let joint = if paragraph.is_empty() { "" } else { " " };
            paragraph.push_str(&format!("{joint}{line}"));
        }
    }
    for paragraph in paragraphs.iter().map(|paragraph| unlinked(paragraph)) {
        if let Some(places) = paragraph.strip_prefix("Also in: ") {
            block.also_in = places.split(", ").map(|place| place.trim_matches('`').to_string()).collect();
        } else if let Some(differs) = paragraph.strip_prefix("Differs from Nomad: ") {
            block.differs = Some(differs.to_string());
        } else {
            let joint = if block.text.is_empty() { "" } else { "\n\n" };
            block.text.push_str(&format!("{joint}{paragraph}"));
        }
    }
    block
}

/// Text in which a link to another page is the name of its file.
fn unlinked(text: &str) -> String {
    let mut parts = text.split("](../");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (file, rest) = part.split_once(')').unwrap_or((part, ""));
        plain.truncate(plain.rfind('[').unwrap_or(plain.len()));
        plain.push_str(&format!("docs/{file}{rest}"));
    }
    plain
}

/// `name` | type | default | meaning |
fn key(row: &str) -> Option<Key> {
    let mut cells = row.trim_end().trim_end_matches('|').splitn(4, " | ").map(|cell| cell.trim().to_string());
    let name = cells.next()?.trim_end_matches('`').to_string();
    let (kind, default, text) = (cells.next()?, cells.next()?, cells.next()?);
    Some(Key { name, kind, default: default.replace('`', ""), text: unlinked(&text) })
}

#[cfg(test)]
mod tests;
