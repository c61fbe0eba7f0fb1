//! `docs/behaviour` and the tests agree: a code that a test names is described there, and a case that is described
//! there is named by a test or listed as open.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A case: the letter of its page and its number as it is written, so that `I8` and `I08` are two.
type Code = String;

/// Cases without a test, with the reason.
const OPEN: &str = "open.md";
/// The simulator's checks say what they check in a sentence that begins with the code.
const SIMULATOR: &str = "benches/sim/src";

#[test]
fn every_code_that_a_test_names_is_described() {
    let described = described();
    let families: BTreeSet<(char, usize)> = described.iter().map(|code| family(code)).collect();
    let mut missing = Vec::new();
    for (code, files) in named() {
        if families.contains(&family(&code)) && !described.contains(&code) {
            missing.push(format!("{code} of {}", files[0].display()));
        }
    }
    assert!(missing.is_empty(), "docs/behaviour does not describe {missing:#?}");
}

#[test]
fn every_case_is_named_by_a_test_or_listed_as_open() {
    let named = named();
    let open = open();
    let mut untested = described();
    untested.retain(|code| !named.contains_key(code) && !open.contains(code));
    assert!(untested.is_empty(), "neither named by a test nor in docs/behaviour/{OPEN}: {untested:?}");
}

#[test]
fn open_cases_are_described_and_have_no_test() {
    let (named, described) = (named(), described());
    for code in open() {
        assert!(described.contains(&code), "{code} is open and not described");
        assert!(!named.contains_key(&code), "{code} is open and has a test: {:?}", named[&code]);
    }
}

#[test]
fn codes_are_read_out_of_comments_of_tests_only() {
    let source = "/// A01, B02-B04; see J05, P1.\n#[test]\nfn one() {}\n/// C01\nfn other() {}\n// D01\n#[test]\nfn two() {}";
    let expected = ["A01", "B02", "B03", "B04", "J05", "P1"].map(Code::from);
    assert_eq!(in_comments(source), BTreeSet::from(expected));
}

#[test]
fn codes_are_read_out_of_sentences_that_begin_with_them() {
    let source =
        "assert!(ready, \"P2: first\"); say(\"I3 equal\"); say(\"I3\"); say(\"see C3\"); say(\"U8 x\")";
    assert_eq!(in_sentences(source), BTreeSet::from(["I3", "P2", "U8"].map(Code::from)));
}

/// The cases of all pages.
fn described() -> BTreeSet<Code> {
    let pages = fs::read_dir(root().join("docs/behaviour")).unwrap().map(|entry| entry.unwrap().path());
    let mut found = BTreeSet::new();
    for page in pages.filter(|page| !page.ends_with(OPEN)) {
        for code in items(&page) {
            assert!(found.insert(code.clone()), "{code} is described twice");
        }
    }
    assert!(!found.is_empty(), "docs/behaviour holds cases");
    found
}

fn open() -> BTreeSet<Code> {
    items(&root().join("docs/behaviour").join(OPEN)).into_iter().collect()
}

/// The codes of a page's items, each a line that begins with `- **A01** ` and says something.
fn items(page: &Path) -> Vec<Code> {
    let text = fs::read_to_string(page).unwrap();
    let item = |line: &str| {
        let (code, what) = line.strip_prefix("- **")?.split_once("** ")?;
        (is_code(code) && !what.trim().is_empty()).then(|| code.to_string())
    };
    text.lines().filter_map(item).collect()
}

/// The codes that tests name, each with the files that do.
fn named() -> BTreeMap<Code, Vec<PathBuf>> {
    let root = root();
    let mut named: BTreeMap<Code, Vec<PathBuf>> = BTreeMap::new();
    for file in files(&root) {
        let within = file.strip_prefix(&root).unwrap();
        let tests = within.components().any(|part| part.as_os_str() == "tests");
        let text = || fs::read_to_string(&file).unwrap();
        let codes = match file.extension().and_then(|end| end.to_str()) {
            // The examples below name codes to be read, not cases.
            Some("rs") if within.ends_with("base/tests/behaviour.rs") => continue,
            Some("rs") if tests || within.starts_with(SIMULATOR) => {
                let text = text();
                &in_comments(&text) | &in_sentences(&text)
            }
            Some("rs") => in_comments(&text()),
            Some("story") if tests => in_stories(&text()),
            _ => continue,
        };
        for code in codes {
            named.entry(code).or_default().push(within.to_path_buf());
        }
    }
    named
}

/// Codes in the doc comments of test functions, one by one or as `B01-B03`.
fn in_comments(source: &str) -> BTreeSet<Code> {
    let mut found = BTreeSet::new();
    let mut comment = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push_str(text);
            comment.push('\n');
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            found.extend(in_words(&comment));
            comment.clear();
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    found
}

/// Codes that texts in the code begin with: `"P2: …"`, `"I3 …"`.
fn in_sentences(source: &str) -> BTreeSet<Code> {
    let begins = source.split('"').skip(1).filter_map(|text| text.split_once([':', ' ']));
    begins.map(|(first, _)| first).filter(|first| is_code(first)).map(Code::from).collect()
}

/// Codes in the comments of stories.
fn in_stories(story: &str) -> BTreeSet<Code> {
    story.lines().filter_map(|line| line.strip_prefix('#')).flat_map(in_words).collect()
}

fn in_words(text: &str) -> BTreeSet<Code> {
    let mut found = BTreeSet::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        if is_code(first) && is_code(last) && family(first) == family(last) {
            let (letter, digits) = family(first);
            let number = |code: &str| code[1..].parse::<u32>().unwrap();
            found.extend((number(first)..=number(last)).map(|number| format!("{letter}{number:0digits$}")));
        }
    }
    found
}

/// A capital letter and one or two digits.
fn is_code(word: &str) -> bool {
    let digits = word.strip_prefix(|first: char| first.is_ascii_uppercase()).unwrap_or_default();
    (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a code's page has in common: the letter, and how many digits follow.
fn family(code: &str) -> (char, usize) {
    (code.chars().next().unwrap_or_default(), code.len() - 1)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
