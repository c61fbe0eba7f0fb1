use std::collections::BTreeMap;
use std::sync::Arc;

use model::document::{Job, JobSubmission};
use model::{JobKey, JobStatus, JobType};

use super::columns::{Column, Dictionary, Fault, Reader, Writer, at, state};
use super::pool::Pool;
use crate::LazyDoc;
use crate::job::{GroupSummary, JobState, JobVersion, Notes};
use crate::row::{EvalRow, JobRow};

const NO_SUBMISSION: u32 = u32::MAX;

pub(super) fn encode(jobs: &[Arc<JobState>]) -> Vec<u8> {
    let mut to = Writer::default();
    to.texts(jobs.iter().map(|job| job.key.namespace.as_bytes()));
    to.texts(jobs.iter().map(|job| job.key.id.as_bytes()));
    to.flags(jobs.iter().map(|job| job.purged));
    to.flags(jobs.iter().map(|job| job.had_evals));
    to.u8s(jobs.iter().map(|job| job.status as u8));
    to.indexes(jobs.iter().map(|job| job.created));
    to.indexes(jobs.iter().map(|job| job.modified));
    to.indexes(jobs.iter().map(|job| job.job_modified));
    to.indexes(jobs.iter().map(|job| job.summary_modified));
    to.u32s(jobs.iter().map(|job| job.live_allocs));
    to.counts(jobs.iter().map(|job| job.live_evals.len()));
    to.u32s(jobs.iter().flat_map(|job| &job.live_evals).map(|eval| eval.0));
    to.counts(jobs.iter().map(|job| job.stable.len()));
    to.u64s(jobs.iter().flat_map(|job| &job.stable).copied());
    to.counts(jobs.iter().map(|job| job.groups.len()));
    to.texts(jobs.iter().flat_map(|job| job.groups.keys()).map(|name| name.as_bytes()));
    to.u32s(jobs.iter().flat_map(|job| job.groups.values()).flat_map(GroupSummary::numbers));
    to.counts(jobs.iter().map(|job| job.versions.len()));
    encode_versions(&mut to, jobs.iter().flat_map(|job| &job.versions));
    if jobs.iter().any(|job| job.notes.is_some()) {
        let notes =
            |job: &Arc<JobState>| job.notes.as_ref().map(|notes| notes.to_bytes()).unwrap_or_default();
        let notes: Vec<Vec<u8>> = jobs.iter().map(notes).collect();
        to.texts(notes.iter().map(Vec::as_slice));
    }
    to.0
}

/// Versions that their jobs dropped and allocations still run.
pub(super) fn encode_old(versions: &[(JobRow, Arc<JobVersion>)]) -> Vec<u8> {
    let mut to = Writer::default();
    to.counts(std::iter::once(versions.len()));
    to.u32s(versions.iter().map(|(job, _)| job.0));
    encode_versions(&mut to, versions.iter().map(|(_, version)| version));
    to.0
}

/// Documents stand once, however many versions share them.
fn encode_versions<'a>(to: &mut Writer, versions: impl Iterator<Item = &'a Arc<JobVersion>> + Clone) {
    let mut documents: Dictionary<'_, LazyDoc<Job>> = Dictionary::new();
    let mut submissions: Dictionary<'_, LazyDoc<JobSubmission>> = Dictionary::new();
    to.u64s(versions.clone().map(|version| version.version));
    to.flags(versions.clone().map(|version| version.stop));
    to.u8s(versions.clone().map(|version| version.kind as u8));
    to.indexes(versions.clone().map(|version| version.job_created));
    to.indexes(versions.clone().map(|version| version.registered));
    to.times(versions.clone().map(|version| version.submitted));
    to.u32s(versions.clone().map(|version| documents.place(&version.job, LazyDoc::hash)));
    let submission = |version: &'a Arc<JobVersion>| version.submission.as_ref();
    to.u32s(versions.map(|version| {
        submission(version).map_or(NO_SUBMISSION, |submission| submissions.place(submission, LazyDoc::hash))
    }));
    encode_documents(to, documents.entries());
    encode_documents(to, submissions.entries());
}

pub(super) fn encode_documents<T>(to: &mut Writer, documents: &[&LazyDoc<T>]) {
    to.counts(std::iter::once(documents.len()));
    to.texts(documents.iter().map(|document| document.bytes()));
}

pub(super) fn decode_documents<T>(
    from: &mut Reader<'_>,
    pool: &Pool<LazyDoc<T>>,
) -> Result<Vec<LazyDoc<T>>, Fault> {
    let len = from.count()?;
    let kept = |bytes: &[u8]| {
        let kept: LazyDoc<T> = LazyDoc::new(bytes.to_vec());
        pool.share(kept.hash(), kept)
    };
    Ok(from.texts(len)?.into_iter().map(kept).collect())
}

/// What versions have in common beyond one chunk.
#[derive(Default)]
pub(super) struct Documents {
    jobs: Pool<LazyDoc<Job>>,
    submissions: Pool<LazyDoc<JobSubmission>>,
}

/// The jobs, without the lists that follow from other tables.
pub(super) fn decode(bytes: &[u8], len: usize, documents: &Documents) -> Result<Vec<JobState>, Fault> {
    let mut from = Reader(bytes);
    let (namespaces, ids) = (from.strings(len)?, from.strings(len)?);
    let (purged, had_evals) = (from.u8s(len)?, from.u8s(len)?);
    let statuses = from.u8s(len)?;
    let (created, modified): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let (wanted, summary): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let live_allocs: Column<'_, 4> = from.column(len)?;
    let mut live_evals = decode_live(&mut from, len)?;
    let mut stable = decode_stable(&mut from, len)?;
    let mut groups = decode_groups(&mut from, len)?;
    let (counts, all) = from.counts(len)?;
    let mut versions = decode_versions(&mut from, all, documents)?.into_iter();
    let mut notes = decode_notes(&mut from, len)?;
    from.end()?;
    let row = |job: usize| {
        let versions: Vec<_> = versions.by_ref().take(counts.count(job)).collect();
        if versions.is_empty() {
            return Err("a job has no version");
        }
        Ok(JobState {
            key: JobKey::new(namespaces[job], ids[job]),
            purged: purged[job] != 0,
            status: state(JobStatus::from_number, statuses[job])?,
            versions,
            created: created.index(job),
            modified: modified.index(job),
            job_modified: wanted.index(job),
            groups: std::mem::take(&mut groups[job]),
            summary_modified: summary.index(job),
            live_allocs: live_allocs.u32(job),
            live_evals: std::mem::take(&mut live_evals[job]),
            had_evals: had_evals[job] != 0,
            allocs: Arc::default(),
            evals: Arc::default(),
            deployments: Vec::new(),
            stable: std::mem::take(&mut stable[job]),
            notes: notes[job].take(),
        })
    };
    (0..len).map(row).collect()
}

pub(super) fn decode_old(
    bytes: &[u8],
    documents: &Documents,
) -> Result<Vec<(JobRow, Arc<JobVersion>)>, Fault> {
    let mut from = Reader(bytes);
    let len = from.count()?;
    let jobs: Column<'_, 4> = from.column(len)?;
    let versions = decode_versions(&mut from, len, documents)?;
    from.end()?;
    Ok(versions.into_iter().enumerate().map(|(at, version)| (JobRow(jobs.u32(at)), version)).collect())
}

fn decode_versions(
    from: &mut Reader<'_>,
    len: usize,
    documents: &Documents,
) -> Result<Vec<Arc<JobVersion>>, Fault> {
    let numbers: Column<'_, 8> = from.column(len)?;
    let (stops, kinds) = (from.u8s(len)?, from.u8s(len)?);
    let (job_created, registered): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let submitted: Column<'_, 8> = from.column(len)?;
    let (job, submission): (Column<'_, 4>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
    let jobs = decode_documents(from, &documents.jobs)?;
    let submissions = decode_documents(from, &documents.submissions)?;
    let version = |row: usize| {
        let submission = match submission.u32(row) {
            NO_SUBMISSION => None,
            place => Some(at(&submissions, place)?.clone()),
        };
        Ok(Arc::new(JobVersion {
            version: numbers.u64(row),
            stop: stops[row] != 0,
            job: at(&jobs, job.u32(row))?.clone(),
            kind: state(JobType::from_number, kinds[row])?,
            job_created: job_created.index(row),
            registered: registered.index(row),
            submitted: submitted.time(row),
            submission,
        }))
    };
    (0..len).map(version).collect()
}

/// Most chunks have none.
fn decode_notes(from: &mut Reader<'_>, len: usize) -> Result<Vec<Option<Arc<Notes>>>, Fault> {
    if from.0.is_empty() {
        return Ok(vec![None; len]);
    }
    let notes = |bytes: &[u8]| match bytes {
        [] => Ok(None),
        bytes => Notes::from_bytes(bytes).map(|notes| Some(Arc::new(notes))).ok_or("it is not a job's notes"),
    };
    from.texts(len)?.into_iter().map(notes).collect()
}

fn decode_live(from: &mut Reader<'_>, len: usize) -> Result<Vec<Vec<EvalRow>>, Fault> {
    let (counts, all) = from.counts(len)?;
    let evals: Column<'_, 4> = from.column(all)?;
    let mut evals = (0..all).map(|at| EvalRow(evals.u32(at)));
    Ok((0..len).map(|at| evals.by_ref().take(counts.count(at)).collect()).collect())
}

fn decode_stable(from: &mut Reader<'_>, len: usize) -> Result<Vec<Vec<u64>>, Fault> {
    let (counts, all) = from.counts(len)?;
    let versions: Column<'_, 8> = from.column(all)?;
    let mut versions = (0..all).map(|at| versions.u64(at));
    Ok((0..len).map(|at| versions.by_ref().take(counts.count(at)).collect()).collect())
}

fn decode_groups(from: &mut Reader<'_>, len: usize) -> Result<Vec<BTreeMap<String, GroupSummary>>, Fault> {
    let (counts, all) = from.counts(len)?;
    let names = from.strings(all)?;
    let numbers: Column<'_, 28> = from.column(all)?;
    let mut groups = names.iter().zip(numbers.0).map(|(name, numbers)| {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| numbers[at * 4 + byte]));
        (name.to_string(), GroupSummary::from_numbers([0, 1, 2, 3, 4, 5, 6].map(number)))
    });
    Ok((0..len).map(|at| groups.by_ref().take(counts.count(at)).collect()).collect())
}
