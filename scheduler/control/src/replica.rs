//! One server's part in the replicated log, as a machine without threads, clock or I/O.
//!
//! What the log says and the commands that wait go in; what has to be done about them comes out as [`Effect`]s, to be
//! carried out in order. The server's driver and the simulator drive the same machine.

use std::sync::Arc;

use base::{Index, Rng, Term, Time, Uuid};
use journal::EncodedBatch;
use model::Image;
use state::{Delta, FoldError, State};

use crate::sequencer::{
    Answers, Committed, Damage, Filled, Published, Rules, Sequencer, Submission, SubmitError,
};

/// What the log says.
#[derive(Debug)]
pub enum Notice {
    Committed(EncodedBatch),
    /// A whole state, in place of the batches that led to it.
    Restored(Image),
    /// This server leads in this term, and knows every batch from before it.
    Leading(Term),
    /// Another server leads, or nobody does.
    Following(Option<u64>),
    /// The log cannot go on, and why.
    Halted(String),
}

/// What has to be done, in this order.
#[must_use = "an effect that is not carried out is lost"]
pub enum Effect {
    /// Readers see this state from now on, and controllers observe it.
    Publish(Published),
    Answer(Answers),
    /// Nothing in flight vouches for these answers: they may be given if this server still leads.
    AnswerIfLeading(Answers),
    /// To be appended to the log. If the log does not take it: [`Replica::refused`].
    Propose(Term, EncodedBatch),
    /// The state was replaced by an image: only what follows it can be folded from the log here.
    Restored(Arc<State>),
    /// This server leads, on this state.
    Lead(Term, Arc<State>),
    /// This server does not lead. Commands that wait are to be rejected.
    Follow(Option<u64>),
    /// This server's state is not the one that the cluster decided on: nobody may read it until it is restored.
    Diverged(String),
}

/// Why a server cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error("the image of the state at index {index}: {why}")]
    Image { index: Index, why: String },
    #[error("{0}")]
    Halted(String),
}

pub struct Replica {
    sequencer: Sequencer,
    /// Of the state that readers see.
    published: Index,
    /// What the batches after it touched.
    folded: Delta,
    diverged: bool,
}

impl Replica {
    /// `proposer` is this server, as batches name it; `rules` judge commands.
    pub fn new(proposer: Uuid, rules: Rules) -> Replica {
        let sequencer = Sequencer::new(proposer, rules);
        Replica { sequencer, published: Index::ZERO, folded: Delta::default(), diverged: false }
    }

    /// Most allocations that a job may ask for while this server leads.
    pub fn bound_jobs(&mut self, job_count_max: i64) {
        self.sequencer.bound_jobs(job_count_max);
    }

    /// Commands get no earlier index than this while this server leads.
    pub fn skip_to(&mut self, first_index: Index) {
        self.sequencer.skip_to(first_index);
    }

    /// The newest state that is committed and folded here. Readers see it when it is published.
    pub fn committed(&self) -> &State {
        self.sequencer.committed()
    }

    pub fn leads(&self) -> bool {
        self.sequencer.leads()
    }

    /// Another batch may be filled now.
    pub fn has_room(&self) -> bool {
        self.sequencer.has_room()
    }

    /// No batch is on its way to the log.
    pub fn is_idle(&self) -> bool {
        self.sequencer.is_idle()
    }

    /// A command waits inside for the next batch, besides those that wait outside.
    pub fn holds_over(&self) -> bool {
        self.sequencer.holds_over()
    }

    /// The log said something.
    ///
    /// # Errors
    /// [`Fatal`]: the server must stop.
    pub fn notice(&mut self, notice: Notice) -> Result<Vec<Effect>, Fatal> {
        match notice {
            // Nothing follows on a state that is wrong: another one comes from the log.
            Notice::Committed(_) if self.diverged => Ok(Vec::new()),
            Notice::Committed(batch) => self.commit(&batch),
            Notice::Restored(image) => self.restore(&image),
            // It cannot decide on a state that is wrong: somebody else has to lead.
            Notice::Leading(_) if self.diverged => Ok(vec![Effect::Follow(None)]),
            Notice::Leading(term) => {
                let mut effects = self.publish_folded();
                self.sequencer.lead(term);
                effects.push(Effect::Lead(term, Arc::new(self.committed().clone())));
                Ok(effects)
            }
            Notice::Following(leader) => {
                self.follow();
                Ok(vec![Effect::Follow(leader)])
            }
            Notice::Halted(why) => Err(Fatal::Halted(why)),
        }
    }

    /// To be called when the log has nothing more to say for now: what was folded for other servers is published.
    ///
    /// Not with each batch: while a log is read back nobody needs the states between, and keeping them would have
    /// every fold copy the pages that it touches.
    pub fn publish_folded(&mut self) -> Vec<Effect> {
        if self.published >= self.committed().index {
            return Vec::new();
        }
        self.published = self.committed().index;
        let state = Arc::new(self.committed().clone());
        vec![Effect::Publish(Published { state, delta: std::mem::take(&mut self.folded) })]
    }

    /// Fills one batch with the commands that wait: a proposal, answers that need none, or nothing.
    pub fn fill(
        &mut self,
        now: Time,
        seeds: &mut Rng,
        next: impl FnMut() -> Option<Submission>,
    ) -> Option<Effect> {
        match self.sequencer.fill(now, seeds, next) {
            Filled::Batch(term, batch) => Some(Effect::Propose(term, batch)),
            Filled::Answers(answers) => Some(Effect::AnswerIfLeading(answers)),
            Filled::Nothing => None,
        }
    }

    /// The log did not take the batch that was proposed last.
    pub fn refused(&mut self, error: &SubmitError) {
        self.sequencer.refused(error);
    }

    /// The server stops, or leads no more: commands on their way have an unknown fate.
    pub fn follow(&mut self) {
        self.sequencer.follow();
    }

    fn commit(&mut self, batch: &EncodedBatch) -> Result<Vec<Effect>, Fatal> {
        match self.sequencer.commit(batch) {
            Ok(Committed::Own(published, answers)) => {
                assert!(published.state.index > self.published, "a state is published once");
                self.published = published.state.index;
                Ok(vec![Effect::Publish(published), Effect::Answer(answers)])
            }
            Ok(Committed::Others(delta)) => {
                self.folded.add(delta);
                Ok(Vec::new())
            }
            Err(Damage::OutOfOrder(error @ FoldError::Diverged { .. })) => {
                self.diverged = true;
                Ok(vec![Effect::Diverged(error.to_string())])
            }
            Err(damage) => Err(damage.into()),
        }
    }

    fn restore(&mut self, image: &Image) -> Result<Vec<Effect>, Fatal> {
        let index = image.index;
        let state = state::restore(image).map_err(|error| Fatal::Image { index, why: error.to_string() })?;
        let state = Arc::new(state);
        self.sequencer.restore(State::clone(&state));
        (self.published, self.folded, self.diverged) = (index, Delta::default(), false);
        let published = Published { state: state.clone(), delta: Delta::everything() };
        Ok(vec![Effect::Restored(state), Effect::Publish(published)])
    }
}
