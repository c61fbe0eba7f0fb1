//! A file that `nomad operator snapshot save` wrote, read as an [`Inventory`].
//!
//! The file is a gzip-compressed tar of `meta.json`, `state.bin` and `SHA256SUMS`; the state is one record after the other
//! in msgpack, as the servers keep it. Nothing of a file is used before all of it was checked.

mod archive;
mod keys;
mod records;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use api::{SchedulerConfiguration, Variable};
use model::document::{ACLPolicy, ACLRole, Bytes, Job, JobSubmission, Namespace, NodePool};
use serde::Deserialize;
use serde_json::Value;

use crate::compare::unknown;
use crate::object::{self, JobCopy, Object, label};
use crate::read::{BUILT_IN_POOLS, Inventory, LeftOut, Note, Scope};
use keys::Keys;
use records::{Fields, Kind, Records};

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("it cannot be read as a gzip-compressed tar: {0}")]
    Read(#[from] io::Error),
    #[error(
        "it has no {0}: expected meta.json, state.bin and SHA256SUMS, as nomad operator snapshot save writes them"
    )]
    Missing(&'static str),
    #[error("it has a file {0:?}: expected meta.json, state.bin and SHA256SUMS, and nothing else")]
    Unexpected(String),
    #[error("meta.json is not what it should be: {0}")]
    Meta(serde_json::Error),
    #[error("{0} is longer than anything that servers write")]
    TooLong(&'static str),
    #[error("it is damaged: {0} does not have the checksum that SHA256SUMS has for it")]
    Checksum(&'static str),
    #[error("state.bin is not what it should be: {0}")]
    Record(msgpack::Error),
}

impl Inventory {
    /// Reads a snapshot, and says which index it is of. Of jobs the newest versions count.
    ///
    /// # Errors
    /// [`SnapshotError`]: nothing of the file can be used.
    pub fn from_snapshot(file: impl Read, scope: &Scope) -> Result<(Inventory, u64), SnapshotError> {
        let (mut records, mut contents) = (Records::default(), Contents::default());
        let index =
            archive::unpack(file, &mut |piece| records.push(piece, &mut |record| contents.add(record)))?;
        records.finish()?;
        Ok((contents.inventory(scope), index))
    }
}

/// A variable as servers keep it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct SealedVariable {
    namespace: String,
    path: String,
    #[serde(rename = "KeyID")]
    key_id: String,
    data: Bytes,
}

/// What was found so far.
#[derive(Default)]
struct Contents {
    objects: Vec<Object>,
    /// By namespace and id.
    jobs: BTreeMap<(String, String), JobCopy>,
    /// Jobs that periodic jobs and dispatches launched.
    children: BTreeSet<(String, String)>,
    /// By namespace, id and version.
    submissions: BTreeMap<(String, String, u64), JobSubmission>,
    variables: Vec<SealedVariable>,
    keys: Keys,
    left_out: BTreeMap<LeftOut, usize>,
    /// How many records there are with these fields.
    strangers: BTreeMap<String, usize>,
}

impl Contents {
    fn add(&mut self, record: &[u8]) -> Result<(), SnapshotError> {
        let fields = Fields::of(record)?;
        match fields.kind() {
            Kind::Job => self.add_job(record)?,
            Kind::Submission => {
                let one: JobSubmission = decoded(record)?;
                self.submissions.insert((one.namespace.clone(), one.job_id.clone(), one.version), one);
            }
            Kind::Policy => self.objects.push(Object::Policy(decoded::<ACLPolicy>(record)?)),
            Kind::Role => self.objects.push(Object::Role(decoded::<ACLRole>(record)?)),
            Kind::Namespace => self.objects.push(Object::Namespace(Box::new(decoded::<Namespace>(record)?))),
            Kind::NodePool => {
                let pool: NodePool = decoded(record)?;
                if !BUILT_IN_POOLS.contains(&pool.name.as_str()) {
                    self.objects.push(Object::NodePool(pool));
                }
            }
            Kind::Scheduler => {
                self.objects.push(Object::Scheduler(decoded::<SchedulerConfiguration>(record)?));
            }
            Kind::RootKey => self.keys.add(decoded(record)?),
            Kind::Variable => self.variables.push(decoded(record)?),
            Kind::Token => self.leave_out(LeftOut::Tokens),
            Kind::AuthMethod => self.leave_out(LeftOut::AuthMethods),
            Kind::BindingRule => self.leave_out(LeftOut::BindingRules),
            Kind::CsiVolume => self.leave_out(LeftOut::CsiVolumes),
            Kind::HostVolume => self.leave_out(LeftOut::HostVolumes),
            Kind::Runtime => {}
            Kind::Unknown => *self.strangers.entry(fields.shown()).or_default() += 1,
        }
        Ok(())
    }

    fn leave_out(&mut self, what: LeftOut) {
        *self.left_out.entry(what).or_default() += 1;
    }

    /// Versions of a job are kept as jobs are: the newest one is the job. The same one again is its copy among the versions.
    fn add_job(&mut self, record: &[u8]) -> Result<(), SnapshotError> {
        let mut job: Job = decoded(record)?;
        let namespace = job.namespace.get_or_insert_with(|| "default".to_string()).clone();
        let key = (namespace, job.id.clone().unwrap_or_default());
        if job.parent_id.as_deref().is_some_and(|parent| !parent.is_empty()) {
            self.children.insert(key);
            return Ok(());
        }
        if self.jobs.get(&key).is_some_and(|known| known.job.version >= job.version) {
            return Ok(());
        }
        // Names of fields are all that is compared, and a payload, which is no text, is only in children.
        let sent: Value = decoded(record)?;
        let known = serde_json::to_value(&job).expect("a job is JSON");
        self.jobs.insert(key, JobCopy { unknown: unknown(&sent, &known), job, submission: None });
        Ok(())
    }

    fn inventory(mut self, scope: &Scope) -> Inventory {
        let mut found = Inventory::default();
        for (what, count) in std::mem::take(&mut self.left_out) {
            found.leave_out(count, what);
        }
        found.leave_out(self.children.len(), LeftOut::Children);
        for (fields, count) in std::mem::take(&mut self.strangers) {
            let what = format!("{count} records that are not known here");
            found.left_out.push(Note { what, why: format!("their fields are {fields}") });
        }
        for ((namespace, id), mut copy) in std::mem::take(&mut self.jobs) {
            copy.submission = self.submissions.remove(&(namespace, id, copy.job.version.unwrap_or(0)));
            self.objects.push(Object::Job(Box::new(copy)));
        }
        for sealed in std::mem::take(&mut self.variables) {
            match self.variable(&sealed) {
                Ok(variable) => self.objects.push(Object::Variable(variable)),
                Err(why) if scope.variables && scope.has_namespace(&sealed.namespace) => {
                    let what = label(object::Kind::Variable, &sealed.namespace, &sealed.path);
                    found.failures.push(Note { what, why });
                }
                Err(_) => {}
            }
        }
        found.objects.extend(self.objects.into_iter().filter(|object| scope.includes(object)));
        found.objects.sort_by_key(|object| (object.kind(), object.label()));
        found
    }

    fn variable(&self, sealed: &SealedVariable) -> Result<Variable, String> {
        let items = self.keys.open(&sealed.key_id, &sealed.data.0)?;
        let items = serde_json::from_slice(&items)
            .map_err(|_| "what the key opens are no items: expected texts by their names".to_string())?;
        let SealedVariable { namespace, path, .. } = sealed;
        Ok(Variable { namespace: namespace.clone(), path: path.clone(), items, ..Variable::default() })
    }
}

fn decoded<'de, T: Deserialize<'de>>(record: &'de [u8]) -> Result<T, SnapshotError> {
    msgpack::from_slice(record).map_err(SnapshotError::Record)
}
