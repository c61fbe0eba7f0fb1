use std::collections::BTreeMap;
use std::sync::Arc;

use base::pages::{PAGE_ROWS, Pages};
use base::{IdMap, Index};
use model::document::Job;
use model::{Doc, EPOCH, Image};

use super::allocs::{Known, Pools};
use super::chunks::{Chunks, at_once};
use super::jobs::Documents;
use super::relations::{self, Link, Links};
use super::released::Released;
use super::sparse::Sparse;
use super::versions::Versions;
use super::{
    ImageError, Table, allocs, deployments, evals, jobs, nodes, requests, services, settings, variables,
    volumes,
};
use crate::State;
use crate::alloc::{self, Alloc, AllocRow, Allocs};
use crate::deployment::{self, Deployment, Deployments};
use crate::eval::{self, Eval, Evals};
use crate::forgotten::Forgotten;
use crate::job::{self, JobState, Jobs};
use crate::node::{self, Nodes};
use crate::operator::Restoring;
use crate::requests::{self as named, Generation, Requests};
use crate::row::{EvalRow, JobRow};
use crate::rows::{Release, Rows};
use crate::service::Services;
use crate::variable::Variables;
use crate::volume::Volumes;

/// The state that an image was made of, equal to it in every row and list.
///
/// The caller guarantees that the bytes of each chunk are those it was made with. What they say is
/// checked all the same, and in the end the digest.
///
/// # Errors
/// [`ImageError`]: there is no such state.
pub fn restore(image: &Image) -> Result<State, ImageError> {
    let chunks = Chunks::of(image)?;
    let settings = chunks.read(Table::Settings, |_, bytes, _| settings::decode(bytes))?;
    let mut settings = settings.into_iter().next().unwrap_or_default();
    // Before the rest is found to be wrong.
    if let Some(epoch) = settings.raised.filter(|epoch| *epoch > EPOCH) {
        return Err(ImageError::UnknownEpoch(epoch));
    }
    let nodes = read_nodes(&chunks)?;
    let (jobs, released_jobs, versions) = read_jobs(&chunks)?;
    let evals = read_evals(&chunks, &jobs)?;
    let (pages, links) = read_allocs(&chunks, &nodes, versions)?;
    let lists = || {
        let loads = relations::loads(nodes.hot.len(), &links, &pages);
        (loads, relations::allocs_of_jobs(&jobs, &links))
    };
    let (by_id, (loads, of_jobs)) = at_once(|| relations::alloc_ids(&links), lists);
    let deployments = read_deployments(&chunks)?;
    let jobs = finish_jobs(&chunks, jobs, released_jobs, of_jobs, &evals, &deployments)?;
    let contents = &chunks.contents;
    let mut state = State {
        index: contents.index,
        time: contents.time,
        cluster: contents.cluster,
        nodes: Nodes { load: Pages::from_pages(in_pages(loads)), ..nodes },
        jobs,
        deployments,
        evals,
        allocs: Allocs {
            by_id: by_id.ok_or(Table::Allocs.two_rows())?,
            rows: Rows::from_held_pages(pages, &chunks.blank(Table::Allocs)),
        },
        pools: settings.pools(),
        namespaces: settings.namespaces(),
        keyring: settings.keyring(),
        acl: settings.acl(),
        operator: settings.operator.clone(),
        volumes: read_volumes(&chunks, settings.volumes_changed)?,
        claims: settings.claims(),
        expansions: settings.expansions(),
        cursors: settings.cursors(),
        sinks: settings.sinks(),
        erasure: settings.erasure(),
        recording: settings.recording.take().map(Arc::new),
        raised: settings.raised,
        dropped_history: std::mem::take(&mut settings.dropped_history),
        variables: read_variables(&chunks, settings.variables_changed)?,
        services: read_services(&chunks, settings.services_changed)?,
        restoring: Restoring::default(),
        requests: read_requests(&chunks)?,
        forgotten: Forgotten::default(),
        tables: contents.tables,
    };
    state.forgotten = state.forgotten_and_held();
    match contents.digest.difference(&state.digest()) {
        None => Ok(state),
        Some((table, ..)) => Err(ImageError::Digest { table }),
    }
}

/// Everything of the nodes but what is on them.
fn read_nodes(chunks: &Chunks<'_>) -> Result<Nodes, ImageError> {
    let pages = chunks.read(Table::Nodes, |_, bytes, len| nodes::decode(bytes, len))?;
    let classes = chunks.read(Table::Classes, |_, bytes, len| nodes::decode_classes(bytes, len))?;
    let known = chunks.contents.rows(Table::Classes);
    let is_known =
        |page: &Vec<(node::NodeHot, _)>| page.iter().all(|(hot, _)| (hot.class.0 as usize) < known);
    if let Some(chunk) = pages.iter().position(|page| !is_known(page)) {
        return Err(Table::Nodes.damaged(chunk, "a node is of no class"));
    }
    let (hot, cold): (Vec<_>, Vec<Vec<_>>) = pages.into_iter().map(|page| page.into_iter().unzip()).unzip();
    let cold = cold.into_iter().map(|page| page.into_iter().map(Arc::new).collect()).collect();
    let mut nodes = Nodes {
        hot: hashed(hot, node::hash::hot),
        cold: hashed(cold, |row, node| node::hash::cold(row, node)),
        classes: hashed(classes, node::hash::class),
        ..Nodes::default()
    };
    let rows = (0..).zip(nodes.hot.iter().zip(nodes.cold.iter()));
    let known = rows.filter(|(_, (hot, _))| !hot.gone).map(|(row, (_, cold))| (cold.id, row));
    nodes.by_id = IdMap::from_entries(known.collect()).ok_or(Table::Nodes.two_rows())?;
    Ok(nodes)
}

/// The jobs without the lists that follow from other tables, which of them were released, and all versions.
fn read_jobs(chunks: &Chunks<'_>) -> Result<(Sparse<JobState>, Vec<Released>, Versions), ImageError> {
    let documents = Documents::default();
    let evals = chunks.contents.rows(Table::Evals);
    let is_known = |job: &JobState| job.live_evals.iter().all(|eval| (eval.0 as usize) < evals);
    let pages = chunks.read_held(Table::Jobs, |_, released, bytes| {
        let jobs = jobs::decode(bytes, released.held(), &documents)?;
        if !jobs.iter().all(is_known) {
            return Err("an evaluation that has not ended is not there");
        }
        Ok((released.fill(jobs, JobState::released), released.clone()))
    })?;
    let (pages, released): (Vec<_>, Vec<_>) = pages.into_iter().unzip();
    let jobs = Sparse::new(chunks.by_page(Table::Jobs, pages));
    let mut versions = Versions::kept(&jobs);
    let old = chunks.read(Table::OldVersions, |_, bytes, _| jobs::decode_old(bytes, &documents))?;
    for (chunk, old) in old.into_iter().enumerate() {
        for version in old {
            versions.add_old(version).map_err(|why| Table::OldVersions.damaged(chunk, why))?;
        }
    }
    Ok((jobs, released, versions))
}

/// A whole page from the rows that are held, each with its hash.
fn filled<T: Release>(
    page: usize,
    released: &Released,
    held: Vec<T>,
    hash: impl Fn(u32, &T) -> u64,
) -> (Vec<T>, Vec<u64>) {
    let rows = released.fill(held, T::released);
    let hashes = released.hashes(|place| hash((page * PAGE_ROWS + place) as u32, &rows[place]));
    (rows, hashes)
}

fn read_evals(chunks: &Chunks<'_>, jobs: &Sparse<JobState>) -> Result<Evals, ImageError> {
    let pages = chunks.read_held(Table::Evals, |page, released, bytes| {
        let held = evals::decode(bytes, released.held(), jobs)?;
        Ok(filled(page, released, held, eval::hash::row))
    })?;
    let rows: Rows<Arc<Eval>> = Rows::from_held_pages(pages, &chunks.blank(Table::Evals));
    let known = rows.held().filter(|(_, eval)| !eval.gone).map(|(row, eval)| (eval.id(), row));
    let by_id = IdMap::from_entries(known.collect()).ok_or(Table::Evals.two_rows())?;
    let blocked = read_blocked(chunks, chunks.contents.rows(Table::Jobs), rows.len())?;
    Ok(Evals { by_id, rows, blocked: Arc::new(blocked) })
}

fn read_blocked(
    chunks: &Chunks<'_>,
    jobs: usize,
    evals: usize,
) -> Result<BTreeMap<JobRow, EvalRow>, ImageError> {
    let read = chunks.read(Table::Blocked, |_, bytes, len| {
        let blocked = evals::decode_blocked(bytes, len)?;
        let is_known =
            |(job, eval): (&JobRow, &EvalRow)| (job.0 as usize) < jobs && (eval.0 as usize) < evals;
        if blocked.iter().all(is_known) { Ok(blocked) } else { Err("a job or an evaluation is not there") }
    })?;
    Ok(read.into_iter().flatten().collect())
}

fn read_deployments(chunks: &Chunks<'_>) -> Result<Deployments, ImageError> {
    let jobs = chunks.contents.rows(Table::Jobs);
    let pages = chunks.read_held(Table::Deployments, |page, released, bytes| {
        let held = deployments::decode(bytes, released.held(), jobs)?;
        Ok(filled(page, released, held, deployment::hash::row))
    })?;
    let rows: Rows<Arc<Deployment>> = Rows::from_held_pages(pages, &chunks.blank(Table::Deployments));
    let known = rows.held().filter(|(_, deployment)| !deployment.gone);
    let known = known.map(|(row, deployment)| (deployment.id, row)).collect();
    Ok(Deployments { by_id: IdMap::from_entries(known).ok_or(Table::Deployments.two_rows())?, rows })
}

/// The pages of allocations that are held, each row with its hash.
type AllocPages = Vec<(Vec<Arc<Alloc>>, Vec<u64>)>;

fn read_allocs(
    chunks: &Chunks<'_>,
    nodes: &Nodes,
    versions: Versions,
) -> Result<(AllocPages, Links), ImageError> {
    let ids: Vec<_> = nodes.cold.iter().map(|node| node.id).collect();
    let known = Known { nodes: &ids, versions: &versions, pools: Pools::default() };
    let pages = chunks.read_held(Table::Allocs, |page, released, bytes| {
        let held = allocs::decode(bytes, released.held(), &known)?;
        let (rows, hashes) = filled(page, released, held, alloc::hash::row);
        let links: Vec<Link> = rows.iter().map(|alloc| Link::of(alloc)).collect();
        Ok(((rows, hashes), ((page * PAGE_ROWS) as u32, links)))
    })?;
    let (pages, links) = pages.into_iter().unzip();
    Ok((pages, Links(links)))
}

fn finish_jobs(
    chunks: &Chunks<'_>,
    jobs: Sparse<JobState>,
    released: Vec<Released>,
    mut allocs: Sparse<Vec<AllocRow>>,
    evals: &Evals,
    deployments: &Deployments,
) -> Result<Jobs, ImageError> {
    let mut of_evals = relations::evals_of_jobs(&jobs, evals);
    let mut of_deployments = relations::deployments_of_jobs(&jobs, deployments);
    let numbers = chunks.contents.pages(Table::Jobs);
    let pages = numbers.zip(jobs.into_pages()).zip(&released).map(|((page, jobs), released)| {
        let mut place = 0..;
        let finish = |job: JobState| {
            let row = (page * PAGE_ROWS + place.next().expect("there is no last place")) as u32;
            if job.is_released() {
                return Arc::<JobState>::released();
            }
            Arc::new(JobState {
                allocs: Arc::new(allocs.take(row)),
                evals: Arc::new(of_evals.take(row)),
                deployments: of_deployments.take(row),
                ..job
            })
        };
        let rows: Vec<Arc<JobState>> = jobs.into_iter().map(finish).collect();
        let hash = job::hash::row(evals);
        let hashes = released.hashes(|place| hash((page * PAGE_ROWS + place) as u32, &rows[place]));
        (rows, hashes)
    });
    let rows = Rows::from_held_pages(pages.collect(), &chunks.blank(Table::Jobs));
    let known = rows.held().filter(|(_, job)| !job.purged).map(|(row, job)| (job.key.clone(), row));
    let by_key = IdMap::from_entries(known.collect()).ok_or(Table::Jobs.two_rows())?;
    let outlived = rows.held().filter(|(_, job)| job.purged && !job.allocs.is_empty());
    let outlived = Arc::new(outlived.map(|(row, _)| JobRow(row)).collect());
    let mut jobs = Jobs { by_key, rows, outlived, ..Jobs::default() };
    let with_parents = jobs.rows.held().map(|(row, job)| (JobRow(row), job));
    let with_parents = with_parents.filter(|(_, job)| !job.purged && job.key.id.contains('/'));
    let is_whole = |job: &JobState| Doc::try_read_from::<Job>(job.current().job.bytes()).is_some();
    let with_parents: Vec<(JobRow, bool)> = with_parents.map(|(row, job)| (row, is_whole(job))).collect();
    for (row, is_whole) in with_parents {
        if !is_whole {
            return Err(Table::Jobs.damaged(row.0 as usize / PAGE_ROWS, "a job is no document of one"));
        }
        jobs.adopt(row);
    }
    Ok(jobs)
}

fn read_requests(chunks: &Chunks<'_>) -> Result<Requests, ImageError> {
    let generation = |table: Table| {
        let pages = chunks.read(table, |_, bytes, len| requests::decode(bytes, len))?;
        Ok(Generation::of(hashed(pages, named::hash)))
    };
    Ok(Requests { current: generation(Table::Requests)?, previous: generation(Table::OlderRequests)? })
}

fn read_volumes(chunks: &Chunks<'_>, changed: Index) -> Result<Volumes, ImageError> {
    // The digest does not cover it: only an index that lists are answered with follows from it.
    if changed > chunks.contents.index {
        return Err(Table::Settings.damaged(0, "volumes changed later than the state"));
    }
    let read = chunks.read(Table::Volumes, |_, bytes, len| volumes::decode(bytes, len))?;
    let mut volumes = Volumes::of(read.into_iter().flatten());
    volumes.changed = volumes.changed.max(changed);
    let is_whole = volumes.len() == chunks.contents.rows(Table::Volumes);
    if is_whole { Ok(volumes) } else { Err(Table::Volumes.two_rows()) }
}

fn read_variables(chunks: &Chunks<'_>, changed: Index) -> Result<Variables, ImageError> {
    let read = chunks.read(Table::Variables, |_, bytes, _| variables::decode(bytes))?;
    let variables = Variables::of(read.into_iter().flatten().collect(), changed);
    let is_whole = variables.len() == chunks.contents.rows(Table::Variables);
    if is_whole { Ok(variables) } else { Err(Table::Variables.two_rows()) }
}

fn read_services(chunks: &Chunks<'_>, changed: Index) -> Result<Services, ImageError> {
    let shards = chunks.read(Table::Services, |chunk, bytes, _| services::decode(chunk, bytes))?;
    let services = Services::of(shards, changed);
    let is_whole = services.len() == chunks.contents.rows(Table::Services);
    if is_whole { Ok(services) } else { Err(Table::Services.two_rows()) }
}

fn hashed<T>(pages: Vec<Vec<T>>, hash: impl Fn(u32, &T) -> u64) -> Rows<T> {
    let with_hashes = |(chunk, rows): (usize, Vec<T>)| {
        let hashes = hashes(chunk, &rows, &hash);
        (rows, hashes)
    };
    Rows::from_pages(pages.into_iter().enumerate().map(with_hashes).collect())
}

fn hashes<T>(chunk: usize, rows: &[T], hash: impl Fn(u32, &T) -> u64) -> Vec<u64> {
    let first = (chunk * PAGE_ROWS) as u32;
    (first..).zip(rows).map(|(row, value)| hash(row, value)).collect()
}

fn in_pages<T>(rows: Vec<T>) -> Vec<Vec<T>> {
    let pages = rows.len().div_ceil(PAGE_ROWS);
    let mut rows = rows.into_iter();
    (0..pages).map(|_| rows.by_ref().take(PAGE_ROWS).collect()).collect()
}
