//! I5 and the register: an acknowledged write is in the log for ever and once, a refused one never, and one of
//! unknown fate may be either.
//!
//! Each job is a register: its value is a mark in the job's `Meta`. The order of writes is the log's; the oracle
//! keeps the registers by what clients asked, not by what events say.

use std::collections::{BTreeMap, BTreeSet};

use base::Index;
use control::{Receipt, SubmitError};
use model::{Command, Event, JobKey, Rejection, RequestId};
use state::State;

use crate::fact::{Check, Fact, Folded};
use crate::witness::Witness;
use crate::workload::jobs::value_of;

/// The number of `Command::RegisterJob`.
const REGISTER_JOB: u16 = 20;

/// What a register holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Register {
    value: String,
    stopped: bool,
}

#[derive(Clone, Debug)]
enum Write {
    Value {
        key: JobKey,
        value: String,
    },
    Stop(JobKey),
    Purge(JobKey),
    /// Does not touch a register.
    Other,
}

struct Op {
    request: RequestId,
    write: Write,
    enforced: Option<(JobKey, u64)>,
    /// The highest index that was acknowledged to anybody when it was asked.
    floor: Index,
    /// The end of the log when it was asked.
    asked_at: Index,
}

#[derive(Default)]
pub struct Writes {
    ops: BTreeMap<u64, Op>,
    by_request: BTreeMap<RequestId, u64>,
    logged: BTreeMap<RequestId, Index>,
    refused: BTreeSet<RequestId>,
    values: BTreeSet<String>,
    acknowledged: Index,
    registers: BTreeMap<JobKey, Register>,
    /// The modify index of each job from a batch on, in the order of the log; `None` while there is no such job. A batch
    /// may change it more than once.
    modified: BTreeMap<JobKey, Vec<(Index, Option<Index>)>>,
}

impl Check for Writes {
    fn sentence(&self) -> &'static str {
        "I5 an acknowledged write is in the log once and for ever, and a refused one never is"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            Fact::Asked { op, request } => {
                let known = Op {
                    request: request.id,
                    write: write_of(&request.command),
                    enforced: enforced_of(&request.command),
                    floor: self.acknowledged,
                    asked_at: witness.head(),
                };
                self.by_request.insert(request.id, *op);
                self.ops.insert(*op, known);
                Ok(())
            }
            Fact::Folded(folded) => self.folded(folded),
            Fact::Answered { op, outcome: Ok(receipt), .. } => self.acknowledged(*op, receipt, witness),
            Fact::Answered { op, outcome: Err(error), open } => self.failed(*op, error, *open, witness),
            _ => Ok(()),
        }
    }
}

impl Writes {
    fn folded(&mut self, folded: &Folded<'_>) -> Result<(), String> {
        let (request, index) = (folded.record.request, folded.batch.index);
        for event in folded.events {
            let Event::JobRegistered(e) = event else { continue };
            // Jobs of several regions are no registers: each region has its part.
            let Some(value) = value_of(&e.document.read()) else { continue };
            if folded.record.kind != REGISTER_JOB {
                // A scaled job, a dispatched child, or a deployment that went back to an older version.
                self.changed_otherwise(&e.key, value, folded);
            } else if !self.values.insert(value.clone()) {
                return Err(format!("value {value} of job {} took effect twice", e.key));
            }
        }
        if request == RequestId::default() {
            return Ok(());
        }
        if let Some(before) = self.logged.insert(request, index) {
            return Err(format!("request {request} took effect at {before} and again at {index}"));
        }
        if self.refused.contains(&request) {
            return Err(format!("request {request} was refused and took effect at {index}"));
        }
        let Some(op) = self.by_request.get(&request).and_then(|op| self.ops.get(op)) else { return Ok(()) };
        let key = match &op.write {
            Write::Value { key, value } => {
                self.registers.insert(key.clone(), Register { value: value.clone(), stopped: false });
                key
            }
            Write::Stop(key) => {
                self.registers.get_mut(key).iter_mut().for_each(|register| register.stopped = true);
                key
            }
            Write::Purge(key) => {
                self.registers.remove(key);
                key
            }
            Write::Other => return Ok(()),
        };
        let modified = folded.after.jobs.lookup(key).map(|job| job.job_modified);
        self.modified.entry(key.clone()).or_default().push((index, modified));
        let (wanted, found) = (self.registers.get(key).cloned(), register(folded.after, key));
        if wanted != found {
            return Err(format!("job {key} is {found:?} after {index}, not {wanted:?}"));
        }
        Ok(())
    }

    fn changed_otherwise(&mut self, key: &JobKey, value: String, folded: &Folded<'_>) {
        if let Some(register) = self.registers.get_mut(key) {
            *register = Register { value, stopped: false };
            let modified = folded.after.jobs.lookup(key).map(|job| job.job_modified);
            self.modified.entry(key.clone()).or_default().push((folded.batch.index, modified));
        }
    }

    fn acknowledged(&mut self, op: u64, receipt: &Receipt, witness: &Witness) -> Result<(), String> {
        let op = &self.ops[&op];
        let (request, index) = (op.request, receipt.index);
        if index > witness.head() {
            return Err(format!("request {request} was acknowledged at {index}, which is not committed"));
        }
        let logged = self.logged.get(&request);
        if receipt.wrote && logged != Some(&index) {
            return Err(format!("request {request} was acknowledged at {index}, and the log has {logged:?}"));
        }
        if let Some(logged) = logged.filter(|_| !receipt.wrote) {
            return Err(format!("request {request} was said to change nothing, and did at {logged}"));
        }
        if index < op.floor {
            return Err(format!(
                "request {request} took effect at {index}, before {}, which had been acknowledged when it was made",
                op.floor
            ));
        }
        self.acknowledged = self.acknowledged.max(index);
        Ok(())
    }

    fn failed(&mut self, op: u64, error: &SubmitError, open: bool, witness: &Witness) -> Result<(), String> {
        let op = &self.ops[&op];
        if *error == SubmitError::Unknown || open {
            return Ok(());
        }
        if let Some(index) = self.logged.get(&op.request) {
            return Err(format!("request {} was refused ({error}) and took effect at {index}", op.request));
        }
        self.refused.insert(op.request);
        if let SubmitError::Rejected(Rejection::JobIndexMismatch(why)) = error
            && let Some((key, wanted)) = &op.enforced
            && !self.ever_differed(key, *wanted, op.asked_at, witness.head())
        {
            return Err(format!("job {key} was at {wanted} all the while, and was refused: {why}"));
        }
        Ok(())
    }

    /// The job was not at the index at some time between the two moments.
    fn ever_differed(&self, key: &JobKey, wanted: u64, from: Index, to: Index) -> bool {
        let Some(history) = self.modified.get(key) else { return wanted != 0 };
        let differs = |modified: Option<Index>| modified.map_or(0, |index| index.0) != wanted;
        let later = history.partition_point(|(index, _)| *index <= from);
        let at_first = later.checked_sub(1).and_then(|last| history[last].1);
        let mut within = history[later..].iter().take_while(|(index, _)| *index <= to);
        differs(at_first) || within.any(|(_, modified)| differs(*modified))
    }
}

fn register(state: &State, key: &JobKey) -> Option<Register> {
    let job = state.jobs.lookup(key)?;
    Some(Register { value: value_of(&job.current().job).unwrap_or_default(), stopped: job.is_stopped() })
}

fn write_of(command: &Command) -> Write {
    match command {
        Command::RegisterJob(request) => {
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            let key = JobKey { namespace: part(&request.job.namespace), id: part(&request.job.id) };
            Write::Value { key, value: value_of(&request.job).unwrap_or_default() }
        }
        Command::DeregisterJob { key, purge: true, .. } => Write::Purge(key.clone()),
        Command::DeregisterJob { key, purge: false, .. } => Write::Stop(key.clone()),
        _ => Write::Other,
    }
}

fn enforced_of(command: &Command) -> Option<(JobKey, u64)> {
    let Command::RegisterJob(request) = command else { return None };
    let Write::Value { key, .. } = write_of(command) else { return None };
    Some((key, request.enforce_index?))
}
