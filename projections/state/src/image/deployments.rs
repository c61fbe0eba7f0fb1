use std::collections::BTreeMap;
use std::sync::Arc;

use model::{DeploymentId, DeploymentStatus, Doc};

use super::columns::{Column, Fault, Reader, Writer, state};
use crate::deployment::{Deployment, GroupProgress};
use crate::row::JobRow;

pub(super) fn encode(rows: &[Arc<Deployment>]) -> Vec<u8> {
    let mut to = Writer::default();
    to.ids(rows.iter().map(|row| row.id));
    to.u32s(rows.iter().map(|row| row.job.0));
    to.u64s(rows.iter().map(|row| row.version));
    to.indexes(rows.iter().map(|row| row.job_created));
    to.indexes(rows.iter().map(|row| row.registered));
    to.indexes(rows.iter().map(|row| row.job_modified));
    to.u32s(rows.iter().map(|row| row.priority));
    to.flags(rows.iter().map(|row| row.is_multiregion));
    to.u8s(rows.iter().map(|row| row.status as u8));
    to.indexes(rows.iter().map(|row| row.progressed));
    to.flags(rows.iter().map(|row| row.gone));
    to.indexes(rows.iter().map(|row| row.created));
    to.indexes(rows.iter().map(|row| row.modified));
    to.times(rows.iter().map(|row| row.create_time));
    to.times(rows.iter().map(|row| row.modify_time));
    to.texts(rows.iter().map(|row| row.description.as_bytes()));
    // Few groups to a deployment, and few deployments that change: their numbers stand in documents.
    let groups: Vec<Doc> = rows.iter().map(|row| Doc::of(&row.groups)).collect();
    to.texts(groups.iter().map(|document| &document.0[..]));
    to.0
}

pub(super) fn decode(bytes: &[u8], len: usize, jobs: usize) -> Result<Vec<Arc<Deployment>>, Fault> {
    let mut from = Reader(bytes);
    let (ids, of_jobs): (Column<'_, 16>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
    let versions: Column<'_, 8> = from.column(len)?;
    let (job_created, registered): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let (job_modified, priorities): (Column<'_, 8>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
    let (is_multiregion, statuses) = (from.u8s(len)?, from.u8s(len)?);
    let progressed: Column<'_, 8> = from.column(len)?;
    let gone = from.u8s(len)?;
    let (created, modified): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let (create_time, modify_time): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let descriptions = from.strings(len)?;
    let groups = from.texts(len)?;
    from.end()?;
    let row = |row: usize| {
        let job = of_jobs.u32(row);
        if job as usize >= jobs {
            return Err("a deployment is of no job");
        }
        let groups: Option<BTreeMap<String, GroupProgress>> = Doc::try_read_from(groups[row]);
        Ok(Arc::new(Deployment {
            id: DeploymentId(ids.id(row)),
            job: JobRow(job),
            version: versions.u64(row),
            job_created: job_created.index(row),
            registered: registered.index(row),
            job_modified: job_modified.index(row),
            priority: priorities.u32(row),
            is_multiregion: is_multiregion[row] != 0,
            status: state(DeploymentStatus::from_number, statuses[row])?,
            description: descriptions[row].to_string(),
            groups: groups.ok_or("the groups of a deployment cannot be read")?,
            progressed: progressed.index(row),
            gone: gone[row] != 0,
            created: created.index(row),
            modified: modified.index(row),
            create_time: create_time.time(row),
            modify_time: modify_time.time(row),
        }))
    };
    (0..len).map(row).collect()
}
