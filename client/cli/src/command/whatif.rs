use model::document::{ForkResult, Job};
use serde_json::{Value, json};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::job_file::{self, HCL2_STRICT, VAR, VAR_FILE};
use crate::output::{json as printed, write_out};
use crate::{layout, resolve};

const JSON: Flag<bool> = Flag::switch("json", "Print the result as JSON.");
const FOR: Flag<String> = Flag::value(
    "for",
    "TIME",
    "Have so much time pass, such as 1h. Default: until nothing is left to be done.",
);
const KEEP: Flag<bool> =
    Flag::switch("keep", "Keep the fork, to be read with -fork and to be changed further, and print its id.");
const TTL: Flag<String> = Flag::value("ttl", "TIME", "How long it is kept, at most 24h. Default: 1h.");
const CHANGE: Flag<Vec<String>> =
    Flag::values("change", "JSON", "A change as the API takes it, after all others; may be repeated.");

pub(super) static COMMAND: Command = Command {
    name: "whatif",
    aliases: &[],
    arguments: "<change> [and <change> ...]",
    summary: "Show what a change would lead to. Nothing is changed.",
    details: "The servers make the changes on a copy of their state and run their scheduler on it until nothing is left to be\n\
              done, with nodes on which nothing fails. Changes are:\n\
              \n  drain <node>\n  lose node=<node>\n  lose datacenter=<name>\n  add <count> like <node>\n\
              \x20 run <job file> [-count <n>] [-group <name>]\n  stop <job>\n  scale <job> <group> <count>\n\
              \nA node is named by its id, the beginning of it, or its name. The exit code is 0 if everything finds a node and no group\n\
              has fewer running than it allows, 2 if not, and 1 on errors. With -as-of it begins with that moment,\n\
              with -fork it goes on with a fork that was kept.\n\
              Examples: whatif drain n7; whatif -for 1h lose datacenter=dc1 and add 3 like n7; whatif -keep drain n7",
    flags: &[&[&JSON, &FOR, &KEEP, &TTL, &CHANGE, &HCL2_STRICT, &VAR, &VAR_FILE, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// The exit code when something finds no node, or too few were running.
pub(super) const VIOLATED: u8 = 2;

async fn run(call: Call) -> Outcome {
    let mut asked = Asked { call: &call, changes: Vec::new(), namespaces: Vec::new() };
    for words in call.args.words.split(|word| word == "and") {
        if !words.is_empty() || !call.args.words.is_empty() {
            asked.add(words).await?;
        }
    }
    for given in call.args.values(&CHANGE) {
        let change =
            serde_json::from_str(given).map_err(|why| call.usage(&format!("-change {given}: {why}")))?;
        asked.changes.push(change);
    }
    if asked.changes.is_empty() {
        return Err(call.usage("This command takes at least one change"));
    }
    let client = call.client_beside_fork(&asked.namespace()?)?;
    let mut request = json!({"changes": asked.changes, "until": call.args.value(&FOR).unwrap_or_default()});
    let doing = "computing what would happen";
    let result = match (call.fork(), ttl(&call)?) {
        ("", ttl) => {
            request["ttl"] = ttl.into();
            client.fork(&request).await.doing(doing)?
        }
        (fork, "") => client.change_fork(fork, &request).await.doing(doing)?,
        (_, _) => return Err(call.usage("-fork and -keep: a fork that is kept stays so")),
    };
    write_out(if call.args.switch(&JSON) {
        printed(&result)
    } else {
        layout::whatif::whole(&call.style(), &result)
    });
    Ok(if is_fine(&result) { 0 } else { VIOLATED })
}

/// How long the fork is to be kept; empty for one that is not.
fn ttl(call: &Call) -> Result<&str, Failure> {
    match (call.args.switch(&KEEP), call.args.value(&TTL)) {
        (true, ttl) => Ok(ttl.unwrap_or(TTL_DEFAULT)),
        (false, None) => Ok(""),
        (false, Some(_)) => Err(call.usage("-ttl says how long -keep keeps a fork: both are needed")),
    }
}

const TTL_DEFAULT: &str = "1h";

/// What was not computed to its end is no reason to go ahead.
pub(super) fn is_fine(result: &ForkResult) -> bool {
    let ended = result.quiet || result.ended_by == "until";
    ended && result.counts.unplaced == 0 && result.counts.violated == 0
}

/// What the words of a call ask for.
struct Asked<'a> {
    call: &'a Call,
    changes: Vec<Value>,
    /// Of the jobs that they are about.
    namespaces: Vec<String>,
}

impl Asked<'_> {
    async fn add(&mut self, words: &[String]) -> Result<(), Failure> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let change = match words[..] {
            ["drain", node] => json!({"drain": node}),
            ["lose", what] => match what.split_once('=') {
                Some(("node", node)) => json!({"down": {"node": node}}),
                Some(("datacenter", name)) => json!({"down": {"datacenter": name}}),
                _ => return Err(self.call.usage(&format!("lose {what}: expected node=… or datacenter=…"))),
            },
            ["add", count, "like", node] => {
                json!({"add": {"like": node, "count": self.number("add", count)?}})
            }
            ["run", path, ref options @ ..] => self.job(path, options).await?,
            ["stop", job] => json!({"stop": self.known(job).await?}),
            ["scale", job, group, count] => {
                let count = self.number("scale", count)?;
                json!({"scale": {"job": self.known(job).await?, "group": group, "count": count}})
            }
            _ => {
                let why = format!(
                    "\"{}\": expected drain <node>, lose node=<node>, lose datacenter=<name>, add <count> like <node>, \
                     run <job file>, stop <job>, or scale <job> <group> <count>",
                    words.join(" ")
                );
                return Err(self.call.usage(&why));
            }
        };
        self.changes.push(change);
        Ok(())
    }

    fn number(&self, what: &str, text: &str) -> Result<i64, Failure> {
        text.parse().map_err(|_| self.call.usage(&format!("{what} {text}: expected a whole number")))
    }

    /// The id of the job that a text names or begins.
    async fn known(&mut self, text: &str) -> Result<String, Failure> {
        let (namespace, id) = resolve::job(&self.call.client()?, &self.call.style(), text).await?;
        self.namespaces.push(namespace);
        Ok(id)
    }

    async fn job(&mut self, path: &str, options: &[&str]) -> Result<Value, Failure> {
        let mut job = job_file::load_as(self.call, path, false).await?.parsed.job;
        let options = Options::read(options).map_err(|why| self.call.usage(&why))?;
        options.apply(&mut job).map_err(|why| self.call.usage(&format!("{path}: {why}")))?;
        self.namespaces.push(self.call.namespace_of(&job));
        Ok(json!({"job": jobspec::client_form(&job)}))
    }

    /// One request has one namespace.
    fn namespace(&self) -> Result<String, Failure> {
        let mut all: Vec<&str> = self
            .namespaces
            .iter()
            .map(|name| if name.is_empty() { "default" } else { name.as_str() })
            .collect();
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [] => Ok(self.call.namespace().to_string()),
            [one] => Ok(one.to_string()),
            _ => Err(self
                .call
                .usage(&format!("The jobs are in several namespaces ({}): expected one", all.join(", ")))),
        }
    }
}

/// What stands behind a job file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    count: Option<i64>,
    group: Option<String>,
}

impl Options {
    fn read(words: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let flag = word.trim_start_matches('-');
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (flag, rest.next().copied()),
            };
            let needed = || value.ok_or_else(|| format!("{word} needs a value"));
            match name {
                "count" if word.starts_with('-') => {
                    let count = needed()?.parse().ok().filter(|count| *count >= 0);
                    options.count =
                        Some(count.ok_or_else(|| format!("{word}: expected a number, 0 or more"))?);
                }
                "group" if word.starts_with('-') => options.group = Some(needed()?.to_string()),
                _ => return Err(format!("run: {word}: expected -count <n> or -group <name>")),
            }
        }
        match options {
            Options { count: None, group: Some(_) } => {
                Err("-group says which group -count is for: both are needed".into())
            }
            options => Ok(options),
        }
    }

    fn apply(&self, job: &mut Job) -> Result<(), String> {
        let Some(count) = self.count else { return Ok(()) };
        let name = |group: &model::document::TaskGroup| group.name.clone().unwrap_or_default();
        let names: Vec<String> = job.task_groups.iter().map(name).collect();
        let at = match &self.group {
            None if names.len() == 1 => Some(0),
            None => {
                return Err(format!(
                    "-count: the job has the groups {}: say which with -group",
                    names.join(", ")
                ));
            }
            Some(group) => names.iter().position(|name| name == group),
        };
        let at = at.ok_or_else(|| format!("-group: the job has no such group, but {}", names.join(", ")))?;
        job.task_groups[at].count = Some(count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::document::{ForkCounts, TaskGroup};

    use super::*;

    fn job(groups: &[&str]) -> Job {
        let group = |name: &&str| TaskGroup { name: Some(name.to_string()), ..TaskGroup::default() };
        Job { task_groups: groups.iter().map(group).collect::<Vec<_>>().into(), ..Job::default() }
    }

    fn counts(words: &[&str], groups: &[&str]) -> Result<Vec<Option<i64>>, String> {
        let mut job = job(groups);
        Options::read(words)?.apply(&mut job)?;
        Ok(job.task_groups.iter().map(|group| group.count).collect())
    }

    #[test]
    fn a_count_is_for_the_group_that_is_named_or_the_only_one() {
        assert_eq!(counts(&["-count", "50"], &["web"]), Ok(vec![Some(50)]));
        assert_eq!(counts(&["-count=50", "--group=b"], &["a", "b"]), Ok(vec![None, Some(50)]));
        assert_eq!(counts(&[], &["a", "b"]), Ok(vec![None, None]));
        for (words, why) in [
            (&["-count", "5"][..], "say which with -group"),
            (&["-count", "-5", "-group", "a"], "0 or more"),
            (&["-count"], "needs a value"),
            (&["-group", "a"], "both are needed"),
            (&["-count", "5", "-group", "c"], "no such group, but a, b"),
            (&["count", "5"], "expected -count <n> or -group <name>"),
            (&["-json"], "expected -count <n> or -group <name>"),
        ] {
            let wrong = counts(words, &["a", "b"]).unwrap_err();
            assert!(wrong.contains(why), "{words:?}: {wrong}");
        }
    }

    #[test]
    fn only_what_came_to_an_end_and_breaks_nothing_is_fine() {
        let ended = |quiet, ended_by: &str, unplaced, violated| {
            let counts = ForkCounts { unplaced, violated, ..ForkCounts::default() };
            is_fine(&ForkResult { quiet, ended_by: ended_by.to_string(), counts, ..ForkResult::default() })
        };
        assert!(ended(true, "quiet", 0, 0) && ended(false, "until", 0, 0));
        assert!(!ended(true, "quiet", 1, 0) && !ended(true, "quiet", 0, 1));
        assert!(!ended(false, "time", 0, 0) && !ended(false, "paused", 0, 0));
    }
}
