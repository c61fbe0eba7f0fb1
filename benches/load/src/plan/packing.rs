//! How well nodes are filled, looking at all of them and at a part.
//!
//! Seeded traces of jobs, each run through the scheduler twice: over all nodes, and sampled as Nomad does (its
//! `NodeLimitForFeasibilityChecks`, log2 of the nodes for services and two for batch). Jobs come until so much of the
//! cluster is asked for, then jobs end and others come as long as it takes to replace as many as there are, then nodes that
//! run anything are counted; in the end jobs come until one finds no place. Fewer nodes in use and a later failure are better.
//!
//! The trace: jobs of 1 to 20 allocations, a third of them batch, each of a CPU and a memory ask drawn from log-normal
//! distributions (medians 500 MHz and 512 MiB, sigma 1), within 50 to 16,000. Nodes have 32,000 MHz and 32,768 MiB.

use base::{Rng, Time};
use model::document::Job;
use model::{Command, JobKey, JobType, SchedulerRules};
use placement::Memory;
use serde::Serialize;
use serde_json::json;
use state::State;

use crate::world::{self, batch, racks, register, service, submit};

const LOADS: [f64; 3] = [0.25, 0.50, 0.75];

/// Means over the traces.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PackingReport {
    pub nodes: usize,
    pub traces: u64,
    pub sampled: bool,
    /// Nodes, at a quarter, half and three quarters of the load.
    pub in_use: [f64; 3],
    /// The load at which a job first found no node for all of it: the mean, the least, the best.
    pub failure: [f64; 3],
}

/// Runs the traces that begin with this seed.
pub(super) fn measure(nodes: usize, sampled: bool, traces: u64, seed: u64) -> PackingReport {
    let runs: Vec<Run> = (0..traces).map(|trace| Run::of(nodes, sampled, seed + trace)).collect();
    let mean = |value: &dyn Fn(&Run) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    let failures = || runs.iter().map(|run| run.failure);
    PackingReport {
        nodes,
        traces,
        sampled,
        in_use: [0, 1, 2].map(|at| mean(&|run| run.in_use[at] as f64)),
        failure: [mean(&|run| run.failure), failures().fold(1.0, f64::min), failures().fold(0.0, f64::max)],
    }
}

/// What came of one trace.
struct Run {
    /// Nodes, at each load.
    in_use: [usize; 3],
    /// The load at which a job first found no place for all of it.
    failure: f64,
}

impl Run {
    fn of(nodes: usize, sampled: bool, seed: u64) -> Run {
        let mut trace = Trace::new(nodes, sampled, seed);
        let in_use = LOADS.map(|load| {
            trace.fill(load);
            trace.churn();
            trace.in_use()
        });
        Run { in_use, failure: trace.fill_until_failure() }
    }
}

struct Trace {
    state: State,
    memory: Memory,
    chance: Rng,
    /// Jobs that run.
    jobs: Vec<String>,
    came: usize,
}

impl Trace {
    fn new(nodes: usize, sampled: bool, seed: u64) -> Trace {
        let mut state = racks(nodes, 25);
        submit(&mut state, &Command::SetScheduler { rules: SchedulerRules::default(), only_at: None });
        submit(&mut state, &Command::SetSampling { sampled });
        Trace { state, memory: Memory::default(), chance: Rng::new(seed), jobs: Vec::new(), came: 0 }
    }

    /// A standard normal, as the sum of twelve draws.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.chance.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0
    }

    fn ask(&mut self, median: f64) -> i64 {
        ((median * self.normal().exp()) as i64).clamp(50, 16_000)
    }

    fn draw(&mut self) -> Job {
        let (cpu, memory) = (self.ask(500.0), self.ask(512.0));
        let (count, is_batch) = (1 + self.chance.below(20) as usize, self.chance.below(3) == 0);
        self.came += 1;
        let resources = json!({"CPU": cpu, "MemoryMB": memory});
        let tasks = json!([{"Name": "task", "Driver": "mock_driver", "Resources": resources}]);
        let with = json!({"Tasks": tasks, "EphemeralDisk": {"SizeMB": 10}});
        let kind = if is_batch { JobType::Batch } else { JobType::Service };
        let job = service(&format!("job-{}", self.came), count, with);
        Job { kind: Some(kind.to_string()), ..job }
    }

    /// Another job comes. False if some of it finds no place.
    fn come(&mut self) -> bool {
        let job = self.draw();
        self.jobs.push(job.id.clone().expect("jobs have ids"));
        let (decision, _) = submit(&mut self.state, &register(job));
        self.settle(decision.reply().evals[0])
    }

    fn settle(&mut self, eval: model::EvalId) -> bool {
        let eval = self.state.evals.lookup(eval).expect("the evaluation was just created");
        let now = Time(self.state.time.0 + 1);
        let outcome = placement::schedule_with(&mut self.memory, &self.state, eval, self.chance.next(), now);
        let blocked = outcome.settlement.end.as_ref().is_some_and(|end| end.blocked.is_some());
        submit(&mut self.state, &Command::SettleEval(Box::new(outcome.settlement)));
        !blocked
    }

    /// Some job ends, and its allocations with it.
    fn go(&mut self) {
        let at = self.chance.below(self.jobs.len() as u64) as usize;
        let key = JobKey::new("default", &self.jobs.swap_remove(at));
        let stop = Command::DeregisterJob {
            key: key.clone(),
            purge: false,
            eval_priority: None,
            no_shutdown_delay: false,
        };
        let (decision, _) = submit(&mut self.state, &stop);
        self.settle(decision.reply().evals[0]);
        let rows = &self.state.jobs.lookup(&key).expect("it was registered").allocs;
        let ended = rows.iter().map(|row| world::ended(self.state.allocs.get(*row))).collect();
        let batch = batch(&self.state, self.state.time, 16, ended);
        self.state.apply(&batch).expect("the batch was decided on this state");
    }

    fn load(&self) -> f64 {
        let (mut used, mut all) = ([0.0; 2], [0.0; 2]);
        for row in self.state.nodes.rows() {
            let hot = self.state.nodes.hot(row);
            for (at, (part, whole)) in
                [(hot.used.cpu_mhz, hot.capacity.cpu_mhz), (hot.used.memory_mib, hot.capacity.memory_mib)]
                    .into_iter()
                    .enumerate()
            {
                used[at] += f64::from(part);
                all[at] += f64::from(whole);
            }
        }
        (used[0] / all[0]).max(used[1] / all[1])
    }

    fn fill(&mut self, load: f64) {
        while self.load() < load {
            self.come();
        }
    }

    fn churn(&mut self) {
        let load = self.load();
        for _ in 0..self.jobs.len() {
            self.go();
            self.fill(load.min(0.95 * load + 0.01));
        }
    }

    fn in_use(&self) -> usize {
        self.state.nodes.rows().filter(|row| self.state.nodes.hot(*row).allocs > 0).count()
    }

    fn fill_until_failure(&mut self) -> f64 {
        while self.come() {}
        self.load()
    }
}
