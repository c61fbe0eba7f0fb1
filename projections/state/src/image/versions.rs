//! Versions of jobs are found from allocations by who owns them, so that an allocation's chunk stays as it is when
//! its job drops the version.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Index;
use base::pages::PAGE_ROWS;

use super::columns::{Fault, REFERENCE};
use super::sparse::Sparse;
use crate::alloc::Alloc;
use crate::job::{JobState, JobVersion, Jobs};
use crate::row::JobRow;

/// A version some allocation runs, and its job.
pub(super) type Used = (JobRow, Arc<JobVersion>);

/// What identifies a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub job: JobRow,
    pub number: u64,
    pub registered: Index,
}

impl Name {
    pub fn of((job, version): &Used) -> Name {
        Name { job: *job, number: version.version, registered: version.registered }
    }

    /// Of the versions of its job.
    fn is_of(&self, version: &JobVersion) -> bool {
        version.version == self.number && version.registered == self.registered
    }
}

/// The versions that the rows of a page run, and for each row the place of its own.
pub(super) fn used(rows: &[Arc<Alloc>]) -> (Vec<u8>, Vec<Used>) {
    let mut used: Vec<Used> = Vec::new();
    let mut last = 0;
    let place = |row: &Arc<Alloc>| {
        let is_own = |(job, version): &Used| *job == row.job && Arc::ptr_eq(version, &row.version);
        if !used.get(last).is_some_and(is_own) {
            last = used.iter().position(is_own).unwrap_or(used.len());
        }
        if last == used.len() {
            used.push((row.job, row.version.clone()));
        }
        u8::try_from(last).expect("a page has at most 256 rows")
    };
    (rows.iter().map(place).collect(), used)
}

/// By page of jobs the versions that are used and that their jobs no longer keep, in order.
pub(super) fn old<'a>(jobs: &Jobs, used: impl Iterator<Item = &'a Used>) -> BTreeMap<usize, Vec<Used>> {
    let is_kept = |used: &Used| {
        let name = Name::of(used);
        jobs.get(used.0).versions.iter().any(|kept| name.is_of(kept))
    };
    let old: BTreeMap<Name, &Used> =
        used.filter(|used| !is_kept(used)).map(|used| (Name::of(used), used)).collect();
    let mut pages: BTreeMap<usize, Vec<Used>> = BTreeMap::new();
    for used in old.into_values() {
        pages.entry(used.0.0 as usize / PAGE_ROWS).or_default().push(used.clone());
    }
    pages
}

/// Every version of every job, by the job's row.
pub(super) struct Versions(Sparse<Vec<Arc<JobVersion>>>);

impl Versions {
    pub fn kept(jobs: &Sparse<JobState>) -> Versions {
        Versions(jobs.map(|job| job.versions.clone()))
    }

    pub fn add_old(&mut self, (job, version): Used) -> Result<(), Fault> {
        self.0.get_mut(job.0).ok_or("a version is of no job")?.push(version);
        Ok(())
    }

    pub fn find(&self, name: Name) -> Result<&Arc<JobVersion>, Fault> {
        let of_job = self.0.get(name.job.0).ok_or(REFERENCE)?;
        of_job
            .iter()
            .find(|version| name.is_of(version))
            .ok_or("an allocation runs a version that is not there")
    }
}
