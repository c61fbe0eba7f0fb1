//! A job of several regions: somebody registers its parts in one region after another, as `http-gateway` does, or stops them.

use base::Duration;
use control::{Receipt, SubmitError};
use federation::rollouts::RolloutQuery;
use model::command::RegisterJob;
use model::document::{Job, input};
use model::{Command, JobKey, Rejection};
use serde_json::{Value, json};

use super::options::NAMES;
use super::world::{Event, Federation};
use crate::fact::Violation;
use crate::model::world::World;
use crate::options::pick;

const ID: &str = "spread";

/// What is asked of all regions of the job.
#[derive(Clone, Debug)]
enum Asked {
    Register(Box<Job>),
    Stop,
}

#[derive(Default)]
pub(super) struct Spread {
    written: u64,
    /// What was asked last, and of which regions.
    asked: Option<(Asked, Vec<usize>)>,
    /// So many of them have done it.
    done: usize,
}

impl Spread {
    /// Nothing that was asked of several regions was done in some of them only.
    pub fn is_whole(&self) -> bool {
        self.asked.as_ref().is_none_or(|(_, regions)| self.done == regions.len())
    }
}

impl Federation {
    pub fn somebody_spreads(&mut self) -> Result<(), Violation> {
        if self.calm {
            return Ok(());
        }
        if let Some(every) = self.options.work.spread {
            let span = World::up_to(&mut self.work, Duration(2 * every.0));
            self.after(span, Event::Spread);
        }
        if !self.travellers[self.operator()].is_free() {
            return Ok(());
        }
        // Somebody who was not answered asks again, or lets it be and wants something else.
        if self.spread.is_whole() || self.work.below(2) == 0 {
            let stops = self.spread.asked.is_some() && self.work.below(5) == 0;
            let asked = if stops { Asked::Stop } else { Asked::Register(Box::new(self.draw_spread())) };
            let regions = self.regions_of(&asked);
            self.spread.asked = Some((asked, regions));
        }
        self.spread.done = 0;
        self.ask_next_region()
    }

    /// In the calm what was left half done is done.
    pub fn finish_spread(&mut self) -> Result<(), Violation> {
        if self.spread.is_whole() || !self.travellers[self.operator()].is_free() {
            return Ok(());
        }
        self.spread.done = 0;
        self.ask_next_region()
    }

    fn regions_of(&self, asked: &Asked) -> Vec<usize> {
        match asked {
            Asked::Stop => (0..self.regions.len()).collect(),
            Asked::Register(job) => {
                let named = job.multiregion.iter().flat_map(|block| block.regions.iter());
                named.filter_map(|one| NAMES.iter().position(|name| *name == one.name)).collect()
            }
        }
    }

    fn ask_next_region(&mut self) -> Result<(), Violation> {
        let Some((asked, regions)) = self.spread.asked.clone() else { return Ok(()) };
        let Some(to) = regions.get(self.spread.done).copied() else { return Ok(()) };
        let command = match asked {
            Asked::Stop => Command::DeregisterJob {
                key: key(),
                purge: false,
                eval_priority: None,
                no_shutdown_delay: false,
            },
            Asked::Register(job) => {
                let part = jobspec::in_region(&job, NAMES[to]).expect("the job names the region");
                Command::RegisterJob(Box::new(RegisterJob {
                    job: part,
                    submission: None,
                    enforce_index: None,
                    eval_priority: None,
                    preserve_counts: false,
                    preserve_resources: false,
                }))
            }
        };
        self.ask(self.operator(), to, command)
    }

    /// One region has answered. One that does not do it keeps those after it from it.
    pub fn spread_goes_on(&mut self, outcome: &Result<Receipt, SubmitError>) -> Result<(), Violation> {
        let is_done = matches!(outcome, Ok(_) | Err(SubmitError::Rejected(Rejection::JobUnknown(_))));
        if !is_done {
            return Ok(());
        }
        self.spread.done += 1;
        self.ask_next_region()
    }

    fn draw_spread(&mut self) -> Job {
        self.spread.written += 1;
        let rng = &mut self.work;
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        let first = rng.below(order.len() as u64) as usize;
        order.rotate_left(first);
        let regions: Vec<Value> =
            order.iter().map(|at| json!({"Name": NAMES[*at], "Count": 1 + rng.below(2)})).collect();
        let canaries = rng.below(2);
        let document = json!({
            "ID": ID, "Name": ID, "Namespace": "default", "Type": "service", "Priority": 50,
            "Datacenters": ["*"], "NodePool": "default", "Meta": {"version": self.spread.written.to_string()},
            "Multiregion": {
                "Strategy": {
                    "MaxParallel": rng.below(3), "OnFailure": pick(rng, &["", "fail_all", "fail_local"]),
                },
                "Regions": regions,
            },
            "TaskGroups": [{
                "Name": "g0", "Count": 0,
                "RestartPolicy": {"Attempts": 1, "Interval": "60s", "Delay": "1s", "Mode": "fail"},
                "ReschedulePolicy": {"Unlimited": true, "Delay": "5s", "DelayFunction": "constant"},
                "Update": {
                    "MaxParallel": 1, "Canary": canaries, "AutoPromote": canaries > 0,
                    "AutoRevert": rng.below(2) == 0, "HealthCheck": "task_states", "MinHealthyTime": "2s",
                    "HealthyDeadline": "30s", "ProgressDeadline": "60s",
                },
                "Tasks": [{"Name": "t", "Driver": "none", "Resources": {"CPU": 20, "MemoryMB": 16}}],
            }],
        });
        let mut job: Job = input::from_value(document).expect("the job is well formed");
        let rollout = format!("rollout-{}", self.spread.written);
        self.orders.know(RolloutQuery { key: key(), rollout: rollout.clone() });
        if let Some(block) = &mut job.multiregion {
            block.rollout = rollout;
        }
        job
    }
}

fn key() -> JobKey {
    JobKey::new("default", ID)
}
