use std::collections::BTreeMap;

use api::HistoryLine;
use base::Index;
use serde_json::Value;

use crate::call::{CLIENT_FLAGS, Call, Command, Failure, JSON, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::{json, write_err, write_out};
use crate::past::gaps::write_gaps;
use crate::past::origin::{Origin, follow};
use crate::past::{Moment, Object};

/// Changes of an object that are read, the newest.
const CHANGES_MAX: usize = 500;

/// Fields of a job that follow from other facts than its own.
const NOT_IN_KEPT_FACTS: [&str; 2] = ["Status", "VersionTag"];

pub(super) static COMMAND: Command = Command {
    name: "blame",
    aliases: &[],
    arguments: "<object>",
    summary: "Show for each field of an object which fact gave it its value, who did that, and when.",
    details: "An object is job/NAME, node/ID, eval/ID or deployment/ID. What was changed and changed back counts as\n\
              changed. A field without a fact follows from what happened to other objects, as the status of a job does. With\n\
              -as-of it is shown as it was then.\n\
              Example: blame job/web",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let object: Object = call.one_argument()?.parse().map_err(|why: String| call.usage(&why))?;
    let client = call.client()?;
    let object = object.resolved(&client, &call.style()).await?;
    let known = object.history_with_documents(&client).await?;
    let facts: Vec<&HistoryLine> = known.lines.iter().filter(|line| is_about(line, &object)).collect();
    let facts = last_of_each_batch(&facts);
    let older = facts.len().saturating_sub(CHANGES_MAX);
    let mut fields: BTreeMap<String, Origin> = BTreeMap::new();
    // A document was read that is of a state.
    let mut has_states = false;
    for (at, fact) in facts[older..].iter().enumerate() {
        // The state of then may be gone, but its own facts may say what it was.
        let kept = known.documents.iter().rfind(|kept| kept.index == fact.index);
        let document = match kept {
            Some(kept) => {
                kept.document.as_ref().map(serde_json::to_value).transpose().map_err(anyhow::Error::from)?
            }
            None if fact.index < known.whole_from => continue,
            None => match object.document(&Moment::at(&call, Index(fact.index))?.client).await {
                Ok(document) => {
                    let first = !std::mem::replace(&mut has_states, true);
                    if let Some(document) = document.as_ref().filter(|_| first) {
                        not_of_kept_facts(&mut fields, document);
                    }
                    document
                }
                // The log does not reach back there.
                Err(_) if !has_states => continue,
                Err(error) => return Err(error),
            },
        };
        let document = document.unwrap_or(Value::Null);
        // A version before the first one that is known may have had the same fields.
        let may_be_older = document["Version"].as_u64().is_some_and(|version| version > 0);
        let is_oldest = fields.is_empty() && ((at == 0 && (older > 0 || known.cut_short)) || may_be_older);
        follow(&mut fields, &document, (!is_oldest).then_some(*fact));
    }
    // What its allocations and evaluations made of it since.
    if let Some(document) = object.document(&client).await? {
        not_of_kept_facts(&mut fields, &document);
        follow(&mut fields, &document, None);
    }
    if fields.is_empty() {
        return Err(unknown(&object));
    }
    write_gaps(&known);
    if older > 0 {
        write_err(format!("Only the newest {CHANGES_MAX} changes were read"));
    }
    let origins: Vec<Origin> = fields.into_values().collect();
    write_out(if call.args.switch(&JSON) {
        json(&origins)
    } else {
        layout::past::origins(&call.style(), &origins)
    });
    Ok(0)
}

/// What kept facts do not say of a job is of no fact, and not of the first one that is followed by a whole state.
fn not_of_kept_facts(fields: &mut BTreeMap<String, Origin>, document: &Value) {
    if fields.is_empty() {
        return;
    }
    let unknown: serde_json::Map<String, Value> = NOT_IN_KEPT_FACTS
        .iter()
        .filter(|field| !fields.keys().any(|path| path.starts_with(**field)))
        .filter_map(|field| Some((field.to_string(), document.get(field)?.clone())))
        .collect();
    let mut added = BTreeMap::new();
    follow(&mut added, &Value::Object(unknown), None);
    fields.extend(added);
}

fn unknown(object: &Object) -> Failure {
    anyhow::anyhow!("Nothing is known of {object}: it is gone, or the log does not reach back to it").into()
}

/// The fact names the object itself: what else is in its history is about what followed from it.
pub(super) fn is_about(line: &HistoryLine, object: &Object) -> bool {
    let (_, name) = line.object.split_once('/').unwrap_or_default();
    // The name of a job stands behind its namespace.
    name == object.name || name.split_once('/').is_some_and(|(_, name)| name == object.name)
}

/// A batch leaves one document, so its last fact stands for it.
fn last_of_each_batch<'a>(facts: &[&'a HistoryLine]) -> Vec<&'a HistoryLine> {
    facts.chunk_by(|a, b| a.index == b.index).filter_map(|same| same.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kept_facts_do_not_say_is_of_no_fact() {
        let mut fields = BTreeMap::new();
        let kept = fact(1, "job/default/web");
        follow(&mut fields, &serde_json::json!({"ID": "web", "Version": 1}), Some(&kept));
        let whole = serde_json::json!({"ID": "web", "Version": 2, "Status": "running"});
        not_of_kept_facts(&mut fields, &whole);
        follow(&mut fields, &whole, Some(&fact(7, "job/default/web")));
        let of = |path: &str| fields[path].fact.as_ref().map(|fact| fact.index);
        assert_eq!((of("ID"), of("Version"), of("Status")), (Some(1), Some(7), None));
    }

    fn fact(index: u64, object: &str) -> HistoryLine {
        HistoryLine { index, object: object.into(), ..HistoryLine::default() }
    }

    #[test]
    fn facts_about_what_followed_are_left_out() {
        let job: Object = "job/web".parse().unwrap();
        assert!(is_about(&fact(1, "job/default/web"), &job));
        assert!(!is_about(&fact(1, "job/default/web2"), &job) && !is_about(&fact(1, "eval/1"), &job));
        assert!(is_about(&fact(1, "node/n1"), &"node/n1".parse().unwrap()));
    }
}
