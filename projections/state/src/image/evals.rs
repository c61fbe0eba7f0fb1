use std::collections::BTreeMap;
use std::sync::Arc;

use model::event::{EvalOutcome, NewEval};
use model::{DeploymentId, Doc, EvalId, EvalStatus, JobKey, JobType, NodeId, Trigger};

use super::columns::{Column, Dictionary, Fault, REFERENCE, Reader, Writer, at, state, text_hash};
use super::sparse::Sparse;
use crate::eval::Eval;
use crate::job::JobState;
use crate::row::{EvalRow, JobRow};

pub(super) fn encode(evals: &[Arc<Eval>]) -> Vec<u8> {
    let mut to = Writer::default();
    let mut texts: Dictionary<'_, str> = Dictionary::new();
    let facts = || evals.iter().map(|eval| &eval.facts);
    to.ids(facts().map(|facts| facts.id));
    to.u8s(facts().map(|facts| facts.kind as u8));
    to.u8s(facts().map(|facts| facts.trigger as u8));
    to.u8s(facts().map(|facts| facts.status as u8));
    to.u32s(facts().map(|facts| facts.priority));
    to.u32s(facts().map(|facts| texts.place(&facts.description, text_hash)));
    to.optional_ids(facts().map(|facts| facts.node));
    to.optional_ids(facts().map(|facts| facts.previous));
    to.indexes(facts().map(|facts| facts.job_modify));
    to.indexes(facts().map(|facts| facts.node_modify));
    to.times(facts().map(|facts| facts.wait_until));
    to.u32s(evals.iter().map(|eval| eval.job.0));
    to.u8s(evals.iter().map(|eval| eval.status as u8));
    to.flags(evals.iter().map(|eval| eval.acked));
    to.flags(evals.iter().map(|eval| eval.gone));
    to.u32s(evals.iter().map(|eval| texts.place(&eval.description, text_hash)));
    to.indexes(evals.iter().map(|eval| eval.created));
    to.indexes(evals.iter().map(|eval| eval.modified));
    to.times(evals.iter().map(|eval| eval.create_time));
    to.times(evals.iter().map(|eval| eval.modify_time));
    encode_outcomes(&mut to, &mut texts, evals.iter().map(|eval| &eval.facts.outcome));
    encode_outcomes(&mut to, &mut texts, evals.iter().map(|eval| &eval.outcome));
    texts.write(&mut to);
    // Chunks of earlier releases end before it: what nobody worked on stays as it was written.
    if evals.iter().any(|eval| !eval.desired.is_empty()) {
        to.texts(evals.iter().map(|eval| &eval.desired.0[..]));
    }
    to.0
}

fn encode_outcomes<'a>(
    to: &mut Writer,
    texts: &mut Dictionary<'a, str>,
    outcomes: impl Iterator<Item = &'a EvalOutcome> + Clone,
) {
    to.indexes(outcomes.clone().map(|outcome| outcome.snapshot));
    to.u64s(outcomes.clone().map(|outcome| outcome.seed));
    to.times(outcomes.clone().map(|outcome| outcome.now));
    to.flags(outcomes.clone().map(|outcome| outcome.escaped));
    to.optional_ids(outcomes.clone().map(|outcome| outcome.next));
    to.optional_ids(outcomes.clone().map(|outcome| outcome.blocked));
    to.optional_ids(outcomes.clone().map(|outcome| outcome.deployment));
    to.texts(outcomes.clone().map(|outcome| &outcome.failed_groups.0[..]));
    to.counts(outcomes.clone().map(|outcome| outcome.queued.len()));
    let queued = || outcomes.clone().flat_map(|outcome| &outcome.queued);
    to.u32s(queued().map(|(group, _)| texts.place(group, text_hash)));
    to.u32s(queued().map(|(_, count)| *count));
    to.counts(outcomes.clone().map(|outcome| outcome.classes.len()));
    let classes = || outcomes.clone().flat_map(|outcome| &outcome.classes);
    to.u32s(classes().map(|(class, _)| texts.place(class, text_hash)));
    to.flags(classes().map(|(_, eligible)| *eligible));
    to.counts(outcomes.clone().map(|outcome| outcome.missing.len()));
    let missing = outcomes.clone().flat_map(|outcome| &outcome.missing);
    to.u32s(missing.map(|resource| texts.place(resource, text_hash)));
}

/// The evaluations of one chunk; their keys are those of their jobs.
pub(super) fn decode(bytes: &[u8], len: usize, jobs: &Sparse<JobState>) -> Result<Vec<Arc<Eval>>, Fault> {
    let mut from = Reader(bytes);
    let columns = Columns::read(&mut from, len)?;
    let first = Outcomes::read(&mut from, len)?;
    let now = Outcomes::read(&mut from, len)?;
    let texts = from.count()?;
    let texts = from.strings(texts)?;
    let desired = if from.0.is_empty() { vec![&[][..]; len] } else { from.texts(len)? };
    from.end()?;
    let (mut first, mut now) = (first.cursor(&texts), now.cursor(&texts));
    let row = |row: usize| {
        let key = &jobs.get(columns.jobs.u32(row)).ok_or(REFERENCE)?.key;
        let facts = Arc::new(columns.facts(row, key, first(row)?, &texts)?);
        Ok(Arc::new(Eval {
            desired: Doc(desired[row].to_vec()),
            ..columns.eval(row, facts, now(row)?, &texts)?
        }))
    };
    (0..len).map(row).collect()
}

struct Columns<'a> {
    ids: Column<'a, 16>,
    kinds: &'a [u8],
    triggers: &'a [u8],
    first_statuses: &'a [u8],
    priorities: Column<'a, 4>,
    first_descriptions: Column<'a, 4>,
    nodes: Vec<Option<NodeId>>,
    previous: Vec<Option<EvalId>>,
    job_modify: Column<'a, 8>,
    node_modify: Column<'a, 8>,
    wait_until: Column<'a, 8>,
    jobs: Column<'a, 4>,
    statuses: &'a [u8],
    acked: &'a [u8],
    gone: &'a [u8],
    descriptions: Column<'a, 4>,
    created: Column<'a, 8>,
    modified: Column<'a, 8>,
    create_time: Column<'a, 8>,
    modify_time: Column<'a, 8>,
}

impl<'a> Columns<'a> {
    fn read(from: &mut Reader<'a>, len: usize) -> Result<Columns<'a>, Fault> {
        Ok(Columns {
            ids: from.column(len)?,
            kinds: from.u8s(len)?,
            triggers: from.u8s(len)?,
            first_statuses: from.u8s(len)?,
            priorities: from.column(len)?,
            first_descriptions: from.column(len)?,
            nodes: from.optional_ids(len, NodeId)?,
            previous: from.optional_ids(len, EvalId)?,
            job_modify: from.column(len)?,
            node_modify: from.column(len)?,
            wait_until: from.column(len)?,
            jobs: from.column(len)?,
            statuses: from.u8s(len)?,
            acked: from.u8s(len)?,
            gone: from.u8s(len)?,
            descriptions: from.column(len)?,
            created: from.column(len)?,
            modified: from.column(len)?,
            create_time: from.column(len)?,
            modify_time: from.column(len)?,
        })
    }

    fn facts(
        &self,
        row: usize,
        key: &JobKey,
        outcome: EvalOutcome,
        texts: &[&str],
    ) -> Result<NewEval, Fault> {
        Ok(NewEval {
            id: EvalId(self.ids.id(row)),
            key: key.clone(),
            kind: state(JobType::from_number, self.kinds[row])?,
            priority: self.priorities.u32(row),
            trigger: state(Trigger::from_number, self.triggers[row])?,
            status: state(EvalStatus::from_number, self.first_statuses[row])?,
            description: at(texts, self.first_descriptions.u32(row))?.to_string(),
            node: self.nodes[row],
            job_modify: self.job_modify.index(row),
            node_modify: self.node_modify.index(row),
            previous: self.previous[row],
            wait_until: self.wait_until.time(row),
            outcome,
        })
    }

    fn eval(
        &self,
        row: usize,
        facts: Arc<NewEval>,
        outcome: EvalOutcome,
        texts: &[&str],
    ) -> Result<Eval, Fault> {
        Ok(Eval {
            facts,
            job: JobRow(self.jobs.u32(row)),
            status: state(EvalStatus::from_number, self.statuses[row])?,
            description: at(texts, self.descriptions.u32(row))?.to_string(),
            outcome,
            desired: Doc::default(),
            acked: self.acked[row] != 0,
            gone: self.gone[row] != 0,
            created: self.created.index(row),
            modified: self.modified.index(row),
            create_time: self.create_time.time(row),
            modify_time: self.modify_time.time(row),
        })
    }
}

struct Outcomes<'a> {
    snapshots: Column<'a, 8>,
    seeds: Column<'a, 8>,
    times: Column<'a, 8>,
    escaped: &'a [u8],
    next: Vec<Option<EvalId>>,
    blocked: Vec<Option<EvalId>>,
    deployments: Vec<Option<DeploymentId>>,
    failed_groups: Vec<&'a [u8]>,
    queued: (Column<'a, 4>, Column<'a, 4>, Column<'a, 4>),
    classes: (Column<'a, 4>, Column<'a, 4>, &'a [u8]),
    missing: (Column<'a, 4>, Column<'a, 4>),
}

impl<'a> Outcomes<'a> {
    fn read(from: &mut Reader<'a>, len: usize) -> Result<Outcomes<'a>, Fault> {
        let (snapshots, seeds, times) = (from.column(len)?, from.column(len)?, from.column(len)?);
        let escaped = from.u8s(len)?;
        let (next, blocked) = (from.optional_ids(len, EvalId)?, from.optional_ids(len, EvalId)?);
        let deployments = from.optional_ids(len, DeploymentId)?;
        let failed_groups = from.texts(len)?;
        let (counts, all) = from.counts(len)?;
        let queued = (counts, from.column(all)?, from.column(all)?);
        let (counts, all) = from.counts(len)?;
        let classes = (counts, from.column(all)?, from.u8s(all)?);
        let (counts, all) = from.counts(len)?;
        let missing = (counts, from.column(all)?);
        Ok(Outcomes {
            snapshots,
            seeds,
            times,
            escaped,
            next,
            blocked,
            deployments,
            failed_groups,
            queued,
            classes,
            missing,
        })
    }

    /// The outcomes, to be asked for in the order of their rows.
    fn cursor<'b>(&'b self, texts: &'b [&'b str]) -> impl FnMut(usize) -> Result<EvalOutcome, Fault> + 'b {
        let (mut queued_at, mut classes_at, mut missing_at) = (0, 0, 0);
        move |row| {
            let (queued_from, classes_from, missing_from) = (queued_at, classes_at, missing_at);
            queued_at += self.queued.0.count(row);
            classes_at += self.classes.0.count(row);
            missing_at += self.missing.0.count(row);
            let text = |place: u32| at(texts, place).map(|text| text.to_string());
            let queued = |at| Ok((text(self.queued.1.u32(at))?, self.queued.2.u32(at)));
            let class = |at: usize| Ok((text(self.classes.1.u32(at))?, self.classes.2[at] != 0));
            Ok(EvalOutcome {
                snapshot: self.snapshots.index(row),
                seed: self.seeds.u64(row),
                now: self.times.time(row),
                queued: (queued_from..queued_at).map(queued).collect::<Result<_, Fault>>()?,
                failed_groups: Doc(self.failed_groups[row].to_vec()),
                classes: (classes_from..classes_at).map(class).collect::<Result<_, Fault>>()?,
                escaped: self.escaped[row] != 0,
                missing: (missing_from..missing_at)
                    .map(|at| text(self.missing.1.u32(at)))
                    .collect::<Result<_, Fault>>()?,
                next: self.next[row],
                blocked: self.blocked[row],
                deployment: self.deployments[row],
            })
        }
    }
}

pub(super) fn encode_blocked(blocked: &BTreeMap<JobRow, EvalRow>) -> Vec<u8> {
    let mut to = Writer::default();
    to.u32s(blocked.keys().map(|job| job.0));
    to.u32s(blocked.values().map(|eval| eval.0));
    to.0
}

pub(super) fn decode_blocked(bytes: &[u8], len: usize) -> Result<BTreeMap<JobRow, EvalRow>, Fault> {
    let mut from = Reader(bytes);
    let (jobs, evals): (Column<'_, 4>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
    from.end()?;
    Ok((0..len).map(|at| (JobRow(jobs.u32(at)), EvalRow(evals.u32(at)))).collect())
}
