use model::document::{Job, input};
use serde_json::Value as Json;

use crate::decode;
use crate::diagnostic::{Diagnostic, Diagnostics, Fault, Source, Span};
use crate::eval::{Evaluator, Files};
use crate::hcl::{Body, Dialect, SOURCE_MAX, parse_body, parse_document};
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
    let job = job.map_err(|why| source.wrong(Span::default(), format!("{prefix}{why}")))?;
    Ok(Parsed { job, warnings: Vec::new() })
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
