//! A node that fetches its allocations and reports that they run, as a node agent does: it waits for news, fetches what is
//! new, and reports at most every 200 ms.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until};
use wire::RpcError;
use wire::messages::{
    AllocsGetRequest, GenericResponse, NodeSpecificRequest, QueryOptions, WriteRequest, method,
};

use super::node::credentials;
use super::{Node, Shared};

/// As node agents do.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// How long the server may hold a call for news.
const HELD_MAX: Duration = Duration::from_secs(30);

/// Allocations fetched in one call.
const FETCH_MAX: usize = 128;

/// After a call that failed, or brought nothing.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Default, Deserialize)]
#[serde(default)]
struct News {
    #[serde(rename = "Allocs")]
    allocs: HashMap<String, u64>,
    #[serde(rename = "Index")]
    index: u64,
}

/// Allocations, of which only this matters.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fetched {
    #[serde(rename = "Allocs")]
    allocs: Vec<Placed>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Placed {
    #[serde(rename = "ID")]
    id: String,
    desired_status: String,
    client_status: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Reports {
    alloc: Vec<Report>,
    #[serde(flatten)]
    write: WriteRequest,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "NodeID")]
    node_id: String,
    client_status: &'static str,
    task_states: HashMap<&'static str, TaskState>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TaskState {
    state: &'static str,
}

/// Runs until it is dropped.
pub(super) async fn run(shared: &Shared, node: &Node) {
    let mut live = Live { shared, node, known: HashMap::new(), index: 0, pending: Vec::new() };
    let mut report_at = Instant::now();
    let mut news = Box::pin(ask(shared, node, 0));
    loop {
        tokio::select! {
            answer = &mut news => {
                match answer {
                    Ok(news) => live.take(news).await,
                    Err(error) => live.failed(error).await,
                }
                news = Box::pin(ask(shared, node, live.index));
            }
            () = sleep_until(report_at), if !live.pending.is_empty() => {
                live.report().await;
                report_at = Instant::now() + REPORT_EVERY;
            }
        }
    }
}

/// Asks for the node's allocations, once something is newer than this.
async fn ask(shared: &Shared, node: &Node, index: u64) -> Result<News, RpcError> {
    let request = NodeSpecificRequest {
        node_id: node.id.clone(),
        secret_id: node.secret.clone(),
        query: QueryOptions {
            min_query_index: index,
            max_query_time: base::Duration(HELD_MAX.as_nanos() as i64).into(),
            allow_stale: index > 0,
            ..query(shared, node)
        },
    };
    call(shared, node, method::NODE_GET_CLIENT_ALLOCS, &request).await
}

async fn call<T: DeserializeOwned>(
    shared: &Shared,
    node: &Node,
    method: &str,
    request: &impl Serialize,
) -> Result<T, RpcError> {
    shared.counts.calls.fetch_add(1, Ordering::Relaxed);
    shared.call(node.number, method, request).await
}

fn query(shared: &Shared, node: &Node) -> QueryOptions {
    QueryOptions {
        region: shared.region.clone(),
        auth_token: node.credential.token().to_string(),
        ..QueryOptions::default()
    }
}

struct Live<'a> {
    shared: &'a Shared,
    node: &'a Node,
    /// Allocations, with the index of the change that was fetched.
    known: HashMap<String, u64>,
    index: u64,
    /// To be reported.
    pending: Vec<(String, &'static str)>,
}

impl Live<'_> {
    /// Fetches what is new, and has it reported.
    async fn take(&mut self, news: News) {
        if news.index <= self.index {
            return sleep(PAUSE).await;
        }
        self.known.retain(|id, _| news.allocs.contains_key(id));
        let is_new = |(id, index): &(&String, &u64)| self.known.get(*id) != Some(*index);
        let wanted: Vec<(String, u64)> =
            news.allocs.iter().filter(is_new).map(|(id, index)| (id.clone(), *index)).collect();
        for some in wanted.chunks(FETCH_MAX) {
            let ids: Vec<String> = some.iter().map(|(id, _)| id.clone()).collect();
            let request = AllocsGetRequest { alloc_ids: ids.into(), query: query(self.shared, self.node) };
            let fetched: Result<Fetched, _> =
                call(self.shared, self.node, method::ALLOC_GET_ALLOCS, &request).await;
            let fetched = match fetched {
                Ok(fetched) => fetched,
                Err(error) => return self.failed(error).await,
            };
            self.known.extend(some.iter().cloned());
            for alloc in fetched.allocs {
                let status = if alloc.desired_status == "run" { "running" } else { "complete" };
                if alloc.client_status != status {
                    self.pending.push((alloc.id, status));
                }
            }
        }
        self.index = news.index;
    }

    /// Reports all that is pending. What is not accepted is reported again.
    async fn report(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let report = |(id, status): &'_ (String, &'static str)| Report {
            id: id.clone(),
            node_id: self.node.id.clone(),
            client_status: status,
            task_states: [(
                "task",
                TaskState { state: if *status == "running" { "running" } else { "dead" } },
            )]
            .into(),
        };
        let alloc = pending.iter().map(report).collect();
        let request =
            Reports { alloc, write: credentials(&self.node.credential.token(), &self.shared.region) };
        let sent: Result<GenericResponse, _> =
            call(self.shared, self.node, method::NODE_UPDATE_ALLOC, &request).await;
        if let Err(error) = sent {
            self.pending = pending;
            self.failed(error).await;
        }
    }

    async fn failed(&self, error: RpcError) {
        self.shared.failed(&self.shared.counts.call_errors, &error);
        sleep(PAUSE).await;
    }
}
