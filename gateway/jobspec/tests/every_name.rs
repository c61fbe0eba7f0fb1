//! Every argument and every block of the language, by the names the job specification gives them: written once,
//! each arrives in the field it is for; misspelt, each is found and suggested.

use jobspec::{NoFiles, Source, Variables, client_form, parse};
use serde_json::{Map, Value, json};

use super::nomad_api::{fields, text};

/// A body in the language, and the object it stands for.
struct Written {
    label: Option<String>,
    lines: Vec<String>,
    object: Map<String, Value>,
}

/// Writes every name of a type once.
fn written(kind: &str, path: &str) -> Written {
    let mut all = Written { label: None, lines: Vec::new(), object: Map::new() };
    for field in fields(kind) {
        let (name, of) = (text(field, "name"), text(field, "type"));
        let path = format!("{path}.{name}");
        match field["hcl"].as_str() {
            None | Some("") => {}
            Some("(label)") => {
                all.label = Some("label".to_string());
                all.object.insert(name, json!("label"));
            }
            // Only the scaling of a group may say its type, and there is only one.
            Some("type") if path.contains("ScalingPolicies") => {}
            Some("type") if kind == "ScalingPolicy" => {
                all.lines.push("type = \"horizontal\"".to_string());
                all.object.insert(name, json!("horizontal"));
            }
            Some(hcl) => match hcl.strip_suffix(" {}") {
                Some(block) => write_block(&mut all, block, &name, &of, &path),
                None => {
                    let (source, value) = argument(&of);
                    all.lines.push(format!("{hcl} = {source}"));
                    all.object.insert(name, value);
                }
            },
        }
    }
    all
}

fn write_block(all: &mut Written, block: &str, name: &str, of: &str, path: &str) {
    if of.starts_with("map<string,") && !of.contains("Request>") && !of.contains("Address>") {
        let (source, value) = argument(of);
        all.lines.push(format!("{block} {source}"));
        all.object.insert(name.to_string(), value);
        return;
    }
    let inner_kind = of.trim_start_matches("list<").trim_start_matches("map<string,").trim_end_matches('>');
    let inner = written(inner_kind, path);
    let label = match (path.contains("ScalingPolicies"), &inner.label) {
        (true, _) => " \"cpu\"".to_string(),
        (false, Some(label)) => format!(" \"{label}\""),
        (false, None) => String::new(),
    };
    all.lines.push(format!("{block}{label} {{\n{}\n}}", inner.lines.join("\n")));
    let mut object = inner.object;
    if path.contains("ScalingPolicies") {
        object.insert("Type".to_string(), json!("vertical_cpu"));
    }
    let object = Value::Object(object);
    let value = match of {
        _ if of.starts_with("list<") => json!([object]),
        _ if of.starts_with("map<") => json!({ "label": object }),
        _ => object,
    };
    all.object.insert(name.to_string(), value);
}

/// The source of a value of this type, and what it becomes.
fn argument(kind: &str) -> (String, Value) {
    match kind {
        "string" | "CSIPluginType" | "ReconcileOption" => ("\"text\"".to_string(), json!("text")),
        "bool" => ("true".to_string(), json!(true)),
        "duration_ns" => ("\"1m5s\"".to_string(), json!(65_000_000_000_i64)),
        "any" => ("{ a = 1 }".to_string(), json!({ "a": 1 })),
        _ if kind.starts_with("list<") => {
            let (source, value) = argument(&kind[5..kind.len() - 1]);
            (format!("[{source}, {source}]"), json!([value, value]))
        }
        _ if kind.starts_with("map<") => {
            let (_, inner) = kind[4..kind.len() - 1].split_once(',').unwrap();
            let (source, value) = argument(inner);
            (format!("{{\nkey = {source}\n}}"), json!({ "key": value }))
        }
        _ => ("7".to_string(), json!(7)),
    }
}

fn whole() -> (String, Value) {
    let job = written("Job", "Job");
    let mut expected = Value::Object(job.object);
    split_ports(&mut expected);
    (format!("job \"j\" {{\n{}\n}}\n", job.lines.join("\n")), expected)
}

/// Ports with a number are reserved, wherever they were written.
fn split_ports(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(split_ports),
        Value::Object(object) => {
            if let Some(dynamic) = object.remove("DynamicPorts") {
                object["ReservedPorts"].as_array_mut().unwrap().extend(dynamic.as_array().unwrap().clone());
            }
            object.values_mut().for_each(split_ports);
        }
        _ => {}
    }
}

/// Asserts that everything of `expected` is in `found`.
fn holds(found: &Value, expected: &Value, path: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, value) in expected {
                let inner = found.get(name).unwrap_or_else(|| panic!("{path}.{name} is missing"));
                holds(inner, value, &format!("{path}.{name}"));
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{path}");
            for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                holds(found, expected, &format!("{path}[{at}]"));
            }
        }
        _ => assert_eq!(found, expected, "{path}"),
    }
}

fn read(text: &str) -> Result<Value, String> {
    let parsed = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles);
    parsed.map(|parsed| client_form(&parsed.job)).map_err(|wrong| wrong.plain())
}

#[test]
fn each_name_of_nomads_api_is_read_into_its_field() {
    let (source, expected) = whole();
    assert!(source.lines().count() > 500, "{} lines", source.lines().count());
    let found = read(&source).unwrap_or_else(|wrong| panic!("{wrong}"));
    holds(&found, &expected, "Job");
}

/// Problems that one file is given at a time: few enough that all are reported.
const AT_ONCE: usize = 8;

#[test]
fn each_name_of_nomads_api_is_suggested_when_a_letter_is_missing() {
    let (source, _) = whole();
    let lines: Vec<&str> = source.lines().collect();
    let mut open = Vec::new();
    let mut wrong: Vec<(usize, String)> = Vec::new();
    for (at, line) in lines.iter().enumerate().skip(1) {
        let name: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.len() >= 4 && !open.contains(&true) {
            wrong.push((at, line.replacen(&name, &format!("{}{}", &name[..1], &name[2..]), 1)));
        }
        match line.chars().last() {
            Some('{') => open.push(names_are_free(&name)),
            _ if *line == "}" => drop(open.pop()),
            _ => {}
        }
    }
    assert!(wrong.len() > 300, "{} names", wrong.len());
    for some in wrong.chunks(AT_ONCE) {
        let said = read(&changed(&lines, some)).unwrap_err();
        for (at, line) in some.iter().filter(|(at, _)| !is_inside_of_another(&lines, some, *at)) {
            let position = format!("j.hcl:{}:1: ", at + 1);
            let found = said
                .lines()
                .find(|said| said.starts_with(&position))
                .unwrap_or_else(|| panic!("{line}: {said}"));
            assert!(
                found.contains("is not expected in") && found.contains("did you mean"),
                "{line}: {found}"
            );
        }
    }
}

/// What is below a name that nobody knows is not looked at.
fn is_inside_of_another(lines: &[&str], some: &[(usize, String)], at: usize) -> bool {
    some.iter().any(|(outer, _)| {
        let between = lines.get(*outer..at).unwrap_or_default();
        let opened = between.iter().filter(|line| line.ends_with('{')).count();
        opened > between.iter().filter(|line| **line == "}").count() && lines[*outer].ends_with('{')
    })
}

/// True for blocks in which names are the author's own.
fn names_are_free(block: &str) -> bool {
    const FREE: [&str; 11] = [
        "config",
        "meta",
        "env",
        "policy",
        "options",
        "headers",
        "header",
        "canary_meta",
        "tagged_addresses",
        "add",
        "set",
    ];
    FREE.contains(&block)
}

fn changed(lines: &[&str], wrong: &[(usize, String)]) -> String {
    let mut changed = lines.to_vec();
    for (at, line) in wrong {
        changed[*at] = line;
    }
    changed.join("\n")
}

#[test]
fn a_value_of_the_wrong_type_is_an_error_where_it_stands() {
    let (source, _) = whole();
    let lines: Vec<&str> = source.lines().collect();
    let given = lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.split_once(" = ")?)));
    // What follows an open brace belongs to the value; free names take any.
    let typed = given.filter(|(_, (name, value))| *value != "{" && !["key", "a"].contains(name));
    let wrong = typed.map(|(at, (name, value))| {
        (at, format!("{name} = {}", if value.starts_with('[') { "true" } else { "[[]]" }))
    });
    let wrong: Vec<(usize, String)> = wrong.collect();
    assert!(wrong.len() > 250, "{} arguments", wrong.len());
    for some in wrong.chunks(AT_ONCE) {
        let said = read(&changed(&lines, some)).unwrap_err();
        for (at, line) in some {
            let (name, _) = line.split_once(" = ").unwrap();
            let expected = format!("j.hcl:{}:{}: \"{name}\": ", at + 1, name.len() + 4);
            assert!(said.contains(&expected), "{line}: {said}");
        }
    }
}
