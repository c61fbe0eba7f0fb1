//! How long things take, as metrics. The machines know no clock, so it is measured around them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use base::Index;
use metrics::{Sampled, Samples};
use model::{Command, JobType};
use parking_lot::Mutex;

use crate::sequencer::{Receipt, Submission};

#[derive(Default)]
pub struct Timings {
    samples: Samples,
    /// Batches that were given to the log, and when.
    proposed: Mutex<VecDeque<(Index, Instant)>>,
}

impl Timings {
    pub fn since(&self, name: &'static str, began: Instant) {
        let now = Instant::now();
        self.samples.took(name, now, now.saturating_duration_since(began));
    }

    pub fn proposed(&self, index: Index) {
        let now = Instant::now();
        self.samples.happened("nomad.raft.apply", now);
        let mut proposed = self.proposed.lock();
        // What another leader replaced, or the log refused, is never committed.
        proposed.retain(|(earlier, _)| *earlier < index);
        proposed.push_back((index, now));
    }

    pub fn committed(&self, index: Index) {
        let mut proposed = self.proposed.lock();
        while let Some((_, began)) = proposed.pop_front_if(|(earlier, _)| *earlier <= index) {
            self.since("nomad.raft.commitTime", began);
            self.since("nomad.nomad.plan.apply", began);
        }
    }

    /// Notes the outcome of a command that metrics count.
    pub fn watch(self: &Arc<Timings>, submission: Submission) -> Submission {
        let noted: fn(&Timings, &Receipt, Instant) = match &submission.request.command {
            Command::MissHeartbeat { .. } => Timings::silent,
            Command::SettleEval(_) => Timings::settled,
            _ => return submission,
        };
        let (timings, began, answer) = (self.clone(), Instant::now(), submission.answer);
        let answer = Box::new(move |outcome| {
            if let Ok(receipt) = &outcome {
                noted(&timings, receipt, began);
            }
            answer(outcome);
        });
        Submission { answer, ..submission }
    }

    fn silent(&self, receipt: &Receipt, began: Instant) {
        // A node that is silent already is looked at again now and then.
        if receipt.wrote {
            self.since("nomad.nomad.heartbeat.invalidate", began);
        }
    }

    fn settled(&self, receipt: &Receipt, _: Instant) {
        for rejected in receipt.reply.verdict.iter().flat_map(|verdict| &verdict.rejected) {
            let labels = vec![("node_id", rejected.node.to_string())];
            self.samples.happened_to("nomad.nomad.plan.node_rejected", labels, Instant::now());
        }
    }

    pub fn report(&self) -> Vec<Sampled> {
        self.samples.report(Instant::now())
    }
}

/// The metric of the time that an evaluation of such a job takes.
pub const fn scheduling(kind: JobType) -> &'static str {
    match kind {
        JobType::Service => "nomad.nomad.worker.invoke_scheduler_service",
        JobType::Batch => "nomad.nomad.worker.invoke_scheduler_batch",
        JobType::System => "nomad.nomad.worker.invoke_scheduler_system",
        JobType::Sysbatch => "nomad.nomad.worker.invoke_scheduler_sysbatch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_timed_until_it_is_committed_and_a_replaced_one_is_not() {
        let timings = Timings::default();
        let count = |name: &str| {
            timings.report().iter().find(|one| one.name == name).map_or(0, |one| one.total_count)
        };
        timings.proposed(Index(4));
        timings.proposed(Index(5));
        timings.committed(Index(4));
        assert_eq!((count("nomad.raft.apply"), count("nomad.raft.commitTime")), (2, 1));
        timings.proposed(Index(5));
        timings.committed(Index(9));
        assert_eq!((count("nomad.raft.apply"), count("nomad.raft.commitTime")), (3, 2));
    }
}
