//! A value of the wrong type, in every field of a job: an error that names the field, or one of the few acceptances
//! that are listed here.

use jobspec::{NoFiles, Source, Variables, parse_json};
use model::document::{Job, input};
use serde_json::{Value, json};

use super::nomad_api::{full, one_of_each};

/// A place in a document, as steps and as messages write it.
type Place = (Vec<String>, String);

/// Every place below `value`, itself included.
fn places(value: &Value, steps: &[String], path: &str, found: &mut Vec<Place>) {
    found.push((steps.to_vec(), path.to_string()));
    let mut below = |step: String, path: String, value: &Value| {
        places(value, &[steps, &[step]].concat(), &path, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            let dot = if path.is_empty() { "" } else { "." };
            below(name.clone(), format!("{path}{dot}{name}"), value);
        }),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, value)| below(at.to_string(), format!("{path}[{at}]"), value));
        }
        _ => {}
    }
}

/// A document that holds nothing but `value` at this place.
fn placed(steps: &[String], value: Value) -> Value {
    steps.iter().rev().fold(value, |inner, step| match step.parse::<usize>() {
        Ok(_) => json!([inner]),
        Err(_) => json!({ step.as_str(): inner }),
    })
}

/// Where any value may stand: what is below belongs to a driver, a proxy, a secret provider or a scaling policy.
fn takes_anything(path: &str) -> bool {
    ["Config.key", "Policy.key"].iter().any(|free| path.contains(free))
}

/// A duration may also be text, and whole numbers stand for it as nanoseconds.
fn is_duration_text(original: &Value, wrong: &Value) -> bool {
    original.is_i64() && wrong == &json!("30s")
}

#[test]
fn a_wrong_type_anywhere_is_an_error_that_names_the_field() {
    let whole = full("Job", &one_of_each);
    let mut all = Vec::new();
    places(&whole, &[], "", &mut all);
    assert!(all.len() > 800, "{} places", all.len());
    let wrongs = [
        json!({ "a": [] }),
        json!([[{}]]),
        json!("x y"),
        json!(true),
        json!(1.5),
        json!(-3),
        json!(1_u64 << 63),
        json!("30s"),
    ];
    let mut refused = 0;
    for (steps, path) in all.iter().skip(1).filter(|(_, path)| !takes_anything(path)) {
        let original = whole.pointer(&format!("/{}", steps.join("/"))).unwrap();
        for wrong in &wrongs {
            match input::from_value::<Job>(placed(steps, wrong.clone())) {
                Err(why) => {
                    assert!(why.path.starts_with(path.as_str()), "{path} = {wrong}: {why}");
                    refused += 1;
                }
                Ok(_) => assert!(is_acceptance(original, wrong, path), "{path} = {wrong}"),
            }
        }
    }
    assert!(refused > 4000, "{refused} refusals");
}

/// What is read although it is not what the job had: a value of the same kind, or a documented other spelling.
fn is_acceptance(original: &Value, wrong: &Value, path: &str) -> bool {
    match (original, wrong) {
        (Value::String(_), Value::String(_)) | (Value::Bool(_), Value::Bool(_)) => true,
        // Fields of 64 bits without a sign hold more than the others.
        (Value::Number(_), Value::Number(number)) => number.is_i64() || number.is_u64(),
        // A map takes any key, and its values are judged one by one; the same holds for unknown keys of an object.
        (Value::Object(_), Value::Object(_)) => true,
        _ => is_duration_text(original, wrong) || path.ends_with("Payload") && wrong.is_array(),
    }
}

#[test]
fn errors_show_the_path_of_the_file() {
    for (field, value) in [
        ("/TaskGroups/0/Tasks/0/Resources/CPU", json!("much")),
        ("/TaskGroups/0/Services/0/Checks/0/Interval", json!([])),
        ("/TaskGroups/0/Networks/0/DynamicPorts/0/Label", json!(80)),
        ("/Periodic/Specs/0", json!(5)),
    ] {
        let mut changed = full("Job", &one_of_each);
        *changed.pointer_mut(field).unwrap() = value;
        let source = Source::new("j.json", json!({ "Job": changed }).to_string());
        let wrong = parse_json(&source, &Variables::default(), &NoFiles).unwrap_err().plain();
        let path: String =
            field[1..].split('/').fold("Job".to_string(), |path, step| match step.parse::<usize>() {
                Ok(at) => format!("{path}[{at}]"),
                Err(_) => format!("{path}.{step}"),
            });
        assert!(wrong.contains(&format!("{path}: ")), "{wrong}");
    }
}
