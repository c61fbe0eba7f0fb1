//! What is counted agrees with what is there: room, numbers of living allocations, waiting evaluations.
//! The state keeps such sums beside its rows; nothing else may change them.

use model::EvalStatus;
use state::State;
use state::node::Amount;

use crate::fact::{Check, Fact, Rest};
use crate::witness::Witness;

/// Of so many batches one is looked at.
const EVERY: u64 = 128;

#[derive(Default)]
pub struct BooksAreRight;

impl Check for BooksAreRight {
    fn sentence(&self) -> &'static str {
        "what is counted agrees with what is there"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            Fact::Committed(batch) if batch.index.0.is_multiple_of(EVERY) => audit(&witness.state),
            _ => Ok(()),
        }
    }

    fn rest(&mut self, _: &Rest<'_>, witness: &Witness) -> Result<(), String> {
        audit(&witness.state)
    }
}

fn audit(state: &State) -> Result<(), String> {
    for row in state.nodes.rows() {
        let allocs = state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
        let there: Vec<_> = allocs.filter(|alloc| alloc.takes_room()).collect();
        let used = there.iter().fold(Amount::default(), |sum, alloc| sum.plus(alloc.amount()));
        let hot = state.nodes.hot(row);
        if (used, there.len()) != (hot.used, hot.allocs as usize) {
            return Err(format!("node {} has {:?} taken, not {used:?}", state.nodes.cold(row).id, hot.used));
        }
    }
    for (row, job) in state.jobs.iter() {
        let living = job.allocs.iter().filter(|alloc| !state.allocs.get(**alloc).is_terminal()).count();
        if living != job.live_allocs as usize {
            return Err(format!("job {} has {living} living allocations, not {}", job.key, job.live_allocs));
        }
        let live: Vec<_> = job.evals.iter().map(|row| state.evals.get(*row)).collect();
        let live = live.iter().filter(|eval| !eval.status.is_terminal()).count();
        if live != job.live_evals.len() {
            return Err(format!("job {} has {live} unfinished evaluations", job.key));
        }
        let mut blocked = job.live_evals.iter();
        let blocked = blocked.by_ref().filter(|row| state.evals.get(**row).status == EvalStatus::Blocked);
        let blocked: Vec<_> = blocked.copied().collect();
        if blocked != state.evals.blocked_of(row).into_iter().collect::<Vec<_>>() {
            return Err(format!("job {} has {} blocked evaluations", job.key, blocked.len()));
        }
    }
    Ok(())
}
