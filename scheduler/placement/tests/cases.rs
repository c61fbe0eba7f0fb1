//! Every scheduling case has a test, anywhere in the workspace, that names its code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The sections of the case list and how many cases each has, numbered from 1.
const SECTIONS: [(char, u32); 11] = [
    ('A', 36),
    ('B', 58),
    ('C', 33),
    ('D', 90),
    ('E', 51),
    ('F', 60),
    ('G', 66),
    ('H', 72),
    ('I', 68),
    ('J', 25),
    ('K', 20),
];

#[test]
fn every_case_has_a_test_that_names_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = BTreeSet::new();
    let mut sources = Vec::new();
    find_sources(&root, &mut sources);
    for source in sources {
        let text = fs::read_to_string(&source).expect("a source is readable");
        named.extend(named_by_tests(&text));
    }
    let all = SECTIONS.iter().flat_map(|(section, cases)| (1..=*cases).map(move |case| (*section, case)));
    let open: Vec<String> = all
        .filter(|case| !named.contains(case))
        .map(|(section, case)| format!("{section}{case:02}"))
        .collect();
    assert!(open.is_empty(), "no test names the cases {}", open.join(" "));
}

fn find_sources(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder is readable") {
        let path = entry.expect("a folder is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            find_sources(&path, sources);
        } else if name.ends_with(".rs") {
            sources.push(path);
        }
    }
}

/// Cases that stand in the comments of tests, one by one or as `B01-B03`.
fn named_by_tests(source: &str) -> BTreeSet<(char, u32)> {
    let mut named = BTreeSet::new();
    let mut comment = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push_str(text);
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            named.extend(cases(&comment));
            comment.clear();
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    named
}

fn cases(comment: &str) -> BTreeSet<(char, u32)> {
    let mut found = BTreeSet::new();
    for word in comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        if let (Some(first), Some(last)) = (case(first), case(last))
            && first.0 == last.0
        {
            found.extend((first.1..=last.1).map(|number| (first.0, number)));
        }
    }
    found
}

fn case(word: &str) -> Option<(char, u32)> {
    let section = word.chars().next().filter(|section| ('A'..='K').contains(section))?;
    let digits = &word[1..];
    let number =
        digits.parse().ok().filter(|_| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()))?;
    Some((section, number))
}

#[test]
fn cases_are_read_out_of_comments_of_tests_only() {
    let source = "/// A01, B02-B04; see J05.\n#[test]\nfn one() {}\n/// C01\nfn other() {}\n// D01\n#[test]\nfn two() {}";
    let expected = [('A', 1), ('B', 2), ('B', 3), ('B', 4), ('J', 5)];
    assert_eq!(named_by_tests(source), BTreeSet::from(expected));
}
