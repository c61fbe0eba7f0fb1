//! What tokens say, and of whom.

use base::{Duration, Index, Time, Uuid};
use model::document::{TaskGroup, WorkloadIdentity};
use serde::{Deserialize, Serialize};
use state::State;
use state::alloc::Alloc;
use state::keyring::Keyring;

/// Whom the tokens of nodes are for, and those of tasks that name nobody else.
pub const AUDIENCE: &str = "nomadproject.io";

/// The claims of one token, by their names in it. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who signed it, if the cluster has been given an address for that.
    #[serde(rename = "iss", default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(rename = "sub")]
    pub subject: String,
    #[serde(rename = "aud")]
    pub audience: Vec<String>,
    #[serde(rename = "iat")]
    pub issued: i64,
    #[serde(rename = "nbf")]
    pub not_before: i64,
    /// None has no end.
    #[serde(rename = "exp", skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    #[serde(rename = "jti", with = "text")]
    pub id: Uuid,
    #[serde(flatten)]
    pub holder: Holder,
}

/// Who presents a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Holder {
    Node(NodeClaims),
    /// A node that no server knows yet.
    Introduction(IntroductionClaims),
    Workload(WorkloadClaims),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeClaims {
    #[serde(rename = "nomad_node_id", with = "text")]
    pub id: Uuid,
    #[serde(rename = "nomad_node_pool")]
    pub pool: String,
    #[serde(rename = "nomad_node_class", default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    #[serde(rename = "nomad_node_datacenter")]
    pub datacenter: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntroductionClaims {
    #[serde(rename = "nomad_introduction_node_pool")]
    pub pool: String,
    /// Empty for a node of any name.
    #[serde(rename = "nomad_introduction_node_name", default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadClaims {
    #[serde(rename = "nomad_namespace")]
    pub namespace: String,
    /// The parent of a job that was dispatched or launched.
    #[serde(rename = "nomad_job_id")]
    pub job: String,
    #[serde(rename = "nomad_allocation_id", with = "text")]
    pub alloc: Uuid,
    #[serde(rename = "nomad_task", default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    #[serde(rename = "nomad_service", default, skip_serializing_if = "String::is_empty")]
    pub service: String,
}

/// An identity of a task or of a service, as a job file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload<'a> {
    Task(&'a str),
    Service {
        name: &'a str,
        /// Its name with the variables in it filled in.
        full_name: &'a str,
    },
}

/// Why there is no identity of this name; Nomad's clients know these words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoIdentity {
    #[error("task not found")]
    Task,
    #[error("service not found")]
    Service,
    #[error("identity not found")]
    Name,
}

impl Claims {
    fn new(subject: String, holder: Holder, now: Time, ttl: Duration) -> Claims {
        Claims {
            issuer: None,
            id: token_id(&subject, now),
            subject,
            audience: vec![AUDIENCE.to_string()],
            issued: now.secs(),
            not_before: now.secs(),
            expires: (ttl > Duration::ZERO).then(|| now.plus(ttl).secs()),
            holder,
        }
    }

    pub fn of_node(region: &str, node: NodeClaims, now: Time, ttl: Duration) -> Claims {
        let subject = format!("node:{region}:{}:{}:default", node.pool, node.id);
        Claims::new(subject, Holder::Node(node), now, ttl)
    }

    pub fn of_introduction(region: &str, node: IntroductionClaims, now: Time, ttl: Duration) -> Claims {
        let subject = format!("node-introduction:{region}:{}:{}:default", node.pool, node.name);
        Claims::new(subject, Holder::Introduction(node), now, ttl)
    }

    /// What a workload of an allocation may call itself under this name of an identity.
    ///
    /// # Errors
    /// [`NoIdentity`]: the allocation's version of the job has none of this name.
    pub fn of_workload(
        state: &State,
        region: &str,
        alloc: &Alloc,
        workload: Workload<'_>,
        name: &str,
        now: Time,
    ) -> Result<Claims, NoIdentity> {
        let group = alloc.version.group(&alloc.group);
        let identity = group.map_or(Err(NoIdentity::Task), |group| find(group, workload, name))?;
        let owner = state.jobs.get(alloc.job);
        let job = owner.parent().map_or_else(|| owner.key.id.clone(), |parent| parent.id);
        let (task, service, called) = match workload {
            Workload::Task(task) => (task, "", task),
            Workload::Service { name, full_name } => ("", name, full_name),
        };
        let namespace = &owner.key.namespace;
        let subject = format!("{region}:{namespace}:{job}:{}:{called}:{name}", alloc.group);
        let holder = Holder::Workload(WorkloadClaims {
            namespace: namespace.clone(),
            job,
            alloc: alloc.id.0,
            task: task.to_string(),
            service: service.to_string(),
        });
        let ttl = identity.ttl.0;
        let claims = Claims::new(subject, holder, now, ttl);
        let id = token_id(&format!("{}:{}", claims.subject, alloc.id), now);
        Ok(Claims { id, audience: identity.audience.iter().cloned().collect(), ..claims })
    }

    /// A node with this token needs another one: it is about to expire, or says what is no longer so.
    pub fn is_outdated(&self, node: &NodeClaims, now: Time, ttl: Duration) -> bool {
        let left = self.expires.map_or(i64::MAX, |at| at.saturating_sub(now.secs()));
        self.holder != Holder::Node(node.clone()) || left < ttl.0 / 3_000_000_000
    }
}

fn find<'a>(
    group: &'a TaskGroup,
    workload: Workload<'_>,
    name: &str,
) -> Result<&'a WorkloadIdentity, NoIdentity> {
    let called = |identity: &&WorkloadIdentity| identity.name == name;
    match workload {
        Workload::Task(task) => {
            let task = group.tasks.iter().find(|known| known.name == task);
            let task = task.ok_or(NoIdentity::Task)?;
            task.identity.iter().chain(&*task.identities).find(called).ok_or(NoIdentity::Name)
        }
        Workload::Service { name: service, .. } => {
            let mut services =
                group.services.iter().chain(group.tasks.iter().flat_map(|task| &*task.services));
            let service = services.find(|known| known.name == service).ok_or(NoIdentity::Service)?;
            service.identity.iter().find(called).ok_or(NoIdentity::Name)
        }
    }
}

/// Another one for each moment, and the same at every server.
fn token_id(subject: &str, now: Time) -> Uuid {
    let mut hash = blake3::Hasher::new();
    hash.update(subject.as_bytes()).update(&now.0.to_be_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    Uuid::from_random(id)
}

/// The key for what an allocation of this index is given once and for all: the one that was active then, so that every
/// server signs the same, or what is left of the keys.
pub fn key_of(keyring: &Keyring, created: Index) -> Option<Uuid> {
    let then = keyring.keys().iter().filter(|(_, key)| key.created <= created);
    let then = then.max_by_key(|(id, key)| (key.created, **id)).map(|(id, _)| *id);
    then.or_else(|| keyring.active().map(|(id, _)| id))
}

/// Ids as people write them.
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
