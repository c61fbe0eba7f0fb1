use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{Dependency, Fetched, Place, Source};
use crate::{Dialect, Rendered, Syntax, Template};

/// What there is, by the name of the dependency.
struct Known(BTreeMap<String, Fetched>);

impl Source for Known {
    fn fetch(&self, dependency: &Dependency) -> Fetched {
        self.0.get(&dependency.to_string()).cloned().unwrap_or(Fetched::Pending)
    }

    fn env(&self, name: &str) -> Option<String> {
        match name {
            "NOMAD_TASK_NAME" => Some("web".to_string()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "local/a" { Ok(b"content\n".to_vec()) } else { Err("no such file".to_string()) }
    }

    fn now(&self) -> i64 {
        1_767_323_045_000_000_000
    }
}

fn known() -> Known {
    let there = [
        (
            "nomad.var.block(nomad/jobs/web)",
            json!({
                "Namespace": "default", "Path": "nomad/jobs/web", "CreateIndex": 3, "ModifyIndex": 7,
                "Items": {"user": "bob", "password": "a<b", "Keys": "mine"},
            }),
        ),
        ("nomad.var.list(nomad)", json!([{"Path": "nomad/a", "Namespace": "default"}, {"Path": "nomad/b"}])),
        ("nomad.var.list()", json!([])),
        (
            "nomad.service(db)",
            json!([
                {"ID": "_1", "ServiceName": "db", "Address": "10.0.0.1", "Port": 5432, "Tags": ["primary"], "NodeID": "n"},
                {"ID": "_2", "ServiceName": "db", "Address": "10.0.0.2", "Port": 5433, "Tags": null},
            ]),
        ),
        ("nomad.service(db:1|k)", json!([{"ServiceName": "db", "Address": "10.0.0.2", "Port": 5433}])),
        (
            "nomad.services",
            json!([{"Namespace": "default", "Services": [{"ServiceName": "db", "Tags": ["primary"]}, {"ServiceName": "api"}]}]),
        ),
    ];
    let mut known: BTreeMap<String, Fetched> =
        there.map(|(name, value)| (name.to_string(), Fetched::There(value))).into();
    known.insert("nomad.var.block(none)".to_string(), Fetched::Absent);
    known.insert("nomad.var.block(closed)".to_string(), Fetched::Failed("Permission denied".to_string()));
    Known(known)
}

fn syntax() -> Syntax {
    Syntax { dialect: Dialect::Task, ..Syntax::default() }
}

fn render_as(text: &str, syntax: &Syntax) -> Result<String, String> {
    let template = Template::parse_as(text, syntax).map_err(|error| error.to_string())?;
    let denied = BTreeSet::from(["md5sum".to_string()]);
    match template.render_task(&known(), &denied).map_err(|error| error.to_string())? {
        Rendered::Done(bytes) => Ok(String::from_utf8(bytes).unwrap()),
        Rendered::Missing(missing) => Err(format!(
            "missing {}",
            missing.iter().map(Dependency::to_string).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Each template and what it makes.
fn check(cases: &[(&str, &str)]) {
    for (template, expected) in cases {
        assert_eq!(render_as(template, &syntax()).as_deref(), Ok(*expected), "{template}");
    }
}

#[test]
fn variables_are_maps_of_items_that_know_where_they_are_from() {
    check(&[
        ("{{ with nomadVar \"nomad/jobs/web\" }}{{ .user }}:{{ .password }}{{ end }}", "bob:a<b"),
        (
            "{{ range $k, $v := nomadVar \"nomad/jobs/web\" }}{{ $k }}={{ $v }} {{ end }}",
            "Keys=mine password=a<b user=bob ",
        ),
        ("{{ (nomadVar \"nomad/jobs/web\").user.Value | toUpper }}", "BOB"),
        ("{{ index (nomadVar \"nomad/jobs/web\") \"user\" }}", "bob"),
        (
            "{{ with nomadVar \"nomad/jobs/web\" }}{{ .Keys }} {{ .Metadata.ModifyIndex }} {{ .user.Key }} {{ .user.Parent.password }}{{ end }}",
            "[Keys password user] 7 user a<b",
        ),
        ("[{{ (nomadVar \"nomad/jobs/web\").nope }}]", "[]"),
        ("{{ nomadVarExists \"nomad/jobs/web\" }} {{ nomadVarExists \"none\" }}", "true false"),
        (
            "{{ range nomadVarList \"nomad\" }}{{ . }} {{ .Path }};{{ end }}{{ nomadVarList }}",
            "nomad/a nomad/a;nomad/b nomad/b;[]",
        ),
        (
            "{{ with nomadVar \"nomad/jobs/web\" }}{{ . | toUnescapedJSON }}{{ end }}",
            "{\"Keys\":\"mine\",\"password\":\"a<b\",\"user\":\"bob\"}",
        ),
    ]);
}

#[test]
fn services_are_lists_of_instances() {
    check(&[
        (
            "{{ range nomadService \"db\" }}{{ .Address }}:{{ .Port }} {{ end }}",
            "10.0.0.1:5432 10.0.0.2:5433 ",
        ),
        ("{{ range nomadService \"primary.db\" }}{{ .ID }}{{ .Node }}{{ end }}", "_1n"),
        ("{{ range nomadService 1 \"k\" \"db\" }}{{ .Port }}{{ end }}", "5433"),
        ("{{ range nomadServices }}{{ .Name }}{{ .Tags }} {{ end }}", "api[] db[primary] "),
        (
            "{{ range nomadService \"db\" }}{{ if .Tags | contains \"primary\" }}{{ .ID }}{{ end }}{{ if .Tags.Contains \"primary\" }}!{{ end }}{{ end }}",
            "_1!",
        ),
        (
            "{{ range $tag, $items := nomadService \"db\" | byTag }}{{ $tag }}{{ len $items }}{{ end }}",
            "primary1",
        ),
    ]);
}

#[test]
fn what_has_not_arrived_is_named_all_at_once() {
    let render = |text| render_as(text, &syntax()).unwrap_err();
    let all = render(
        "{{ nomadVar \"b@ns\" }}{{ range nomadService \"x@eu\" }}{{ end }}{{ (nomadVar \"a\").k.Value.Deep }}",
    );
    assert_eq!(all, "missing nomad.var.block(a), nomad.var.block(b@ns), nomad.service(x@.eu)");
    assert_eq!(render("{{ with nomadVar \"none\" }}x{{ end }}"), "missing nomad.var.block(none)");
    assert_eq!(render("{{ nomadVarListSafe }}"), "missing nomad.var.list()");
    assert!(render("{{ nomadVar \"closed\" }}").contains("nomad.var.block(closed): Permission denied"));
    assert!(render("{{ nomadVar \"\" }}").contains("invalid format"));
    let place = Place { namespace: Some("n".to_string()), region: Some("r".to_string()) };
    assert_eq!(Dependency::Services { place }.to_string(), "nomad.services@n.r");
}

#[test]
fn texts_are_changed_and_searched() {
    check(&[
        ("{{ \"a,b,c\" | split \",\" | join \"-\" }} {{ \"\" | split \",\" | len }}", "a-b-c 0"),
        (
            "{{ \"hello world!!\" | trim \"!!\" }}|{{ \"hello\" | trimPrefix \"he\" }}|{{ \"hello\" | trimSuffix \"lo\" }}|{{ \" a \" | trimSpace }}",
            "hello world|llo|hel|a",
        ),
        (
            "{{ \"foo.bar\" | replaceAll \".\" \"_\" }} {{ \"foo.bar\" | regexReplaceAll \"foo([.a-z]+)\" \"$1\" }} {{ \"foo.bar\" | regexMatch \"foo([.a-z]+)\" }}",
            "foo_bar .bar true",
        ),
        ("{{ \"aB c-d\" | toTitle }} {{ \"aB\" | toLower }} {{ \"aB\" | toUpper }}", "AB C-D ab AB"),
        ("{{ \"a\\n\\nb\\n\" | indent 2 }}", "  a\n\n  b\n"),
        ("{{ $m := \"foo:bar\\nbaz:bat\\n\" | splitToMap \"\\n\" \":\" }}{{ $m.foo }}{{ $m.baz }}", "barbat"),
        (
            "{{ $l := \"a,b\" | split \",\" }}{{ in $l \"a\" }} {{ contains \"z\" $l }} {{ $w := \"a,z\" | split \",\" }}{{ containsAll $w $l }} {{ containsAny $w $l }} {{ containsNone $w $l }} {{ containsNotAll $w $l }}",
            "true false false true false true",
        ),
        (
            "{{ env \"NOMAD_TASK_NAME\" }}|{{ env \"NOPE\" }}|{{ envOrDefault \"NOPE\" \"d\" }}|{{ envOrDefault \"EMPTY\" \"d\" }}|{{ or (env \"EMPTY\") \"x\" }}",
            "web||d||x",
        ),
        (
            "{{ file \"local/a\" }}{{ timestamp }} {{ timestamp \"2006-01-02\" }} {{ timestamp \"unix\" }}",
            "content\n2026-01-02T03:04:05Z 2026-01-02 1767323045",
        ),
    ]);
}

#[test]
fn values_are_encoded_as_go_does() {
    check(&[
        (
            "{{ \"hello\" | base64Encode }} {{ \"aGVsbG8=\" | base64Decode }} {{ \"a?>\" | base64URLEncode }} {{ \"YT8-\" | base64URLDecode }}",
            "aGVsbG8= hello YT8- a?>",
        ),
        (
            "{{ \"bladibla\" | sha256Hex }}",
            "54cf4c66bcabb5c20e25331c01dd600b73369e97a947861bd8d3a0e0b8b3d70b",
        ),
        (
            "{{ hmacSHA256Hex \"what do ya want for nothing?\" \"Jefe\" }}",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "{{ $d := `{\"a\":42,\"b\":1e6,\"c\":[1.5,null,\"<&>\"]}` | parseJSON }}{{ $d.a }} {{ $d.b }} {{ $d | toJSON }} {{ $d | toUnescapedJSON }}",
            "42 1e+06 {\"a\":42,\"b\":1000000,\"c\":[1.5,null,\"\\u003c\\u0026\\u003e\"]} {\"a\":42,\"b\":1000000,\"c\":[1.5,null,\"<&>\"]}",
        ),
        (
            "{{ `{\"a\":{\"b\":[1],\"c\":{}}}` | parseJSON | toJSONPretty }}",
            "{\n  \"a\": {\n    \"b\": [\n      1\n    ],\n    \"c\": {}\n  }\n}",
        ),
        (
            "{{ `{\"admin\":{\"port\":\"1134\"},\"maxconns\":\"5\",\"minconns\":\"2\"}` | parseJSON | toTOML }}",
            "maxconns = \"5\"\nminconns = \"2\"\n\n[admin]\n  port = \"1134\"",
        ),
        (
            "{{ `{\"admin\":{\"port\":\"1234\"},\"maxconns\":\"5\",\"l\":[\"a\",{\"x\":true,\"y\":\"- z\"}],\"t\":\"a\\nb\\n\"}` | parseJSON | toYAML }}",
            "admin:\n  port: \"1234\"\nl:\n- a\n- x: true\n  \"y\": '- z'\nmaxconns: \"5\"\nt: |\n  a\n  b",
        ),
        (
            "{{ $y := \"a: 1\\nb: [x, 'true', yes]\\nc: {d: 1.5}\\n\" | parseYAML }}{{ $y }} {{ $y.c.d }}",
            "map[a:1 b:[x true true] c:map[d:1.5]] 1.5",
        ),
        (
            "{{ \"true\" | parseBool }} {{ \"\" | parseBool }} {{ \"12\" | parseInt | add 1 }} {{ \"1.2\" | parseFloat }} {{ \"7\" | parseUint }}",
            "true false 13 1.2 7",
        ),
    ]);
}

#[test]
fn a_text_that_is_no_utf_8_is_written_as_it_is() {
    let template = Template::parse_as("{{ \"/wD+\" | base64Decode }}", &syntax()).unwrap();
    let done = template.render_task(&known(), &BTreeSet::new()).unwrap();
    assert_eq!(done, Rendered::Done(vec![0xff, 0x00, 0xfe]));
}

#[test]
fn numbers_maps_and_the_scratch() {
    check(&[
        (
            "{{ 5 | subtract 2 }} {{ divide 2 10 }} {{ modulo 2 5 }} {{ multiply 2 1.5 }} {{ minimum 2 5 }} {{ 5 | maximum 2 }}",
            "3 5 1 3 2 5",
        ),
        ("{{ range loop 3 }}{{ . }}{{ end }} {{ range $i := loop 5 8 }}s{{ $i }}{{ end }}", "012 s5s6s7"),
        (
            "{{ scratch.Set \"a\" 1 }}{{ scratch.SetX \"a\" 2 }}{{ scratch.Get \"a\" }} {{ scratch.Key \"b\" }}",
            "1 false",
        ),
        (
            "{{ scratch.MapSet \"m\" \"foo/bar\" \"a\" }}{{ scratch.MapSet \"m\" \"foo/baz\" \"b\" }}{{ scratch.Get \"m\" | explodeMap | toYAML }} {{ scratch.MapValues \"m\" }}",
            "foo:\n  bar: a\n  baz: b [a b]",
        ),
        (
            "{{ if scratch.Key \"x\" }}y{{ else }}n{{ end }}{{ \"v\" | scratch.Set \"x\" }}{{ if scratch.Key \"x\" }}y{{ end }}",
            "ny",
        ),
        (
            "{{ $a := `{\"x\":{\"y\":\"1\"}}` | parseJSON }}{{ `{\"x\":{\"y\":\"2\",\"z\":\"3\"}}` | parseJSON | mergeMap $a | toJSON }}",
            "{\"x\":{\"y\":\"1\",\"z\":\"3\"}}",
        ),
        (
            "{{ $a := `{\"x\":{\"y\":\"1\"}}` | parseJSON }}{{ `{\"x\":{\"y\":\"2\",\"z\":\"3\"}}` | parseJSON | mergeMapWithOverride $a | toJSON }}",
            "{\"x\":{\"y\":\"2\",\"z\":\"3\"}}",
        ),
    ]);
}

#[test]
fn what_is_not_here_is_an_error_that_names_it() {
    for (template, expected) in [
        ("{{ connect \"a\" }}", "line 1: error calling connect: this node does not have the function"),
        ("{{ with secret \"a\" \"b\" }}{{ end }}", "line 1: error calling secret: not k=v pair \"b\""),
        ("{{ with secret \"/\" }}{{ end }}", "line 1: error calling secret: invalid format: \"/\""),
        ("{{ md5sum \"a\" }}", "line 1: error calling md5sum: function is disabled"),
        ("{{ sockaddr \"a\" }}", "line 1: error calling sockaddr: this node does not have the function"),
        ("{{ nope }}", "line 1: function \"nope\" not defined"),
        ("{{ mustEnv \"A\" }}", "line 1: error calling mustEnv: environment variable A is not set"),
        ("{{ file \"/etc/passwd\" }}", "line 1: error calling file: no such file"),
        ("{{ divide 0 1 }}", "line 1: error calling divide: division by zero"),
        ("{{ \"x\" | parseInt }}", "line 1: error calling parseInt: \"x\" is not an integer"),
        ("{{ scratch.Nope }}", "line 1: error calling Nope: scratch has no Nope"),
    ] {
        assert_eq!(render_as(template, &syntax()).unwrap_err(), expected, "{template}");
    }
}

#[test]
fn a_template_chooses_its_delimiters_and_whether_a_missing_key_is_an_error() {
    let own = Syntax { left: "[[".to_string(), right: "]]".to_string(), ..syntax() };
    let text = "{{ x }} [[- with nomadVar \"nomad/jobs/web\" ]]<[[ .user ]]>[[ end -]] [[/* no */]]";
    assert_eq!(render_as(text, &own).as_deref(), Ok("{{ x }}<bob>"));
    let strict = Syntax { missing_key_is_error: true, ..syntax() };
    let wrong = render_as("{{ (nomadVar \"nomad/jobs/web\").nope }}", &strict).unwrap_err();
    assert_eq!(wrong, "line 1: map has no entry for key \"nope\"");
    assert_eq!(render_as("{{ (nomadVar \"x\").nope }}", &strict).unwrap_err(), "missing nomad.var.block(x)");
    let empty = Syntax { left: String::new(), ..syntax() };
    assert_eq!(Template::parse_as("x", &empty).unwrap_err().to_string(), "line 1: a delimiter is empty");
}
