use serde_json::json;

use super::*;

fn data() -> serde_json::Value {
    json!({
        "ID": "web", "Priority": 50, "Stop": false, "Ratio": 0.5, "Huge": 1e21, "Nothing": null,
        "Meta": {"b": "2", "a": "1"},
        "Groups": [{"Name": "api", "Count": 2}, {"Name": "db", "Count": 1}],
        "Time": 1_767_323_045_000_000_000_i64,
    })
}

fn render(text: &str) -> Result<String, String> {
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    template.render(&data()).map_err(|error| error.to_string())
}

/// Each template and what it makes.
fn check(cases: &[(&str, &str)]) {
    for (template, expected) in cases {
        assert_eq!(render(template).as_deref(), Ok(*expected), "{template}");
    }
}

#[test]
fn values_print_as_go_prints_them() {
    check(&[
        ("{{.ID}}", "web"),
        ("{{.Priority}} {{.Stop}} {{.Ratio}} {{.Huge}}", "50 false 0.5 1e+21"),
        ("{{.Meta}}", "map[a:1 b:2]"),
        ("{{.Groups}}", "[map[Count:2 Name:api] map[Count:1 Name:db]]"),
        ("{{.Nope}} {{.Nope.Deeper}} {{.Nothing}}", "<no value> <no value> <nil>"),
        (
            "{{\"a\\tb\\u00e9\"}}{{`raw\\t`}}{{'x'}}{{0x10}}{{1_000}}{{-3}}{{1.50}}",
            "a\tb\u{e9}raw\\t120161000-31.5",
        ),
        ("{{true}}{{.Meta.a}}{{$.ID}}", "true1web"),
        ("{{100000.0}} {{1234567.0}} {{0.00001}}", "100000 1.234567e+06 1e-05"),
    ]);
}

#[test]
fn control_structures_choose_and_repeat() {
    check(&[
        ("{{if .Stop}}a{{else if eq .ID \"web\"}}b{{else}}c{{end}}", "b"),
        ("{{with .Meta}}{{.a}}{{end}}{{with .Nope}}x{{else}}y{{end}}", "1y"),
        ("{{with .Nope}}x{{else with .Meta}}{{.b}}{{end}}", "2"),
        ("{{range .Groups}}{{.Name}},{{end}}", "api,db,"),
        ("{{range $i, $g := .Groups}}{{$i}}={{$g.Name}} {{end}}", "0=api 1=db "),
        ("{{range $k, $v := .Meta}}{{$k}}{{$v}}{{end}}", "a1b2"),
        ("{{range 3}}{{.}}{{end}}{{range .Nope}}x{{else}}none{{end}}", "012none"),
        ("{{range .Groups}}{{if eq .Name \"db\"}}{{break}}{{end}}{{.Name}}{{end}}", "api"),
        ("{{range .Groups}}{{if eq .Name \"api\"}}{{continue}}{{end}}{{.Name}}{{end}}", "db"),
        ("{{$n := 1}}{{range .Groups}}{{$n = .Count}}{{end}}{{$n}}", "1"),
        ("{{$n := 1}}{{if true}}{{$n := 2}}{{$n}}{{end}}{{$n}}", "21"),
        ("{{if $x := .ID}}{{$x}}{{end}}", "web"),
    ]);
}

#[test]
fn blanks_and_comments_go_where_they_are_told() {
    check(&[
        ("a {{- .ID -}} b", "awebb"),
        ("a {{/* nothing\nhere */}} b", "a  b"),
        ("a {{- /* nothing */ -}} b", "ab"),
        ("{{\"}}\"}} {{- \"{{\"}}", "}}{{"),
        ("{{range .Groups -}}\n  {{.Name}}\n{{- end}}", "apidb"),
    ]);
}

#[test]
fn templates_call_each_other() {
    check(&[
        ("{{define \"t\"}}<{{.}}>{{end}}{{template \"t\" .ID}}{{template \"t\"}}", "<web><<nil>>"),
        ("{{block \"b\" .Meta}}{{.a}}{{end}}", "1"),
    ]);
    let endless = render("{{define \"t\"}}{{template \"t\"}}{{end}}{{template \"t\"}}");
    assert!(endless.unwrap_err().contains("templates call each other"));
}

#[test]
fn gos_own_functions_work_in_pipelines() {
    check(&[
        ("{{len .Groups}} {{len .ID}} {{.Groups | len}}", "2 3 2"),
        (
            "{{index .Groups 1 \"Name\"}} {{index .Meta \"nope\"}} {{(index .Groups 0).Name}}",
            "db <no value> api",
        ),
        ("{{slice .ID 1 2}} {{slice .Groups 1 | len}}", "e 1"),
        ("{{and .ID .Stop}} {{or .Stop .ID}} {{not .Stop}} {{and 1 2 | print}}", "false web true 2"),
        ("{{or .ID (index .Groups 9)}}", "web"),
        ("{{print 1 2 \"x\" 3 4}}|{{println 1 2}}", "1 2x3 4|1 2\n"),
        (
            "{{printf \"%s %d %q %v %5.2f|%-5s|%05d|%x|%t|%T%%\" \"a\" 7 \"q\" .Meta 1.5 \"l\" 42 255 true .ID}}",
            "a 7 \"q\" map[a:1 b:2]  1.50|l    |00042|ff|true|string%",
        ),
        (
            "{{printf \"%d\" \"x\"}} {{printf \"%s\"}} {{printf \"a\" 1}}",
            "%!d(string=x) %!s(MISSING) a%!(EXTRA int=1)",
        ),
        ("{{.ID | printf \"%s-%s\" \"a\"}}", "a-web"),
        (
            "{{eq .Priority 50}} {{eq .Priority 1 50}} {{ne .ID \"a\"}} {{lt 1 2}} {{ge 2.5 2}}",
            "true true true true true",
        ),
        (
            "{{html \"<a&'>\"}} {{js \"it's\"}} {{urlquery \"a b/é\"}}",
            "&lt;a&amp;&#39;&gt; it\\'s a+b%2F%C3%A9",
        ),
    ]);
}

#[test]
fn sprig_works_under_its_prefix() {
    check(&[
        ("{{.ID | sprig_upper | sprig_repeat 2}}", "WEBWEB"),
        (
            "{{sprig_trimSuffix \"b\" .ID}} {{sprig_contains \"e\" .ID}} {{sprig_trunc 2 .ID}} {{sprig_trunc -2 .ID}}",
            "we true we eb",
        ),
        (
            "{{sprig_default \"x\" .Nope}} {{sprig_ternary \"y\" \"n\" .Stop}} {{sprig_coalesce .Nope 0 .ID}}",
            "x n web",
        ),
        ("{{sprig_add 1 2 3}} {{sprig_div 7 2}} {{sprig_max 1 5 3}} {{sprig_round 2.345 2}}", "6 3 5 2.35"),
        (
            "{{sprig_join \",\" (sprig_list 1 2 3)}} {{sprig_until 3}} {{sprig_splitList \"e\" .ID}}",
            "1,2,3 [0 1 2] [w b]",
        ),
        ("{{sprig_toJson .Meta}} {{(sprig_fromJson \"[1]\")}}", "{\"a\":\"1\",\"b\":\"2\"} [1]"),
        (
            "{{sprig_keys .Meta}} {{sprig_get .Meta \"a\"}} {{sprig_dig \"x\" \"y\" \"none\" .Meta}}",
            "[a b] 1 none",
        ),
        (
            "{{sprig_dict \"k\" 1}} {{sprig_pick .Meta \"a\"}} {{sprig_hasKey .Meta \"z\"}}",
            "map[k:1] map[a:1] false",
        ),
        ("{{sprig_b64enc \"hi\"}} {{\"aGk=\" | sprig_b64dec}}", "aGk= hi"),
        (
            "{{sprig_snakecase \"FirstName\"}} {{sprig_camelcase \"a_b\"}} {{sprig_title \"a bc\"}}",
            "first_name AB A Bc",
        ),
        ("{{sprig_dateInZone \"2006-01-02T15:04:05Z07:00\" .Time \"UTC\"}}", "2026-01-02T03:04:05Z"),
        ("{{sprig_dateInZone \"Jan _2 3:04PM\" \"2026-01-02T15:04:05Z\" \"UTC\"}}", "Jan  2 3:04PM"),
        (
            "{{sprig_duration 3723}} {{sprig_regexReplaceAll \"e+\" .ID \"o\"}} {{sprig_indent 2 \"a\\nb\"}}",
            "1h2m3s wob   a\n  b",
        ),
        ("{{sprig_first (sprig_sortAlpha (sprig_list \"b\" \"a\"))}} {{sprig_quote .ID}}", "a \"web\""),
    ]);
}

#[test]
fn what_makes_no_sense_is_named_with_its_line() {
    for (template, expected) in [
        ("{{.ID", "line 1: unclosed action"),
        ("\n{{if .ID}}", "line 2: unclosed {{if}}"),
        ("{{end}}", "line 1: unexpected {{end}}"),
        ("{{else}}", "line 1: unexpected {{else}}"),
        ("{{nope .ID}}", "line 1: function \"nope\" not defined"),
        ("{{sprig_env \"HOME\"}}", "line 1: function \"sprig_env\" not defined"),
        ("{{.ID.Deeper}}", "line 1: can't evaluate field Deeper in type string"),
        ("{{break}}", "line 1: {{break}} outside {{range}}"),
        ("{{$x}}", "line 1: undefined variable \"$x\""),
        ("{{.ID 1}}", "line 1: can't give argument to non-function"),
        ("{{template \"x\"}}", "line 1: template \"x\" not defined"),
        ("{{index .Groups 9}}", "line 1: error calling index: index out of range: 9"),
        ("{{lt 1 \"a\"}}", "line 1: error calling lt: incompatible types for comparison"),
        ("{{\"abc}}", "line 1: unterminated quoted string"),
        ("{{1 | 2}}", "line 1: non executable command in pipeline"),
        ("{{(.ID}}", "line 1: unclosed left paren"),
        ("{{sprig_fail \"no\"}}", "line 1: error calling sprig_fail: no"),
        ("{{range .ID}}{{end}}", "line 1: range can't iterate over web"),
    ] {
        assert_eq!(render(template).unwrap_err(), expected, "{template}");
    }
}
