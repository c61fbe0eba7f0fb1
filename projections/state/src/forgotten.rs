//! Rows of what was forgotten leave memory, one batch later.

use std::sync::Arc;

use crate::row::{AllocRow, DeploymentRow, EvalRow, JobRow};
use crate::{Delta, State};

/// What the last batch forgot. Whoever follows the log reads these rows as that batch left them; after the next one
/// nobody speaks of them any more. It follows from the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Forgotten {
    jobs: Arc<Vec<JobRow>>,
    evals: Arc<Vec<EvalRow>>,
    allocs: Arc<Vec<AllocRow>>,
    deployments: Arc<Vec<DeploymentRow>>,
}

impl State {
    /// Releases what was forgotten before this batch, and remembers what was in it.
    pub(crate) fn release_forgotten(&mut self, delta: &Delta) {
        let before = std::mem::take(&mut self.forgotten);
        before.jobs.iter().for_each(|row| self.jobs.rows.release(row.0));
        before.evals.iter().for_each(|row| self.evals.rows.release(row.0));
        before.allocs.iter().for_each(|row| self.allocs.rows.release(row.0));
        before.deployments.iter().for_each(|row| self.deployments.rows.release(row.0));
        self.forgotten = self.forgotten_by(delta);
    }

    /// What the batch forgot.
    fn forgotten_by(&self, delta: &Delta) -> Forgotten {
        if delta.restored {
            return self.forgotten_and_held();
        }
        let of_evals = delta.evals.iter().map(|row| self.evals.get(*row).job);
        let of_allocs = delta.allocs.iter().map(|row| self.allocs.get(*row).job);
        self.forgotten_of(
            delta.jobs.iter().copied().chain(of_evals).chain(of_allocs),
            delta.evals.iter().copied(),
            delta.allocs.iter().copied(),
            delta.deployments.iter().copied(),
        )
    }

    /// What is forgotten and still held: in an image, what its last batch forgot.
    pub(crate) fn forgotten_and_held(&self) -> Forgotten {
        self.forgotten_of(
            self.jobs.rows.held().map(|(row, _)| JobRow(row)),
            self.evals.rows.held().map(|(row, _)| EvalRow(row)),
            self.allocs.rows.held().map(|(row, _)| AllocRow(row)),
            self.deployments.rows.held().map(|(row, _)| DeploymentRow(row)),
        )
    }

    fn forgotten_of(
        &self,
        jobs: impl Iterator<Item = JobRow>,
        evals: impl Iterator<Item = EvalRow>,
        allocs: impl Iterator<Item = AllocRow>,
        deployments: impl Iterator<Item = DeploymentRow>,
    ) -> Forgotten {
        Forgotten {
            jobs: sorted(jobs.filter(|row| self.jobs.get(*row).is_forgotten())),
            evals: sorted(evals.filter(|row| self.evals.get(*row).gone)),
            allocs: sorted(allocs.filter(|row| self.allocs.get(*row).gone)),
            deployments: sorted(deployments.filter(|row| self.deployments.get(*row).gone)),
        }
    }
}

fn sorted<T: Ord>(rows: impl Iterator<Item = T>) -> Arc<Vec<T>> {
    let mut rows: Vec<T> = rows.collect();
    rows.sort_unstable();
    rows.dedup();
    Arc::new(rows)
}
