//! Waits until something in the cluster has changed: by blocking queries, each of which returns one row at most.

use std::pin::Pin;
use std::time::Duration;

use base::Index;
use futures_util::future::select_all;
use sdk::{Client, Error, Query};

/// How new nodes, jobs, allocations, evaluations and deployments are. Zero where the token may not know.
pub(crate) type Stamps = [Index; 5];

/// How long one query waits.
const BLOCK: base::Duration = base::Duration::from_secs(30);

/// Least time between two readings, however much changes.
const REFRESH_MIN: Duration = Duration::from_secs(1);

/// Between two readings of what cannot be waited for: what the token has no right to, and what is not in the log.
pub(crate) const POLL: Duration = Duration::from_secs(5);

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Index, Error>> + 'a>>;

/// How new everything is now.
///
/// # Errors
/// The agent cannot be reached.
pub(crate) async fn stamps(client: &Client) -> Result<Stamps, Error> {
    let mut stamps = Stamps::default();
    for (stamp, newest) in stamps.iter_mut().zip(queries(client, |_| Query::new().with("per_page", 1))) {
        *stamp = match newest.await {
            Err(error) if error.status() == Some(403) => Index::ZERO,
            newest => newest?,
        };
    }
    Ok(stamps)
}

/// Returns when something is newer, or may be: after half a minute, because what servers do is not in the log.
///
/// # Errors
/// The agent cannot be reached.
pub(crate) async fn changed(client: &Client, stamps: Stamps) -> Result<(), Error> {
    tokio::time::sleep(REFRESH_MIN).await;
    if stamps.contains(&Index::ZERO) {
        tokio::time::sleep(POLL).await;
        return Ok(());
    }
    let newer = |table: usize| Query::new().newer_than(stamps[table], BLOCK).with("per_page", 1);
    select_all(queries(client, newer)).await.0.map(drop)
}

fn queries(client: &Client, query: impl Fn(usize) -> Query) -> [Waiting<'_>; 5] {
    let [nodes, jobs, allocs, evals, deployments] = [0, 1, 2, 3, 4].map(query);
    [
        Box::pin(async move { Ok(client.nodes(nodes).await?.index) }),
        Box::pin(async move { Ok(client.jobs(jobs).await?.index) }),
        Box::pin(async move { Ok(client.allocations(allocs).await?.index) }),
        Box::pin(async move { Ok(client.evaluations(evals).await?.index) }),
        Box::pin(async move { Ok(client.deployments(deployments).await?.index) }),
    ]
}
