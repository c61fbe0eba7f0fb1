//! Hostile texts are errors: soon, and without exhausting the stack.

use std::time::{Duration, Instant};

use jobspec::{
    DIAGNOSTICS_MAX, NESTING_MAX, NoFiles, SOURCE_MAX, Source, Variables, config, parse, parse_json,
};

/// The smallest stack that a caller's thread may have.
const STACK: usize = 1 << 20;

/// Far more than the bounds allow even on a loaded machine without optimisation; without them, these texts take hours.
const LONGEST: Duration = Duration::from_secs(60);

/// Parses on a small stack and gives the plain message, or nothing when the text is fine.
fn outcome(name: &'static str, text: String) -> String {
    let started = Instant::now();
    let parsing = move || {
        let source = Source::new(name, text);
        let parsed = match name.ends_with(".json") {
            true => parse_json(&source, &Variables::default(), &NoFiles),
            false => parse(&source, &Variables::default(), &NoFiles),
        };
        parsed.err().map(|wrong| wrong.plain()).unwrap_or_default()
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(parsing).unwrap();
    let outcome = thread.join().unwrap();
    assert!(started.elapsed() < LONGEST, "took {:?}", started.elapsed());
    outcome
}

fn meta(expression: &str) -> String {
    format!("job \"j\" {{\n meta = {{\n v = {expression}\n }}\n}}\n")
}

fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn deep_nesting_of_any_kind_is_an_error() {
    let deep = 100_000;
    let texts = [
        meta(&nested("(", "1", ")", deep)),
        meta(&nested("[", "1", "]", deep)),
        meta(&nested("{ a = ", "1", "}", deep)),
        meta(&nested("f(", "1", ")", deep)),
        meta(&nested("\"${", "1", "}\"", deep)),
        meta(&nested("[for x in ", "[1]", " : x]", deep)),
        meta(&nested("true ? ", "1", " : 1", deep)),
        meta(&nested("", "1", " ? 1 : 1", deep)),
        meta(&nested("!", "true", "", deep)),
        meta(&nested("- ", "1", "", deep)),
        meta(&nested("", "1", " + 1", deep)),
        meta(&nested("a[", "1", "]", deep)),
        meta(&nested("", "a", "[*]", deep)),
        meta(&format!("\"{}\"", nested("%{ if true }", "x", "%{ endif }", deep))),
        nested("a {\n", "", "}\n", deep),
    ];
    for text in texts {
        let start: String = text.chars().take(60).collect();
        let wrong = outcome("deep.hcl", text);
        assert!(wrong.contains("levels deep"), "{start}: {wrong}");
    }
}

#[test]
fn deep_json_is_an_error() {
    let text = nested("{\"a\":", "1", "}", 100_000);
    assert!(outcome("deep.json", text.clone()).contains("recursion limit"));
    assert!(config::Section::parse(&Source::new("agent.json", text)).is_err());
}

#[test]
fn nesting_up_to_the_bound_is_fine_on_a_small_stack() {
    let levels = NESTING_MAX - 5;
    assert_eq!(outcome("j.hcl", meta(&nested("(", "1", ")", levels))), "");
    assert_eq!(
        outcome("j.hcl", meta(&format!("\"a{}\"", nested("%{ if true }", "x", "%{ endif }", levels)))),
        ""
    );
    assert_eq!(outcome("j.hcl", meta(&format!("length({})", nested("[", "1", "]", levels)))), "");
    assert_eq!(outcome("j.hcl", meta(&format!("1{}", " + 1".repeat(levels - 2)))), "");
}

#[test]
fn locals_that_double_each_other_are_stopped() {
    let doubling = |line: fn(usize) -> String| {
        let lines: String = (1..60).map(line).collect();
        format!("locals {{\n a0 = \"0123456789\"\n{lines}}}\n{}", meta("1"))
    };
    let texts = doubling(|n| format!(" a{n} = \"${{local.a{0}}}${{local.a{0}}}\"\n", n - 1));
    assert!(outcome("j.hcl", texts).contains("grows beyond"));
    let lists = doubling(|n| format!(" a{n} = [local.a{0}, local.a{0}]\n", n - 1));
    assert!(outcome("j.hcl", lists).contains("allowed work"));
}

#[test]
fn locals_that_nest_each_other_are_stopped() {
    let lines: String = (1..5000).map(|n| format!(" a{n} = [local.a{}]\n", n - 1)).collect();
    let text = format!("locals {{\n a0 = 1\n{lines}}}\n{}", meta("1"));
    assert!(outcome("j.hcl", text).contains("levels deep"));
}

#[test]
fn functions_that_multiply_their_input_are_stopped() {
    let long = "x".repeat(20_000);
    let cases = [
        format!("replace(\"{long}\", \"x\", \"{long}\")"),
        format!("join(\"{long}\", split(\"\", \"{long}\"))"),
        format!("indent(1000000, \"{}\")", "\\n".repeat(1000)),
        "format(\"%999999999d\", 1)".to_string(),
        "length(setproduct(range(1000), range(1000), range(1000)))".to_string(),
        "length([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]])".to_string(),
    ];
    for expression in cases {
        let wrong = outcome("j.hcl", meta(&expression));
        let start: String = expression.chars().take(40).collect();
        assert!(!wrong.is_empty(), "{start}");
    }
}

#[test]
fn large_texts_are_refused_unread_and_long_ones_are_read() {
    let huge = " ".repeat(SOURCE_MAX + 1);
    assert!(outcome("j.hcl", huge.clone()).contains("at most"));
    assert!(outcome("j.json", huge).contains("more than"));
    let lines: String = (0..20_000).map(|n| format!("  k{n} = \"v\"\n")).collect();
    assert_eq!(outcome("j.hcl", format!("job \"j\" {{\n meta {{\n{lines}}}\n}}\n")), "");
    let locals: String = (0..20_000).map(|n| format!("  k{n} = local.k{}\n", n + 1)).collect();
    assert_eq!(outcome("j.hcl", format!("locals {{\n{locals}  k20000 = 1\n}}\n{}", meta("local.k0"))), "");
}

#[test]
fn a_file_that_is_wrong_throughout_is_refused_soon() {
    let lines: String = (0..50_000).map(|n| format!("  wrong_argument_number_{n} = 1\n")).collect();
    let wrong = outcome("j.hcl", format!("job \"j\" {{\n{lines}}}\n"));
    assert_eq!(wrong.lines().count(), DIAGNOSTICS_MAX);
    let lines: String = (0..50_000).map(|n| format!("variable \"v{n}\" {{}}\n")).collect();
    let wrong = outcome("j.hcl", format!("{lines}job \"j\" {{}}\n"));
    assert_eq!(wrong.lines().count(), DIAGNOSTICS_MAX);
}
