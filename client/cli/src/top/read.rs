//! Asks the agent for what is shown, and waits until it changes.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use api::{AgentMember, HistoryLine, JobListStub, NodeListStub};
use base::Index;
use model::document::{AllocationListStub, Evaluation};
use sdk::{Client, Error, Query};

use super::model::{
    Cell, Cluster, DETAIL_LINES_MAX, Detail, Moment, ROWS_MAX, Request, Row, Scope, Share, Snapshot, View,
};
use crate::call::{Call, Failure};
use crate::changes::{self, Stamps};
use crate::layout;
use crate::output::OutputStyle;

/// Most allocations that are added up; the newest count.
const SUMMED_MAX: usize = 5_000;

/// Batches before the moment whose facts are listed, and most facts of them: the newest stay.
const EVENT_BATCHES: u64 = 100;
const EVENT_PAGE: usize = 1_000;

/// Every namespace that the token may read, unless one is given.
const ANY_NAMESPACE: &str = "*";

/// Reads as the user of a command does.
pub(crate) struct Reader {
    call: Call,
    style: OutputStyle,
    live: Client,
    namespace: String,
}

/// Rows, and how new their list was.
struct Listed<T> {
    values: Vec<T>,
    is_cut: bool,
    index: Index,
    refused: Option<String>,
}

impl Reader {
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn new(call: Call) -> Result<Reader, Failure> {
        let given = call.namespace();
        let namespace = if given.is_empty() { ANY_NAMESPACE } else { given }.to_string();
        let live = call.client_at(&namespace, "")?;
        // Texts that are read are printed in the colours of the screen.
        let style = OutputStyle { colour: false, ..call.style() };
        Ok(Reader { live, namespace, style, call })
    }

    /// # Errors
    /// The agent cannot be reached, or refuses the moment or the object.
    pub(crate) async fn read(&self, request: Request) -> Result<Snapshot, Error> {
        let (client, index) = self.at(&request.moment).await?;
        let is_live = request.moment == Moment::Live;
        let nodes = list(ROWS_MAX, |query| client.nodes(query.with("resources", "true"))).await?;
        let sums =
            |query: Query| client.allocations(query.with("resources", "true").with("task_states", "false"));
        let allocs = list(SUMMED_MAX, sums).await?;
        let most = |view| if request.view == view { ROWS_MAX } else { 1 };
        let jobs = list(most(View::Jobs), |query| client.jobs(query)).await?;
        let evals = list(most(View::Evals), |query| client.evaluations(query)).await?;
        let deployments = list(1, |query| client.deployments(query)).await?;
        let stamps = [nodes.index, jobs.index, allocs.index, evals.index, deployments.index];
        let mut cluster = sum(&nodes, &allocs);
        if is_live {
            self.servers(&mut cluster).await?;
        }
        let detail = match &request.detail {
            None => Vec::new(),
            Some(detail) => lines(&self.detail(&client, detail).await?),
        };
        let (rows, is_cut, refused) = match request.view {
            View::Nodes => {
                let usage = usage(&allocs.values);
                made(&nodes, |node| node_row(node, &usage))
            }
            View::Jobs => made(&jobs, job_row),
            View::Evals => made(&evals, eval_row),
            View::Events => self.events(&client, index).await?,
            View::Allocs => match &request.scope {
                None => made(&allocs, alloc_row),
                Some(scope) => made(&scoped(&client, scope).await?, alloc_row),
            },
        };
        let time = if is_live { None } else { written(&client, index).await };
        Ok(Snapshot { request, index, time, cluster, rows, is_cut, refused, detail, stamps })
    }

    /// A client of the moment, and its index.
    async fn at(&self, moment: &Moment) -> Result<(Client, Index), Error> {
        let client = |as_of: &str| {
            // What is wrong with the address or the certificates was said when the live one was made.
            let made = self.call.client_at(&self.namespace, as_of);
            made.map_err(|_| Error::Status { code: 400, text: format!("\"{as_of}\" is no moment") })
        };
        match moment {
            // A moment, so that the index is that of the whole state and not of one table.
            Moment::Live => Ok((self.live.clone(), client("-0s")?.moment().await?)),
            Moment::At(index) => Ok((client(&index.to_string())?, *index)),
            Moment::Asked(asked) => {
                let index = client(asked)?.moment().await?;
                Ok((client(&index.to_string())?, index))
            }
        }
    }

    /// Returns when something may have changed since `stamps`.
    ///
    /// # Errors
    /// The agent cannot be reached.
    pub(super) async fn changed(&self, stamps: Stamps) -> Result<(), Error> {
        changes::changed(&self.live, stamps).await
    }

    /// Who leads, and which servers there are.
    async fn servers(&self, cluster: &mut Cluster) -> Result<(), Error> {
        let answer = match self.live.members().await {
            Err(error) if error.status().is_some() => return Ok(()),
            members => members?,
        };
        let is_here = |member: &&AgentMember| {
            member.tags.get("region").is_none_or(|region| *region == answer.server_region)
        };
        let members: Vec<&AgentMember> = answer.members.iter().filter(is_here).collect();
        let alive = members.iter().filter(|member| member.status == "alive").count();
        cluster.servers = Some((alive, members.len()));
        let address = self.live.leader().await.unwrap_or_default();
        let leader = members.into_iter().find(|member| layout::server::is_leader(member, &address));
        cluster.leader = leader.map(|leader| leader.name.clone());
        Ok(())
    }

    async fn detail(&self, client: &Client, detail: &Detail) -> Result<String, Error> {
        match detail {
            Detail::Alloc { namespace, id } => {
                let client = client.in_namespace(namespace);
                let why = layout::why::alloc(&self.style, &client.explain_allocation(id).await?);
                let history = client.allocation_history(id).await?.value;
                let history = layout::history::table(&self.style, &history);
                Ok(why + &self.style.section("History", &history))
            }
            Detail::Eval { namespace, id } => {
                let why = client.in_namespace(namespace).explain_evaluation(id).await?;
                Ok(layout::why::eval(&self.style, &why))
            }
        }
    }

    /// The facts of the last batches, which only a management token may read.
    async fn events(&self, client: &Client, until: Index) -> Result<(Vec<Row>, bool, Option<String>), Error> {
        let first = until.0.saturating_sub(EVENT_BATCHES);
        let mut query = Query::new().with("since", first).with("per_page", EVENT_PAGE);
        let (mut rows, mut is_cut) = (VecDeque::new(), first > 0);
        loop {
            let page = match client.log(query).await {
                Err(error) if error.status() == Some(403) => {
                    return Ok((Vec::new(), false, Some(error.to_string())));
                }
                page => page?,
            };
            is_cut |= page.value.cut_short;
            rows.extend(page.value.lines.0.iter().map(|line| event_row(&self.style, line)));
            let left_out = rows.len().saturating_sub(ROWS_MAX);
            is_cut |= left_out > 0;
            rows.drain(..left_out);
            let Some(token) = page.next_token else { return Ok((rows.into(), is_cut, None)) };
            query = Query::new().with("next_token", token).with("per_page", EVENT_PAGE);
        }
    }
}

/// One page of a list, the newest first. What the token has no right to is an answer too.
async fn list<T, F: Future<Output = Result<sdk::Answer<Vec<T>>, Error>>>(
    most: usize,
    ask: impl FnOnce(Query) -> F,
) -> Result<Listed<T>, Error> {
    match ask(Query::new().with("per_page", most).with("reverse", "true")).await {
        Ok(answer) => Ok(Listed {
            is_cut: answer.next_token.is_some(),
            values: answer.value,
            index: answer.index,
            refused: None,
        }),
        Err(error) if error.status() == Some(403) => {
            let refused = Some(error.to_string());
            Ok(Listed { values: Vec::new(), is_cut: false, index: Index::ZERO, refused })
        }
        Err(error) => Err(error),
    }
}

async fn scoped(client: &Client, scope: &Scope) -> Result<Listed<AllocationListStub>, Error> {
    let ask = |query: Query| {
        let query = query.with("filter", scope.filter()).with("resources", "true");
        client.allocations(match scope {
            Scope::Job { namespace, .. } => query.namespace(namespace),
            Scope::Node { .. } => query,
        })
    };
    list(ROWS_MAX, ask).await
}

/// When the batch of this index was written, if the token may know.
async fn written(client: &Client, index: Index) -> Option<i64> {
    let facts = client.log(Query::new().with("since", index).with("per_page", 1)).await.ok()?;
    facts.value.lines.0.first().filter(|line| line.index == index.0).map(|line| line.time.time().0)
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().take(DETAIL_LINES_MAX + 1).map(str::to_string).collect();
    if lines.len() > DETAIL_LINES_MAX {
        lines[DETAIL_LINES_MAX] = format!("only {DETAIL_LINES_MAX} lines are shown");
    }
    lines
}

fn made<T>(listed: &Listed<T>, row: impl Fn(&T) -> Row) -> (Vec<Row>, bool, Option<String>) {
    let rows = listed.values.iter().take(ROWS_MAX).map(row).collect();
    (rows, listed.is_cut || listed.values.len() > ROWS_MAX, listed.refused.clone())
}

/// Processors in MHz and memory in MiB that an allocation has.
fn size(alloc: &AllocationListStub) -> (i64, i64) {
    let Some(resources) = &alloc.allocated_resources else { return (0, 0) };
    let tasks = || resources.tasks.values();
    (tasks().map(|task| task.cpu.cpu_shares).sum(), tasks().map(|task| task.memory.memory_mb).sum())
}

/// What a node has for allocations: what is reserved is not theirs.
fn capacity(node: &NodeListStub) -> (i64, i64) {
    let total = node.node_resources.clone().unwrap_or_default();
    let reserved = node.reserved_resources.clone().unwrap_or_default();
    let left = |total: i64, reserved: u64| total - i64::try_from(reserved).unwrap_or(i64::MAX);
    (
        left(total.cpu.cpu_shares, reserved.cpu.cpu_shares),
        left(total.memory.memory_mb, reserved.memory.memory_mb),
    )
}

/// Allocations that hold their resources.
fn holding(allocs: &[AllocationListStub]) -> impl Iterator<Item = &AllocationListStub> {
    allocs.iter().filter(|alloc| !layout::alloc::is_over(&alloc.client_status))
}

fn sum(nodes: &Listed<NodeListStub>, allocs: &Listed<AllocationListStub>) -> Cluster {
    let mut by_status = BTreeMap::new();
    let mut total = (0, 0);
    let mut known = HashSet::new();
    for node in &nodes.values {
        *by_status.entry(node.status.clone()).or_insert(0) += 1;
        // What a node that is down had is not there to be used.
        if node.status != "down" {
            let (cpu, memory) = capacity(node);
            total = (total.0 + cpu, total.1 + memory);
            known.insert(node.id.as_str());
        }
    }
    let mut used = (0, 0);
    for alloc in holding(&allocs.values).filter(|alloc| known.contains(alloc.node_id.as_str())) {
        let (cpu, memory) = size(alloc);
        used = (used.0 + cpu, used.1 + memory);
    }
    Cluster {
        leader: None,
        servers: None,
        nodes: by_status,
        cpu_mhz: Share { used: used.0, total: total.0 },
        memory_mib: Share { used: used.1, total: total.1 },
        is_cut: nodes.is_cut || allocs.is_cut,
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_string())
}

/// Allocations of a node that hold their resources, and their MHz and MiB.
type Usage<'a> = HashMap<&'a str, (i64, i64, i64)>;

fn usage(allocs: &[AllocationListStub]) -> Usage<'_> {
    let mut usage = Usage::new();
    for alloc in holding(allocs) {
        let (cpu, memory) = size(alloc);
        let node = usage.entry(alloc.node_id.as_str()).or_default();
        *node = (node.0 + 1, node.1 + cpu, node.2 + memory);
    }
    usage
}

fn node_row(node: &NodeListStub, usage: &Usage<'_>) -> Row {
    let (cpu, memory) = capacity(node);
    let (count, used_cpu, used_memory) = usage.get(node.id.as_str()).copied().unwrap_or_default();
    let eligibility = if node.drain { "draining" } else { &node.scheduling_eligibility };
    let cells = vec![
        text(short(&node.id)),
        text(&node.name),
        text(&node.node_pool),
        text(&node.datacenter),
        Cell::Status(node.status.clone()),
        Cell::Status(eligibility.to_string()),
        Cell::Count(count),
        Cell::Share(Share { used: used_cpu, total: cpu }),
        Cell::Share(Share { used: used_memory, total: memory }),
    ];
    Row { key: node.id.clone(), namespace: String::new(), cells }
}

fn job_row(job: &JobListStub) -> Row {
    let [running, waiting, failed] = layout::job::counts(job);
    let status = if job.stop { "stopped" } else { &job.status };
    let cells = vec![
        text(&job.id),
        text(&job.namespace),
        text(&layout::job::kind(&job.kind, job.periodic, job.parameterized_job)),
        Cell::Count(job.priority),
        Cell::Status(status.to_string()),
        Cell::Count(running),
        Cell::Count(waiting),
        Cell::Count(failed),
        Cell::Ago(job.submit_time),
    ];
    Row { key: format!("{}/{}", job.namespace, job.id), namespace: job.namespace.clone(), cells }
}

fn alloc_row(alloc: &AllocationListStub) -> Row {
    let (cpu, memory) = size(alloc);
    let version = i64::try_from(alloc.job_version).unwrap_or(i64::MAX);
    let cells = vec![
        text(short(&alloc.id)),
        text(&alloc.name),
        text(&alloc.namespace),
        text(&alloc.node_name),
        Cell::Count(version),
        text(&alloc.desired_status),
        Cell::Status(alloc.client_status.clone()),
        Cell::Megahertz(cpu),
        Cell::Mebibytes(memory),
        Cell::Ago(alloc.create_time),
        Cell::Ago(alloc.modify_time),
    ];
    Row { key: alloc.id.clone(), namespace: alloc.namespace.clone(), cells }
}

fn eval_row(eval: &Evaluation) -> Row {
    let cells = vec![
        text(short(&eval.id)),
        text(&eval.job_id),
        text(&eval.namespace),
        text(&eval.kind),
        text(&eval.triggered_by),
        Cell::Count(eval.priority),
        Cell::Status(eval.status.clone()),
        Cell::Ago(eval.modify_time),
    ];
    Row { key: eval.id.clone(), namespace: eval.namespace.clone(), cells }
}

fn event_row(style: &OutputStyle, line: &HistoryLine) -> Row {
    let short = |given: &str| Cell::Text(layout::history::short_ids(style, given));
    let cells = vec![
        Cell::Count(i64::try_from(line.index).unwrap_or(i64::MAX)),
        Cell::Time(line.time.time().0),
        short(&line.object),
        text(&line.event),
        short(&layout::history::who(&line.actor, line.requester.as_ref())),
        short(&line.description),
    ];
    // Rows with the same first cell stay in the order of their batch.
    Row { key: format!("{:020}.{:010}", line.index, line.ordinal), namespace: String::new(), cells }
}

/// An id as lists show it.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use model::document::{
        AllocatedCpuResources, AllocatedMemoryResources, AllocatedResources, AllocatedTaskResources,
        NodeResources,
    };

    use super::*;

    fn node(id: &str, status: &str) -> NodeListStub {
        let mut resources = NodeResources::default();
        (resources.cpu.cpu_shares, resources.memory.memory_mb) = (1000, 2048);
        let mut reserved = model::document::NodeReservedResources::default();
        (reserved.cpu.cpu_shares, reserved.memory.memory_mb) = (100, 48);
        NodeListStub {
            id: id.into(),
            status: status.into(),
            node_resources: Some(resources),
            reserved_resources: Some(reserved),
            ..NodeListStub::default()
        }
    }

    fn alloc(node: &str, status: &str) -> AllocationListStub {
        let task = AllocatedTaskResources {
            cpu: AllocatedCpuResources { cpu_shares: 300, ..AllocatedCpuResources::default() },
            memory: AllocatedMemoryResources { memory_mb: 500, ..AllocatedMemoryResources::default() },
            ..AllocatedTaskResources::default()
        };
        let resources = AllocatedResources {
            tasks: [("t".to_string(), task)].into_iter().collect(),
            ..AllocatedResources::default()
        };
        AllocationListStub {
            node_id: node.into(),
            client_status: status.into(),
            allocated_resources: Some(resources),
            ..AllocationListStub::default()
        }
    }

    fn listed<T>(values: Vec<T>, is_cut: bool) -> Listed<T> {
        Listed { values, is_cut, index: Index(1), refused: None }
    }

    #[test]
    fn what_is_allocated_is_of_nodes_that_are_there_and_of_what_is_not_over() {
        let nodes = listed(vec![node("a", "ready"), node("b", "down")], false);
        let allocs = vec![alloc("a", "running"), alloc("a", "complete"), alloc("b", "unknown")];
        let cluster = sum(&nodes, &listed(allocs.clone(), true));
        assert_eq!(cluster.cpu_mhz, Share { used: 300, total: 900 }, "without what is reserved");
        assert_eq!(cluster.memory_mib, Share { used: 500, total: 2000 });
        assert_eq!(cluster.nodes, [("down".to_string(), 1), ("ready".to_string(), 1)].into());
        assert!(cluster.is_cut);
        let row = node_row(&nodes.values[0], &usage(&allocs));
        assert_eq!(row.cells[6], Cell::Count(1));
        assert_eq!(row.cells[7], Cell::Share(Share { used: 300, total: 900 }));
    }

    #[test]
    fn rows_and_lines_are_bounded_and_what_is_left_out_is_known() {
        let nodes = listed(vec![node("a", "ready"); ROWS_MAX + 1], false);
        let (rows, is_cut, _) = made(&nodes, |node| node_row(node, &Usage::new()));
        assert_eq!((rows.len(), is_cut), (ROWS_MAX, true));
        let text = lines(&"x\n".repeat(DETAIL_LINES_MAX + 5));
        assert_eq!(text.len(), DETAIL_LINES_MAX + 1);
        assert_eq!(text.last().map(String::as_str), Some("only 2000 lines are shown"));
        assert_eq!(lines(&"x\n".repeat(DETAIL_LINES_MAX)).len(), DETAIL_LINES_MAX);
    }
}
