//! Messages as their readers see them.

use jobspec::{NoFiles, Source, Variables, parse};

fn shown(text: &str) -> String {
    parse(&Source::new("web.hcl", text), &Variables::default(), &NoFiles).unwrap_err().to_string()
}

fn expect(text: &str, message: &str) {
    assert_eq!(shown(text), message.trim_start_matches('\n').trim_end(), "{text}");
}

#[test]
fn a_misspelled_argument_is_shown_with_its_line_and_a_suggestion() {
    expect(
        "job \"web\" {\n  group \"g\" {\n    cuont = 2\n  }\n}\n",
        r#"
web.hcl:3:5: "cuont" is not expected in group "g"
 3 |     cuont = 2
   |     ^^^^^ did you mean "count"?
"#,
    );
}

#[test]
fn every_problem_of_a_file_is_reported_at_once() {
    expect(
        r#"job "web" {
  prioritty = 50
  group "g" {
    count = "many"
    task "t" {
      config { command = 3 }
      resources = { cpu = 100 }
    }
  }
}
"#,
        r#"
web.hcl:2:3: "prioritty" is not expected in job "web"
 2 |   prioritty = 50
   |   ^^^^^^^^^ did you mean "priority"?

web.hcl:4:13: "count": expected a whole number, found the text "many"
 4 |     count = "many"
   |             ^^^^^^

web.hcl:7:7: "resources" is not expected in task "t"
 7 |       resources = { cpu = 100 }
   |       ^^^^^^^^^ resources is a block: write resources { … } without =

web.hcl:5:5: task "t" has no "driver"
 5 |     task "t" {
   |     ^^^^^^^^
"#,
    );
}

#[test]
fn what_is_never_closed_is_shown_where_it_was_opened() {
    let cases = [
        ("job \"web\" {\n  group \"g\" {\n  }\n", "web.hcl:1:1: this \"job\" block is never closed by `}`"),
        (
            "job \"web\" {\n  name = \"a\n}\n",
            "web.hcl:2:10: this string is never closed by a quote on the same line",
        ),
        ("job \"web\" {\n  datacenters = [\"a\"\n", "web.hcl:2:17: this `[` is never closed"),
        (
            "job \"web\" {\n  name = <<EOT\n  text\n",
            "web.hcl:2:10: this text is never closed by a line with only EOT",
        ),
        (
            "job \"web\" {\n  name = \"${a\"\n}\n",
            "web.hcl:2:14: expected `}` at the end of the interpolation, found `\"`",
        ),
        ("/* job", "web.hcl:1:1: this comment is never closed by */"),
        ("}", "web.hcl:1:1: this `}` closes a block that was never opened"),
    ];
    for (text, message) in cases {
        assert_eq!(shown(text).lines().next(), Some(message), "{text}");
    }
}

#[test]
fn syntax_errors_name_what_was_expected_and_found() {
    let cases = [
        ("job \"web\" {\n  name = \n}\n", "web.hcl:2:3: \"name\" has no value"),
        (
            "job \"web\" {\n  a = 1 b = 2\n}\n",
            "web.hcl:2:9: expected a new line after the value of \"a\", found `b`",
        ),
        ("job \"web\" {\n  a = [1 2]\n}\n", "web.hcl:2:10: expected `,` or `]` after the item, found `2`"),
        (
            "job \"web\" {\n  name = web-1.2.3x\n}\n",
            "web.hcl:2:19: expected a new line after the value of \"name\", found `x`",
        ),
        ("job \"web\" {\n  a.b = 1\n}\n", "web.hcl:2:4: expected `=`, `{` or a label after \"a\", found `.`"),
        (
            "job \"web\" {\n  env {\n  \"A\" = 1\n  }\n}\n",
            "web.hcl:3:3: the name of an argument must not be quoted",
        ),
        ("job \"web\" {\n  name = \"\\d\"\n}\n", "web.hcl:2:11: there is no such escape in a string"),
        (
            "job \"web\" {\n  name = \"a\"\n  name = \"b\"\n}\n",
            "web.hcl:3:3: \"name\" is set twice in the same block",
        ),
        ("job \"web\" {\n  name = %\n}\n", "web.hcl:2:10: expected a value, found `%`"),
        (
            "job \"web\" {\n  name = \"${1 2}\"\n}\n",
            "web.hcl:2:15: expected `}` at the end of the interpolation, found `2`",
        ),
        (
            "job \"web\" {\n  name = \"%{ if true }x\"\n}\n",
            "web.hcl:2:11: this %{if} is never closed by %{endif}",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(shown(text).lines().next(), Some(message), "{text}");
    }
}

#[test]
fn the_shape_of_a_file_is_checked() {
    let cases = [
        ("", "missing job block"),
        ("variable \"a\" {\n default = 1\n}\n", "missing job block"),
        ("job \"a\" {}\njob \"b\" {}\n", "web.hcl:2:1: duplicate job block: a file holds one job"),
        ("jobs \"a\" {}\n", "\"jobs\" is not expected at the top of a job file"),
        ("job {}\n", "web.hcl:1:1: a job block needs a label"),
        ("job \"a\" \"b\" {}\n", "web.hcl:1:9: a job block takes one label"),
        ("job \"a\" {\n update \"x\" {}\n}\n", "web.hcl:2:9: a update block takes no label"),
        ("job \"a\" {\n update {}\n update {}\n}\n", "web.hcl:3:2: a second update block in job \"a\""),
        ("job \"a\" {\n meta {}\n meta = {}\n}\n", "\"meta\" is given twice in job \"a\""),
        ("job \"a\" {\n meta {\n b {}\n}\n}\n", "meta holds only name = value, not blocks"),
        ("job \"a\" {\n dynamic {\n }\n}\n", "a dynamic block takes one label"),
        ("job \"a\" {\n dynamic \"group\" {\n }\n}\n", "dynamic \"group\" has no \"for_each\""),
        (
            "job \"a\" {\n dynamic \"group\" {\n for_each = []\n}\n}\n",
            "dynamic \"group\" has no content block",
        ),
        (
            "job \"a\" {\n dynamic \"group\" {\n for_each = 1\n content {}\n}\n}\n",
            "expected a list or an object",
        ),
        (
            "job \"a\" {\n dynamic \"group\" {\n for_each = [1]\n content {}\n}\n}\n",
            "a group block needs a label",
        ),
        (
            "job \"a\" {\n dynamic \"groop\" {\n for_each = [1]\n content {}\n}\n}\n",
            "\"groop\" is not expected in job \"a\"",
        ),
        (
            "job \"a\" {\n group \"g\" {\n network {\n port \"a b\" {}\n}\n}\n}\n",
            "\"a b\" is not a port label",
        ),
        (
            "job \"a\" {\n constraint {\n regexp = \"a\"\n version = \"b\"\n}\n}\n",
            "one comparison, found regexp and version",
        ),
        (
            "job \"a\" {\n datacenters = \"dc1\"\n}\n",
            "\"datacenters\": expected a list, found the text \"dc1\"",
        ),
        ("job \"a\" {\n group \"g\" {\n shutdown_delay = \"3 days\"\n}\n}\n", "\"3 days\" is not a duration"),
        ("job \"a\" {\n affinity {\n weight = 300\n}\n}\n", "\"weight\": 300 is not between -128 and 127"),
    ];
    for (text, message) in cases {
        let shown = shown(text);
        assert!(shown.contains(message), "{text}: {shown}");
    }
}

#[test]
fn the_plain_form_has_one_line_for_each_problem() {
    let source = Source::new("web.hcl", "job \"web\" {\n  cuont = 2\n  tpye = 1\n}\n");
    let wrong = parse(&source, &Variables::default(), &NoFiles).unwrap_err();
    let expected = "web.hcl:2:3: \"cuont\" is not expected in job \"web\"\n\
                    web.hcl:3:3: \"tpye\" is not expected in job \"web\"; did you mean \"type\"?";
    assert_eq!(wrong.plain(), expected);
}

#[test]
fn columns_count_characters_and_tabs_keep_the_caret_in_place() {
    let shown = shown("job \"web\" {\n\tname = \"é\" x\n}\n");
    let expected = "web.hcl:2:13: expected a new line after the value of \"name\", found `x`\n \
                    2 |  name = \"é\" x\n   |             ^";
    assert_eq!(shown, expected);
}

#[test]
fn shell_variables_in_text_are_explained() {
    let shown = shown("job \"web\" {\n  meta {\n    v = <<EOT\necho ${HOME:-/root}\nEOT\n  }\n}\n");
    let expected = "web.hcl:4:12: expected `}` at the end of the interpolation, found `:`\n \
                    4 | echo ${HOME:-/root}\n   |            ^ write $${ for the text ${ itself";
    assert_eq!(shown, expected);
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let wrong =
        parse(&Source::new("web.hcl", "job \"a\u{1b}[2J\" {}\u{1b}"), &Variables::default(), &NoFiles);
    let shown = wrong.unwrap_err().to_string();
    assert!(!shown.contains('\u{1b}') && shown.contains("found `\u{fffd}`"), "{shown}");
}
