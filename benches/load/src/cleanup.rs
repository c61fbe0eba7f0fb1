//! Takes away what a run has created: its jobs, its nodes, its node pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

use crate::http::{Agent, Http};
use crate::job::{Names, in_namespace};
use crate::options::ClusterOptions;

/// Connections.
const AT_ONCE: usize = 32;

/// How often everything that is left is tried again.
const TRIES: u32 = 4;

/// Servers still work off what the last try has led to: the pool is in use until then.
const PAUSE: Duration = Duration::from_millis(500);

/// What is still there, because the server would not let it go.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Leftovers {
    pub jobs: u32,
    pub nodes: u32,
    pub pool: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}

impl Leftovers {
    pub fn is_empty(&self) -> bool {
        self.jobs == 0 && self.nodes == 0 && !self.pool
    }
}

pub(crate) async fn jobs(
    agent: &Agent,
    names: &Names,
    options: &ClusterOptions,
    count: u32,
    left: &mut Leftovers,
) {
    let requests = |number: u32| {
        let path = in_namespace(&format!("/v1/job/{}", names.job(number)), options);
        agent.request("DELETE", &format!("{path}&purge=true"), &[])
    };
    left.jobs = all(agent, (0..count).map(requests).collect(), &mut left.first_error).await;
}

pub(crate) async fn nodes(agent: &Agent, ids: &[base::Uuid], left: &mut Leftovers) {
    let requests = ids.iter().map(|id| agent.request("PUT", &format!("/v1/node/{id}/purge"), &[]));
    left.nodes = all(agent, requests.collect(), &mut left.first_error).await;
}

pub(crate) async fn pool(agent: &Agent, names: &Names, left: &mut Leftovers) {
    let request = agent.request("DELETE", &format!("/v1/node/pool/{}", names.pool), &[]);
    left.pool = all(agent, vec![request], &mut left.first_error).await > 0;
}

/// How many of the requests were not answered well in the end. What is not there is gone.
async fn all(agent: &Agent, mut requests: Vec<Vec<u8>>, first_error: &mut Option<String>) -> u32 {
    for _ in 0..TRIES {
        let (failed, error) = once(agent, requests).await;
        if failed.is_empty() {
            return 0;
        }
        if first_error.is_none() {
            *first_error = error;
        }
        requests = failed;
        tokio::time::sleep(PAUSE).await;
    }
    requests.len() as u32
}

/// Sends each once, and returns those that failed.
async fn once(agent: &Agent, requests: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Option<String>) {
    let requests = Arc::new(requests);
    let next = Arc::new(AtomicU32::new(0));
    let mut running = JoinSet::new();
    for _ in 0..AT_ONCE.min(requests.len()) {
        let (requests, next, mut http) = (Arc::clone(&requests), Arc::clone(&next), Http::new(agent.clone()));
        running.spawn(async move {
            let (mut failed, mut error) = (Vec::new(), None);
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                let why = match http.send(request).await {
                    Ok(answer) if matches!(answer.status, 200 | 404) => continue,
                    Ok(answer) => format!("{} {}", answer.status, answer.text()),
                    Err(error) => error.to_string(),
                };
                failed.push(request.clone());
                error.get_or_insert(why);
            }
            (failed, error)
        });
    }
    let (mut failed, mut error) = (Vec::new(), None);
    for (some, why) in running.join_all().await {
        failed.extend(some);
        error = error.or(why);
    }
    (failed, error)
}
