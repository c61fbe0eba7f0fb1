use std::collections::BTreeSet;
use std::fmt;

use msgpack::Scan;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::SnapshotError;

/// Longest record that is read: far above the largest job that a server accepts.
const RECORD_MAX: u64 = 64 << 20;

/// Below it is no byte that begins a map or a list in msgpack, but a byte that says what kind of record follows.
const FIRST_OF_VALUES: u8 = 0x80;

/// Splits the state into its records: msgpack values, with or without a byte for their kind before them.
#[derive(Default)]
pub(super) struct Records {
    pending: Vec<u8>,
    scan: Scan,
}

impl Records {
    /// Takes a piece of any size, and hands on the records that are whole with it.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        self.pending.extend_from_slice(piece);
        let mut begin = 0;
        while let Some(first) = self.pending.get(begin) {
            let value = &self.pending[begin + usize::from(*first < FIRST_OF_VALUES)..];
            let whole = self.scan.advance(value).map_err(SnapshotError::Record)?;
            if self.scan.least() > RECORD_MAX {
                return Err(SnapshotError::TooLong("a record of state.bin"));
            }
            let Some(length) = whole else { break };
            each(&value[..length])?;
            begin = self.pending.len() - value.len() + length;
            self.scan = Scan::default();
        }
        self.pending.drain(..begin);
        Ok(())
    }

    /// The state ends here.
    pub(super) fn finish(self) -> Result<(), SnapshotError> {
        if self.pending.is_empty() { Ok(()) } else { Err(SnapshotError::Record(msgpack::Error::Truncated)) }
    }
}

/// What a record is. The bytes that say so are numbered in no published paper, so a record is known by its fields, which
/// have the names that the API has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Job,
    Submission,
    Policy,
    Token,
    Role,
    AuthMethod,
    BindingRule,
    Namespace,
    NodePool,
    Scheduler,
    RootKey,
    Variable,
    CsiVolume,
    HostVolume,
    /// What a cluster does by itself: allocations, evaluations, nodes and the like.
    Runtime,
    /// Nothing that this release has ever heard of: perhaps somebody configured it.
    Unknown,
}

/// Fields that only records of a kind have together. The first that fits counts.
const SHAPES: &[(Kind, &[&str])] = &[
    (Kind::Job, &["ID", "Type", "Priority", "TaskGroups"]),
    (Kind::Submission, &["JobID", "Source", "Format"]),
    (Kind::Runtime, &["ID", "NodeID", "EvalID"]),
    (Kind::Runtime, &["ID", "TriggeredBy", "JobID"]),
    (Kind::Runtime, &["ID", "SecretID", "Datacenter"]),
    (Kind::Runtime, &["ID", "JobID", "TaskGroups"]),
    (Kind::Runtime, &["JobID", "Summary"]),
    (Kind::Runtime, &["JobID", "ScalingEvents"]),
    (Kind::Runtime, &["ID", "Target", "Policy"]),
    (Kind::Runtime, &["ID", "ServiceName", "AllocID"]),
    (Kind::Runtime, &["ID", "Launch"]),
    (Kind::Runtime, &["ID", "Provider", "Controllers"]),
    (Kind::Runtime, &["ClusterID"]),
    (Kind::Runtime, &["Key", "Value"]),
    (Kind::Runtime, &["Namespace", "Size"]),
    (Kind::Token, &["AccessorID", "SecretID"]),
    (Kind::Policy, &["Name", "Rules"]),
    (Kind::AuthMethod, &["Name", "TokenLocality", "MaxTokenTTL"]),
    (Kind::BindingRule, &["AuthMethod", "BindType"]),
    (Kind::Scheduler, &["SchedulerAlgorithm", "PreemptionConfig"]),
    (Kind::NodePool, &["Name", "Meta", "SchedulerConfiguration"]),
    (Kind::RootKey, &["KeyID", "WrappedKeys"]),
    (Kind::Variable, &["Path", "KeyID", "Data"]),
    (Kind::CsiVolume, &["ID", "PluginID", "AccessMode", "AttachmentMode"]),
    (Kind::HostVolume, &["ID", "PluginID", "NodeID", "HostPath"]),
    (Kind::Namespace, &["Name", "Quota", "Meta"]),
    (Kind::Role, &["ID", "Name", "Policies"]),
];

/// The names of a record's fields.
pub(super) struct Fields(BTreeSet<String>);

impl Fields {
    pub(super) fn of(record: &[u8]) -> Result<Fields, SnapshotError> {
        msgpack::from_slice(record).map_err(SnapshotError::Record)
    }

    pub(super) fn kind(&self) -> Kind {
        let fits = |fields: &[&str]| fields.iter().all(|field| self.0.contains(*field));
        match SHAPES.iter().find(|(_, fields)| fits(fields)) {
            Some((kind, _)) => *kind,
            // The header, and the table of times by index, which is a list.
            None if self.0.is_empty() => Kind::Runtime,
            None => Kind::Unknown,
        }
    }

    /// Enough of them for a reader to know what it was.
    pub(super) fn shown(&self) -> String {
        let all: Vec<&str> = self.0.iter().map(String::as_str).take(6).collect();
        all.join(", ")
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
        from.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a record, which is a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut record: A) -> Result<Fields, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, IgnoredAny)) = record.next_entry()? {
            names.insert(name);
        }
        Ok(Fields(names))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut record: A) -> Result<Fields, A::Error> {
        while record.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Fields(BTreeSet::new()))
    }
}
