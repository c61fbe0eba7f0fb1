//! Lists: whole, and therefore the truth. What differs from what is recorded is read and taken over; what is recorded and not
//! listed any more is gone.

use std::collections::BTreeSet;
use std::future::Future;

use base::Time;
use futures_util::{StreamExt, stream};
use model::document::{AllocationListStub, Deployment};
use model::{ClientStatus, Desired, JobKey, Observation, ObservedKey};
use sdk::{Answer, Client, Error, Query};
use state::State;

use crate::document::{Needs, TABLES, is_recorded, needs, rank, recorded};
use crate::recorder::{Read, Recorder};
use crate::{Log, RecordError, Report};

/// Entries of one page of a list.
const PAGE: u32 = 500;

/// Objects that are read at the same time: enough to hide the way to a distant server, too few to be a load to it.
const AT_ONCE: usize = 8;

/// The table whose documents are compared each time: what they count may have been counted twice here.
const DEPLOYMENTS: usize = 6;

/// Names of the tables, for errors.
const NAMES: [&str; TABLES] =
    ["namespaces", "node pools", "nodes", "jobs", "evaluations", "allocations", "deployments"];

/// An object as a list shows it.
struct Listed {
    key: ObservedKey,
    index: u64,
    /// `None`: only a read of its own says all.
    document: Option<Observation>,
    stub: Option<AllocationListStub>,
}

impl<L: Log> Recorder<L> {
    /// The newest index of the tables, without their contents.
    pub(crate) async fn newest_index(&mut self) -> Result<[u64; TABLES], RecordError> {
        let mut indexes = [0; TABLES];
        for (table, index) in indexes.iter_mut().enumerate() {
            let query = Query::new().namespace("*").with("per_page", 1);
            let answer = table_page(&self.client, table, query).await;
            *index = answer.map_err(|source| RecordError::Read { what: NAMES[table], source })?.index.0;
        }
        Ok(indexes)
    }

    /// Takes over what changed since the last time, table by table. `indexes`: the newest ones, which were just asked for.
    pub(crate) async fn list(&mut self, indexes: [u64; TABLES]) -> Result<(), RecordError> {
        let (mut objects, mut read, mut left_out) = (0, 0, 0);
        let mut gone: Vec<ObservedKey> = Vec::new();
        for (table, newest) in indexes.into_iter().enumerate() {
            if table != DEPLOYMENTS && newest != 0 && newest == self.listed[table] {
                continue;
            }
            let fail = |source| RecordError::Read { what: NAMES[table], source };
            let (listed, index) = pages(&self.client, table).await.map_err(fail)?;
            objects += listed.len();
            let keys: BTreeSet<&ObservedKey> = listed.iter().map(|one| &one.key).collect();
            let state = self.log.state();
            gone.extend(recorded(&state, table).into_iter().filter(|key| !keys.contains(key)));
            self.waiting.retain(|key, _| rank(key) != table);
            let mut wanted = Vec::new();
            for one in listed {
                if self.is_as_recorded(&state, &one) {
                    self.known.insert(one.key, one.index);
                    continue;
                }
                let needs = listed_needs(&one).filter(|needs| !needs.are_met(&state));
                match needs.filter(|_| !is_recorded(&state, &one.key)) {
                    Some(needs) => {
                        left_out += 1;
                        self.waiting.insert(one.key, needs);
                    }
                    None => wanted.push(one),
                }
            }
            read += wanted.len();
            self.newest = self.newest.max(index);
            self.take(table, wanted).await?;
            self.listed[table] = index;
        }
        gone.sort_by_key(|key| std::cmp::Reverse(rank(key)));
        self.forget(&gone).await?;
        // A job may have to wait for its allocations to end: it is looked for again, though its table did not change.
        let state = self.log.state();
        for key in gone.iter().filter(|key| is_recorded(&state, key)) {
            self.listed[rank(key)] = 0;
        }
        self.retry().await?;
        (self.report)(Report::Listed { index: self.newest, objects, read, left_out });
        Ok(())
    }

    /// Reads the whole documents, some at a time, and records them in their order.
    async fn take(&mut self, table: usize, wanted: Vec<Listed>) -> Result<(), RecordError> {
        let client = self.client.clone();
        let reads = wanted.into_iter().map(|one| {
            let client = client.clone();
            async move {
                let document = match one.document {
                    Some(document) => document,
                    None => fetch(&client, &one.key).await?,
                };
                Ok::<Read, Error>(Read { key: one.key, index: one.index, document })
            }
        });
        let mut results = stream::iter(reads).buffered(AT_ONCE).chunks(model::OBSERVED_MAX);
        while let Some(chunk) = results.next().await {
            let chunk: Result<Vec<Read>, Error> = chunk.into_iter().collect();
            let chunk = chunk.map_err(|source| RecordError::Read { what: NAMES[table], source })?;
            self.record(chunk).await?;
        }
        Ok(())
    }

    async fn forget(&mut self, gone: &[ObservedKey]) -> Result<(), RecordError> {
        let gone = gone.iter().map(|key| {
            let document = Observation::Gone(key.clone());
            Read { key: key.clone(), index: 0, document }
        });
        self.record(gone.collect()).await
    }

    /// Nothing of it has to be read.
    fn is_as_recorded(&self, state: &State, listed: &Listed) -> bool {
        let is_known = self.known.get(&listed.key) == Some(&listed.index);
        match (&listed.key, &listed.document, &listed.stub) {
            (ObservedKey::Deployment(_), Some(Observation::Deployment(document)), _) => {
                is_known && counts_the_same(state, document)
            }
            (ObservedKey::Alloc(id), _, Some(stub)) => {
                // What has ended does not change any more: after a restart not all of it is read again.
                let ended = |alloc: &&state::alloc::Alloc| {
                    alloc.client.is_terminal()
                        && Some(alloc.client) == ClientStatus::from_word(&stub.client_status)
                        && Some(alloc.desired) == Desired::from_word(&stub.desired_status)
                        && *alloc.desired_description == stub.desired_description
                        && *alloc.client_description == stub.client_description
                };
                is_known && state.allocs.find(*id).is_some()
                    || !self.known.contains_key(&listed.key)
                        && state.allocs.lookup(*id).as_ref().is_some_and(ended)
            }
            _ => is_known,
        }
    }
}

/// What the deployment counts is what the other cluster counts.
fn counts_the_same(state: &State, document: &Deployment) -> bool {
    let known = document.id.parse().ok().and_then(|id| state.deployments.lookup(id));
    let Some(known) = known else {
        // It was left out, as long as its version is not known; that may have come, or come back, since.
        let job = state.jobs.lookup(&JobKey::new(&document.namespace, &document.job_id));
        return job.and_then(|job| job.version(document.job_version)).is_none();
    };
    state::deployment::document(state, known).task_groups == document.task_groups
        && known.status.word() == document.status
}

/// What it names, if that is all that a list says of it.
fn listed_needs(listed: &Listed) -> Option<Needs> {
    match (&listed.document, &listed.stub) {
        (Some(document), _) => needs(document),
        (None, Some(stub)) => {
            let place = Some((stub.node_id.parse().ok()?, stub.job_version));
            Some(Needs { job: JobKey::new(&stub.namespace, &stub.job_id), place })
        }
        (None, None) => None,
    }
}

/// One object, whole. Not to be found means that it is gone.
pub(crate) async fn fetch(client: &Client, key: &ObservedKey) -> Result<Observation, Error> {
    let query = || Query::new().namespace("*");
    let read = match key {
        ObservedKey::Namespace(name) => {
            client.namespace_named(name).await.map(|one| Observation::Namespace(Box::new(one)))
        }
        ObservedKey::NodePool(name) => {
            client.node_pool(name).await.map(|one| Observation::NodePool(Box::new(one)))
        }
        ObservedKey::Node(id) => {
            let node = client.node(&id.to_string(), Query::new()).await;
            node.map(|one| Observation::Node(Box::new(one.value)))
        }
        ObservedKey::Job(key) => {
            let query = Query::new().namespace(&key.namespace);
            let versions = client.job_versions(&key.id, query).await;
            versions.map(|answer| {
                let mut versions: Vec<_> = answer.value.versions.iter().cloned().collect();
                versions.sort_by_key(|job| job.version);
                if versions.is_empty() {
                    return Observation::Gone(ObservedKey::Job(key.clone()));
                }
                Observation::Job(versions)
            })
        }
        ObservedKey::Eval(id) => {
            let eval = client.evaluation(&id.to_string(), query()).await;
            eval.map(|one| Observation::Eval(Box::new(one.value)))
        }
        ObservedKey::Alloc(id) => {
            let alloc = client.allocation(&id.to_string(), query()).await;
            alloc.map(|one| Observation::Alloc(Box::new(one.value)))
        }
        ObservedKey::Deployment(id) => {
            let deployment = client.deployment(&id.to_string(), query()).await;
            deployment.map(|one| Observation::Deployment(Box::new(one.value)))
        }
    };
    match read {
        Err(Error::Status { code: 404, .. }) => Ok(Observation::Gone(key.clone())),
        read => read,
    }
}

/// All pages of a table, and the index that all of them are at least of.
async fn pages(client: &Client, table: usize) -> Result<(Vec<Listed>, u64), Error> {
    let (mut all, mut next, mut index) = (Vec::new(), String::new(), u64::MAX);
    loop {
        let query = Query::new().namespace("*").with("per_page", PAGE).with("next_token", &next);
        let page = table_page(client, table, query).await?;
        index = index.min(page.index.0);
        all.extend(page.value);
        match page.next_token.filter(|token| !token.is_empty()) {
            // A server that hands out the same page again would do so for ever.
            Some(token) if token != next => next = token,
            _ => return Ok((all, index)),
        }
    }
}

async fn table_page(client: &Client, table: usize, query: Query) -> Result<Answer<Vec<Listed>>, Error> {
    match table {
        0 => {
            mapped(client.namespaces(query), |one| {
                let (key, index) = (ObservedKey::Namespace(one.name.clone()), one.modify_index);
                Some(Listed { key, index, document: Some(Observation::Namespace(Box::new(one))), stub: None })
            })
            .await
        }
        1 => {
            mapped(client.node_pools(query), |one| {
                let (key, index) = (ObservedKey::NodePool(one.name.clone()), one.modify_index);
                Some(Listed { key, index, document: Some(Observation::NodePool(Box::new(one))), stub: None })
            })
            .await
        }
        2 => {
            mapped(client.nodes(query), |one| {
                let key = ObservedKey::Node(one.id.parse().ok()?);
                Some(Listed { key, index: one.modify_index, document: None, stub: None })
            })
            .await
        }
        3 => {
            mapped(client.jobs(query), |one| {
                let key = ObservedKey::Job(JobKey::new(&one.namespace, &one.id));
                Some(Listed { key, index: one.modify_index, document: None, stub: None })
            })
            .await
        }
        4 => {
            mapped(client.evaluations(query), |one| {
                let (key, index) = (ObservedKey::Eval(one.id.parse().ok()?), one.modify_index);
                Some(Listed { key, index, document: Some(Observation::Eval(Box::new(one))), stub: None })
            })
            .await
        }
        5 => {
            mapped(client.allocations(query.with("task_states", "false")), |one| {
                let key = ObservedKey::Alloc(one.id.parse().ok()?);
                Some(Listed { key, index: one.modify_index, document: None, stub: Some(one) })
            })
            .await
        }
        _ => {
            mapped(client.deployments(query), |one| {
                let (key, index) = (ObservedKey::Deployment(one.id.parse().ok()?), one.modify_index);
                Some(Listed {
                    key,
                    index,
                    document: Some(Observation::Deployment(Box::new(one))),
                    stub: None,
                })
            })
            .await
        }
    }
}

async fn mapped<T>(
    page: impl Future<Output = Result<Answer<Vec<T>>, Error>>,
    of: impl Fn(T) -> Option<Listed>,
) -> Result<Answer<Vec<Listed>>, Error> {
    let Answer { value, index, next_token } = page.await?;
    Ok(Answer { value: value.into_iter().filter_map(of).collect(), index, next_token })
}

pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
