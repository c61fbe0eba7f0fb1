use std::collections::BTreeMap;

use api::HistoryLine;
use base::Index;
use serde_json::Value;

use crate::call::{CLIENT_FLAGS, Call, Command, Failure, JSON, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::{json, write_err, write_out};
use crate::past::origin::{Origin, follow};
use crate::past::{Moment, Object};

/// Changes of an object that are read, the newest.
const CHANGES_MAX: usize = 500;

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
    let known = object.history(&client).await?;
    let facts: Vec<&HistoryLine> = known.lines.iter().filter(|line| is_about(line, &object)).collect();
    let facts = last_of_each_batch(&facts);
    let older = facts.len().saturating_sub(CHANGES_MAX);
    let mut fields: BTreeMap<String, Origin> = BTreeMap::new();
    for (at, fact) in facts[older..].iter().enumerate() {
        let moment = Moment::at(&call, Index(fact.index))?;
        let document = match object.document(&moment.client).await {
            Ok(document) => document,
            // The log does not reach back there.
            Err(_) if fields.is_empty() => continue,
            Err(error) => return Err(error),
        };
        let is_oldest = at == 0 && (older > 0 || known.cut_short);
        follow(&mut fields, &document.unwrap_or(Value::Null), (!is_oldest).then_some(*fact));
    }
    // What its allocations and evaluations made of it since.
    if let Some(document) = object.document(&client).await? {
        follow(&mut fields, &document, None);
    }
    if fields.is_empty() {
        return Err(unknown(&object));
    }
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
