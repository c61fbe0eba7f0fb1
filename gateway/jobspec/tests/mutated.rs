//! Texts made of the job files by chance: whatever comes out is a job or an error, soon, and on a small stack.

use jobspec::{
    NoFiles, Source, Variables, canonicalize, config, imply_constraints, parse, parse_json, validate,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::jobs;

/// Pieces that mean something to the parser.
const PIECES: [&str; 48] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "${",
    "%{",
    "$${",
    "~}",
    "<<EOF\n",
    "<<-EOT\n",
    "EOF\n",
    "EOT\n",
    "\n",
    "#",
    "/*",
    "*/",
    "=",
    "=>",
    "...",
    "[*]",
    ".*",
    "?",
    ":",
    ",",
    "-",
    "!",
    "&&",
    "null",
    "for x in ",
    " if ",
    "var.",
    "local.",
    "job \"a\" {\n",
    "dynamic \"group\" {\n",
    "for_each = ",
    "content {\n",
    "\\u12",
    "é",
    "\u{feff}",
    "\r",
    "\0",
    "9e999",
    "18446744073709551616",
    "%{ for a, b in c }",
    "0x1f",
];

#[derive(Clone, Debug)]
enum Change {
    Insert(prop::sample::Index, prop::sample::Index),
    Delete(prop::sample::Index, usize),
    Copy(prop::sample::Index, usize, prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    use any as some;
    let index = some::<prop::sample::Index>;
    let change = prop_oneof![
        (index(), index()).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (index(), 1..40_usize).prop_map(|(at, length)| Change::Delete(at, length)),
        (index(), 1..200_usize, index()).prop_map(|(from, length, to)| Change::Copy(from, length, to)),
    ];
    prop::collection::vec(change, 1..6)
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn changed(mut text: String, changes: &[Change]) -> String {
    for change in changes {
        let place = |index: &prop::sample::Index| floor(&text, index.index(text.len() + 1));
        match change {
            Change::Insert(at, piece) => {
                let at = place(at);
                text.insert_str(at, PIECES[piece.index(PIECES.len())]);
            }
            Change::Delete(at, length) => {
                let at = place(at);
                let end = floor(&text, at + length);
                text.replace_range(at..end.max(at), "");
            }
            Change::Copy(from, length, to) => {
                let (from, to) = (place(from), place(to));
                let end = floor(&text, from + length).max(from);
                let piece = text[from..end].to_string();
                text.insert_str(to, &piece);
            }
        }
    }
    text
}

/// Reads a text in every way there is; what is a job goes all the way to the verdict, twice the same.
fn survive(text: &str) {
    let source = Source::new("j.hcl", text);
    let _ = config::Section::parse(&source);
    let variables =
        Variables { files: vec![Source::new("v.hcl", text)], strict: false, ..Variables::default() };
    let _ = parse(&source, &variables, &NoFiles);
    let _ = parse_json(&Source::new("j.json", text), &Variables::default(), &NoFiles);
    match parse(&source, &Variables::default(), &NoFiles) {
        Err(wrong) => assert!(!wrong.to_string().is_empty()),
        Ok(parsed) => {
            let mut job = parsed.job;
            canonicalize(&mut job);
            imply_constraints(&mut job);
            let mut again = job.clone();
            canonicalize(&mut again);
            imply_constraints(&mut again);
            assert_eq!(again, job, "canonical jobs stay as they are");
            assert_eq!(validate(&job), validate(&again));
        }
    }
}

/// A fixed seed: a test that fails for one fails for all.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn changed_job_files_are_jobs_or_errors() {
    let files: Vec<String> = jobs::all().into_iter().map(|(_, text)| text).collect();
    // More on request, for a machine that has the time.
    let cases = std::env::var("MUTATIONS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400);
    let strategy = (any::<prop::sample::Index>(), changes());
    let run = runner(cases).run(&strategy, |(file, changes)| {
        survive(&changed(files[file.index(files.len())].clone(), &changes));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn texts_of_meaningful_pieces_are_jobs_or_errors() {
    let strategy = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40);
    let run = runner(1500).run(&strategy, |pieces| {
        survive(&pieces.concat());
        Ok(())
    });
    run.unwrap();
}
