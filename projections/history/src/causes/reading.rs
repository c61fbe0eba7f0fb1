use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, Time};
use journal::{EncodedBatch, FrameError};
use model::{
    AllocId, Batch, CommandRecord, DeploymentId, EvalId, Event, JobKey, LoggedEvent, Subject, VariableKey,
};

use super::Scope;
use crate::entries::Position;
use crate::follow::Shared;
use crate::history::HistoryError;
use crate::index::{Side, What};
use crate::object::Object;

/// Batches that one walk reads, at about 50 us each.
const READS_MAX: usize = 4096;
/// Batches that it holds. Those that are links of each other are mostly near each other.
const HELD_MAX: usize = 64;

/// What is there of a batch: of an older one, the facts that are kept.
#[derive(Clone, Debug)]
pub struct Facts {
    pub index: Index,
    pub time: Time,
    pub commands: Vec<CommandRecord>,
    /// By their ordinals.
    pub events: BTreeMap<u16, LoggedEvent>,
    /// Some are gone.
    is_part: bool,
}

impl Facts {
    fn of(batch: &EncodedBatch) -> Result<Facts, FrameError> {
        let mut events = BTreeMap::new();
        for (ordinal, row) in batch.rows().enumerate().filter(|(_, row)| !row.left_out) {
            let logged = LoggedEvent { command: row.command, event: batch.event(&row)? };
            events.insert(ordinal as u16, logged);
        }
        let is_part = events.len() < usize::from(batch.event_count());
        let (index, time, commands) = (batch.index(), batch.time(), batch.commands()?);
        Ok(Facts { index, time, commands, events, is_part })
    }

    /// Which of the commands has decided a fact.
    ///
    /// # Panics
    /// Unless that is there.
    pub fn command_of(&self, ordinal: u16) -> u16 {
        self.events[&ordinal].command
    }
}

/// All of it.
impl From<Batch> for Facts {
    fn from(batch: Batch) -> Facts {
        let Batch { index, time, commands, events, .. } = batch;
        Facts { index, time, commands, events: (0..).zip(events).collect(), is_part: false }
    }
}

/// Reads facts for one walk, each batch once as long as it is held.
pub(crate) struct Reading<'a> {
    pub shared: &'a Shared,
    batches: BTreeMap<Index, Arc<Facts>>,
    reads: usize,
    /// Something was not looked at, as there is too much of it.
    pub cut_short: bool,
    /// Something is no longer in the log.
    pub gone: bool,
}

impl Reading<'_> {
    pub fn of(shared: &Shared) -> Reading<'_> {
        Reading { shared, batches: BTreeMap::new(), reads: 0, cut_short: false, gone: false }
    }

    /// Another walk begins, with what is held.
    pub fn renew(&mut self) {
        self.reads = 0;
    }

    /// `None` for what is no longer kept, was never there, or is one too many.
    pub fn batch(&mut self, index: Index) -> Result<Option<Arc<Facts>>, HistoryError> {
        if let Some(batch) = self.batches.get(&index) {
            return Ok(Some(batch.clone()));
        }
        if self.reads == READS_MAX {
            self.cut_short = true;
            return Ok(None);
        }
        self.reads += 1;
        let Some(batch) = self.shared.batch(index)? else {
            self.gone |= index < self.shared.journal.horizon();
            return Ok(None);
        };
        let batch = Arc::new(Facts::of(&batch)?);
        if self.batches.len() == HELD_MAX {
            self.batches.pop_first();
        }
        self.batches.insert(index, batch.clone());
        Ok(Some(batch))
    }

    pub fn event(&mut self, at: Position) -> Result<Option<Event>, HistoryError> {
        let Some(batch) = self.batch(at.index)? else { return Ok(None) };
        let event = batch.events.get(&at.ordinal).map(|one| one.event.clone());
        self.gone |= event.is_none() && batch.is_part;
        Ok(event)
    }

    /// Places of facts about something, the nearest first. `most` and one more are looked for, to know of a rest.
    pub fn around(&mut self, what: What<'_>, side: Side, most: usize) -> Result<Vec<Position>, HistoryError> {
        let mut found = self.shared.index.around(what, side, most + 1)?;
        if found.len() > most {
            found.truncate(most);
            self.cut_short = true;
        }
        Ok(found)
    }

    /// The nearest fact about something before a place that `is_wanted`; `most` are looked at.
    pub fn nearest(
        &mut self,
        what: What<'_>,
        before: Position,
        most: usize,
        is_wanted: impl Fn(&Event) -> bool,
    ) -> Result<Option<Position>, HistoryError> {
        for at in self.shared.index.around(what, Side::Before(before), most)? {
            if self.event(at)?.is_some_and(|event| is_wanted(&event)) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The first fact about something. An index that is rebuilt while the log is cut has what is left.
    fn first_about(&mut self, what: What<'_>) -> Result<Option<Event>, HistoryError> {
        let first = self.shared.index.around(what, Side::After(Position::default()), 1)?;
        match first.first() {
            Some(at) => self.event(*at),
            None => Ok(None),
        }
    }

    /// The job and the deployment of an allocation, as it was placed.
    pub fn placement(
        &mut self,
        alloc: AllocId,
    ) -> Result<Option<(JobKey, Option<DeploymentId>)>, HistoryError> {
        Ok(match self.first_about(What::Alloc(alloc))? {
            Some(Event::AllocsPlaced(placed)) => Some((placed.key, placed.deployment)),
            _ => None,
        })
    }

    fn job_of_eval(&mut self, eval: EvalId) -> Result<Option<JobKey>, HistoryError> {
        Ok(match self.first_about(What::Object(&Object::Eval(eval)))? {
            Some(Event::EvalCreated(created)) => Some(created.eval.key),
            _ => None,
        })
    }

    fn job_of_deployment(&mut self, deployment: DeploymentId) -> Result<Option<JobKey>, HistoryError> {
        Ok(match self.first_about(What::Object(&Object::Deployment(deployment)))? {
            Some(Event::DeploymentCreated(created)) => Some(created.key),
            _ => None,
        })
    }

    /// The job that a fact is about, if it is about one.
    pub fn job(&mut self, event: &Event) -> Result<Option<JobKey>, HistoryError> {
        match (event, event.subject()) {
            (Event::EvalCreated(e), _) => Ok(Some(e.eval.key.clone())),
            (Event::DeploymentCreated(e), _) => Ok(Some(e.key.clone())),
            (Event::AllocsPlaced(e), _) => Ok(Some(e.key.clone())),
            (_, Subject::Job(key)) => Ok(Some(key.clone())),
            (_, Subject::Evals([eval, ..])) => self.job_of_eval(*eval),
            (_, Subject::Allocs([alloc, ..])) => Ok(self.placement(*alloc)?.map(|(key, _)| key)),
            (_, Subject::Deployment(deployment)) => self.job_of_deployment(deployment),
            (_, Subject::Evals([]) | Subject::Allocs([]) | Subject::Node(_) | Subject::Cluster) => Ok(None),
        }
    }

    /// Whose a fact is. That of a plan is its job's, also where it makes others give way.
    pub fn scope(&mut self, at: Position, event: &Event) -> Result<Scope, HistoryError> {
        if let Some(job) = self.job(event)? {
            return Ok(Scope::Job(job));
        }
        Ok(match (event, event.subject()) {
            (Event::VariableSet(e), _) => variable(&e.key),
            (Event::VariableDeleted(e), _) => variable(&e.key),
            (Event::VariableForgotten(e), _) => variable(&e.key),
            (Event::VariableLockAcquired(e), _) => variable(&e.key),
            (Event::VariableLockReleased(e), _) => variable(&e.key),
            (_, Subject::Node(node)) => Scope::Node(node),
            (_, Subject::Cluster) => Scope::Cluster,
            (_, Subject::Job(_) | Subject::Evals(_) | Subject::Allocs(_) | Subject::Deployment(_)) => {
                tracing::debug!(index = at.index.0, "the job of a fact is no longer in the log");
                Scope::Unknown
            }
        })
    }
}

fn variable(key: &VariableKey) -> Scope {
    Scope::Variable(key.clone())
}
