//! The registration of jobs: parsed, completed with defaults, validated, registered.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use jobspec::{Effect, Files, Finding, NoFiles, Nodes, Source, Variables};
use model::command::RegisterJob;
use model::document::sizes::check_sizes;
use model::document::{Job, JobSubmission};
use model::{Command, JobKey};
use serde_json::Value;
use state::State;

use api::{JobRegisterRequest, JobValidateRequest, JobValidateResponse, JobsParseRequest, Params};

use super::{jobs, write};
use crate::access::{Each, ParseJob, ReadJob};
use crate::answer::{self, Answer, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Call, Json, Write};
use crate::view::nodes_seen::NodesSeen;

/// Largest source text that is kept with a job; a longer one is left out, with a warning.
const SOURCE_MAX: usize = 1_000_000;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/jobs", get(jobs::list).merge(write(register)))
        .route("/v1/job/{id}", get(jobs::read).delete(jobs::deregister).merge(write(register_named)))
        .route("/v1/jobs/parse", write(parse))
        .route("/v1/validate/job", write(validate))
}

async fn register(
    With(server): With<AppState>,
    write: Write,
    Json(request): Json<JobRegisterRequest>,
) -> Answer {
    let Registration { command, warnings, .. } = registration(&server, &write.params, request)?;
    // Its part in this region has been made of it before.
    if is_for_all_regions(&command.job) {
        return Err(Failure::invalid("Multiregion: expected the name in these letters"));
    }
    let receipt = server.submit(&write, Command::RegisterJob(Box::new(command))).await?;
    written(receipt.index, &jobs::evaluated(&receipt, warning_text(&warnings)))
}

async fn register_named(
    server: With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<JobRegisterRequest>,
) -> Answer {
    let named = request.job.as_ref().and_then(|job| job.id.as_deref());
    if named.is_some_and(|named| !named.is_empty() && named != id) {
        return Err(Failure::invalid("Job ID does not match name"));
    }
    register(server, write, Json(request)).await
}

/// Answered without looking at any state. Parsing untrusted text takes time, so not on a thread that serves other requests.
async fn parse(_: Call<ParseJob>, Json(request): Json<JobsParseRequest>) -> Answer {
    Ok(answer::json(&tokio::task::spawn_blocking(move || parsed(request)).await??))
}

async fn validate(
    With(server): With<AppState>,
    call: Call<Each>,
    Json(request): Json<JobValidateRequest>,
) -> Answer {
    let mut job = request.job.ok_or_else(|| Failure::invalid("Job must be specified"))?;
    check_sizes(&job).map_err(Failure::invalid)?;
    let (fails, mut warnings) = judged(&jobspec::findings(&job, &NodesSeen(&server.control.state())));
    complete(&server, &call.params, &JobRegisterRequest::default(), &mut job)?;
    call.access.require::<ReadJob>(job.namespace.as_deref().unwrap_or_default())?;
    let found = jobspec::validate(&job);
    warnings.extend(found.warnings);
    let mut errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    errors.extend(fails);
    errors.extend(too_many(&server, &job));
    let namespace = job.namespace.as_deref().unwrap_or_default();
    let (state, id) = (server.control.state(), job.id.as_deref().unwrap_or_default());
    if !state.namespaces.exists(namespace) {
        errors.push(format!("job {id:?} is in nonexistent namespace {namespace:?}"));
    }
    let pool = job.node_pool.as_deref().filter(|pool| !pool.is_empty()).unwrap_or(state::pool::DEFAULT);
    if !state.pools.exists(pool) {
        errors.push(format!("job {id:?} is in nonexistent node pool {pool:?}"));
    }
    Ok(answer::json(&JobValidateResponse {
        driver_config_validated: true,
        error: error_text(&errors),
        warnings: warning_text(&warnings),
        validation_errors: errors.into(),
    }))
}

pub(crate) struct Registration {
    pub key: JobKey,
    pub command: RegisterJob,
    pub warnings: Vec<String>,
}

/// A job with everything that can be said about it without looking at other jobs.
pub(crate) struct Checked {
    pub registration: Registration,
    pub findings: Vec<Finding>,
    /// Why it may not be registered; findings that fail are not repeated here.
    pub errors: Vec<String>,
}

/// What may be registered.
///
/// # Errors
/// 400 with what is wrong with it.
pub(super) fn registration(
    server: &AppState,
    params: &Params,
    request: JobRegisterRequest,
) -> Result<Registration, Failure> {
    let Checked { registration, findings, mut errors } = checked(server, params, request)?;
    errors.extend(judged(&findings).0);
    if errors.is_empty() { Ok(registration) } else { Err(Failure::invalid(error_text(&errors))) }
}

/// # Errors
/// 400 for what is no job at all.
pub(crate) fn checked(
    server: &AppState,
    params: &Params,
    mut request: JobRegisterRequest,
) -> Result<Checked, Failure> {
    let mut job = request.job.take().ok_or_else(|| Failure::invalid("Job must be specified"))?;
    if job.id.as_deref().unwrap_or_default().is_empty() {
        return Err(Failure::invalid("Job ID hasn't been provided"));
    }
    check_sizes(&job).map_err(Failure::invalid)?;
    // What a dry run is about. What is registered is a part already.
    if is_for_all_regions(&job)
        && let Some(part) = jobspec::in_region(&job, &server.agent.region)
    {
        job = part;
    }
    // Of what was written, not of what is filled in.
    let findings = jobspec::findings(&job, &NodesSeen(&server.control.state()));
    let (_, mut warnings) = judged(&findings);
    complete(server, params, &request, &mut job)?;
    let found = jobspec::validate(&job);
    let errors = found.errors.iter().map(ToString::to_string);
    let errors = errors.chain(too_many(server, &job)).collect();
    warnings.extend(found.warnings);
    warnings.extend(without_identity(server, &job));
    let submission = request.submission.and_then(|given| kept(given, &mut warnings));
    let key =
        JobKey::new(job.namespace.as_deref().unwrap_or_default(), job.id.as_deref().unwrap_or_default());
    let command = RegisterJob {
        job,
        submission,
        enforce_index: request.enforce_index.then_some(request.job_modify_index),
        eval_priority: jobs::eval_priority(request.eval_priority)?,
        preserve_counts: request.preserve_counts,
        preserve_resources: request.preserve_resources,
    };
    Ok(Checked { registration: Registration { key, command, warnings }, findings, errors })
}

/// What depends on the servers' settings, and is decided by the leader's.
fn too_many(server: &AppState, job: &Job) -> Option<String> {
    rules::check_counts(job, server.job_count_max).err().map(|rejection| rejection.to_string())
}

/// Nodes of this release log in to Vault with identities, and with nothing else.
fn without_identity(server: &AppState, job: &Job) -> Vec<String> {
    let missing = jobspec::missing_vault_identities(job);
    // The nodes are looked at only if it matters: there may be very many.
    if missing.is_empty() || NodesSeen(&server.control.state()).any_foreign() {
        return Vec::new();
    }
    missing
        .into_iter()
        .map(|(task, identity)| {
            format!(
                "task \"{task}\" has a vault block and no identity \"{identity}\", and these servers add none: it fails to start"
            )
        })
        .collect()
}

/// What is sure to fail, and what is worth a warning.
fn judged(findings: &[Finding]) -> (Vec<String>, Vec<String>) {
    let (fails, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.effect == Effect::Fails);
    let texts = |findings: Vec<&Finding>| findings.iter().map(ToString::to_string).collect();
    (texts(fails), texts(others))
}

/// Settles where the job belongs, then fills in what it leaves open.
fn complete(
    server: &AppState,
    params: &Params,
    request: &JobRegisterRequest,
    job: &mut Job,
) -> Result<(), Failure> {
    let first = |given: [Option<&str>; 3]| {
        given.into_iter().flatten().find(|name| !name.is_empty()).map(str::to_string)
    };
    let namespace = first([params.get("namespace"), Some(&request.namespace), job.namespace.as_deref()]);
    let region = first([Some(&request.region), params.get("region"), job.region.as_deref()]);
    job.namespace = Some(namespace.unwrap_or_else(|| "default".to_string()));
    let region = region.filter(|region| region != "global").unwrap_or_else(|| server.agent.region.clone());
    server.check_region(&region)?;
    job.region = Some(region);
    jobspec::canonicalize(job);
    jobspec::imply_identities(job, &server.identities);
    jobspec::imply_constraints(job);
    jobspec::imply_service_discovery(job, || offers_service_discovery(&server.control.state()));
    Ok(())
}

fn offers_service_discovery(state: &State) -> bool {
    let attribute = |row| state.nodes.cold(row).document.attributes.get("nomad.service_discovery");
    state.nodes.rows().any(|row| attribute(row).is_some_and(|offered| offered == "true"))
}

/// What untrusted job files may take from a server: random bytes, for `uuidv4` and `bcrypt`, and no file.
struct NoDisk;

impl Files for NoDisk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        NoFiles.read(path)
    }

    fn allowed(&self) -> bool {
        NoFiles.allowed()
    }

    fn random(&self) -> Option<[u8; 16]> {
        Some(crate::request::random())
    }
}

fn parsed(request: JobsParseRequest) -> Result<Value, Failure> {
    if request.job_hcl.trim().is_empty() {
        return Err(Failure::invalid("Job spec is empty"));
    }
    let source = Source::new("input.hcl", request.job_hcl);
    let text = Some(request.variables).filter(|text| !text.is_empty());
    let variables = Variables { text, ..Variables::default() };
    let parsed = jobspec::parse(&source, &variables, &NoDisk);
    let mut job = parsed.map_err(|wrong| Failure::invalid(format!("Failed to parse job: {wrong}")))?.job;
    if request.canonicalize {
        jobspec::apply_defaults(&mut job);
    }
    Ok(jobspec::client_form(&job))
}

fn kept(given: JobSubmission, warnings: &mut Vec<String>) -> Option<JobSubmission> {
    let flags: usize = given.variable_flags.iter().map(|(name, value)| name.len() + value.len()).sum();
    let size = given.source.len() + given.variables.len() + flags;
    if size > SOURCE_MAX {
        warnings.push(format!("job source of {size} bytes is not kept: the limit is {SOURCE_MAX}"));
        return None;
    }
    Some(given)
}

/// It is no region's part of a job of several.
fn is_for_all_regions(job: &Job) -> bool {
    job.multiregion.is_some() && job.rollout().is_none()
}

pub(crate) fn error_text(errors: &[String]) -> String {
    listed("error occurred", "errors occurred", "\t* ", errors)
}

pub(super) fn warning_text(warnings: &[String]) -> String {
    listed("warning", "warnings", "* ", warnings)
}

/// As clients are used to reading several texts in one.
fn listed(one: &str, many: &str, bullet: &str, texts: &[String]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let head = if texts.len() == 1 { one } else { many };
    let lines: Vec<String> = texts.iter().map(|text| format!("{bullet}{text}")).collect();
    format!("{} {head}:\n\n{}\n", texts.len(), lines.join("\n"))
}
