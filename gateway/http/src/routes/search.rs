use std::collections::BTreeSet;

use acl::{Acl, PoolCapability, VariableCapability};

use axum::Router;
use axum::extract::State as With;
use base::Index;
use model::document::List;
use model::{VariableKey, VolumeKind};
use state::State;

use api::{SearchRequest, SearchResponse};

use super::write;
use crate::access::{
    Each, ListCsiVolumes, ListPlugins, ListScalingPolicies, ReadHostVolumes, ReadJob, ReadNodes, Right,
    SeeVariables, denied,
};
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::id_prefix;
use crate::request::{Json, Read, Reading};

/// Most names of one kind in an answer.
const MATCHES_MAX: usize = 20;

/// What can be searched.
pub(super) const CONTEXTS: [&str; 12] = [
    "allocs",
    "deployment",
    "evals",
    "host_volumes",
    "jobs",
    "namespaces",
    "node_pools",
    "nodes",
    "plugins",
    "scaling_policy",
    "vars",
    "volumes",
];

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/search", write(search))
}

/// By the start of a name; never waits.
async fn search(
    With(server): With<AppState>,
    mut read: Read<Each>,
    Json(request): Json<SearchRequest>,
) -> Answer {
    read.without_filter()?;
    read.options.index = Index::ZERO;
    let scope = Scope::of(&read);
    let contexts = scope.opened(contexts(&request.context)?)?;
    let known_leader = server.known_leader();
    let view = |state: &State| {
        let mut response =
            SearchResponse { index: newest(state).0.max(1), known_leader, ..SearchResponse::default() };
        for context in contexts {
            let mut found = matching(state, context, &request.prefix, &scope);
            let is_cut = found.len() > MATCHES_MAX;
            found.truncate(MATCHES_MAX);
            response.matches.insert(context.to_string(), List(found));
            response.truncations.insert(context.to_string(), is_cut);
        }
        Ok(response)
    };
    server.read(&read, newest, view).await
}

fn contexts(asked: &str) -> Result<Vec<&'static str>, Failure> {
    match asked {
        "" | "all" => Ok(CONTEXTS.to_vec()),
        one => match CONTEXTS.iter().find(|context| **context == one) {
            Some(context) => Ok(vec![context]),
            None => Err(Failure::unsupported(format_args!("searching for {one:?} is"))),
        },
    }
}

/// What one caller can find.
pub(super) struct Scope<'a> {
    acl: &'a Acl,
    /// The namespace that was asked for, or `*`.
    asked: &'a str,
}

impl Scope<'_> {
    pub(super) fn of(read: &Reading) -> Scope<'_> {
        Scope { acl: &read.access.acl, asked: &read.options.namespace }
    }

    /// Those of the contexts in which the caller can find something.
    ///
    /// # Errors
    /// 403 if there are none.
    pub(super) fn opened(&self, mut wanted: Vec<&'static str>) -> Result<Vec<&'static str>, Failure> {
        wanted.retain(|context| self.holds(context, self.asked));
        if wanted.is_empty() { Err(denied()) } else { Ok(wanted) }
    }

    pub(super) fn shows(&self, context: &str, namespace: &str) -> bool {
        (self.asked == "*" || self.asked == namespace) && self.holds(context, namespace)
    }

    /// A variable's path.
    pub(super) fn shows_variable(&self, key: &VariableKey) -> bool {
        (self.asked == "*" || self.asked == key.namespace)
            && self.acl.allows_variable(&key.namespace, &key.path, VariableCapability::List)
    }

    /// Names of what stands in no namespace.
    pub(super) fn shows_name(&self, context: &str, name: &str) -> bool {
        match context {
            "namespaces" => self.acl.knows_namespace(name),
            "node_pools" => self.acl.allows_pool(name, PoolCapability::Read),
            _ => true,
        }
    }

    fn holds(&self, context: &str, namespace: &str) -> bool {
        let holds = match context {
            "nodes" => ReadNodes::holds,
            "plugins" => ListPlugins::holds,
            "volumes" => ListCsiVolumes::holds,
            "host_volumes" => ReadHostVolumes::holds,
            "scaling_policy" => ListScalingPolicies::holds,
            "vars" => SeeVariables::holds,
            // Each name is looked at.
            "namespaces" | "node_pools" => Each::holds,
            _ => ReadJob::holds,
        };
        holds(self.acl, namespace)
    }
}

/// One more than is shown, if there are so many.
pub(super) fn matching(state: &State, context: &str, prefix: &str, scope: &Scope) -> Vec<String> {
    let in_namespace = |name: &str| scope.shows(context, name);
    let limit = MATCHES_MAX + 1;
    match context {
        "jobs" => {
            let keys = state.jobs.iter().map(|(_, job)| &job.key);
            let keys = keys.filter(|key| in_namespace(&key.namespace) && key.id.starts_with(prefix));
            // Sorted: jobs are kept in no order that means anything.
            let sorted: BTreeSet<&str> = keys.map(|key| key.id.as_str()).collect();
            sorted.into_iter().take(limit).map(str::to_string).collect()
        }
        "volumes" | "host_volumes" => {
            let kind = if context == "volumes" { VolumeKind::Csi } else { VolumeKind::Host };
            let keys = state.volumes.iter().map(|(key, _)| key).filter(|key| key.kind == kind);
            let keys = keys.filter(|key| in_namespace(&key.namespace) && key.id.starts_with(prefix));
            keys.take(limit).map(|key| key.id.clone()).collect()
        }
        "vars" => {
            let keys = state.variables.iter().map(|(key, _)| key);
            let keys = keys.filter(|key| key.path.starts_with(prefix) && scope.shows_variable(key));
            keys.take(limit).map(|key| key.path.clone()).collect()
        }
        "scaling_policy" => {
            let jobs = state.jobs.iter().map(|(_, job)| job).filter(|job| in_namespace(&job.key.namespace));
            let ids = jobs.flat_map(super::scaling::of_job).map(|policy| policy.id);
            let sorted: BTreeSet<String> = ids.filter(|id| id.starts_with(prefix)).collect();
            sorted.into_iter().take(limit).collect()
        }
        "plugins" => {
            let nodes = state.nodes.rows().map(|row| &state.nodes.cold(row).document);
            let names =
                nodes.flat_map(|node| node.csi_node_plugins.keys().chain(node.csi_controller_plugins.keys()));
            let sorted: BTreeSet<&String> = names.filter(|name| name.starts_with(prefix)).collect();
            sorted.into_iter().take(limit).cloned().collect()
        }
        "node_pools" | "namespaces" => {
            let all = if context == "namespaces" { state.namespaces.names() } else { state.pools.names() };
            let shown = all
                .into_iter()
                .filter(|name| name.starts_with(prefix) && scope.shows_name(context, name))
                .take(limit);
            shown.map(str::to_string).collect()
        }
        _ => {
            let Some(prefix) = whole_bytes(prefix) else { return Vec::new() };
            ids(state, context, &prefix, in_namespace, limit)
        }
    }
}

fn ids(
    state: &State,
    context: &str,
    prefix: &str,
    in_namespace: impl Fn(&str) -> bool,
    limit: usize,
) -> Vec<String> {
    match context {
        "nodes" => {
            let rows = state.nodes.with_prefix(prefix).take(limit);
            rows.map(|row| state.nodes.cold(row).id.to_string()).collect()
        }
        "evals" => {
            let rows = state.evals.with_prefix(prefix).map(|row| state.evals.get(row));
            let shown = rows.filter(|eval| in_namespace(&eval.facts.key.namespace)).take(limit);
            shown.map(|eval| eval.id().to_string()).collect()
        }
        "allocs" => {
            let rows = state.allocs.with_prefix(prefix).map(|row| state.allocs.get(row));
            let shown = rows.filter(|alloc| in_namespace(&state.jobs.get(alloc.job).key.namespace));
            shown.take(limit).map(|alloc| alloc.id.to_string()).collect()
        }
        "deployment" => {
            let rows = state.deployments.with_prefix(prefix).map(|row| state.deployments.get(row));
            let shown = rows.filter(|known| in_namespace(&state.jobs.get(known.job).key.namespace));
            shown.take(limit).map(|deployment| deployment.id.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// An odd last digit is left out, and the caller compares it. What starts no id matches none.
fn whole_bytes(prefix: &str) -> Option<String> {
    id_prefix(prefix).ok().or_else(|| {
        let shorter = prefix.char_indices().next_back().map(|(at, _)| &prefix[..at])?;
        prefix.ends_with(|c: char| c.is_ascii_hexdigit()).then(|| id_prefix(shorter).ok())?
    })
}

pub(super) fn newest(state: &State) -> Index {
    let tables = state.tables;
    let newest = tables.nodes.max(tables.jobs).max(tables.evals).max(tables.allocs).max(tables.deployments);
    newest.max(state.variables.changed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_digit_is_left_out_and_other_text_finds_no_id() {
        assert_eq!(whole_bytes("5d1").as_deref(), Some("5d"));
        assert_eq!(whole_bytes("5D16e7fe-8").as_deref(), Some("5d16e7fe"));
        assert_eq!((whole_bytes("web"), whole_bytes("5dx"), whole_bytes("é")), (None, None, None));
        assert_eq!(whole_bytes("").as_deref(), Some(""));
    }

    #[test]
    fn only_what_exists_can_be_searched() {
        assert_eq!(contexts("").unwrap(), CONTEXTS);
        assert_eq!(contexts("jobs").unwrap(), ["jobs"]);
        assert!(contexts("quotas").is_err());
    }
}
