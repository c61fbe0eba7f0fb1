//! What a job means where it leaves things open.
//!
//! [`apply_defaults`] is the form clients see: each group and task says everything by itself. [`canonicalize`] is the
//! form servers keep, in which every scalar is present. Both are idempotent.

mod client_form;
mod connect;
mod expose;
mod gateway;
mod group;
mod policy;
mod server;
mod service;
mod task;

use model::document::Job;

pub use client_form::client_form;
pub(crate) use expose::{is_exposable, local_port};
use policy::JobKind;
pub(crate) use policy::{DEFAULT_STAGGER, is_zero_update};

pub(crate) const DEFAULT_REGION: &str = "global";
pub(crate) const DEFAULT_NAMESPACE: &str = "default";
/// Priority of a job that names none; servers may be configured otherwise and fill it before.
pub const DEFAULT_PRIORITY: i64 = 50;

/// Sets `slot` where nothing was said.
pub(crate) fn fill<T>(slot: &mut Option<T>, value: impl Into<T>) {
    slot.get_or_insert_with(|| value.into());
}

/// Sets `slot` where nothing, or nothing but emptiness, was said.
pub(crate) fn fill_text(slot: &mut String, value: &str) {
    if slot.is_empty() {
        *slot = value.to_string();
    }
}

/// Fills a field from its default when unset, field by field.
macro_rules! overlay {
    ($into:expr, $from:expr, $($field:ident),+ $(,)?) => {
        $(if $into.$field.is_none() { $into.$field = $from.$field.clone(); })+
    };
}
pub(crate) use overlay;

/// Completes a job the way clients do: the answer of `POST /v1/jobs/parse` with `Canonicalize`.
///
/// Datacenters and the node pool stay open; they are the server's.
pub fn apply_defaults(job: &mut Job) {
    let id = job.id.clone().unwrap_or_default();
    fill(&mut job.id, "");
    fill_empty(&mut job.name, &id);
    fill_empty(&mut job.namespace, DEFAULT_NAMESPACE);
    fill_empty(&mut job.region, DEFAULT_REGION);
    fill_empty(&mut job.kind, "service");
    fill(&mut job.priority, DEFAULT_PRIORITY);
    for text in [
        &mut job.node_pool,
        &mut job.parent_id,
        &mut job.consul_namespace,
        &mut job.vault_namespace,
        &mut job.nomad_token_id,
        &mut job.status,
        &mut job.status_description,
    ] {
        fill(text, "");
    }
    for flag in [&mut job.stop, &mut job.all_at_once, &mut job.stable] {
        fill(flag, false);
    }
    for number in [&mut job.version, &mut job.create_index, &mut job.modify_index, &mut job.job_modify_index]
    {
        fill(number, 0_u64);
    }
    complete_blocks(job);
    group::apply_defaults(job);
}

/// Completes a job the way servers keep it: [`apply_defaults`], then every scalar is present, datacenters and node
/// pool are set, and job-level blocks that only fed the groups are gone.
pub fn canonicalize(job: &mut Job) {
    apply_defaults(job);
    server::complete(job);
}

fn fill_empty(slot: &mut Option<String>, value: &str) {
    if slot.as_deref().is_none_or(str::is_empty) {
        *slot = Some(value.to_string());
    }
}

fn complete_blocks(job: &mut Job) {
    let kind = JobKind::of(job);
    policy::complete_job_update(job, kind);
    job.affinities.iter_mut().for_each(|affinity| fill(&mut affinity.weight, 50_i8));
    job.spreads.iter_mut().for_each(|spread| fill(&mut spread.weight, 50_i8));
    if let Some(periodic) = &mut job.periodic {
        fill(&mut periodic.enabled, true);
        fill(&mut periodic.spec, "");
        fill(&mut periodic.spec_type, "cron");
        fill(&mut periodic.prohibit_overlap, false);
        fill_empty(&mut periodic.time_zone, "UTC");
    }
    if let Some(multiregion) = &mut job.multiregion {
        let strategy = multiregion.strategy.get_or_insert_default();
        fill(&mut strategy.max_parallel, 0_i64);
        fill(&mut strategy.on_failure, "");
        multiregion.regions.iter_mut().for_each(|region| fill(&mut region.count, 1_i64));
    }
}
