//! Everything that people configured in a cluster, read through Nomad's API.

use std::collections::BTreeMap;
use std::future::Future;

use api::{JobListStub, VariableMetadata};
use futures_util::{StreamExt, stream};
use model::document::{Job, input};
use sdk::{Answer, Client, Error, Query};

use crate::compare::unknown;
use crate::object::{JobCopy, Kind, Object, label};

/// Entries of one page of a list.
const PAGE: u32 = 500;

/// Objects that are read at the same time: enough to hide the way to a distant server, too few to be a load to it.
const AT_ONCE: usize = 8;

/// Node pools that every cluster has and nobody changes.
pub(crate) const BUILT_IN_POOLS: [&str; 2] = ["all", "default"];

/// What servers answer about access control where it is off.
const ACCESS_CONTROL_OFF: &str = "ACL support disabled";

/// What is read of a cluster.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Of jobs, variables and namespaces; `*` for all. With a single one, access control and the scheduler's configuration,
    /// which are the whole cluster's, are not read.
    pub namespace: String,
    pub variables: bool,
}

/// Something that is not taken over, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub what: String,
    pub why: String,
}

/// What is never taken over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftOut {
    Tokens,
    AuthMethods,
    BindingRules,
    HostVolumes,
    CsiVolumes,
    /// Jobs that periodic jobs and dispatches launched.
    Children,
}

impl LeftOut {
    /// What it is called, and why it stays.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            LeftOut::Tokens => ("ACL tokens", "their secrets stay with that cluster: make new ones"),
            LeftOut::AuthMethods => {
                ("ACL auth methods", "their secrets stay with that cluster: make them again")
            }
            LeftOut::BindingRules => ("ACL binding rules", "they belong to auth methods: make them again"),
            LeftOut::HostVolumes => {
                ("host volumes", "they are on nodes of that cluster: register them again")
            }
            LeftOut::CsiVolumes => {
                ("CSI volumes", "their secrets stay with that cluster: register them again")
            }
            LeftOut::Children => (
                "child jobs",
                "periodic jobs and dispatches launched them: the other cluster launches its own",
            ),
        }
    }
}

/// What a cluster has.
#[derive(Debug, Default)]
pub struct Inventory {
    /// In the order of [`Kind`].
    pub objects: Vec<Object>,
    /// Kinds that the server did not list, with its answer.
    pub unreadable: BTreeMap<Kind, String>,
    /// Single objects that could not be read.
    pub failures: Vec<Note>,
    /// What is never taken over, as far as there is some of it.
    pub left_out: Vec<Note>,
}

impl Scope {
    /// Of a namespace, or of all if it is empty.
    pub fn of(namespace: &str, variables: bool) -> Scope {
        let namespace = if namespace.is_empty() { "*" } else { namespace };
        Scope { namespace: namespace.to_string(), variables }
    }

    fn is_whole_cluster(&self) -> bool {
        self.namespace == "*"
    }

    pub(crate) fn has_namespace(&self, name: &str) -> bool {
        self.is_whole_cluster() || self.namespace == name
    }

    pub(crate) fn includes(&self, object: &Object) -> bool {
        match object {
            Object::Namespace(namespace) => self.has_namespace(&namespace.name),
            Object::Job(_) => self.has_namespace(object.namespace()),
            Object::Variable(_) => self.variables && self.has_namespace(object.namespace()),
            Object::NodePool(_) => true,
            Object::Policy(_) | Object::Role(_) | Object::Scheduler(_) => self.is_whole_cluster(),
        }
    }
}

impl Inventory {
    /// Reads it, and writes nothing. What the server does not show is noted.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn read(client: &Client, scope: &Scope) -> Result<Inventory, Error> {
        let mut found = Inventory::default();
        let client = &client.in_namespace("");
        found.take(Kind::Namespace, namespaces(client, scope).await)?;
        found.take(Kind::NodePool, node_pools(client).await)?;
        if scope.is_whole_cluster() {
            let policies = policies(client, &mut found.failures).await;
            found.take(Kind::Policy, policies)?;
            let roles = client.acl_roles(Query::new()).await;
            found.take(Kind::Role, roles.map(|roles| roles.value.into_iter().map(Object::Role).collect()))?;
        }
        if scope.variables {
            let variables = variables(client, scope, &mut found.failures).await;
            found.take(Kind::Variable, variables)?;
        }
        if scope.is_whole_cluster() {
            let scheduler = client.scheduler().await;
            let scheduler = scheduler.map(|answer| answer.scheduler_config.map(Object::Scheduler));
            found.take(Kind::Scheduler, scheduler.map(|found| found.into_iter().collect()))?;
        }
        let jobs = jobs(client, scope, &mut found).await;
        found.take(Kind::Job, jobs)?;
        Ok(found)
    }

    /// Adds what a cluster has and nobody can take over, so that it is not forgotten.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn count_left_out(&mut self, client: &Client) -> Result<(), Error> {
        let client = &client.in_namespace("*");
        // Lists have what a token may read, and do not say that there is more.
        let is_off = client.acl_policies(Query::new()).await.is_err_and(|error| is_off(&error.to_string()));
        if !is_off && client.own_acl_token().await.is_ok_and(|token| token.kind != "management") {
            let (what, why) = ("what the token may not read".into(), "it is no management token".into());
            self.left_out.push(Note { what, why });
        }
        let count = |listed: Result<usize, Error>| match listed {
            Ok(count) => Ok(count),
            // Without access control, or with a token that may not read them, there is nothing to say of them.
            Err(error) if is_answer(&error) => Ok(0),
            Err(error) => Err(error),
        };
        let tokens = count(client.acl_tokens(Query::new()).await.map(|list| list.value.len()))?;
        self.leave_out(tokens, LeftOut::Tokens);
        let methods = count(client.auth_methods(Query::new()).await.map(|list| list.value.len()))?;
        self.leave_out(methods, LeftOut::AuthMethods);
        let rules = count(client.binding_rules(Query::new()).await.map(|list| list.value.len()))?;
        self.leave_out(rules, LeftOut::BindingRules);
        let host = count(client.host_volumes(Query::new()).await.map(|list| list.value.len()))?;
        self.leave_out(host, LeftOut::HostVolumes);
        let csi = count(client.csi_volumes(Query::new()).await.map(|list| list.value.len()))?;
        self.leave_out(csi, LeftOut::CsiVolumes);
        Ok(())
    }

    /// Kinds that may have been missed, and why. Where access control is off there is nothing of it to miss.
    pub fn missed(&self) -> impl Iterator<Item = (Kind, &str)> {
        let all = self.unreadable.iter().map(|(kind, why)| (*kind, why.as_str()));
        all.filter(|(_, why)| !is_off(why))
    }

    pub(crate) fn leave_out(&mut self, count: usize, what: LeftOut) {
        let (what, why) = what.words();
        if count > 0 {
            self.left_out.push(Note { what: format!("{count} {what}"), why: why.to_string() });
        }
    }

    fn take(&mut self, kind: Kind, read: Result<Vec<Object>, Error>) -> Result<(), Error> {
        match read {
            Ok(objects) => self.objects.extend(objects),
            Err(error) if is_answer(&error) => drop(self.unreadable.insert(kind, error.to_string())),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn is_off(why: &str) -> bool {
    why.contains(ACCESS_CONTROL_OFF)
}

/// Whether a server answered, if not with what was asked for.
fn is_answer(error: &Error) -> bool {
    matches!(error, Error::Status { .. } | Error::Answer { .. })
}

async fn namespaces(client: &Client, scope: &Scope) -> Result<Vec<Object>, Error> {
    let all = client.namespaces(Query::new()).await?.value;
    let wanted = all.into_iter().filter(|one| scope.has_namespace(&one.name));
    Ok(wanted.map(|one| Object::Namespace(Box::new(one))).collect())
}

async fn node_pools(client: &Client) -> Result<Vec<Object>, Error> {
    let pools = pages(|query| client.node_pools(query)).await?;
    let own = pools.into_iter().filter(|pool| !BUILT_IN_POOLS.contains(&pool.name.as_str()));
    Ok(own.map(Object::NodePool).collect())
}

async fn policies(client: &Client, failures: &mut Vec<Note>) -> Result<Vec<Object>, Error> {
    let names: Vec<String> =
        client.acl_policies(Query::new()).await?.value.into_iter().map(|stub| stub.name).collect();
    let read = names.iter().map(|name| async move {
        (label(Kind::Policy, "", name), client.acl_policy(name).await.map(Object::Policy))
    });
    each(read, failures).await
}

async fn variables(client: &Client, scope: &Scope, failures: &mut Vec<Note>) -> Result<Vec<Object>, Error> {
    let listed = pages(|query| client.variables(query.namespace(&scope.namespace))).await?;
    let read = listed.iter().map(|VariableMetadata { namespace, path, .. }| async move {
        let client = client.in_namespace(namespace);
        let variable = client.variable(path).await;
        (label(Kind::Variable, namespace, path), variable.map(Object::Variable))
    });
    each(read, failures).await
}

async fn jobs(client: &Client, scope: &Scope, found: &mut Inventory) -> Result<Vec<Object>, Error> {
    let listed = pages(|query| client.jobs(query.namespace(&scope.namespace))).await?;
    let (children, listed): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|stub| !stub.parent_id.is_empty());
    found.leave_out(children.len(), LeftOut::Children);
    let read = listed.iter().map(|stub| async move {
        let copy = job(client, stub).await;
        (label(Kind::Job, &stub.namespace, &stub.id), copy.map(|copy| Object::Job(Box::new(copy))))
    });
    each(read, &mut found.failures).await
}

async fn job(client: &Client, stub: &JobListStub) -> Result<JobCopy, Error> {
    let query = || Query::new().namespace(&stub.namespace);
    let sent = client.job_as_sent(&stub.id, query()).await?;
    let unreadable = |source| Error::Answer { path: format!("/v1/job/{}", stub.id), source };
    let mut job: Job = input::from_slice(sent.to_string().as_bytes()).map_err(unreadable)?;
    let known = serde_json::to_value(&job).expect("a job is JSON");
    job.namespace = Some(stub.namespace.clone());
    let version = job.version.unwrap_or(0);
    let submission = match client.job_submission(&stub.id, version, query()).await {
        Ok(found) => Some(found.value),
        Err(Error::Status { code: 404, .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(JobCopy { job, submission, unknown: unknown(&sent, &known) })
}

/// All pages of a list.
async fn pages<T, F>(list: impl Fn(Query) -> F) -> Result<Vec<T>, Error>
where
    F: Future<Output = Result<Answer<Vec<T>>, Error>>,
{
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let page = list(Query::new().with("per_page", PAGE).with("next_token", &next)).await?;
        all.extend(page.value);
        match page.next_token.filter(|token| !token.is_empty()) {
            // A server that hands out the same page again would do so for ever.
            Some(token) if token != next => next = token,
            _ => return Ok(all),
        }
    }
}

/// Reads objects, some at a time, in their order; one that cannot be read is noted.
async fn each<F>(reads: impl Iterator<Item = F>, failures: &mut Vec<Note>) -> Result<Vec<Object>, Error>
where
    F: Future<Output = (String, Result<Object, Error>)>,
{
    let mut results = stream::iter(reads).buffered(AT_ONCE);
    let mut objects = Vec::new();
    while let Some((what, result)) = results.next().await {
        match result {
            Ok(object) => objects.push(object),
            Err(error) if is_answer(&error) => failures.push(Note { what, why: error.to_string() }),
            Err(error) => return Err(error),
        }
    }
    Ok(objects)
}
