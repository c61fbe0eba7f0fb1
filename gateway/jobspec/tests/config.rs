//! Agent configuration: read by name, positions for everything else.

use jobspec::Source;
use jobspec::config::Section;

fn section(name: &str, text: &str) -> Section {
    Section::parse(&Source::new(name, text)).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn blocks_and_objects_are_the_same_in_both_syntaxes() {
    let texts = [
        ("a.hcl", "client {\n  enabled = true\n  options = { \"driver.raw_exec.enable\" = \"1\" }\n}\n"),
        ("a.hcl", "client = { enabled = true, options { driver.raw_exec.enable = 1 } }\n"),
        ("a.hcl", "\"client\" { \"enabled\" = true \"options\" { \"driver.raw_exec.enable\" = true } }"),
        ("a.json", r#"{"client": {"enabled": true, "options": {"driver.raw_exec.enable": "1"}}}"#),
        ("a.json", r#"{"client": [{"enabled": true, "options": [{"driver.raw_exec.enable": "1"}]}]}"#),
    ];
    for (name, text) in texts {
        let mut top = section(name, text);
        let mut client = top.sections("client").unwrap().pop().unwrap();
        assert_eq!(client.take::<bool>("enabled").unwrap(), Some(true), "{text}");
        let options = client.sections("options").unwrap().pop().unwrap().into_texts().unwrap();
        assert!(["1", "true"].contains(&options["driver.raw_exec.enable"].as_str()), "{text}");
        client.finish().unwrap();
        top.finish().unwrap();
    }
}

#[test]
fn labels_and_repeated_blocks_are_kept_in_order() {
    let mut top =
        section("a.hcl", "host_volume \"a\" {\n path = \"/a\"\n}\nhost_volume \"b\" {\n path = \"/b\"\n}\n");
    let volumes = top.sections("host_volume").unwrap();
    let labels: Vec<_> = volumes.iter().flat_map(|volume| volume.labels.clone()).collect();
    assert_eq!(labels, ["a", "b"]);
}

#[test]
fn templates_mean_nothing_here() {
    let mut top = section("a.hcl", "a = \"{{ GetInterfaceIP \\\"eth0\\\" }}\"\nb = \"${x}\"\n");
    assert_eq!(top.take::<String>("a").unwrap().as_deref(), Some("{{ GetInterfaceIP \"eth0\" }}"));
    assert_eq!(top.take::<String>("b").unwrap().as_deref(), Some("${x}"));
}

#[test]
fn an_unknown_key_is_an_error_with_position_and_suggestion() {
    let mut top = section("a.hcl", "data_dir = \"/x\"\n  dta_dir = \"/y\"\n");
    top.take::<String>("data_dir").unwrap();
    let wrong = top.finish().unwrap_err().to_string();
    let expected = "a.hcl:2:3: unexpected key \"dta_dir\"\n 2 |   dta_dir = \"/y\"\n   |   ^^^^^^^ did you mean \"data_dir\"?";
    assert_eq!(wrong, expected);
}

#[test]
fn a_value_of_the_wrong_shape_is_shown_with_its_position() {
    let mut top = section("a.json", "{\n  \"ports\": {\"http\": \"x\"},\n  \"client\": 3\n}");
    let mut ports = top.sections("ports").unwrap().pop().unwrap();
    let wrong = ports.take::<u16>("http").unwrap_err().plain();
    assert!(wrong.starts_with("a.json:2:21: \"http\": "), "{wrong}");
    let wrong = top.sections("client").unwrap_err().plain();
    assert!(wrong.starts_with("a.json:3:13: \"client\" is a block"), "{wrong}");
}
