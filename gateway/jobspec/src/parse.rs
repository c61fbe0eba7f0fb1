use model::document::{Job, input};
use serde_json::Value as Json;

use crate::decode;
use crate::diagnostic::{Diagnostic, Diagnostics, Fault, Source, Span};
use crate::eval::{Evaluator, Files, Value};
use crate::hcl::{Body, Dialect, Expr, ExprKind, Key, SOURCE_MAX, parse_body, parse_document};
use crate::variables::{Declarations, Variables, resolve_locals};

/// A job as its file says it: nothing is defaulted that the file leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub job: Job,
    /// What was read but may not mean what its author thinks.
    pub warnings: Vec<String>,
}

/// Reads a job file in HCL version 2.
///
/// References that only a node can resolve (`${attr.…}`, `${NOMAD_…}`, `${meta.…}`) are kept as text.
///
/// # Errors
/// Everything that is wrong with the file, each with its position; syntax errors come alone.
pub fn parse(source: &Source, variables: &Variables, files: &dyn Files) -> Result<Parsed, Diagnostics> {
    let body = parse_body(source, Dialect::Native).map_err(|fault| fault.at(source))?;
    parse_tree(source, &body, variables, files)
}

/// Reads a job file in JSON: the API's form, bare or as `{"Job": …}`, or HCL's JSON syntax.
///
/// # Errors
/// As [`parse`]; in the API's form a value of the wrong type is named by its path, like `Job.TaskGroups[0].Count`.
pub fn parse_json(source: &Source, variables: &Variables, files: &dyn Files) -> Result<Parsed, Diagnostics> {
    if source.text.len() > SOURCE_MAX {
        return Err(source.wrong(Span::default(), format!("more than {SOURCE_MAX} bytes")));
    }
    let document: Json = serde_json::from_str(&source.text).map_err(|why| not_json(source, &why))?;
    let Json::Object(members) = document else {
        return Err(source.wrong(Span::default(), "expected an object: {\"Job\": { … }}"));
    };
    if !is_api_form(&members) {
        let tree = parse_document(source, Dialect::JsonTemplates).and_then(decode::body_of_json);
        let tree = tree.map_err(|fault| fault.at(source))?;
        return parse_tree(source, &tree, variables, files);
    }
    let (prefix, job) = match members.into_iter().collect::<Vec<_>>() {
        one if one.len() == 1 && is_envelope(&one[0].0, &one[0].1) => {
            ("Job.", one.into_iter().map(|(_, job)| job).next().unwrap_or_default())
        }
        bare => match bare.iter().position(|(name, value)| is_envelope(name, value)) {
            Some(at) => ("Job.", bare.into_iter().nth(at).map(|(_, job)| job).unwrap_or_default()),
            None => ("", Json::Object(bare.into_iter().collect())),
        },
    };
    let job = input::from_value(job);
    let job = job.map_err(|why| {
        let span = place(source, &format!("{prefix}{}", why.path)).unwrap_or_default();
        source.wrong(span, format!("{prefix}{why}"))
    })?;
    Ok(Parsed { job, warnings: Vec::new() })
}

/// Where the value stands that a path like `Job.TaskGroups[0].Count` leads to. The text is read again, with positions:
/// that is needed only for a text that is wrong.
fn place(source: &Source, path: &str) -> Option<Span> {
    let mut value = parse_document(source, Dialect::Json).ok()?;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        value = match (value.kind, step.strip_suffix(']')) {
            (ExprKind::List(items), Some(index)) => items.into_iter().nth(index.parse().ok()?)?,
            (ExprKind::Object(members), None) => {
                let named = members.into_iter().map(|(key, value)| (name_of(&key), value));
                named
                    .filter(|(name, _)| name.eq_ignore_ascii_case(step))
                    .map(|(_, value)| value)
                    .next_back()?
            }
            _ => return None,
        };
    }
    Some(value.span)
}

fn name_of(key: &Key) -> String {
    match key {
        Key::Name(name) => name.text.clone(),
        Key::Computed(Expr { kind: ExprKind::Literal(Value::Text(text)), .. }) => text.clone(),
        Key::Computed(_) => String::new(),
    }
}

fn is_envelope(name: &str, value: &Json) -> bool {
    name.eq_ignore_ascii_case("job") && value.is_object()
}

/// In HCL's JSON syntax `job` holds labels; in the API's form it holds the fields of a job.
fn is_api_form(members: &serde_json::Map<String, Json>) -> bool {
    let fields = ["id", "name", "taskgroups", "type", "datacenters"];
    let has_fields = |object: &serde_json::Map<String, Json>| {
        object.keys().any(|key| fields.contains(&key.to_ascii_lowercase().as_str()))
    };
    match members.iter().find(|(name, value)| is_envelope(name, value)) {
        Some((_, Json::Object(job))) => job.is_empty() || has_fields(job),
        _ => !members.contains_key("job"),
    }
}

fn not_json(source: &Source, why: &serde_json::Error) -> Diagnostics {
    let before: usize =
        source.text.split_inclusive('\n').take(why.line().saturating_sub(1)).map(str::len).sum();
    let at = before + why.column().saturating_sub(1);
    let message = why.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    source.wrong(Span { start: at, end: at + 1 }, format!("not JSON: {message}"))
}

fn parse_tree(
    source: &Source,
    body: &Body,
    variables: &Variables,
    files: &dyn Files,
) -> Result<Parsed, Diagnostics> {
    let one = |fault: Fault| Diagnostics::from(fault.at(source));
    let all = |wrong: Vec<Diagnostic>| Diagnostics(wrong);
    let mut declarations = Declarations::read(source, files, body).map_err(one)?;
    let warnings = declarations.assign(variables).map_err(all)?;
    let mut evaluator = Evaluator::new(source, files);
    evaluator.variables = declarations.values(&mut evaluator).map_err(all)?;
    resolve_locals(&mut evaluator, body).map_err(one)?;
    let job = decode::job(&mut evaluator, body).map_err(all)?;
    Ok(Parsed { job, warnings })
}
