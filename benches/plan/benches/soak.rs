//! `cargo bench -p plan-bench --bench soak -- [DAYS]`: a cluster that runs for days, in compressed time.
//!
//! The real rules, folds, leader and worker, in one thread and virtual time, without a disk: 200 ready nodes, a
//! parameterized batch job that is dispatched a million times a day, each dispatch one allocation that runs for half a
//! minute and completes, and garbage collection as it is configured by default. A snapshot is published after each
//! command, as a server does. Prints for every quarter of a day what the cluster holds, the memory of the process, the
//! time of the evaluations and the longest pause of the leader for one command, both in time of the processor: another
//! process does not count.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Instant;

use base::{Duration, Rng, Time};
use control::leader::Leader;
use control::sequencer::Receipt;
use control::worker::{GROUP_MAX, Need, Outcome, TYPES, Worker};
use control::{BrokerSettings, HeartbeatSettings};
use model::command::{DispatchJob, Settlement};
use model::document::{Allocation, Job, TaskState, input};
use model::{Actor, AllocId, Command, JobKey, NodeId, NodeStatus};
use plan_bench::{batch, is_trial, node, node_id, register, resident};
use rules::{Context, decide};
use state::{Imager, State};

const NODES: usize = 200;
const A_DAY: u64 = 1_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);
const RUNS: Duration = Duration::from_secs(30);
const PARENT: &str = "nightly";

fn main() {
    let days = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1.0);
    // A trial is an hour, at a thousandth of the rate.
    let (a_day, length) = if is_trial() {
        (A_DAY / 1_000, Duration::from_secs(3_600))
    } else {
        (A_DAY, Duration((DAY.0 as f64 * days) as i64))
    };
    let mut cluster = Cluster::new();
    cluster.run(length, Duration(DAY.0 / a_day as i64));
}

/// What happens at some time.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Dispatch,
    Complete(NodeId, AllocId),
}

struct Cluster {
    state: State,
    published: Arc<State>,
    leader: Leader,
    worker: Worker,
    rng: Rng,
    now: Time,
    due: BinaryHeap<Reverse<(Time, Due)>>,
    figures: Figures,
}

/// Since the last line was printed.
#[derive(Default)]
struct Figures {
    evaluations: Vec<std::time::Duration>,
    longest: std::time::Duration,
    longest_of: &'static str,
    dispatched: u64,
}

impl Cluster {
    fn new() -> Cluster {
        let seconds = Duration::from_secs;
        let broker = BrokerSettings::default();
        // Nodes are not silent, and their heartbeats are not what is looked at here.
        let forever = seconds(1_000 * 24 * 3600);
        let heartbeats = HeartbeatSettings { min_ttl: forever, grace: forever, failover_ttl: forever };
        let leader = Leader::new(broker, heartbeats, Default::default(), Default::default(), Rng::new(1));
        let mut cluster = Cluster {
            state: State::default(),
            published: Arc::default(),
            leader,
            worker: Worker::new(Rng::new(2)),
            rng: Rng::new(3),
            now: Time::from_secs(1_000_000),
            due: BinaryHeap::new(),
            figures: Figures::default(),
        };
        for order in cluster.leader.lead(&cluster.state, cluster.now) {
            cluster.submit(&order.command);
        }
        for number in 0..NODES {
            cluster.submit(&Command::RegisterNode { document: Box::new(node(number)) });
            let claimed = NodeStatus::Ready;
            cluster.submit(&Command::UpdateNodeStatus { node: node_id(number), claimed });
        }
        cluster.submit(&register(parent()));
        cluster
    }

    fn run(&mut self, length: Duration, every: Duration) {
        let (begin, quarter) = (self.now, Duration(length.0.min(DAY.0) / 4));
        let mut next_line = begin.plus(quarter);
        println!("{}", Figures::HEADER);
        self.due.push(Reverse((self.now, Due::Dispatch)));
        while let Some(Reverse((time, due))) = self.due.pop() {
            if time > begin.plus(length) {
                break;
            }
            self.keep_duties_until(time);
            match due {
                Due::Dispatch => {
                    self.dispatch();
                    self.due.push(Reverse((time.plus(every), Due::Dispatch)));
                }
                Due::Complete(node, alloc) => self.report(node, alloc, "complete"),
            }
            self.schedule();
            if self.now >= next_line {
                next_line = next_line.plus(quarter);
                let hours = self.now.since(begin).0 / 3_600_000_000_000;
                std::mem::take(&mut self.figures).print(hours, &self.state);
            }
        }
        let whole = Instant::now();
        let image = Imager::default().image(&self.state);
        let bytes: usize = image.chunks.iter().filter_map(|chunk| Some(chunk.bytes.as_ref()?.len())).sum();
        println!(
            "image: {} chunks, {:.1} MB, made in {:.2?}",
            image.chunks.len(),
            mb(bytes),
            whole.elapsed()
        );
        assert_eq!(self.state.digest(), self.state.recomputed_digest());
    }

    /// What the leader has to do until then, each at its time.
    fn keep_duties_until(&mut self, time: Time) {
        while let Some((deadline, _)) = self.leader.next_deadline().filter(|(deadline, _)| *deadline <= time)
        {
            self.now = self.now.max(deadline);
            for order in self.leader.expire(&self.state, self.now) {
                self.submit(&order.command);
            }
        }
        self.now = self.now.max(time);
    }

    fn dispatch(&mut self) {
        self.figures.dispatched += 1;
        self.submit(&Command::DispatchJob(Box::new(DispatchJob {
            key: JobKey::new("default", PARENT),
            payload: Vec::new(),
            meta: Default::default(),
            id_prefix: String::new(),
            priority: 0,
            idempotency_token: String::new(),
        })));
    }

    fn report(&mut self, node: NodeId, alloc: AllocId, status: &str) {
        let task = TaskState { state: "dead".to_string(), ..TaskState::default() };
        let update = Allocation {
            id: alloc.to_string(),
            node_id: node.to_string(),
            client_status: status.to_string(),
            task_states: [("task".to_string(), task)].into_iter().collect(),
            ..Allocation::default()
        };
        self.submit(&Command::UpdateAllocs { node, updates: vec![update] });
    }

    /// Everything that can be scheduled now.
    fn schedule(&mut self) {
        let mut need = self.worker.begin();
        loop {
            let outcome = match need {
                Need::Dequeue => {
                    let deliveries = self.leader.dequeue(&self.state, &TYPES, GROUP_MAX, self.now);
                    if deliveries.is_empty() {
                        return;
                    }
                    Outcome::Dequeued(deliveries)
                }
                Need::State { .. } => Outcome::State(self.published.clone()),
                Need::Schedule(_) => {
                    let begin = processor_time();
                    need = self.worker.step(Outcome::Go, self.now);
                    self.figures.evaluations.push(processor_time() - begin);
                    continue;
                }
                Need::Touch(deliveries) => Outcome::Held(self.leader.touch_all(&deliveries, self.now)),
                Need::Submit(settlements) => {
                    let settled = settlements.into_iter().map(|settlement| Ok(self.settle(settlement)));
                    Outcome::Submitted(settled.collect())
                }
                Need::Release(release) => {
                    assert!(release.back.is_empty(), "nothing is given back here: {release:?}");
                    self.leader.release(&self.state, &release, self.now);
                    Outcome::Done
                }
            };
            need = self.worker.step(outcome, self.now);
        }
    }

    fn settle(&mut self, settlement: Settlement) -> Receipt {
        let placed = settlement.plan.placed.iter();
        let placed: Vec<(NodeId, AllocId)> =
            placed.flat_map(|placed| placed.nodes.iter().copied().zip(placed.ids.iter().copied())).collect();
        let receipt = self.submit(&Command::SettleEval(Box::new(settlement)));
        for (node, alloc) in placed {
            self.due.push(Reverse((self.now.plus(RUNS), Due::Complete(node, alloc))));
        }
        receipt
    }

    /// Decides, folds, publishes, and has the leader look.
    fn submit(&mut self, command: &Command) -> Receipt {
        let begin = processor_time();
        let index = self.state.index.next();
        let time = self.now.max(self.state.time);
        let mut ctx = Context::new(index, time, self.rng.next());
        let decision = decide(&self.state, &mut ctx, &Actor::ANONYMOUS, command)
            .unwrap_or_else(|rejection| panic!("{command:?} was rejected: {rejection}"));
        let reply = decision.reply();
        let wrote = !decision.events.is_empty();
        if wrote {
            let batch = batch(&self.state, time, command.kind(), decision.events);
            let delta = self.state.apply(&batch).expect("the batch was decided on this state");
            self.published = Arc::new(self.state.clone());
            self.leader.observe(&self.state, &delta, self.now);
        }
        let spent = processor_time() - begin;
        if spent > self.figures.longest {
            self.figures.longest = spent;
            self.figures.longest_of =
                model::CommandKind::from_number(command.kind()).map_or("?", |kind| kind.name());
        }
        Receipt { index: self.state.index, time, wrote, reply }
    }
}

impl Figures {
    const HEADER: &str =
        "hours  dispatched     jobs    evals   allocs  memory MB  evaluation p50  p99  longest command";

    fn print(mut self, hours: i64, state: &State) {
        self.evaluations.sort_unstable();
        let at = |share: f64| self.evaluations[((self.evaluations.len() - 1) as f64 * share) as usize];
        println!(
            "{hours:>5} {:>11} {:>8} {:>8} {:>8} {:>10.0} {:>15.1?} {:.1?} {:.2?} ({})",
            self.dispatched,
            state.jobs.len(),
            state.evals.len(),
            state.allocs.len(),
            mb(resident()),
            at(0.50),
            at(0.99),
            self.longest,
            self.longest_of,
        );
    }
}

fn parent() -> Job {
    let document = serde_json::json!({
        "ID": PARENT, "Name": PARENT, "Namespace": "default", "Type": "batch", "Priority": 50, "NodePool": "default",
        "Datacenters": ["*"],
        "ParameterizedJob": {"Payload": "optional"},
        "TaskGroups": [{
            "Name": "group", "Count": 1,
            "EphemeralDisk": {"SizeMB": 300},
            "Tasks": [{"Name": "task", "Driver": "mock_driver", "Resources": {"CPU": 100, "MemoryMB": 64}}],
        }],
    });
    input::from_value(document).expect("the document is well formed")
}

/// What this thread has used of the processor.
fn processor_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
