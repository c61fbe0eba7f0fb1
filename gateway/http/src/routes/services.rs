//! Services that the cluster itself keeps: where allocations can be reached, by name.

use std::collections::{BTreeMap, BTreeSet};

use api::{ServiceRegistration, ServiceRegistrationListStub, ServiceRegistrationStub};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{any, delete, get};
use base::Index;
use control::Subject;
use feed::registration;
use model::document::List;
use model::{Command, JobKey, ServiceKey};
use sha2::{Digest, Sha256};
use state::State;
use state::service::Registered;

use super::jobs;
use crate::access::{DeleteServices, ReadJob, ReadServices, Somewhere};
use crate::answer::{Answer, done};
use crate::app_state::AppState;
use crate::blocking::Changing;
use crate::error::Failure;
use crate::page::{Page, page};
use crate::request::{Call, Read, Reading, Write, as_json};

pub(super) fn router() -> Router<AppState> {
    let elsewhere = async |_: Call<DeleteServices>| Failure::invalid("invalid URI");
    Router::new()
        .route("/v1/services", get(list))
        .route("/v1/service/{name}", get(instances))
        .route("/v1/service/{name}/{id}", delete(deregister))
        .route("/v1/service/{name}/{id}/{*rest}", any(elsewhere))
        .route("/v1/job/{id}/services", get(of_job))
        .route("/v1/allocation/{id}/services", get(of_alloc))
}

/// By namespace and name, with the tags of all instances.
async fn list(With(server): With<AppState>, read: Read<ReadServices>) -> Answer {
    let view = |state: &State, read: &Reading| {
        read.without_filter()?;
        let mut names: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for row in state.services.iter().filter(|row| read.shows(&row.key.namespace)) {
            let own = names.entry(&row.key.namespace).or_default();
            let tags = row.service.tags.iter().map(String::as_str);
            own.entry(&row.service.name).or_default().extend(tags);
        }
        let stubs = names.into_iter().map(|(namespace, names)| {
            let stub = |(name, tags): (&str, BTreeSet<&str>)| ServiceRegistrationStub {
                service_name: name.to_string(),
                tags: List(tags.into_iter().map(str::to_string).collect()),
            };
            let services = List(names.into_iter().map(stub).collect());
            ServiceRegistrationListStub { namespace: namespace.to_string(), services }
        });
        Ok(Page::whole(stubs))
    };
    server.list(read, Changing { subject: |_: &State| Some(Subject::Services), index: changed }, view).await
}

/// The instances of one service. With `choose` the same ones for the same key, as long as they are there.
async fn instances(
    With(server): With<AppState>,
    Path(name): Path<String>,
    mut read: Read<ReadServices>,
) -> Answer {
    // Nomad's order is one way here.
    read.options.reverse = false;
    let choice = read.params.get("choose").map(Choice::read).transpose()?;
    let view = move |state: &State, read: &Reading| {
        let known: Vec<&Registered> = match read.options.namespace.as_str() {
            "*" => state.services.iter().filter(|row| row.service.name == name).collect(),
            namespace => state.services.named(namespace, &name).collect(),
        };
        let known = known.into_iter().filter(|row| read.shows(&row.key.namespace));
        let mut kept = read.filtered("ServiceRegistration", known, |row| as_json(&registration(row)))?;
        if let Some(choice) = &choice {
            choice.narrow(&mut kept);
            return Ok(Page::whole(kept.into_iter().map(registration)));
        }
        let keyed = kept.into_iter().map(|row| (JobKey::new(&row.key.namespace, &row.service.id), row));
        Ok(page(keyed, &read.options)?.map(registration))
    };
    server.list(read, Changing { subject: |_: &State| Some(Subject::Services), index: changed }, view).await
}

/// So many instances, which ones follows from a key.
struct Choice {
    count: usize,
    key: String,
}

impl Choice {
    fn read(text: &str) -> Result<Choice, Failure> {
        let parts = text.split_once('|').and_then(|(count, key)| Some((count.parse::<u32>().ok()?, key)));
        match parts {
            Some((count, key)) if count > 0 && !key.is_empty() => {
                Ok(Choice { count: count as usize, key: key.to_string() })
            }
            _ => Err(Failure::invalid("invalid `choose`: expected a number, a bar and a key, like 2|abc")),
        }
    }

    /// Rendezvous hashing: one that comes or goes moves no caller between the others.
    fn narrow(&self, rows: &mut Vec<&Registered>) {
        rows.sort_by_cached_key(|row| self.rank(row));
        rows.truncate(self.count);
    }

    fn rank(&self, row: &Registered) -> [u8; 32] {
        let mut hash = Sha256::new();
        let port = row.service.port.to_string();
        let parts = [&row.service.id, &row.service.name, &row.key.namespace, &row.service.address, &port];
        for part in parts.into_iter().chain(&row.service.tags).chain([&self.key]) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

async fn deregister(
    With(server): With<AppState>,
    Path((name, id)): Path<(String, String)>,
    write: Write,
) -> Answer {
    let key = ServiceKey::new(write.params.namespace(), &id);
    // Who passes on the call of the node RPC has no name.
    let name = Some(name).filter(|name| name != "*");
    let command = Command::DeregisterService { key, name, node: None };
    // As in Nomad, where one that is not there is a failure of the server.
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    Ok(done(receipt.index))
}

async fn of_job(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = jobs::key(&read.params, &id);
    let view = move |state: &State, _: &Reading| {
        let row = state.jobs.find(&key).ok_or_else(|| Failure::not_found(jobs::NOT_FOUND))?;
        let allocs = state.jobs.get(row).allocs.iter().map(|alloc| state.allocs.get(*alloc).id);
        Ok(sorted(allocs.flat_map(|alloc| state.services.of_alloc(alloc))))
    };
    server.list(read, Changing { subject: |_: &State| Some(Subject::Services), index: changed }, view).await
}

async fn of_alloc(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let view = move |state: &State, read: &Reading| {
        let alloc = read.alloc(state, &id).ok_or_else(|| Failure::not_found("allocation not found"))?;
        Ok(sorted(state.services.of_alloc(alloc.id).iter()))
    };
    server.list(read, Changing { subject: |_: &State| Some(Subject::Services), index: changed }, view).await
}

fn sorted<'s>(rows: impl Iterator<Item = &'s Registered>) -> Page<ServiceRegistration> {
    let mut rows: Vec<&Registered> = rows.collect();
    rows.sort_by(|a, b| a.service.id.cmp(&b.service.id));
    Page::whole(rows.into_iter().map(registration))
}

/// The last batch that changed one; never zero, which would not be waited for.
fn changed(state: &State) -> Index {
    state.services.changed().max(Index(1))
}
