//! Expressions, templates and functions, seen through the `meta` of a job.

use jobspec::{Files, NoFiles, Source, Variables, parse};

struct OneFile;

impl Files for OneFile {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            "./greeting.txt" => Ok(b"hello\n".to_vec()),
            other => Err(format!("no file {other}")),
        }
    }

    fn random(&self) -> Option<[u8; 16]> {
        Some([0xff; 16])
    }
}

fn text_of(locals: &str, expression: &str) -> Result<String, String> {
    let text = format!("locals {{\n{locals}\n}}\njob \"j\" {{\n meta = {{\n v = {expression}\n }}\n}}\n");
    let parsed = parse(&Source::new("j.hcl", text), &Variables::default(), &OneFile);
    parsed.map(|parsed| parsed.job.meta["v"].clone()).map_err(|wrong| wrong.plain())
}

fn expect(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(text_of("", expression).as_deref(), Ok(*expected), "{expression}");
    }
}

#[test]
fn references_that_only_a_node_can_resolve_stay_as_written() {
    expect(&[
        (r#""${NOMAD_PORT_http}""#, "${NOMAD_PORT_http}"),
        (r#""${attr.kernel.name}""#, "${attr.kernel.name}"),
        (r#""${node.unique.name}-${meta.rack}""#, "${node.unique.name}-${meta.rack}"),
        (r#""${env["HOME"]}/x""#, r#"${env["HOME"]}/x"#),
        (r#""${attr.unique.network.ip-address}""#, "${attr.unique.network.ip-address}"),
        (r#""${meta["a.b"]}""#, r#"${meta["a.b"]}"#),
        ("NOMAD_X", "${NOMAD_X}"),
        (r#"upper("${attr.x}")"#, "${ATTR.X}"),
        (r#""$${literal} %%{too} $NOT ${1}%""#, "${literal} %{too} $NOT 1%"),
        (r#""{{ env \"X\" }}""#, r#"{{ env "X" }}"#),
    ]);
}

#[test]
fn operators_bind_and_compute_as_in_the_language() {
    expect(&[
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / 2", "3.5"),
        ("8 / 2", "4"),
        ("7 % 4 - -1", "4"),
        ("\"3\" + 1", "4"),
        ("1.50", "1.5"),
        ("2e3", "2000"),
        ("!false && 1 < 2 || false", "true"),
        ("1 == 1.0 && \"a\" != \"b\"", "true"),
        ("1 == \"1\"", "false"),
        ("2 >= 2 ? \"yes\" : \"no\"", "yes"),
        ("true ? \"a\" : nonsense(1)", "a"),
        ("[1, 2, 3][1]", "2"),
        ("{ a = { b = \"c\" } }.a.b", "c"),
        ("{ \"x y\" = 1 }[\"x y\"]", "1"),
        ("join(\",\", [{ a = 1 }, { a = 2 }][*].a)", "1,2"),
        ("join(\",\", [{ a = 1 }, { a = 2 }].*.a)", "1,2"),
        ("join(\",\", [for x in [1, 2, 3] : x * x if x != 2])", "1,9"),
        ("join(\",\", [for k, v in { b = 1, a = 2 } : \"${k}${v}\"])", "a2,b1"),
        ("{ for x in [\"a\", \"b\"] : x => upper(x) }[\"b\"]", "B"),
        ("length({ for x in [\"a\", \"b\", \"a\"] : x => x... }[\"a\"])", "2"),
    ]);
}

#[test]
fn templates_have_directives_and_trim_markers() {
    expect(&[
        (r#""%{ if 1 < 2 }yes%{ else }no%{ endif }""#, "yes"),
        (r#""%{ for x in ["a", "b"] }<${x}>%{ endfor }""#, "<a><b>"),
        (r#""a  ${~ "b" ~}  c""#, "abc"),
        (r#""tab\tquote\" u\u00e9 \\""#, "tab\tquote\" u\u{e9} \\"),
    ]);
}

#[test]
fn heredocs_keep_their_lines_and_lose_common_indentation_on_request() {
    let heredoc = |mark: &str, body: &str| {
        let text = format!("job \"j\" {{\n meta {{\n v = {mark}\n{body}\n w = 1\n }}\n}}\n");
        let parsed = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles);
        parsed.unwrap_or_else(|wrong| panic!("{wrong}")).job.meta["v"].clone()
    };
    assert_eq!(heredoc("<<EOF", "  a\n b \\n\nEOF"), "  a\n b \\n\n");
    assert_eq!(heredoc("<<-EOF", "    a\n\n      b ${NOMAD_X}\n    EOF"), "a\n\n  b ${NOMAD_X}\n");
    assert_eq!(heredoc("<<-EOF", "    ${1}\n      b\n    EOF"), "1\n  b\n");
    assert_eq!(
        heredoc("<<EOF", "{{ range $i := .x }}\"${meta.a}\"{{ end }}\nEOF"),
        "{{ range $i := .x }}\"${meta.a}\"{{ end }}\n"
    );
    assert_eq!(heredoc("<<EOF", "EOF"), "");
    let directive = "    head:\n    %{ if true ~}\n    sub: 1\n    %{ endif ~}\n    EOF";
    assert_eq!(heredoc("<<-EOF", directive), "head:\n    sub: 1\n");
    assert_eq!(heredoc("<<-EOF", &directive.replace(" ~}", " }")), "head:\n\nsub: 1\n\n");
    // White space before a line's first mark is gone before it is counted: the line begins at its edge.
    assert_eq!(heredoc("<<-EOF", "    a\n    %{~ if true }b%{ endif }\n    EOF"), "    a\nb\n");
}

#[test]
fn locals_are_evaluated_in_the_order_they_need() {
    let locals = "a = \"${local.b}!\"\nb = upper(local.c.d)\nc = { d = \"x\" }";
    assert_eq!(text_of(locals, "local.a").as_deref(), Ok("X!"));
}

#[test]
fn what_cannot_be_evaluated_gives_a_reason() {
    let cases = [
        ("local.nothing", "there is no local \"nothing\""),
        ("var.nothing", "there is no variable \"nothing\""),
        ("uper(\"a\")", "there is no function \"uper\"; did you mean \"upper\"?"),
        ("file(\"secret\")", "file: no file secret"),
        ("upper()", "upper takes 1 arguments, found 0"),
        ("1 / 0", "cannot divide by zero"),
        ("[1][3]", "there is no element 3 in a list of 1"),
        ("\"a${[1]}\"", "only text, numbers and bools can stand inside text"),
        ("{ abc = 1 }.abd", "this object has no \"abd\"; did you mean \"abc\"?"),
        ("attr.x ? 1 : 2", "expected a bool, found the text \"${attr.x}\""),
        ("range(5000)", "range: more than 1024 elements"),
        ("[for x in 5 : x]", "cannot go through the number 5"),
    ];
    for (expression, message) in cases {
        let wrong = text_of("", expression).unwrap_err();
        assert!(wrong.contains(message), "{expression}: {wrong}");
    }
    let wrong = text_of("a = local.b\nb = local.a", "1").unwrap_err();
    assert!(wrong.contains("refers to itself"), "{wrong}");
}

#[test]
fn without_files_no_file_is_read() {
    let text = "job \"j\" {\n meta = { v = file(\"/etc/passwd\") }\n}\n";
    let wrong = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles).unwrap_err();
    assert!(wrong.plain().contains("filesystem function disabled"), "{wrong}");
}

/// What the parse call of a server gives: no disk, but chance.
struct NoDisk;

impl Files for NoDisk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        NoFiles.read(path)
    }

    fn allowed(&self) -> bool {
        NoFiles.allowed()
    }

    fn random(&self) -> Option<[u8; 16]> {
        Some([0xff; 16])
    }
}

#[test]
fn without_a_disk_there_may_still_be_chance() {
    let value = |expression: &str| {
        let text = format!("job \"j\" {{\n meta = {{ v = {expression} }}\n}}\n");
        let parsed = parse(&Source::new("j.hcl", text), &Variables::default(), &NoDisk);
        parsed.map(|parsed| parsed.job.meta["v"].clone()).map_err(|wrong| wrong.plain())
    };
    assert_eq!(value("uuidv4()").as_deref(), Ok("ffffffff-ffff-4fff-bfff-ffffffffffff"));
    assert!(value("bcrypt(\"secret\", 4)").unwrap().starts_with("$2a$04$"));
    let wrong = value("file(\"/etc/passwd\")").unwrap_err();
    assert!(wrong.contains("filesystem function disabled"), "{wrong}");
}

#[test]
fn small_print_of_expressions() {
    expect(&[
        ("-2 * 3", "-6"),
        ("5 - -1", "6"),
        ("2 + 3 * 4 - 6 / 3", "12"),
        ("7 % 3 == 1 && 1 + 1 == 2", "true"),
        ("1 < 2 == true", "true"),
        ("!(1 > 2) || 1 / 1 > 5", "true"),
        ("true ? false ? 1 : 2 : 3", "2"),
        ("0.1 + 0.2", "0.3"),
        ("1.1 * 3", "3.3"),
        ("10 / 4", "2.5"),
        ("1e-7", "0.0000001"),
        ("1.5e3", "1500"),
        ("1.0", "1"),
        ("9223372036854775807", "9223372036854775807"),
        ("18446744073709551615 + 1", "18446744073709551616"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("jsonencode([18446744073709551615])", "[18446744073709551615]"),
        ("1e20", "100000000000000000000"),
        ("\"${\"a\"}${\"b\"}\"", "ab"),
        ("\"${\"in ${upper(\"ner\")}\"}\"", "in NER"),
        ("jsonencode({ a = 1, a = 2 })", "{\"a\":2}"),
        (
            "jsonencode({ (upper(\"k\")) = 1, \"${\"l\"}\" = 2, 5 = 3, \"q r\" : 4 })",
            "{\"5\":3,\"K\":1,\"l\":2,\"q r\":4}",
        ),
        ("[\"a\", \"b\"].1", "b"),
        ("{ a = [{ \"b-c\" = [1, 2] }] }.a[0][\"b-c\"][1]", "2"),
        ("jsonencode(null[*])", "[]"),
        ("jsonencode([[{ a = 1 }], [{ a = 2 }]][*][0].a)", "[1,2]"),
        ("jsonencode({ for k, v in { a = 1, b = 2 } : \"${k}-x\" => v if v > 1 })", "{\"b-x\":2}"),
        (
            "jsonencode([for i, v in [\"x\", \"y\"] : { index = i, value = v }])",
            "[{\"index\":0,\"value\":\"x\"},{\"index\":1,\"value\":\"y\"}]",
        ),
        ("upper(<<EOT\nlines\nEOT\n)", "LINES\n"),
        ("join(\",\", [<<A\none\nA\n, <<-B\n    two\n    B\n])", "one\n,two\n"),
        ("NOMAD_META_x == \"a\" ? 1 : 2", "2"),
        ("\"${ env[ \"HOME\" ] }\"", "${env[ \"HOME\" ]}"),
        ("\"%{ for k, v in { a = 1, b = 2 } }${k}=${v};%{ endfor }\"", "a=1;b=2;"),
        ("\"%{ if true }%{ if false }x%{ else }y%{ endif }%{ endif }\"", "y"),
        ("\"100% $ {x} $5 %d\"", "100% $ {x} $5 %d"),
        ("(\n 1 +\n 2 # sum\n)", "3"),
        ("max(\n 1,\n 2, // trailing comma\n)", "2"),
        ("\"ключ: ${\"значение\"}\"", "ключ: значение"),
    ]);
}

#[test]
fn lines_may_end_as_on_other_systems() {
    let text = "job \"j\" {\r\n  meta {\r\n    a = \"1\" # one\r\n    b = <<EOT\r\nx\r\nEOT\r\n  }\r\n}\r\n";
    let job = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles).unwrap().job;
    assert_eq!((job.meta["a"].as_str(), job.meta["b"].trim_end()), ("1", "x"));
}

#[test]
fn null_is_as_if_nothing_had_been_written() {
    let text = "variable \"count\" {\n  type = number\n  default = null\n}\njob \"j\" {\n  region = null\n  meta = null\n  group \"g\" {\n    count = var.count\n    task \"t\" {\n      driver = \"x\"\n      config = null\n      env = { A = null, B = 1 }\n    }\n  }\n}\n";
    let job = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles).unwrap().job;
    assert_eq!((job.region, job.task_groups[0].count), (None, None));
    assert_eq!(
        job.task_groups[0].tasks[0].env.iter().collect::<Vec<_>>(),
        [(&"B".to_string(), &"1".to_string())]
    );
}
