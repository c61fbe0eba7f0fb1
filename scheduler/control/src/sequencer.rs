//! The only writer: commands become events, events become batches, in one order.
//!
//! It decides each command against a working copy: what is committed and what it decided since. Nobody sees that copy
//! before the log has it: answers wait for the commit, rejections that rest on it too. Where nothing is in flight they
//! wait until it is sure that this server still leads. It knows neither nodes nor jobs.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use base::{Index, Rng, Term, Time, Uuid};
use journal::{EncodedBatch, FrameError, Freshness, Journal, NotLeading, ProposeError};
use model::command::Reply;
use model::{Actor, Batch, Command, CommandRecord, Digest, LoggedEvent, Rejection, Request, RequestId};
use rules::{Context, Decision};
use serde::{Deserialize, Serialize};
use state::{Delta, FoldError, Moment, State};

use crate::written::Written;

/// Most commands decided in one batch: bounds the pause of a fold.
pub const BATCH_COMMANDS_MAX: usize = 1_024;

/// Most events in one batch before it is closed: their number is a `u16` on disk, and one command may add many.
pub const BATCH_EVENTS_MAX: usize = 8_192;

/// Bytes of documents and pieces of a state after which a batch is full. The largest of them is not twice as large, so
/// that together they stay below what the log takes for one batch.
pub const BATCH_BYTES: usize = 12 << 20;

/// Most commands looked at for one batch, those that change nothing included: whoever asked is answered in time.
pub const BATCH_ANSWERS_MAX: usize = 16_384;

/// Batches that may be on their way to the log at once. One means that nothing is decided on what is not durable.
pub const IN_FLIGHT_MAX: usize = 8;

/// What a caller gets for a command that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The state at this index holds what the command led to.
    pub index: Index,
    /// When it was decided.
    pub time: Time,
    /// Something was written.
    pub wrote: bool,
    pub reply: Reply,
}

/// Why a caller gets no receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SubmitError {
    #[error(transparent)]
    Rejected(Rejection),
    /// The lane is full, or schedulers are behind with what was asked of them before. Nothing was decided: try again.
    #[error("too many commands are waiting: try again in a second")]
    Busy,
    #[error("No cluster leader")]
    NotLeading,
    /// Leadership was lost while the command was on its way: it may or may not have taken effect.
    #[error("leadership was lost before the outcome was known: repeat the request with the same id")]
    Unknown,
    #[error("the log refuses new writes: {0}")]
    Refused(String),
}

/// Takes the answer to one command.
pub type Answer = Box<dyn FnOnce(Result<Receipt, SubmitError>) + Send>;

impl From<ProposeError> for SubmitError {
    /// The log is busy, or has another leader or is about to: who asked asks again. The rest is the log's own trouble.
    fn from(error: ProposeError) -> SubmitError {
        match error {
            ProposeError::Full | ProposeError::NotLeading { .. } => SubmitError::NotLeading,
            error => SubmitError::Refused(error.to_string()),
        }
    }
}

/// A command on its way in.
pub struct Submission {
    pub request: Request,
    pub answer: Answer,
}

impl std::fmt::Debug for Submission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Submission({:?})", self.request.command)
    }
}

/// A state that is committed, and what the batch that led to it touched.
#[derive(Clone, Debug)]
pub struct Published {
    pub state: Arc<State>,
    pub delta: Delta,
}

/// Answers that may be given once their state is there for everybody to read.
#[derive(Default)]
#[must_use = "callers wait for their answers"]
pub struct Answers(Vec<Held>);

impl Answers {
    pub fn give(self) {
        self.0.into_iter().for_each(|held| (held.answer)(held.outcome));
    }

    /// Gives them once the log says that this server still led; otherwise whoever asked has to ask again.
    pub fn give_while_leading(self, journal: &(impl Journal + ?Sized)) {
        let tell = move |sure: Result<Index, NotLeading>| self.give_if(sure.is_ok());
        journal.read_index(Freshness::Lease, Box::new(tell));
    }

    /// Nobody gets what was decided by a server that may not have led: it may not be so any more.
    pub fn give_if(self, led: bool) {
        if led {
            return self.give();
        }
        self.0.into_iter().for_each(|held| (held.answer)(Err(SubmitError::NotLeading)));
    }
}

/// What came of the commands that waited.
#[must_use = "callers wait for their answers"]
pub enum Filled {
    /// Nothing to be done: there were none, or their answers are given with what is in flight.
    Nothing,
    /// To be proposed in this term; see [`Sequencer::refused`].
    Batch(Term, EncodedBatch),
    /// Nothing has to be written. Another server may lead by now, and its word would count: to be given only once
    /// that is out of the question.
    Answers(Answers),
}

/// A log that does not follow on what was folded: going on would spread the damage.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("a committed batch cannot be read: {0}")]
    Unreadable(#[from] FrameError),
    #[error(transparent)]
    OutOfOrder(#[from] FoldError),
}

/// What a committed batch has led to.
pub enum Committed {
    /// It is this server's: its state may be published, and then its answers given.
    Own(Published, Answers),
    /// Another server's was folded, and touched this.
    Others(Delta),
}

struct InFlight {
    index: Index,
    published: Published,
    answers: Vec<Held>,
}

/// An answer that may be given once everything before it is committed.
struct Held {
    answer: Answer,
    outcome: Result<Receipt, SubmitError>,
}

pub struct Sequencer {
    /// Committed and folded.
    committed: State,
    /// What the next command is decided on. Empty while another server leads.
    working: State,
    in_flight: VecDeque<InFlight>,
    /// The first command of the next batch: it writes what another one in the batch before it wrote.
    held_over: Option<Submission>,
    term: Option<Term>,
    proposer: Uuid,
    rules: Rules,
    job_count_max: i64,
    /// Commands get no earlier index: those before it were given to others once.
    first_index: Index,
}

/// How commands are judged: [`rules::decide`], but for simulations that plant a bug in it.
pub type Rules = fn(&State, &mut Context, &Actor, &Command) -> Result<Decision, Rejection>;

/// A batch that is being filled.
struct Filling {
    at: Moment,
    previous: Index,
    digest: Digest,
    commands: Vec<CommandRecord>,
    events: Vec<LoggedEvent>,
    /// Of documents and pieces of a state.
    bytes: usize,
    written: BTreeSet<Written>,
    delta: Delta,
    answers: Vec<Held>,
}

impl Sequencer {
    pub fn new(proposer: Uuid, rules: Rules) -> Sequencer {
        let state = State::default();
        Sequencer {
            committed: state.clone(),
            working: state,
            in_flight: VecDeque::new(),
            held_over: None,
            term: None,
            proposer,
            rules,
            job_count_max: rules::JOB_COUNT_MAX,
            first_index: Index::ZERO,
        }
    }

    /// Has empty batches stand for the indexes below this one, as far as the log does not reach it.
    pub fn skip_to(&mut self, first_index: Index) {
        self.first_index = first_index;
    }

    /// Most allocations that a job may ask for.
    pub fn bound_jobs(&mut self, job_count_max: i64) {
        self.job_count_max = job_count_max;
    }

    /// The state everybody may see.
    pub fn committed(&self) -> &State {
        &self.committed
    }

    pub fn leads(&self) -> bool {
        self.term.is_some()
    }

    /// Another batch may be filled now.
    pub fn has_room(&self) -> bool {
        self.leads() && self.in_flight.len() < IN_FLIGHT_MAX
    }

    /// No batch is on its way to the log.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// A command waits here for the next batch.
    pub fn holds_over(&self) -> bool {
        self.held_over.is_some()
    }

    /// The log has handed over a whole state, in place of the batches that led to it.
    pub fn restore(&mut self, state: State) {
        assert!(!self.leads(), "who leads has the state it decides on");
        self.committed = state;
    }

    /// This server leads: everything decided before is folded, and nobody else can append any more.
    pub fn lead(&mut self, term: Term) {
        assert!(self.in_flight.is_empty(), "a new term begins with nothing of an old one in flight");
        self.working = self.committed.clone();
        self.term = Some(term);
    }

    /// This server leads no more. What was on its way has an unknown fate.
    pub fn follow(&mut self) {
        self.term = None;
        // Not a clone of what is committed: a second holder of its pages would have each fold copy them.
        self.working = State::default();
        for batch in self.in_flight.drain(..) {
            batch.answers.into_iter().for_each(|held| (held.answer)(Err(SubmitError::Unknown)));
        }
        // Nothing of it was written.
        self.reject_held_over(&SubmitError::NotLeading);
    }

    fn reject_held_over(&mut self, error: &SubmitError) {
        if let Some(submission) = self.held_over.take() {
            (submission.answer)(Err(error.clone()));
        }
    }

    /// The log has a batch. If it is the one this server proposed, it was folded already: its state may be
    /// published, and then its answers given. Any other batch is folded now, in place.
    ///
    /// # Errors
    /// [`Damage`]: the server must stop.
    pub fn commit(&mut self, batch: &EncodedBatch) -> Result<Committed, Damage> {
        if self.in_flight.front().is_some_and(|own| own.index == batch.index()) {
            let own = self.in_flight.pop_front().expect("the front was just looked at");
            self.committed = State::clone(&own.published.state);
            return Ok(Committed::Own(own.published, Answers(own.answers)));
        }
        assert!(!self.leads(), "who leads commits what it proposed, in that order");
        Ok(Committed::Others(self.committed.apply(&batch.decode()?)?))
    }

    /// Fills one batch from `next` until a bound is reached, it has no more, or what comes next writes an object that the
    /// batch wrote already: that begins the next batch.
    ///
    /// Where nothing has to be written whoever asked is answered with what is in flight. Each command gets its own
    /// seed from `seeds`.
    pub fn fill(
        &mut self,
        now: Time,
        seeds: &mut Rng,
        mut next: impl FnMut() -> Option<Submission>,
    ) -> Filled {
        let Some(term) = self.term else { return Filled::Nothing };
        let mut filling = self.begin(now);
        if filling.at.index < self.first_index {
            return self.close(filling, term);
        }
        while filling.commands.len() < BATCH_COMMANDS_MAX
            && filling.events.len() < BATCH_EVENTS_MAX
            && filling.answers.len() < BATCH_ANSWERS_MAX
            && filling.bytes < BATCH_BYTES
            // What comes behind a higher epoch is the next batch's.
            && filling.at.epoch == self.working.epoch()
        {
            let Some(submission) = self.held_over.take().or_else(&mut next) else { break };
            self.held_over = self.decide(submission, seeds.next(), &mut filling);
            if self.held_over.is_some() {
                break;
            }
        }
        self.finish(filling, term)
    }

    /// The log did not take the batch that was filled last.
    pub fn refused(&mut self, error: &SubmitError) {
        let batch = self.in_flight.pop_back().expect("a batch was filled before it was refused");
        let last = self.in_flight.back();
        self.working =
            last.map_or_else(|| self.committed.clone(), |last| State::clone(&last.published.state));
        batch.answers.into_iter().for_each(|held| (held.answer)(Err(error.clone())));
        // No next batch is due that it could begin.
        self.reject_held_over(error);
    }

    fn begin(&self, now: Time) -> Filling {
        // Time never runs backwards in the log, whatever the clock does.
        let time = now.max(self.working.time);
        Filling {
            at: Moment { index: self.working.index.next(), time, epoch: self.working.epoch() },
            previous: self.working.index,
            digest: self.working.digest(),
            commands: Vec::new(),
            events: Vec::new(),
            bytes: 0,
            written: BTreeSet::new(),
            delta: Delta::default(),
            answers: Vec::new(),
        }
    }

    /// Returns the command if it belongs in a batch of its own.
    fn decide(&mut self, submission: Submission, seed: u64, filling: &mut Filling) -> Option<Submission> {
        let Submission { request, answer } = submission;
        if let Some(known) = self.working.remembered(request.id) {
            let is_same =
                request.said == RequestId::default() || self.working.remembered(request.said).is_some();
            let outcome = match is_same {
                true => {
                    let reply = rules::repeated(&self.working, known);
                    Ok(Receipt { index: known.index, time: self.working.time, wrote: true, reply })
                }
                false => Err(SubmitError::Rejected(Rejection::RequestReused(request.id.0))),
            };
            filling.answers.push(Held { answer, outcome });
            return None;
        }
        let ctx = Context::new(filling.at.index, filling.at.time, seed);
        let mut ctx = ctx.with_job_count_max(self.job_count_max);
        let outcome = match (self.rules)(&self.working, &mut ctx, &request.actor, &request.command) {
            Err(rejection) => Err(SubmitError::Rejected(rejection)),
            Ok(decision) => {
                let written: BTreeSet<Written> = decision.events.iter().filter_map(Written::by).collect();
                if !filling.written.is_disjoint(&written) {
                    return Some(Submission { request, answer });
                }
                filling.written.extend(written);
                let (wrote, reply) = (!decision.events.is_empty(), decision.reply());
                let index = if wrote { filling.at.index } else { self.working.index };
                if wrote {
                    self.take(filling, &request, decision.events);
                }
                Ok(Receipt { index, time: filling.at.time, wrote, reply })
            }
        };
        filling.answers.push(Held { answer, outcome });
        None
    }

    fn take(&mut self, filling: &mut Filling, request: &Request, events: Vec<model::Event>) {
        let number = filling.commands.len() as u16;
        let record =
            CommandRecord { request: request.id, kind: request.command.kind(), actor: request.actor.clone() };
        self.working.absorb(filling.at, &record, events.iter(), &mut filling.delta);
        filling.commands.push(record.clone());
        if request.said != RequestId::default() {
            // A record of its own, without events: it is found and forgotten as the name itself is.
            let said = CommandRecord { request: request.said, ..record };
            self.working.absorb(filling.at, &said, std::iter::empty(), &mut filling.delta);
            filling.commands.push(said);
        }
        filling.bytes += events.iter().map(large_parts).sum::<usize>();
        filling.events.extend(events.into_iter().map(|event| LoggedEvent { command: number, event }));
    }

    fn finish(&mut self, mut filling: Filling, term: Term) -> Filled {
        if filling.events.is_empty() {
            match self.in_flight.back_mut() {
                Some(last) => last.answers.append(&mut filling.answers),
                None if !filling.answers.is_empty() => return Filled::Answers(Answers(filling.answers)),
                None => {}
            }
            return Filled::Nothing;
        }
        self.close(filling, term)
    }

    fn close(&mut self, filling: Filling, term: Term) -> Filled {
        self.working.seal(filling.at, &filling.delta);
        let batch = Batch {
            epoch: filling.at.epoch,
            index: filling.at.index,
            previous: filling.previous,
            digest: filling.digest,
            time: filling.at.time,
            proposer: self.proposer,
            commands: filling.commands,
            events: filling.events,
        };
        let published = Published { state: Arc::new(self.working.clone()), delta: filling.delta };
        self.in_flight.push_back(InFlight { index: batch.index, published, answers: filling.answers });
        Filled::Batch(term, journal::encode(&batch))
    }
}

/// Bytes of an event, if it is of a kind that can be large.
fn large_parts(event: &model::Event) -> usize {
    match event {
        model::Event::JobRegistered(registered) => {
            registered.document.0.len() + registered.submission.0.len()
        }
        model::Event::StateChunkGiven(given) => given.bytes.len(),
        _ => 0,
    }
}
