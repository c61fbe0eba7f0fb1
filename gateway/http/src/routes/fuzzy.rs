//! Search for a part of a name, at any position.

use std::collections::BTreeMap;

use api::{FuzzyMatch, FuzzySearchRequest, FuzzySearchResponse};
use axum::Router;
use axum::extract::State as With;
use base::Index;
use model::document::{List, Task};
use serde_json::Value;
use state::State;
use state::job::JobState;

use super::search::{Scope, matching, newest};
use super::write;
use crate::access::Each;
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Json, Read};

/// Shortest text that is searched for, in characters.
const TEXT_MIN: usize = 2;

/// Most matches of one kind in an answer.
const MATCHES_MAX: usize = 100;

/// What is found by a part of its name.
const FUZZY: [&str; 12] = [
    "allocs",
    "classes",
    "commands",
    "groups",
    "images",
    "jobs",
    "namespaces",
    "node_pools",
    "nodes",
    "services",
    "tasks",
    "vars",
];

/// What has an id instead of a name is found by its start.
const BY_PREFIX: [&str; 6] = ["deployment", "evals", "host_volumes", "plugins", "scaling_policy", "volumes"];

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/search/fuzzy", write(search))
}

/// Never waits.
async fn search(
    With(server): With<AppState>,
    mut read: Read<Each>,
    Json(request): Json<FuzzySearchRequest>,
) -> Answer {
    read.without_filter()?;
    read.options.index = Index::ZERO;
    let length = request.text.chars().count();
    if length < TEXT_MIN {
        let text = format!("fuzzy search query must be at least {TEXT_MIN} characters, got {length}");
        return Err(Failure::internal(text));
    }
    let scope = Scope::of(&read);
    let wanted = scope.opened(contexts(&request.context)?)?;
    let known_leader = server.known_leader();
    let view = |state: &State| {
        let mut response = FuzzySearchResponse {
            index: newest(state).0.max(1),
            known_leader,
            ..FuzzySearchResponse::default()
        };
        for (context, found) in found(state, &request.text, &wanted, &scope) {
            response.truncations.insert(context.to_string(), found.len() > MATCHES_MAX);
            let shown: Vec<FuzzyMatch> = found.into_iter().take(MATCHES_MAX).collect();
            if !shown.is_empty() {
                response.matches.insert(context.to_string(), List(shown));
            }
        }
        Ok(response)
    };
    server.read(&read, newest, view).await
}

fn contexts(asked: &str) -> Result<Vec<&'static str>, Failure> {
    let all = || FUZZY.iter().chain(&BY_PREFIX).copied();
    match asked {
        "" | "all" => Ok(all().collect()),
        // The parts of a job are looked for together with it.
        "jobs" => Ok(vec!["jobs", "groups", "tasks", "services", "images", "commands", "classes"]),
        one => match all().find(|known| *known == one) {
            Some(known) => Ok(vec![known]),
            None => Err(Failure::unsupported(format_args!("searching for {one:?} is"))),
        },
    }
}

fn found(
    state: &State,
    text: &str,
    wanted: &[&'static str],
    scope: &Scope,
) -> BTreeMap<&'static str, Vec<FuzzyMatch>> {
    let mut found = Matches { text: text.to_lowercase(), wanted, ranked: BTreeMap::new() };
    let in_namespace = |name: &str| scope.shows("jobs", name);
    for (_, job) in state.jobs.iter().filter(|(_, job)| in_namespace(&job.key.namespace)) {
        found.job(job);
    }
    // There may be a million of them: their names are only made for who asks for them.
    let allocs = state.allocs.iter().filter(|_| wanted.contains(&"allocs"));
    for alloc in allocs.map(|(_, alloc)| alloc).filter(|alloc| !alloc.gone) {
        let key = &state.jobs.get(alloc.job).key;
        if in_namespace(&key.namespace) {
            found.add("allocs", &alloc.name(), &[&key.namespace, &alloc.id.to_string()]);
        }
    }
    for row in state.nodes.rows() {
        let node = state.nodes.cold(row);
        found.add("nodes", &node.document.name, &[&node.id.to_string()]);
    }
    let pools = state.pools.names().into_iter().filter(|name| scope.shows_name("node_pools", name));
    pools.for_each(|name| found.add("node_pools", name, &[name]));
    let namespaces = state.namespaces.names().into_iter();
    let namespaces = namespaces.filter(|name| scope.shows_name("namespaces", name));
    namespaces.for_each(|name| found.add("namespaces", name, &[]));
    for (key, _) in state.variables.iter().filter(|(key, _)| scope.shows_variable(key)) {
        found.add("vars", &key.path, &[&key.namespace, &key.path]);
    }
    let mut sorted = found.sorted();
    for context in wanted.iter().filter(|context| BY_PREFIX.contains(context)) {
        let ids = matching(state, context, text, scope);
        sorted.insert(context, ids.into_iter().map(|id| FuzzyMatch { id, scope: Vec::new() }).collect());
    }
    sorted
}

/// Matches with what they are sorted by: the position of the text, how long the name is, and the name.
struct Matches<'a> {
    text: String,
    wanted: &'a [&'static str],
    ranked: BTreeMap<&'static str, Vec<(usize, usize, FuzzyMatch)>>,
}

impl Matches<'_> {
    fn add(&mut self, context: &'static str, name: &str, scope: &[&str]) {
        if !self.wanted.contains(&context) {
            return;
        }
        if let Some(at) = name.to_lowercase().find(&self.text) {
            let scope = scope.iter().map(ToString::to_string).collect();
            let found = FuzzyMatch { id: name.to_string(), scope };
            self.ranked.entry(context).or_default().push((at, name.len(), found));
        }
    }

    fn job(&mut self, job: &JobState) {
        let (namespace, id) = (job.key.namespace.as_str(), job.key.id.as_str());
        let wanted = &job.current().job;
        self.add("jobs", wanted.name.as_deref().unwrap_or(id), &[namespace, id]);
        for group in wanted.task_groups.iter() {
            let name = group.name.as_deref().unwrap_or_default();
            self.add("groups", name, &[namespace, id]);
            group.services.iter().for_each(|own| self.add("services", &own.name, &[namespace, id, name]));
            group.tasks.iter().for_each(|task| self.task(task, &[namespace, id, name]));
        }
    }

    fn task(&mut self, task: &Task, group: &[&str; 3]) {
        let [namespace, job, name] = *group;
        let scope = [namespace, job, name, task.name.as_str()];
        self.add("tasks", &task.name, group);
        task.services.iter().for_each(|own| self.add("services", &own.name, &scope));
        let (context, key) = match task.driver.as_str() {
            "docker" => ("images", "image"),
            "exec" | "raw_exec" => ("commands", "command"),
            "java" => ("classes", "class"),
            _ => return,
        };
        if let Some(value) = task.config.get(key).and_then(Value::as_str) {
            self.add(context, value, &scope);
        }
    }

    fn sorted(self) -> BTreeMap<&'static str, Vec<FuzzyMatch>> {
        let sort = |mut ranked: Vec<(usize, usize, FuzzyMatch)>| {
            ranked.sort();
            ranked.into_iter().map(|(.., found)| found).collect()
        };
        self.ranked.into_iter().map(|(context, ranked)| (context, sort(ranked))).collect()
    }
}
