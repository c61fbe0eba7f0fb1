//! What takes back the facts of one index: a write for each object that they changed.

use std::collections::BTreeMap;

use api::{
    HistoryLine, JobRegisterRequest, Namespace, NodePool, SchedulerConfiguration,
    SchedulerConfigurationResponse, Variable,
};
use base::Index;
use model::document::{ACLPolicy, Job};
use sdk::{Client, Query, VariableChange};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::difference::{self, Change};
use super::object::{Kind, Object};
use crate::call::{Call, Doing, Failure};

/// Facts that follow from others: what takes those back takes these back.
const FOLLOWS: [&str; 7] =
    ["Eval", "Plan", "Alloc", "Deployment", "JobStabilityChanged", "Services", "NodeDrainEnded"];

/// Fields of a job that servers write.
const OF_SERVERS: [&str; 4] = ["Status", "StatusDescription", "Stable", "Version"];

/// Fields of a node that operators write.
const OF_OPERATORS: [&str; 2] = ["SchedulingEligibility", "DrainStrategy"];

/// A write that takes back what happened to one object.
#[derive(Debug)]
pub(crate) struct Step {
    pub object: Object,
    /// Of the object; empty for one that is in none.
    pub namespace: String,
    write: Write,
    /// From what it is now to what it was before.
    pub changes: Vec<Change>,
}

#[derive(Debug)]
enum Write {
    Register(Box<JobRegisterRequest>),
    StopJob,
    Eligibility(String),
    StopDrain {
        mark_eligible: bool,
    },
    /// Where it still is the one of that index.
    SetVariable(Box<Variable>, u64),
    DeleteVariable(u64),
    ApplyNamespace(Box<Namespace>),
    DeleteNamespace,
    ApplyNodePool(Box<NodePool>),
    DeleteNodePool,
    ApplyPolicy(Box<ACLPolicy>),
    DeletePolicy,
    SetScheduler(Box<SchedulerConfiguration>, u64),
}

/// What an object was before, right after, and is now.
struct Versions {
    before: Option<Value>,
    after: Option<Value>,
    now: Option<Value>,
}

/// What would take the facts back, nothing for what is as it was already.
///
/// # Errors
/// Why they cannot be taken back: none, or all of them are.
pub(crate) async fn steps(call: &Call, index: Index, facts: &[HistoryLine]) -> Result<Vec<Step>, Failure> {
    let follows = |fact: &&HistoryLine| FOLLOWS.iter().any(|prefix| fact.event.starts_with(prefix));
    let mut objects: BTreeMap<String, (Object, String)> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| !follows(fact)) {
        let (object, namespace) = subject(fact).ok_or_else(|| refused(fact))?;
        objects.insert(fact.object.clone(), (object, namespace));
    }
    if objects.is_empty() {
        let kinds: Vec<&str> = facts.iter().map(|fact| fact.event.as_str()).collect();
        let why = format!(
            "Nothing of {index} can be undone by itself: {} followed from something else",
            kinds.join(", ")
        );
        return Err(anyhow::anyhow!(why).into());
    }
    let mut steps = Vec::new();
    for (object, namespace) in objects.into_values() {
        steps.extend(step(call, index, object, namespace).await?);
    }
    Ok(steps)
}

fn refused(fact: &HistoryLine) -> Failure {
    let HistoryLine { event, object, index, .. } = fact;
    anyhow::anyhow!("{event} of {object} at {index} cannot be undone").into()
}

/// The object of a fact that an operator can take back, and its namespace.
fn subject(fact: &HistoryLine) -> Option<(Object, String)> {
    let kind = match fact.event.as_str() {
        "JobRegistered" | "JobStopped" | "JobPurged" | "JobScaled" => Kind::Job,
        "NodeEligibilityChanged" | "NodeDrainStarted" => Kind::Node,
        "VariableSet" | "VariableDeleted" => Kind::Variable,
        "NamespaceUpserted" | "NamespaceDeleted" => Kind::Namespace,
        "NodePoolUpserted" | "NodePoolDeleted" => Kind::NodePool,
        "AclPolicyUpserted" | "AclPolicyDeleted" => Kind::AclPolicy,
        "SchedulerConfigured" => Kind::Scheduler,
        _ => return None,
    };
    let (_, name) = fact.object.split_once('/').unwrap_or_default();
    let (namespace, name) = match kind {
        Kind::Job | Kind::Variable => name.split_once('/')?,
        _ => ("", name),
    };
    Some((Object::new(kind, name), namespace.to_string()))
}

async fn step(call: &Call, index: Index, object: Object, namespace: String) -> Result<Option<Step>, Failure> {
    let then = |index: Index| call.client_at(&namespace, &index.to_string());
    let earlier = then(Index(index.0.saturating_sub(1)))?;
    let versions = Versions {
        before: object.document(&earlier).await?,
        after: object.document(&then(index)?).await?,
        now: object.document(&call.client_at(&namespace, "")?).await?,
    };
    let since = changes(&object, &versions.after, &versions.now);
    let back = changes(&object, &versions.now, &versions.before);
    if back.is_empty() {
        return Ok(None);
    }
    if let Some(first) = since.first() {
        let why = format!(
            "{object} was changed since (such as {}): undo that first, or change it by hand",
            first.path
        );
        return Err(anyhow::anyhow!(why).into());
    }
    let write = write(&object, versions, &earlier).await?;
    Ok(Some(Step { object, namespace, write, changes: back }))
}

/// What differs of what people write.
fn changes(object: &Object, from: &Option<Value>, to: &Option<Value>) -> Vec<Change> {
    let all = difference::changes(from.as_ref().unwrap_or(&Value::Null), to.as_ref().unwrap_or(&Value::Null));
    let root = |path: &str| path.split(['.', '[']).next().unwrap_or_default().to_string();
    let is_meant = |change: &Change| match object.kind {
        Kind::Job => !OF_SERVERS.contains(&root(&change.path).as_str()),
        Kind::Node => OF_OPERATORS.contains(&root(&change.path).as_str()),
        _ => true,
    };
    all.into_iter().filter(is_meant).collect()
}

async fn write(object: &Object, versions: Versions, earlier: &Client) -> Result<Write, Failure> {
    let Versions { before, now, .. } = versions;
    let index = |document: &Option<Value>, field: &str| {
        document.as_ref().and_then(|document| document[field].as_u64()).unwrap_or(0)
    };
    let stopped = before.as_ref().is_some_and(|job| job["Stop"] == true);
    Ok(match (object.kind, before) {
        (Kind::Job, None) => Write::StopJob,
        (Kind::Job, Some(_)) if stopped => Write::StopJob,
        (Kind::Job, Some(before)) => {
            let job: Job = read(before)?;
            let version = job.version.unwrap_or(0);
            let source = earlier.job_submission(&object.name, version, Query::new()).await;
            Write::Register(Box::new(JobRegisterRequest {
                submission: source.ok().map(|source| source.value),
                job: Some(job),
                enforce_index: true,
                job_modify_index: index(&now, "JobModifyIndex"),
                ..JobRegisterRequest::default()
            }))
        }
        (Kind::Node, Some(before)) => {
            let eligibility = before["SchedulingEligibility"].as_str().unwrap_or_default().to_string();
            let drains = |node: &Value| !node["DrainStrategy"].is_null();
            if now.as_ref().is_some_and(drains) && !drains(&before) {
                Write::StopDrain { mark_eligible: eligibility == "eligible" }
            } else {
                Write::Eligibility(eligibility)
            }
        }
        (Kind::Variable, Some(before)) => {
            Write::SetVariable(Box::new(read(before)?), index(&now, "ModifyIndex"))
        }
        (Kind::Variable, None) => Write::DeleteVariable(index(&now, "ModifyIndex")),
        (Kind::Namespace, Some(before)) => Write::ApplyNamespace(Box::new(read(before)?)),
        (Kind::Namespace, None) => Write::DeleteNamespace,
        (Kind::NodePool, Some(before)) => Write::ApplyNodePool(Box::new(read(before)?)),
        (Kind::NodePool, None) => Write::DeleteNodePool,
        (Kind::AclPolicy, Some(before)) => Write::ApplyPolicy(Box::new(read(before)?)),
        (Kind::AclPolicy, None) => Write::DeletePolicy,
        (Kind::Scheduler, Some(before)) => {
            let before: SchedulerConfigurationResponse = read(before)?;
            let now: SchedulerConfigurationResponse = read(now.unwrap_or_default())?;
            let cas = now.scheduler_config.map_or(0, |config| config.modify_index);
            Write::SetScheduler(Box::new(before.scheduler_config.unwrap_or_default()), cas)
        }
        _ => return Err(anyhow::anyhow!("{object} was not there before: that cannot be undone").into()),
    })
}

fn read<T: DeserializeOwned>(document: Value) -> Result<T, Failure> {
    serde_json::from_value(document).map_err(|error| anyhow::Error::from(error).into())
}

impl Step {
    /// What it does, in words.
    pub(crate) fn words(&self) -> String {
        let object = &self.object;
        match &self.write {
            Write::Register(_) => format!("register {object} as it was"),
            Write::StopJob => format!("stop {object}"),
            Write::Eligibility(eligibility) => format!("make {object} {eligibility}"),
            Write::StopDrain { .. } => format!("stop the drain of {object}"),
            Write::DeleteVariable(_)
            | Write::DeleteNamespace
            | Write::DeleteNodePool
            | Write::DeletePolicy => format!("delete {object}"),
            Write::SetVariable(..)
            | Write::ApplyNamespace(_)
            | Write::ApplyNodePool(_)
            | Write::ApplyPolicy(_)
            | Write::SetScheduler(..) => format!("write {object} as it was"),
        }
    }

    /// Does it, unless somebody was faster.
    ///
    /// # Errors
    /// It is refused, or the object is another one by now.
    pub(crate) async fn apply(&self, client: &Client) -> Result<(), Failure> {
        let name = self.object.name.as_str();
        let doing = self.words();
        let was_faster = || {
            Failure::from(anyhow::anyhow!("{} was changed meanwhile: nothing was written to it", self.object))
        };
        match &self.write {
            Write::Register(request) => client.register(request).await.doing(&doing).map(drop),
            Write::StopJob => client.deregister(name, Query::new()).await.doing(&doing).map(drop),
            Write::Eligibility(word) => client.set_eligibility(name, word).await.doing(&doing).map(drop),
            Write::StopDrain { mark_eligible } => {
                client.drain(name, None, *mark_eligible, Default::default()).await.doing(&doing).map(drop)
            }
            Write::SetVariable(variable, cas) => {
                match client.set_variable(variable, Some(*cas)).await.doing(&doing)? {
                    VariableChange::Done(_) => Ok(()),
                    VariableChange::Conflict(_) => Err(was_faster()),
                }
            }
            Write::DeleteVariable(cas) => {
                match client.delete_variable(name, Some(*cas)).await.doing(&doing)? {
                    None => Ok(()),
                    Some(_) => Err(was_faster()),
                }
            }
            Write::ApplyNamespace(namespace) => client.apply_namespace(namespace).await.doing(&doing),
            Write::DeleteNamespace => client.delete_namespace(name).await.doing(&doing),
            Write::ApplyNodePool(pool) => client.apply_node_pool(pool).await.doing(&doing),
            Write::DeleteNodePool => client.delete_node_pool(name).await.doing(&doing),
            Write::ApplyPolicy(policy) => client.apply_acl_policy(policy).await.doing(&doing),
            Write::DeletePolicy => client.delete_acl_policy(name).await.doing(&doing),
            Write::SetScheduler(config, cas) => {
                let answer = client.set_scheduler(config, *cas).await.doing(&doing)?;
                if answer.updated { Ok(()) } else { Err(was_faster()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fact(event: &str, object: &str) -> HistoryLine {
        HistoryLine { event: event.into(), object: object.into(), ..HistoryLine::default() }
    }

    #[test]
    fn a_fact_names_the_object_that_is_written() {
        let (job, namespace) = subject(&fact("JobRegistered", "job/prod/batch/one")).unwrap();
        assert_eq!((job.to_string().as_str(), namespace.as_str()), ("job/batch/one", "prod"));
        let (variable, namespace) = subject(&fact("VariableSet", "var/default/db/password")).unwrap();
        assert_eq!((variable.to_string().as_str(), namespace.as_str()), ("var/db/password", "default"));
        assert!(subject(&fact("AclTokensDeleted", "acl-token/1")).is_none(), "nobody has its secret");
    }

    #[test]
    fn what_servers_write_of_a_job_is_no_change() {
        let job = Object::new(Kind::Job, "web");
        let document = |status: &str, count: u64| {
            Some(json!({"Status": status, "Version": count, "TaskGroups": [{"Name": "g", "Count": count}]}))
        };
        assert!(changes(&job, &document("pending", 1), &document("running", 1)).is_empty());
        let paths: Vec<String> = changes(&job, &document("a", 1), &document("b", 2))
            .into_iter()
            .map(|change| change.path)
            .collect();
        assert_eq!(paths, ["TaskGroups[g].Count"]);
    }
}
