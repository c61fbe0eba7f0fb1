use std::collections::BTreeMap;

use api::SearchRequest;

use super::{alloc, deployment, eval, job, namespace, node, node_pool, scaling};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, UI, VERBOSE};
use crate::flags::Args;

pub(super) static COMMAND: Command = Command {
    name: "status",
    aliases: &[],
    arguments: "[<identifier>]",
    summary: "Show the status of the object with this name or id; without one, list jobs.",
    details: "A prefix of a name or id is enough if it is unique.",
    flags: &[&[&VERBOSE, &UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// The command that shows objects of a search context, and their title.
const CONTEXTS: [(&str, &str, &Command); 8] = [
    ("allocs", "Allocations", &alloc::status::COMMAND),
    ("deployment", "Deployments", &deployment::status::COMMAND),
    ("evals", "Evaluations", &eval::status::COMMAND),
    ("jobs", "Jobs", &job::status::COMMAND),
    ("namespaces", "Namespaces", &namespace::show::STATUS),
    ("node_pools", "Node Pools", &node_pool::show::INFO),
    ("nodes", "Nodes", &node::status::COMMAND),
    ("scaling_policy", "Scaling Policies", &scaling::INFO),
];

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let Some(given) = call.optional_argument()?.map(str::to_string) else {
        return job::status::list(&call, &client, &style).await;
    };
    let request = SearchRequest { prefix: given.clone(), context: "all".to_string() };
    let found = client.search(&request).await;
    let found = found.doing(&format!("querying search with id: \"{given}\""))?.matches;
    let matches: BTreeMap<String, Vec<String>> = found
        .0
        .into_iter()
        .map(|(context, ids)| (context, ids.0))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    let context = choose(&given, &matches)?;
    match CONTEXTS.iter().find(|(name, ..)| *name == context) {
        Some((_, _, command)) => run_command(call, command).await,
        None => Err(anyhow::anyhow!("\"{given}\" is one of the {context}, which have no status").into()),
    }
}

/// The search context of the object: the only match, or the one with exactly this name.
fn choose(given: &str, matches: &BTreeMap<String, Vec<String>>) -> Result<String, Failure> {
    let exact = |ids: &[String]| ids.iter().any(|id| id == given);
    let exactly: Vec<_> = matches.iter().filter(|(_, ids)| exact(ids)).collect();
    match (matches.len(), exactly.as_slice()) {
        (0, _) => Err(anyhow::anyhow!("Unable to resolve ID: \"{given}\"").into()),
        (1, _) => Ok(matches.keys().next().expect("one context was found").clone()),
        (_, [(context, _)]) => Ok((*context).clone()),
        _ => {
            let mut text = format!("Multiple matches found for id \"{given}\"");
            for (context, ids) in matches {
                let known = CONTEXTS.iter().find(|(name, ..)| name == context);
                let title = known.map_or(context.as_str(), |(_, title, _)| title);
                text.push_str(&format!("\n\n{title}:\n{}", ids.join(", ")));
            }
            Err(Failure::Code(1, text))
        }
    }
}

/// Runs the command of this kind of object with the same arguments.
async fn run_command(call: Call, command: &'static Command) -> Outcome {
    let known = |name: &str| command.flag_specs().any(|flag| flag.name == name);
    let args = Args::taking(&call.args, known);
    let Run::Task(run) = command.run else { unreachable!("commands that show objects run as tasks") };
    run(Call { command, args, ..call }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(found: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
        found.iter().map(|(context, found)| (context.to_string(), ids(found))).collect()
    }

    #[test]
    fn an_exact_name_wins_over_a_prefix_of_something_else() {
        assert_eq!(choose("we", &matches(&[("jobs", &["web", "web2"])])).ok().as_deref(), Some("jobs"));
        let both = matches(&[("jobs", &["ab"]), ("nodes", &["abcd"])]);
        assert_eq!(choose("ab", &both).ok().as_deref(), Some("jobs"));
        let text = match choose("a", &both) {
            Err(Failure::Code(1, text)) => text,
            other => panic!("expected a choice, not {other:?}"),
        };
        assert_eq!(text, "Multiple matches found for id \"a\"\n\nJobs:\nab\n\nNodes:\nabcd");
        assert!(choose("x", &matches(&[])).is_err());
    }
}
