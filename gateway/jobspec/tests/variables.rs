//! Variables: declared, given, converted, checked.

use jobspec::{NoFiles, Source, Variables, parse};

fn value_of(declarations: &str, expression: &str, given: &Variables) -> Result<String, String> {
    let text = format!("{declarations}\njob \"j\" {{\n meta = {{\n v = {expression}\n }}\n}}\n");
    let parsed = parse(&Source::new("j.hcl", text), given, &NoFiles);
    parsed.map(|parsed| parsed.job.meta["v"].clone()).map_err(|wrong| wrong.plain())
}

fn flag(name: &str, value: &str) -> Variables {
    Variables { flags: vec![(name.to_string(), value.to_string())], ..Variables::default() }
}

#[test]
fn later_sources_win() {
    let declared = "variable \"x\" {\n default = \"default\"\n}\n";
    let mut given = Variables::default();
    let value = |given: &Variables| value_of(declared, "var.x", given).unwrap();
    assert_eq!(value(&given), "default");
    given.env = vec![
        ("NOMAD_VAR_x".to_string(), "env".to_string()),
        ("NOMAD_VAR_other".to_string(), "?".to_string()),
    ];
    assert_eq!(value(&given), "env");
    given.files = vec![Source::new("a.vars", "x = \"first\"\n"), Source::new("b.json", "{\"x\": \"file\"}")];
    assert_eq!(value(&given), "file");
    given.text = Some("x = \"text\"".to_string());
    assert_eq!(value(&given), "text");
    given.flags = vec![("x".to_string(), "flag".to_string())];
    assert_eq!(value(&given), "flag");
}

#[test]
fn values_take_the_declared_type() {
    let cases = [
        ("string", "5", "var.x", "5"),
        ("number", "5", "var.x + 1", "6"),
        ("bool", "true", "var.x ? \"on\" : \"off\"", "on"),
        ("list(string)", "[\"a\", 1]", "join(\",\", var.x)", "a,1"),
        ("set(number)", "[10, \"9\", 2, 10]", "jsonencode(var.x)", "[2,9,10]"),
        ("set(string)", "[\"b\", \"a\", 1]", "join(\",\", var.x)", "1,a,b"),
        ("map(set(bool))", "{ a = [true, false] }", "jsonencode(var.x.a)", "[false,true]"),
        ("map(number)", "{ a = \"1\" }", "var.x.a + 1", "2"),
        ("object({ n = number, l = list(string) })", "{ n = 1, l = [\"z\"], extra = 1 }", "var.x.l[0]", "z"),
        ("tuple([string, number])", "[1, 2]", "var.x[0]", "1"),
        ("any", "[1, 2]", "length(var.x)", "2"),
    ];
    for (kind, given, expression, expected) in cases {
        let declared = format!("variable \"x\" {{\n type = {kind}\n}}\n");
        let value = value_of(&declared, expression, &flag("x", given));
        assert_eq!(value.as_deref(), Ok(expected), "{kind}");
    }
}

#[test]
fn untyped_values_from_flags_are_text() {
    assert_eq!(
        value_of("variables {\n x = 1\n}\n", "var.x == \"2\"", &flag("x", "2")).as_deref(),
        Ok("true")
    );
}

#[test]
fn a_variable_without_value_is_named_where_it_is_declared() {
    let wrong = value_of("variable \"image\" {\n type = string\n}\n", "var.image", &Variables::default())
        .unwrap_err();
    assert!(wrong.starts_with("j.hcl:1:10: unset variable \"image\"; give it with -var image="), "{wrong}");
}

#[test]
fn undeclared_names_are_errors_only_when_strict() {
    let declared = "variables {\n count = 1\n}\n";
    let mut given = flag("cuont", "2");
    let wrong = value_of(declared, "1", &given).unwrap_err();
    assert!(wrong.contains("undeclared variable \"cuont\"; did you mean \"count\"?"), "{wrong}");
    given.files = vec![Source::new("a.vars", "other = 1\n")];
    given.strict = false;
    let text = format!("{declared}job \"j\" {{}}\n");
    let parsed = parse(&Source::new("j.hcl", text), &given, &NoFiles).unwrap();
    assert_eq!(parsed.warnings.len(), 2, "{:?}", parsed.warnings);
}

#[test]
fn validation_answers_with_its_own_message() {
    let declared = "variable \"n\" {\n type = number\n validation {\n condition = var.n > 2\n error_message = \"Too small.\"\n }\n}\n";
    assert_eq!(value_of(declared, "var.n", &flag("n", "3")).as_deref(), Ok("3"));
    let wrong = value_of(declared, "var.n", &flag("n", "1")).unwrap_err();
    assert_eq!(wrong, "j.hcl:4:14: invalid value for variable \"n\": Too small.");
}

#[test]
fn wrong_declarations_and_values_are_reported_with_position() {
    let cases = [
        (
            "variable \"x\" {\n type = strng\n}\n",
            "j.hcl:2:9: there is no type \"strng\"; did you mean string?",
        ),
        ("variable \"x\" {\n type = \"string\"\n}\n", "types are written without quotes: string"),
        (
            "variable \"x\" {\n defualt = 1\n}\n",
            "\"defualt\" is not expected in a variable; did you mean \"default\"?",
        ),
        (
            "variable \"x\" {\n type = number\n default = \"a\"\n}\n",
            "the default of variable \"x\": expected a number",
        ),
        (
            "variable \"x\" {\n default = 1\n}\nvariable \"x\" {\n default = 2\n}\n",
            "the variable \"x\" is declared twice",
        ),
        ("variable \"a\" \"b\" {}\n", "a variable has one label: its name"),
        ("variable \"x\" {\n validation {\n condition = true\n }\n}\n", "validation needs \"error_message\""),
        ("locals {\n a {}\n}\n", "locals holds only name = value"),
    ];
    for (declared, message) in cases {
        let wrong = value_of(declared, "1", &Variables::default()).unwrap_err();
        assert!(wrong.contains(message), "{declared}: {wrong}");
    }
    let wrong =
        value_of("variable \"x\" {\n type = list(string)\n}\n", "1", &flag("x", "[\"a\"")).unwrap_err();
    assert!(wrong.starts_with("-var x:1:1: this `[` is never closed"), "{wrong}");
    let file = Source::new("a.vars", "variable \"x\" {}\n");
    let given = Variables { files: vec![file], ..Variables::default() };
    let wrong = value_of("variables {\n x = 1\n}\n", "1", &given).unwrap_err();
    assert!(wrong.starts_with("a.vars:1:1: a variable is declared in the job file"), "{wrong}");
}
