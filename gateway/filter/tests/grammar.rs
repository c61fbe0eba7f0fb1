//! Which texts are expressions, and the errors for those that are not.

use filter::{DEPTH_MAX, Filter, LENGTH_MAX, Schema};
use proptest::prelude::*;
use serde_json::json;

fn wrong(text: &str, column: usize, message: &str) {
    let why = Filter::parse(text).expect_err(text);
    assert!(why.message.contains(message), "{text}: {why}");
    assert_eq!(why.column, column, "{text}: {why}");
}

#[test]
fn messages_name_the_position_and_what_was_expected() {
    wrong("", 1, "expected a selector or a value, found the end");
    wrong("   ", 4, "found the end");
    wrong("Status", 7, "expected an operator: ==");
    wrong("Status =", 8, "expected an operator");
    wrong("Status == ", 11, "expected a value, found the end");
    wrong("Status == a b", 13, "expected \"and\", \"or\" or the end, found \"b\"");
    wrong("(Status == a", 13, "expected \"and\", \"or\" or \")\", found the end");
    wrong("Status == a)", 12, "expected \"and\", \"or\" or the end, found \")\"");
    wrong("Status == a AND b == c", 13, "expected \"and\"");
    wrong("Status is full", 11, "expected \"empty\" or \"nil\", found \"full\"");
    wrong("Status not == a", 12, "expected \"in\", \"contains\" or \"matches\"");
    wrong("\"x\" == a", 1, "\"x\" is a value, a selector is expected here");
    wrong("5 == Priority", 1, "\"5\" is a value");
    wrong("x in 5", 6, "\"5\" is a value");
    wrong("Status == \"open", 11, "the text is not closed");
    wrong("Status == `open", 11, "the text is not closed");
    wrong("Status == \"a\nb\"", 11, "the text is not closed");
    wrong(r#"Status == "a\qb""#, 13, "unknown escape");
    wrong(r#"Status == "\x4""#, 12, "unknown escape");
    wrong(r#"Status == "\u12""#, 12, "unknown escape");
    wrong(r#"Status == "\ud800""#, 12, "unknown escape");
    wrong(r#"Status == "\777""#, 12, "unknown escape");
    wrong("Status == 12-3", 11, "not a number; text goes in quotes");
    wrong("Status == 1.", 11, "not a number");
    wrong("Status == -", 12, "expected a digit");
    wrong("Status.== a", 8, "expected a field name or a number");
    wrong("Meta[x] == a", 6, "expected a key in quotes");
    wrong("Meta[\"x\" == a", 10, "expected \"]\"");
    wrong("Ünder == a", 1, "expected a selector or a value, found \"Ünder == a\"");
    wrong("Status matches `(`", 15, "is not a pattern: unclosed group");
    wrong("Status matches `(a{1000}){1000}`", 15, "the pattern needs more than");
    wrong("any Tags { x == 1 }", 10, "expected \"as\"");
    wrong("any Tags as { x == 1 }", 13, "expected a name for the elements");
    wrong("any Tags as _ { x == 1 }", 12, "binds nothing");
    wrong("any Tags as _, _ { x == 1 }", 12, "binds nothing");
    wrong("any Tags as x, x { x == 1 }", 12, "both are called \"x\"");
    wrong("any Tags as x x == 1", 15, "expected \"{\"");
    wrong("any Tags as x { x == 1", 23, "or \"}\"");
    wrong("any Tags as x { }", 17, "expected a selector");
}

#[test]
fn quoted_text_has_the_escapes_of_go_and_backticks_have_none() {
    for (written, meant) in [
        (r#""a\tb\n""#, "a\tb\n"),
        (r#""say \"hi\"""#, "say \"hi\""),
        (r#""\\""#, "\\"),
        (r#""\x41\101\u00e9\U0001F600""#, "AAé😀"),
        (r#""\xc3\xa9""#, "é"),
        (r#""\a\b\f\v\r""#, "\u{7}\u{8}\u{c}\u{b}\r"),
        (r"`a\tb`", r"a\tb"),
        ("`two\nlines`", "two\nlines"),
        ("`it is \"quoted\"`", "it is \"quoted\""),
        ("\"\"", ""),
        ("-12", "-12"),
        ("1.5", "1.5"),
        ("plain.text", "plain.text"),
    ] {
        let filter =
            Filter::parse(&format!("Status == {written}")).unwrap_or_else(|why| panic!("{written}: {why}"));
        let job = json!({"Status": meant});
        assert_eq!(filter.matches(Schema::nomad(), "Job", &job), Ok(true), "{written}");
    }
}

#[test]
fn length_and_depth_are_bounded() {
    let long = format!("Status == `{}`", "x".repeat(LENGTH_MAX));
    assert!(Filter::parse(&long).unwrap_err().message.contains("more than 65536 bytes"));
    let nested = |open: &str, close: &str, times: usize| {
        Filter::parse(&format!("{}Status == a{}", open.repeat(times), close.repeat(times)))
    };
    for (open, close) in [("(", ")"), ("not ", ""), ("any A as x { ", " }")] {
        assert!(nested(open, close, DEPTH_MAX / 2 - 1).is_ok(), "{open}");
        let why = nested(open, close, 4000).unwrap_err();
        assert!(why.message.contains("nested deeper"), "{open}: {why}");
    }
    assert!(Filter::parse(&"(".repeat(LENGTH_MAX)).is_err());
    // Chains are flat.
    let chain = vec!["Status == a"; 3000].join(" or ");
    let job = json!({"Status": "b"});
    assert_eq!(Filter::parse(&chain).unwrap().matches(Schema::nomad(), "Job", &job), Ok(false));
    let patterns = vec!["Status matches a"; 100].join(" or ");
    assert!(Filter::parse(&patterns).unwrap_err().message.contains("patterns"));
}

const WORDS: [&str; 38] = [
    "and",
    "or",
    "not",
    "in",
    "contains",
    "is",
    "empty",
    "nil",
    "matches",
    "any",
    "all",
    "as",
    "==",
    "!=",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    "_",
    ".",
    "\"",
    "`",
    "\\",
    "Status",
    "TaskGroups",
    "Meta",
    "x",
    "0",
    "-1",
    "1.5",
    "\"/Meta/a~1\"",
    "\"\\x4",
    "Name",
    "é",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever is written, the answer is a filter or a message, and a filter answers or says why not.
    #[test]
    fn no_text_brings_it_down(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..24), glue in prop::bool::ANY) {
        let text = words.join(if glue { " " } else { "" });
        let job = json!({"Status": "a", "Meta": {"x": "1"}, "TaskGroups": [{"Name": "g"}]});
        match Filter::parse(&text) {
            Ok(filter) => drop(filter.matches(Schema::nomad(), "Job", &job)),
            Err(why) => prop_assert!(why.column <= text.chars().count() + 1),
        }
    }

    #[test]
    fn neither_do_arbitrary_characters(text in "\\PC{0,60}") {
        drop(Filter::parse(&text));
    }
}
