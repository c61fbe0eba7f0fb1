use std::sync::Arc;

use bytes::Bytes;
use model::document::AllocationMetric;
use model::{AllocId, ClientStatus, DeploymentId, Desired, EvalId, Given, NodeId, Report, Template};

use super::columns::{Column, Dictionary, Fault, Reader, Writer, at, state, text_hash};
use super::jobs::{decode_documents, encode_documents};
use super::pool::Pool;
use super::versions::{Name, Used, Versions, used};
use crate::LazyDoc;
use crate::alloc::{Alloc, Health, KnownState, Transition};
use crate::job::JobVersion;
use crate::row::{JobRow, NodeRow};

// Bits of a row's flags.
const GONE: u8 = 1;
const MIGRATE: u8 = 2;
const RESCHEDULE: u8 = 4;
const NO_SHUTDOWN_DELAY: u8 = 8;
const FORCE_RESCHEDULE: u8 = 16;
const DISABLE_PLACEMENT: u8 = 32;

// Bits of what is known of a row's health; zero where nothing is.
const KNOWN: u8 = 1;
const CANARY: u8 = 2;
const JUDGED: u8 = 4;
const HEALTHY: u8 = 8;

/// The chunk, and the versions of jobs it refers to.
pub(super) fn encode(rows: &[Arc<Alloc>]) -> (Vec<u8>, Vec<Used>) {
    let mut to = Writer::default();
    encode_own(&mut to, rows);
    encode_shared(&mut to, rows);
    let (places, used) = used(rows);
    to.u8s(places.into_iter());
    to.counts(std::iter::once(used.len()));
    to.u32s(used.iter().map(|(job, _)| job.0));
    to.u64s(used.iter().map(|(_, version)| version.version));
    to.indexes(used.iter().map(|(_, version)| version.registered));
    (to.0, used)
}

fn encode_own(to: &mut Writer, rows: &[Arc<Alloc>]) {
    to.ids(rows.iter().map(|row| row.id));
    to.u32s(rows.iter().map(|row| row.node.0));
    to.u32s(rows.iter().map(|row| row.name_index));
    to.u8s(rows.iter().map(|row| row.desired as u8));
    to.u8s(rows.iter().map(|row| row.client as u8));
    to.u8s(rows.iter().map(|row| flags(row)));
    to.optional_ids(rows.iter().map(|row| row.previous));
    to.optional_ids(rows.iter().map(|row| row.next));
    to.optional_ids(rows.iter().map(|row| row.follow_up));
    to.optional_ids(rows.iter().map(|row| row.preempted_by));
    to.counts(rows.iter().map(|row| row.preempted.len()));
    to.ids(rows.iter().flat_map(|row| row.preempted.iter()).copied());
    to.indexes(rows.iter().map(|row| row.created));
    to.indexes(rows.iter().map(|row| row.modified));
    to.indexes(rows.iter().map(|row| row.alloc_modified));
    to.times(rows.iter().map(|row| row.create_time));
    to.times(rows.iter().map(|row| row.modify_time));
    to.u8s(rows.iter().map(|row| health(&row.health)));
    let known = || rows.iter().map(|row| row.health).filter(|known| *known != Health::default());
    to.times(known().map(|health| health.time));
    to.indexes(known().map(|health| health.modified));
    to.counts(rows.iter().map(|row| row.ports.len()));
    to.u16s(rows.iter().flat_map(|row| row.ports.iter()).copied());
    to.counts(rows.iter().map(|row| row.states.len()));
    let states = || rows.iter().flat_map(|row| row.states.iter());
    to.u8s(states().map(|known| known.status as u8));
    to.times(states().map(|known| known.time));
    to.texts(rows.iter().map(|row| row.given.bytes()));
    to.texts(rows.iter().map(|row| row.report.bytes()));
}

/// A page has at most 256 rows, so that a place is one byte.
fn encode_shared(to: &mut Writer, rows: &[Arc<Alloc>]) {
    let texts: [fn(&Alloc) -> &str; 3] =
        [|row| &row.group, |row| &row.desired_description, |row| &row.client_description];
    for text in texts {
        let mut texts: Dictionary<'_, str> = Dictionary::new();
        to.u8s(rows.iter().map(|row| texts.place(text(row), text_hash) as u8));
        texts.write(to);
    }
    let mut evals: Dictionary<'_, EvalId> = Dictionary::new();
    let id_hash = |id: &EvalId| id.0.as_u128() as u64;
    to.u8s(rows.iter().map(|row| evals.place(&row.eval, id_hash) as u8));
    to.counts(std::iter::once(evals.entries().len()));
    to.ids(evals.entries().iter().map(|id| **id));
    let mut deployments: Dictionary<'_, Option<DeploymentId>> = Dictionary::new();
    let id_hash = |id: &Option<DeploymentId>| id.map_or(0, |id| id.0.as_u128() as u64);
    to.u8s(rows.iter().map(|row| deployments.place(&row.deployment, id_hash) as u8));
    to.counts(std::iter::once(deployments.entries().len()));
    to.optional_ids(deployments.entries().iter().map(|id| **id));
    let mut templates: Dictionary<'_, LazyDoc<Template>> = Dictionary::new();
    to.u8s(rows.iter().map(|row| templates.place(&row.template, LazyDoc::hash) as u8));
    encode_documents(to, templates.entries());
    let mut metrics: Dictionary<'_, LazyDoc<AllocationMetric>> = Dictionary::new();
    to.u8s(rows.iter().map(|row| metrics.place(&row.metrics, LazyDoc::hash) as u8));
    encode_documents(to, metrics.entries());
}

fn flags(row: &Alloc) -> u8 {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    flag(row.gone, GONE)
        | flag(row.transition.migrate, MIGRATE)
        | flag(row.transition.reschedule, RESCHEDULE)
        | flag(row.transition.no_shutdown_delay, NO_SHUTDOWN_DELAY)
        | flag(row.transition.force_reschedule, FORCE_RESCHEDULE)
        | flag(row.transition.disable_placement, DISABLE_PLACEMENT)
}

fn health(health: &Health) -> u8 {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    flag(*health != Health::default(), KNOWN)
        | flag(health.canary, CANARY)
        | flag(health.healthy.is_some(), JUDGED)
        | flag(health.healthy == Some(true), HEALTHY)
}

/// What allocations of several chunks share.
#[derive(Default)]
pub(super) struct Pools {
    texts: Pool<Arc<str>>,
    templates: Pool<LazyDoc<Template>>,
    metrics: Pool<LazyDoc<AllocationMetric>>,
    untold: LazyDoc<Report>,
    nothing_given: LazyDoc<Given>,
    nobody: Arc<[AllocId]>,
    no_ports: Arc<[u16]>,
    no_states: Arc<Vec<KnownState>>,
}

/// What allocations refer to.
pub(super) struct Known<'a> {
    pub nodes: &'a [NodeId],
    pub versions: &'a Versions,
    pub pools: Pools,
}

pub(super) fn decode(chunk: &Bytes, len: usize, known: &Known<'_>) -> Result<Vec<Arc<Alloc>>, Fault> {
    let mut from = Reader(chunk);
    let own = Own::read(&mut from, len)?;
    let shared = Shared::read(&mut from, len, known)?;
    from.end()?;
    let (mut port, mut state, mut victim) = (0, 0, 0);
    let row = |row: usize| {
        let (first_port, first_state, first_victim) = (port, state, victim);
        port += own.port_counts.count(row);
        state += own.state_counts.count(row);
        victim += own.preempted_counts.count(row);
        let ports = own.ports(first_port..port, &known.pools);
        let states = own.states(first_state..state, &known.pools)?;
        let preempted = own.preempted(first_victim..victim, &known.pools);
        let lists = Lists { ports, states, preempted };
        Ok(Arc::new(own.alloc(row, shared.of(row)?, lists, chunk, known)?))
    };
    (0..len).map(row).collect()
}

/// What varies in number.
struct Lists {
    ports: Arc<[u16]>,
    states: Arc<Vec<KnownState>>,
    preempted: Arc<[AllocId]>,
}

/// Columns of what each row has for itself.
struct Own<'a> {
    ids: Column<'a, 16>,
    nodes: Column<'a, 4>,
    name_indexes: Column<'a, 4>,
    desired: &'a [u8],
    clients: &'a [u8],
    flags: &'a [u8],
    previous: Vec<Option<AllocId>>,
    next: Vec<Option<AllocId>>,
    follow_ups: Vec<Option<EvalId>>,
    preempted_by: Vec<Option<AllocId>>,
    preempted_counts: Column<'a, 4>,
    all_preempted: Column<'a, 16>,
    created: Column<'a, 8>,
    modified: Column<'a, 8>,
    alloc_modified: Column<'a, 8>,
    create_time: Column<'a, 8>,
    modify_time: Column<'a, 8>,
    health: Vec<Health>,
    port_counts: Column<'a, 4>,
    all_ports: Column<'a, 2>,
    state_counts: Column<'a, 4>,
    state_statuses: &'a [u8],
    state_times: Column<'a, 8>,
    given: Vec<&'a [u8]>,
    reports: Vec<&'a [u8]>,
}

impl<'a> Own<'a> {
    fn read(from: &mut Reader<'a>, len: usize) -> Result<Own<'a>, Fault> {
        let (ids, nodes, name_indexes) = (from.column(len)?, from.column(len)?, from.column(len)?);
        let (desired, clients, flags) = (from.u8s(len)?, from.u8s(len)?, from.u8s(len)?);
        let (previous, next) = (from.optional_ids(len, AllocId)?, from.optional_ids(len, AllocId)?);
        let follow_ups = from.optional_ids(len, EvalId)?;
        let preempted_by = from.optional_ids(len, AllocId)?;
        let (preempted_counts, preempted) = from.counts(len)?;
        let all_preempted = from.column(preempted)?;
        let (created, modified, alloc_modified) = (from.column(len)?, from.column(len)?, from.column(len)?);
        let (create_time, modify_time) = (from.column(len)?, from.column(len)?);
        let health = read_health(from, len)?;
        let (port_counts, ports) = from.counts(len)?;
        let all_ports = from.column(ports)?;
        let (state_counts, states) = from.counts(len)?;
        let (state_statuses, state_times) = (from.u8s(states)?, from.column(states)?);
        let (given, reports) = (from.texts(len)?, from.texts(len)?);
        Ok(Own {
            ids,
            nodes,
            name_indexes,
            desired,
            clients,
            flags,
            previous,
            next,
            follow_ups,
            preempted_by,
            preempted_counts,
            all_preempted,
            created,
            modified,
            alloc_modified,
            create_time,
            modify_time,
            health,
            port_counts,
            all_ports,
            state_counts,
            state_statuses,
            state_times,
            given,
            reports,
        })
    }

    fn ports(&self, range: std::ops::Range<usize>, pools: &Pools) -> Arc<[u16]> {
        if range.is_empty() {
            return pools.no_ports.clone();
        }
        range.map(|at| self.all_ports.u16(at)).collect()
    }

    fn states(&self, range: std::ops::Range<usize>, pools: &Pools) -> Result<Arc<Vec<KnownState>>, Fault> {
        if range.is_empty() {
            return Ok(pools.no_states.clone());
        }
        let known = |at: usize| {
            let status = state(ClientStatus::from_number, self.state_statuses[at])?;
            Ok(KnownState { status, time: self.state_times.time(at) })
        };
        range.map(known).collect::<Result<Vec<_>, Fault>>().map(Arc::new)
    }

    fn preempted(&self, range: std::ops::Range<usize>, pools: &Pools) -> Arc<[AllocId]> {
        if range.is_empty() {
            return pools.nobody.clone();
        }
        range.map(|at| AllocId(self.all_preempted.id(at))).collect()
    }

    fn given(&self, row: usize, pools: &Pools) -> LazyDoc<Given> {
        match self.given[row] {
            [] => pools.nothing_given.clone(),
            given => LazyDoc::new(given.to_vec()),
        }
    }

    fn report(&self, row: usize, chunk: &Bytes, pools: &Pools) -> LazyDoc<Report> {
        match self.reports[row] {
            [] => pools.untold.clone(),
            // Not copied: reports are most of an image.
            report => LazyDoc::new(chunk.slice_ref(report)),
        }
    }

    fn alloc(
        &self,
        row: usize,
        shared: SharedOfRow<'_>,
        lists: Lists,
        chunk: &Bytes,
        known: &Known<'_>,
    ) -> Result<Alloc, Fault> {
        let flag = |bit: u8| self.flags[row] & bit != 0;
        let Lists { ports, states, preempted } = lists;
        let node = self.nodes.u32(row);
        Ok(Alloc {
            id: AllocId(self.ids.id(row)),
            job: shared.version.0,
            node: NodeRow(node),
            node_id: *at(known.nodes, node)?,
            version: shared.version.1.clone(),
            group: shared.group.clone(),
            name_index: self.name_indexes.u32(row),
            eval: shared.eval,
            desired: state(Desired::from_number, self.desired[row])?,
            desired_description: shared.desired_description.clone(),
            client: state(ClientStatus::from_number, self.clients[row])?,
            client_description: shared.client_description.clone(),
            transition: Transition {
                migrate: flag(MIGRATE),
                reschedule: flag(RESCHEDULE),
                no_shutdown_delay: flag(NO_SHUTDOWN_DELAY),
                force_reschedule: flag(FORCE_RESCHEDULE),
                disable_placement: flag(DISABLE_PLACEMENT),
            },
            template: shared.template.clone(),
            metrics: shared.metrics.clone(),
            ports,
            given: self.given(row, &known.pools),
            states,
            previous: self.previous[row],
            next: self.next[row],
            follow_up: self.follow_ups[row],
            preempted,
            preempted_by: self.preempted_by[row],
            deployment: shared.deployment,
            health: self.health[row],
            report: self.report(row, chunk, &known.pools),
            gone: flag(GONE),
            created: self.created.index(row),
            modified: self.modified.index(row),
            alloc_modified: self.alloc_modified.index(row),
            create_time: self.create_time.time(row),
            modify_time: self.modify_time.time(row),
        })
    }
}

/// What rows share: for each row a place among the entries of its chunk.
struct Shared<'a> {
    groups: (&'a [u8], Vec<Arc<str>>),
    desired_descriptions: (&'a [u8], Vec<Arc<str>>),
    client_descriptions: (&'a [u8], Vec<Arc<str>>),
    evals: (&'a [u8], Vec<EvalId>),
    deployments: (&'a [u8], Vec<Option<DeploymentId>>),
    templates: (&'a [u8], Vec<LazyDoc<Template>>),
    metrics: (&'a [u8], Vec<LazyDoc<AllocationMetric>>),
    versions: (&'a [u8], Vec<(JobRow, &'a Arc<JobVersion>)>),
}

struct SharedOfRow<'a> {
    group: &'a Arc<str>,
    desired_description: &'a Arc<str>,
    client_description: &'a Arc<str>,
    eval: EvalId,
    deployment: Option<DeploymentId>,
    template: &'a LazyDoc<Template>,
    metrics: &'a LazyDoc<AllocationMetric>,
    version: (JobRow, &'a Arc<JobVersion>),
}

impl<'a> Shared<'a> {
    fn read(from: &mut Reader<'a>, len: usize, known: &'a Known<'_>) -> Result<Shared<'a>, Fault> {
        let pools = &known.pools;
        let mut texts = || Ok::<_, Fault>((from.u8s(len)?, read_texts(from, pools)?));
        let (groups, desired_descriptions, client_descriptions) = (texts()?, texts()?, texts()?);
        let evals = (from.u8s(len)?, read_ids(from)?);
        let deployments = (from.u8s(len)?, read_deployments(from)?);
        let templates = (from.u8s(len)?, decode_documents(from, &pools.templates)?);
        let metrics = (from.u8s(len)?, decode_documents(from, &pools.metrics)?);
        let versions = (from.u8s(len)?, read_versions(from, known.versions)?);
        Ok(Shared {
            groups,
            desired_descriptions,
            client_descriptions,
            evals,
            deployments,
            templates,
            metrics,
            versions,
        })
    }

    fn of(&self, row: usize) -> Result<SharedOfRow<'_>, Fault> {
        fn entry<'b, T>(column: &'b (&[u8], Vec<T>), row: usize) -> Result<&'b T, Fault> {
            at(&column.1, column.0[row])
        }
        Ok(SharedOfRow {
            group: entry(&self.groups, row)?,
            desired_description: entry(&self.desired_descriptions, row)?,
            client_description: entry(&self.client_descriptions, row)?,
            eval: *entry(&self.evals, row)?,
            deployment: *entry(&self.deployments, row)?,
            template: entry(&self.templates, row)?,
            metrics: entry(&self.metrics, row)?,
            version: *entry(&self.versions, row)?,
        })
    }
}

fn read_texts(from: &mut Reader<'_>, pools: &Pools) -> Result<Vec<Arc<str>>, Fault> {
    let len = from.count()?;
    let shared = |text: &str| pools.texts.share(text_hash(text), text.into());
    Ok(from.strings(len)?.into_iter().map(shared).collect())
}

fn read_ids(from: &mut Reader<'_>) -> Result<Vec<EvalId>, Fault> {
    let len = from.count()?;
    Ok(from.column::<16>(len)?.ids().map(EvalId).collect())
}

fn read_deployments(from: &mut Reader<'_>) -> Result<Vec<Option<DeploymentId>>, Fault> {
    let len = from.count()?;
    from.optional_ids(len, DeploymentId)
}

fn read_health(from: &mut Reader<'_>, len: usize) -> Result<Vec<Health>, Fault> {
    let flags = from.u8s(len)?;
    let known = flags.iter().filter(|flags| **flags & KNOWN != 0).count();
    let (times, modified): (Column<'_, 8>, Column<'_, 8>) = (from.column(known)?, from.column(known)?);
    let mut next = 0..known;
    let health = |flags: &u8| {
        let Some(at) = (flags & KNOWN != 0).then(|| next.next()).flatten() else { return Health::default() };
        Health {
            canary: flags & CANARY != 0,
            healthy: (flags & JUDGED != 0).then_some(flags & HEALTHY != 0),
            time: times.time(at),
            modified: modified.index(at),
        }
    };
    Ok(flags.iter().map(health).collect())
}

fn read_versions<'a>(
    from: &mut Reader<'_>,
    versions: &'a Versions,
) -> Result<Vec<(JobRow, &'a Arc<JobVersion>)>, Fault> {
    let len = from.count()?;
    let (jobs, numbers): (Column<'_, 4>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let registered: Column<'_, 8> = from.column(len)?;
    let version = |at: usize| {
        let job = JobRow(jobs.u32(at));
        let name = Name { job, number: numbers.u64(at), registered: registered.index(at) };
        Ok((job, versions.find(name)?))
    };
    (0..len).map(version).collect()
}
