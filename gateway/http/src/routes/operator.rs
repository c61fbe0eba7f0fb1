use axum::Router;
use axum::body::Body;
use axum::extract::State as With;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{delete, get};
use futures_util::StreamExt;
use model::document::Job;
use state::State;

use api::VaultWorkloadIdentityUpgradeCheck;

use super::write;
use crate::access::{Management, ReadOperator, SaveSnapshot};
use crate::answer::{self, Answer, INDEX};
use crate::app_state::AppState;
use crate::cluster_admin::PeerName;
use crate::error::Failure;
use crate::request::{Call, Read, ReadNow};
use crate::view;
use crate::view::node::Extras;

pub(super) fn router() -> Router<AppState> {
    let invalid = async || Failure::not_found("Invalid method");
    Router::new()
        .route("/v1/operator/raft/configuration", get(raft_configuration))
        .route("/v1/operator/raft/peer", delete(remove_peer).fallback(invalid))
        .route("/v1/operator/raft/transfer-leadership", write(transfer_leadership))
        .route("/v1/operator/snapshot", get(save_snapshot).merge(write(restore_snapshot)))
        .route("/v1/operator/upgrade-check/vault-workload-identity", get(vault_identities))
        .route("/v1/operator/upgrade-check/{*rest}", get(async || Failure::not_found("resource not found")))
        // No licence is needed, and none can be installed.
        .route(
            "/v1/operator/license",
            get(async || StatusCode::NO_CONTENT).put(async || Failure::enterprise()),
        )
}

async fn raft_configuration(With(server): With<AppState>, _: ReadNow<Management>) -> Answer {
    Ok(answer::json(&server.cluster.raft_configuration()))
}

async fn remove_peer(With(server): With<AppState>, call: Call<Management>) -> Result<(), Failure> {
    Ok(server.cluster.remove_peer(peer_name(&call)?).await?)
}

async fn transfer_leadership(With(server): With<AppState>, call: Call<Management>) -> Answer {
    Ok(answer::json(&server.cluster.transfer(peer_name(&call)?).await?))
}

/// What would stop working without the tokens that Nomad's servers used to make for tasks: jobs whose tasks use Vault and
/// have no identity for it, and nodes that cannot get a token with one.
async fn vault_identities(With(server): With<AppState>, read: Read<ReadOperator>) -> Answer {
    let view = |state: &State| {
        let jobs = state.jobs.iter().map(|(_, job)| job);
        let outdated = state.nodes.rows().filter(|row| {
            // Releases before 1.7 know no identities for Vault.
            state::node::nomad_release(&state.nodes.cold(*row).document)
                .is_some_and(|release| release < (1, 7))
        });
        let extras = Extras { resources: false, os: false };
        Ok(VaultWorkloadIdentityUpgradeCheck {
            jobs_without_vault_identity: jobs
                .filter(|job| !job.is_stopped() && lacks_vault_identity(&job.current().job))
                .map(|job| view::job::stub(state, job, false))
                .collect(),
            outdated_nodes: outdated.map(|row| view::node::stub(&state.nodes, row, extras)).collect(),
            vault_tokens: Vec::new(),
        })
    };
    server.read(&read, |state: &State| state.tables.jobs.max(state.tables.nodes), view).await
}

fn lacks_vault_identity(job: &Job) -> bool {
    let tasks = job.task_groups.iter().flat_map(|group| group.tasks.iter());
    let mut with_vault = tasks.filter(|task| task.vault.is_some());
    with_vault.any(|task| !task.identities.iter().any(|identity| identity.name.starts_with("vault_")))
}

/// Exactly one of `id` and `address`.
fn peer_name(call: &Call<Management>) -> Result<PeerName, Failure> {
    let given = |name| call.params.all(name).collect::<Vec<_>>();
    match (given("id").as_slice(), given("address").as_slice()) {
        ([""], _) | (_, [""]) => Err(Failure::invalid("id and address may not be empty")),
        ([id], []) => Ok(PeerName::Id(id.to_string())),
        ([], [address]) => Ok(PeerName::Address(address.to_string())),
        ([], []) => Err(Failure::invalid("missing id or address of the server")),
        (_, _) => Err(Failure::invalid("expected one id or one address, not several")),
    }
}

async fn save_snapshot(With(server): With<AppState>, ReadNow(read): ReadNow<SaveSnapshot>) -> Answer {
    server.fresh(read.options.consistency, read.options.min_index).await?;
    let file = server.snapshots.save().await?;
    let mut headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, HeaderValue::from(file.bytes)),
        (INDEX, HeaderValue::from(file.index)),
    ]);
    let digest = HeaderValue::try_from(file.digest);
    headers.insert(DIGEST, digest.map_err(|_| Failure::internal("the digest of the snapshot is no header"))?);
    Ok((headers, Body::from_stream(file.stream)).into_response())
}

/// The whole body is read and checked before anything changes; it may be of any size.
async fn restore_snapshot(
    With(server): With<AppState>,
    _: Call<Management>,
    body: Body,
) -> Result<(), Failure> {
    let file = body.into_data_stream().map(|chunk| chunk.map_err(std::io::Error::other));
    Ok(server.snapshots.restore(file.boxed()).await?)
}

const DIGEST: HeaderName = HeaderName::from_static("digest");
