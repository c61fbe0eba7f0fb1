//! A type that is compiled once and its twin that is not read and write alike, in every format, errors included.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::compiled_once;
use crate::document::{Bytes, Duration, List, Map, Timestamp, input};
use crate::partial;

compiled_once! { Once Choice Keyed }

macro_rules! twins {
    ($($body:tt)*) => {
        #[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, rename_all = "PascalCase", remote = "Self")]
        struct Once { $($body)* }

        #[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, rename_all = "PascalCase")]
        struct Twin { $($body)* }
    };
}

twins! {
    name: Option<String>,
    small: u8,
    signed: i16,
    single: f32,
    float: f64,
    letter: char,
    flag: bool,
    pair: (u32, String),
    bytes: Bytes,
    span: Option<Duration>,
    at: Timestamp,
    tags: List<String>,
    meta: Map<String, i64>,
    config: BTreeMap<String, Value>,
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rare: Option<Box<Part>>,
    nothing: (),
    newtype: Newtype,
}

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    id: u64,
    #[serde(default)]
    inner: Option<Box<Part>>,
}

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
struct Newtype(u16);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
enum Choice {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { a: u8, b: Option<bool> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum ChoiceTwin {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { a: u8, b: Option<bool> },
}

const GOOD: &str = r#"{"Name": "a", "Small": 7, "Signed": -300, "Single": 0.1, "Float": 1e300, "Letter": "x",
    "Flag": true, "Pair": [1, "two"], "Bytes": "AQI=", "Span": "30s", "At": "2026-01-02T03:04:05Z",
    "Tags": ["x", "y"], "Meta": {"k": -1}, "Config": {"deep": [{"a": null}, 1.5]},
    "Parts": [{"id": 1, "inner": {"id": 2}}], "Rare": {"id": 3}, "Nothing": null, "Newtype": 9, "Unknown": [1]}"#;

fn bad() -> Vec<String> {
    let mut bad: Vec<String> = [
        "",
        "null",
        "[]",
        "3",
        "\"text\"",
        "{",
        "{\"Name\": \"a\"",
        "{\"Name\": 1}",
        "{\"Small\": 300}",
        "{\"Small\": -1}",
        "{\"Small\": 1.5}",
        "{\"Signed\": 40000}",
        "{\"Letter\": \"xy\"}",
        "{\"Flag\": 1}",
        "{\"Float\": \"x\"}",
        "{\"Pair\": [1]}",
        "{\"Pair\": [1, \"a\", 2]}",
        "{\"Pair\": {}}",
        "{\"Bytes\": \"?\"}",
        "{\"Span\": \"soon\"}",
        "{\"Span\": true}",
        "{\"At\": \"never\"}",
        "{\"Tags\": {}}",
        "{\"Tags\": [\"a\", 1]}",
        "{\"Meta\": {\"k\": \"v\"}}",
        "{\"Parts\": [{}]}",
        "{\"Parts\": [{\"id\": 1, \"x\": 1}]}",
        "{\"Parts\": [{\"id\": 1, \"inner\": {\"id\": \"x\"}}]}",
        "{\"Rare\": []}",
        "{\"Newtype\": -1}",
        "{\"Name\": \"a\", \"Name\": \"b\"}",
        "{\"Nothing\": 1}",
        "{\"name\": \"b\", \"TAGS\": [1]}",
        "{} x",
    ]
    .map(str::to_string)
    .to_vec();
    bad.push(GOOD.replace("\"id\": 2", "\"id\": {}"));
    bad
}

/// The value, or the text of the error.
type Outcome<T> = Result<T, String>;

fn outcomes<T: DeserializeOwned>(text: &str) -> Vec<Outcome<T>> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let packed = value.as_ref().map(|value| rmp_serde::to_vec_named(value).unwrap());
    let mut outcomes = vec![
        serde_json::from_str(text).map_err(|error| error.to_string()),
        serde_json::from_reader(text.as_bytes()).map_err(|error| error.to_string()),
        input::from_slice(text.as_bytes()).map_err(|error| format!("{error:?}")),
    ];
    if let (Some(value), Some(packed)) = (value, packed) {
        outcomes.push(T::deserialize(&value).map_err(|error| error.to_string()));
        outcomes.push(serde_json::from_value(value).map_err(|error| error.to_string()));
        outcomes.push(rmp_serde::from_slice(&packed).map_err(|error| error.to_string()));
        for cut in 0..packed.len() {
            outcomes.push(rmp_serde::from_slice(&packed[..cut]).map_err(|error| error.to_string()));
        }
    }
    outcomes
}

fn written<T: Serialize>(document: &T) -> (Vec<String>, Vec<Vec<u8>>) {
    let texts = vec![
        serde_json::to_string(document).unwrap(),
        serde_json::to_string_pretty(document).unwrap(),
        serde_json::to_value(document).unwrap().to_string(),
    ];
    let packed = vec![rmp_serde::to_vec(document).unwrap(), rmp_serde::to_vec_named(document).unwrap()];
    (texts, packed)
}

#[test]
fn a_struct_is_read_and_refused_as_without_the_layer() {
    let mut failed = 0;
    for text in bad().iter().map(String::as_str).chain([GOOD, "{}"]) {
        let (once, twin) = (outcomes::<Once>(text), outcomes::<Twin>(text));
        let once: Vec<String> = once.iter().map(|outcome| format!("{outcome:?}")).collect();
        let twin: Vec<String> =
            twin.iter().map(|outcome| format!("{outcome:?}").replace("Twin", "Once")).collect();
        assert_eq!(once, twin, "{text}");
        failed += usize::from(once[0].starts_with("Err"));
    }
    assert!(failed > 25, "{failed} of the bad texts are refused");
    assert!(serde_json::from_str::<Once>(GOOD).is_ok());
}

/// Keys that are bytes, numbers and no UTF-8, structs that are lists, and more.
#[test]
fn odd_msgpack_is_read_and_refused_as_without_the_layer() {
    let odd: [&[u8]; 9] = [
        b"\x81\xc4\x04Name\xa1a",
        b"\x81\xa1\xff\x01",
        b"\x81\xc4\x01\xff\x01",
        b"\x81\x00\xa1a",
        b"\x81\xff\xa1a",
        b"\x81\xc0\xa1a",
        b"\x92\xa1a\x07",
        b"\x81\xa5Parts\x91\x81\xc4\x02id\x05",
        b"\x81\xa5Parts\x91\x81\xa1\xff\x05",
    ];
    let mut read = 0;
    for bytes in odd {
        let once = rmp_serde::from_slice::<Once>(bytes).map_err(|error| error.to_string());
        let twin = rmp_serde::from_slice::<Twin>(bytes).map_err(|error| error.to_string());
        assert_eq!(format!("{once:?}"), format!("{twin:?}").replace("Twin", "Once"), "{bytes:?}");
        read += usize::from(once.is_ok());
    }
    assert!((1..odd.len()).contains(&read), "{read} are read");
}

#[test]
fn a_struct_is_written_as_without_the_layer() {
    for text in [GOOD, "{}"] {
        let once: Once = serde_json::from_str(text).unwrap();
        let twin: Twin = serde_json::from_str(text).unwrap();
        assert_eq!(written(&once), written(&twin), "{text}");
        assert_eq!(partial::to_vec(&once).unwrap(), partial::to_vec(&twin).unwrap(), "{text}");
    }
}

#[test]
fn variants_are_read_and_written_as_without_the_layer() {
    for value in [
        json!("Unit"),
        json!({"Newtype": 1}),
        json!({"Tuple": [1, "a"]}),
        json!({"Struct": {"a": 1, "b": null}}),
        json!("Newtype"),
        json!("Other"),
        json!({"Newtype": "x"}),
        json!({"Tuple": [1]}),
        json!({"Struct": {"b": true}}),
        json!({"Unit": 1}),
        json!({}),
        json!(1),
    ] {
        let text = value.to_string();
        let (once, twin) = (outcomes::<Choice>(&text), outcomes::<ChoiceTwin>(&text));
        assert_eq!(format!("{once:?}"), format!("{twin:?}").replace("ChoiceTwin", "Choice"), "{text}");
        if let (Ok(once), Ok(twin)) = (&once[0], &twin[0]) {
            assert_eq!(written(once), written(twin), "{text}");
        }
    }
}

#[test]
fn an_error_of_the_serializer_stays_what_it_was() {
    let error = serde_json::to_string(&Keyed { map: BTreeMap::from([(vec![1], 1)]) }).unwrap_err();
    assert_eq!(error.to_string(), "key must be a string");
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Self")]
struct Keyed {
    map: BTreeMap<Vec<u8>, u8>,
}
