use serde_json::json;

use super::*;

fn block(name: &str, nested: Spec) -> Spec {
    let nested = Some(Box::new(nested));
    Block::BlockValue(Box::new(BlockValue { name: name.into(), required: false, nested })).into()
}

fn schema() -> Spec {
    let port = Spec::object([("host", Spec::attr("host", "number", true))]);
    let list = BlockList { name: "port".into(), min_items: 0, max_items: 2, nested: Some(Box::new(port)) };
    let level = Spec::object([("level", Spec::attr("level", "string", false))]);
    let map = BlockMap { name: "sink".into(), labels: vec!["kind".into()], nested: Some(Box::new(level)) };
    let gc = Spec::object([
        ("container", Spec::attr("container", "bool", false).or("true")),
        ("delay", Spec::attr("delay", "string", false).or("\"5m\"")),
    ]);
    let attrs = Attr { name: "labels".into(), kind: "string".into(), required: false };
    Spec::object([
        ("command", Spec::attr("command", "string", true)),
        ("args", Spec::attr("args", "list(string)", false)),
        ("size", Spec::attr("size", "number", false).or("7")),
        ("env", Spec::attr("env", "list(map(string))", false)),
        ("labels", Block::BlockAttrs(attrs).into()),
        ("gc", block("gc", gc).or("{ container = false }")),
        ("ports", Block::BlockList(Box::new(list)).into()),
        ("sinks", Block::BlockMap(Box::new(map)).into()),
    ])
}

fn of(block: Value) -> Result<Value, String> {
    read("driver toy", &schema(), block.as_object().unwrap())
}

#[test]
fn a_block_becomes_what_the_schema_says() {
    let read = of(json!({
        "command": 5, "args": ["a", 1, true], "env": {"A": 1}, "labels": [{"x": "1"}, {"x": 2, "y": "3"}],
        "gc": [{"delay": "1m"}], "port": [{"host": "80"}, {"host": 81}], "sink": {"file": {"level": "warn"}}
    }));
    let expected = json!({
        "command": "5", "args": ["a", "1", "true"], "size": 7, "env": [{"A": "1"}], "labels": {"x": "2", "y": "3"},
        "gc": {"container": true, "delay": "1m"}, "ports": [{"host": 80}, {"host": 81}],
        "sinks": {"file": {"level": "warn"}}
    });
    assert_eq!(read.unwrap(), expected);
    let least = of(json!({"command": "c", "args": null})).unwrap();
    let expected = json!({
        "command": "c", "args": null, "size": 7, "env": null, "labels": null, "gc": {"container": false},
        "ports": [], "sinks": {}
    });
    assert_eq!(least, expected);
}

#[test]
fn every_mistake_is_named() {
    for (block, text) in [
        (json!({}), "config key \"command\" is required"),
        (json!({"command": "c", "comand": 1}), "driver toy has no config key \"comand\""),
        (json!({"command": "c", "gc": {"x": 1}}), "driver toy has no config key \"gc.x\""),
        (json!({"command": "c", "port": [{}]}), "config key \"port.host\" is required"),
        (json!({"command": []}), "config key \"command\" must be a string, not []"),
        (json!({"command": "c", "size": "x"}), "config key \"size\" must be a number, not \"x\""),
        (
            json!({"command": "c", "args": "x"}),
            "config key \"args\" must be a list whose items are each a string, not \"x\"",
        ),
        (json!({"command": "c", "gc": 1}), "config key \"gc\" must be a block, not 1"),
        (json!({"command": "c", "gc": [{}, {}]}), "config key \"gc\" is given 2 times"),
        (
            json!({"command": "c", "port": [{"host": 1}, {"host": 1}, {"host": 1}]}),
            "config key \"port\" is given 3 times: expected at least 0 and at most 2",
        ),
        (json!({"command": "c", "sink": {"a": {"x": 1}}}), "driver toy has no config key \"sink.x\""),
    ] {
        assert_eq!(of(block).unwrap_err(), text);
    }
}

#[test]
fn types_are_read_as_they_are_written() {
    for text in [
        "string",
        "list(map(number))",
        "set(string)",
        "object({a = bool, b=list(any)})",
        "tuple([string, bool])",
    ] {
        Type::parse(text).unwrap();
    }
    for text in ["", "strin", "list", "list(string", "list(string))", "object({a})"] {
        assert!(Type::parse(text).unwrap_err().contains(&format!("\"{text}\"")));
    }
    let deep = "list(".repeat(100) + "string" + &")".repeat(100);
    assert!(Type::parse(&deep).is_err());
    let object = Type::parse("object({a = bool, b = number})").unwrap();
    assert_eq!(object.convert(&json!({"a": "true"})).unwrap(), json!({"a": true, "b": null}));
    assert_eq!(object.convert(&json!({"c": 1})), None);
    let set = Type::parse("set(number)").unwrap();
    assert_eq!(set.convert(&json!([1, "1", 2])).unwrap(), json!([1, 2]));
}

#[test]
fn a_schema_that_cannot_be_read_is_found_before_it_is_used() {
    check(&schema()).unwrap();
    assert_eq!(
        check(&Spec::object([("a", Spec::attr("a", "txt", false))])).unwrap_err(),
        "key \"a\": the schema has the unknown type \"txt\""
    );
    let error = check(&Spec::object([("a", Spec::attr("a", "string", false).or("{ x"))])).unwrap_err();
    assert!(error.starts_with("the schema has the literal { x: "), "{error}");
    assert_eq!(
        check(&Spec::object([("a", Spec { block: None })])).unwrap_err(),
        "the schema has an empty part"
    );
    let mut deep = Spec::attr("a", "string", false);
    for _ in 0..40 {
        deep = Spec::object([("a", deep)]);
    }
    assert!(check(&deep).unwrap_err().contains("32 levels"));
}

#[test]
fn plugins_get_it_as_message_pack() {
    assert_eq!(encode(&json!({"a": [1, null]})), [0x81, 0xa1, b'a', 0x92, 1, 0xc0]);
}
