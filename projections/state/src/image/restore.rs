use std::collections::BTreeMap;
use std::sync::Arc;

use base::pages::{PAGE_ROWS, Pages};
use base::{IdMap, Index};
use model::document::Job;
use model::{Doc, Image};

use super::allocs::{Known, Pools};
use super::chunks::{Chunks, at_once};
use super::jobs::Documents;
use super::relations::{self, Link};
use super::versions::Versions;
use super::{
    ImageError, Table, allocs, deployments, evals, jobs, nodes, requests, settings, variables, volumes,
};
use crate::State;
use crate::alloc::{self, Alloc, Allocs};
use crate::deployment::{self, Deployments};
use crate::eval::{self, Eval, Evals};
use crate::job::{self, JobState, Jobs};
use crate::node::{self, Nodes};
use crate::operator::Restoring;
use crate::requests::{self as named, Generation, Requests};
use crate::row::{EvalRow, JobRow};
use crate::rows::Rows;
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
    let nodes = read_nodes(&chunks)?;
    let (jobs, versions) = read_jobs(&chunks)?;
    let evals = read_evals(&chunks, &jobs)?;
    let (rows, hashes, links) = read_allocs(&chunks, &nodes, versions)?;
    let lists = || {
        let loads = relations::loads(nodes.hot.len(), &links, &rows);
        (loads, relations::allocs_of_jobs(jobs.len(), &links))
    };
    let (by_id, (loads, of_jobs)) = at_once(|| relations::alloc_ids(&links), lists);
    let settings = chunks.read(Table::Settings, |_, bytes, _| settings::decode(bytes))?;
    let mut settings = settings.into_iter().next().unwrap_or_default();
    let deployments = read_deployments(&chunks, jobs.len())?;
    let contents = &chunks.contents;
    let state = State {
        index: contents.index,
        time: contents.time,
        cluster: contents.cluster,
        nodes: Nodes { load: Pages::from_pages(in_pages(loads)), ..nodes },
        jobs: finish_jobs(jobs, of_jobs, &evals, &deployments)?,
        deployments,
        evals,
        allocs: Allocs {
            by_id: by_id.ok_or(Table::Allocs.two_rows())?,
            rows: Rows::from_pages(rows.into_iter().zip(hashes).collect()),
        },
        pools: settings.pools(),
        namespaces: settings.namespaces(),
        keyring: settings.keyring(),
        acl: settings.acl(),
        operator: settings.operator.clone(),
        volumes: read_volumes(&chunks, settings.volumes_changed)?,
        variables: read_variables(&chunks, settings.variables_changed)?,
        restoring: Restoring::default(),
        requests: read_requests(&chunks)?,
        tables: contents.tables,
    };
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

/// The jobs without the lists that follow from other tables, and all versions.
fn read_jobs(chunks: &Chunks<'_>) -> Result<(Vec<JobState>, Versions), ImageError> {
    let documents = Documents::default();
    let pages = chunks.read(Table::Jobs, |_, bytes, len| jobs::decode(bytes, len, &documents))?;
    let evals = chunks.contents.rows(Table::Evals);
    let is_known = |job: &JobState| job.live_evals.iter().all(|eval| (eval.0 as usize) < evals);
    if let Some(chunk) = pages.iter().position(|page| !page.iter().all(is_known)) {
        return Err(Table::Jobs.damaged(chunk, "an evaluation that has not ended is not there"));
    }
    let jobs: Vec<JobState> = pages.into_iter().flatten().collect();
    let mut versions = Versions::kept(&jobs);
    let old = chunks.read(Table::OldVersions, |_, bytes, _| jobs::decode_old(bytes, &documents))?;
    for (chunk, old) in old.into_iter().enumerate() {
        for version in old {
            versions.add_old(version).map_err(|why| Table::OldVersions.damaged(chunk, why))?;
        }
    }
    Ok((jobs, versions))
}

fn read_evals(chunks: &Chunks<'_>, jobs: &[JobState]) -> Result<Evals, ImageError> {
    let pages = chunks.read(Table::Evals, |chunk, bytes, len| {
        let rows = evals::decode(bytes, len, jobs)?;
        let hashes = hashes(chunk, &rows, eval::hash::row);
        Ok((rows, hashes))
    })?;
    let rows: Rows<Arc<Eval>> = Rows::from_pages(pages);
    let known = (0..).zip(rows.iter()).filter(|(_, eval)| !eval.gone).map(|(row, eval)| (eval.id(), row));
    let by_id = IdMap::from_entries(known.collect()).ok_or(Table::Evals.two_rows())?;
    let blocked = read_blocked(chunks, jobs.len(), rows.len())?;
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

fn read_deployments(chunks: &Chunks<'_>, jobs: usize) -> Result<Deployments, ImageError> {
    let pages = chunks.read(Table::Deployments, |_, bytes, len| deployments::decode(bytes, len, jobs))?;
    let rows = hashed(pages, deployment::hash::row);
    let known = (0..).zip(rows.iter()).filter(|(_, deployment)| !deployment.gone);
    let known = known.map(|(row, deployment)| (deployment.id, row)).collect();
    Ok(Deployments { by_id: IdMap::from_entries(known).ok_or(Table::Deployments.two_rows())?, rows })
}

type AllocPages = (Vec<Vec<Arc<Alloc>>>, Vec<Vec<u64>>, Vec<Vec<Link>>);

fn read_allocs(chunks: &Chunks<'_>, nodes: &Nodes, versions: Versions) -> Result<AllocPages, ImageError> {
    let ids: Vec<_> = nodes.cold.iter().map(|node| node.id).collect();
    let known = Known { nodes: &ids, versions: &versions, pools: Pools::default() };
    let pages = chunks.read(Table::Allocs, |chunk, bytes, len| {
        let rows = allocs::decode(bytes, len, &known)?;
        let hashes = hashes(chunk, &rows, alloc::hash::row);
        let links: Vec<Link> = rows.iter().map(|alloc| Link::of(alloc)).collect();
        Ok((rows, (hashes, links)))
    })?;
    let (rows, (hashes, links)) = pages.into_iter().unzip();
    Ok((rows, hashes, links))
}

fn finish_jobs(
    jobs: Vec<JobState>,
    allocs: Vec<Vec<alloc::AllocRow>>,
    evals: &Evals,
    deployments: &Deployments,
) -> Result<Jobs, ImageError> {
    let deployments = relations::deployments_of_jobs(jobs.len(), deployments);
    let of_jobs = allocs.into_iter().zip(relations::evals_of_jobs(jobs.len(), evals)).zip(deployments);
    let finish = |(job, ((allocs, evals), deployments))| {
        Arc::new(JobState { allocs: Arc::new(allocs), evals: Arc::new(evals), deployments, ..job })
    };
    let jobs: Vec<Arc<JobState>> = jobs.into_iter().zip(of_jobs).map(finish).collect();
    let rows = hashed(in_pages(jobs), job::hash::row(evals));
    let known =
        (0..).zip(rows.iter()).filter(|(_, job)| !job.purged).map(|(row, job)| (job.key.clone(), row));
    let by_key = IdMap::from_entries(known.collect()).ok_or(Table::Jobs.two_rows())?;
    let mut jobs = Jobs { by_key, rows, ..Jobs::default() };
    let with_parents = (0..).map(JobRow).zip(jobs.rows.iter());
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
