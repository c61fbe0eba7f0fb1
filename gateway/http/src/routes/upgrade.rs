//! Whether all servers are of one release, and the step after which they have to be.

use api::{UpgradeRaised, UpgradeServer, UpgradeStatus};
use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::routing::get;
use model::{Command, EPOCH};

use crate::access::ReadOperator;
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{ReadNow, Write};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/operator/upgrade", get(status).put(finish).post(finish))
}

async fn status(With(server): With<AppState>, _: ReadNow<ReadOperator>) -> Answer {
    Ok(answer::json(&look(&server)))
}

/// Raises the cluster's epoch to what every server knows. If it is there already nothing is written.
async fn finish(With(server): With<AppState>, write: Write) -> Answer {
    let seen = look(&server);
    if seen.next <= seen.epoch && !seen.problems.is_empty() {
        return Err(Failure::new(StatusCode::CONFLICT, seen.problems.join("; ")));
    }
    let epoch = seen.next.max(seen.epoch);
    let command = Command::RaiseEpoch { epoch: u16::try_from(epoch).unwrap_or(u16::MAX) };
    let receipt = server.submit(&write, command).await?;
    answer::written(receipt.index, &UpgradeRaised { epoch, raised: receipt.wrote, index: receipt.index.0 })
}

fn look(server: &AppState) -> UpgradeStatus {
    judge(u64::from(server.control.state().epoch()), u64::from(EPOCH), server.cluster.releases())
}

/// `newest` is what the server that is asked knows.
fn judge(epoch: u64, newest: u64, servers: Vec<UpgradeServer>) -> UpgradeStatus {
    let newest = servers.iter().map(|server| server.epoch).max().unwrap_or(0).max(newest);
    let behind = servers.iter().filter(|server| server.epoch < newest);
    let problems = behind.map(|server| match server.epoch {
        0 => format!(
            "the release of {} at {} is not known: start it, or remove it from raft",
            server.name, server.address
        ),
        _ => format!(
            "{} at {} is of release {}, which knows epoch {} of {newest}",
            server.name, server.address, server.version, server.epoch
        ),
    });
    let problems: Vec<String> = problems.collect();
    // One that is not known might know nothing.
    let next = servers.iter().map(|server| server.epoch).min().unwrap_or(0);
    UpgradeStatus { epoch, next, newest, finished: epoch == newest && problems.is_empty(), problems, servers }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, epoch: u64) -> UpgradeServer {
        let (name, address, version) = (name.to_string(), format!("{name}:4647"), format!("0.{epoch}.0"));
        UpgradeServer { name, address, version, epoch, ..UpgradeServer::default() }
    }

    #[test]
    fn an_upgrade_is_finished_once_every_server_knows_what_the_newest_one_knows() {
        let mixed = judge(3, 4, vec![server("a", 4), server("b", 3)]);
        assert_eq!((mixed.epoch, mixed.next, mixed.newest, mixed.finished), (3, 3, 4, false));
        assert_eq!(mixed.problems, ["b at b:4647 is of release 0.3.0, which knows epoch 3 of 4"]);
        let ready = judge(3, 4, vec![server("a", 4), server("b", 4)]);
        assert_eq!((ready.next, ready.finished, ready.problems.len()), (4, false, 0));
        assert!(judge(4, 4, vec![server("a", 4), server("b", 4)]).finished);
        // Asked of a server that is not upgraded yet.
        let asked_behind = judge(3, 3, vec![server("a", 3), server("b", 4)]);
        assert_eq!((asked_behind.next, asked_behind.newest, asked_behind.finished), (3, 4, false));
        let unknown = judge(3, 4, vec![server("a", 4), server("(unknown)", 0)]);
        assert_eq!((unknown.next, unknown.finished), (0, false));
        assert!(unknown.problems[0].contains("start it, or remove it from raft"), "{:?}", unknown.problems);
    }
}
