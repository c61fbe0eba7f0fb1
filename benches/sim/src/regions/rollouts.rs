//! Leaders ask other regions how far they are with jobs of several regions, as `server` does.

use std::collections::BTreeMap;

use base::Duration;
use federation::rollouts::{PAUSE, Watched, watched};
use model::command::RegionProgress;
use model::{Actor, DeploymentStatus, Request};

use super::link::Letter;
use super::options::NAMES;
use super::tasks::TaskId;
use super::world::{Event, Federation};
use crate::planted::Bug;

/// How long regions may take to answer, as in `server`.
const ANSWERS_MAX: Duration = Duration::from_secs(3);

#[derive(Default)]
pub(super) struct RolloutTask {
    turn: u64,
    watched: Vec<Watched>,
    /// What was heard so far of each watched deployment.
    heard: Vec<BTreeMap<String, Option<DeploymentStatus>>>,
}

impl RolloutTask {
    pub fn resting(turn: u64) -> RolloutTask {
        RolloutTask { turn, ..RolloutTask::default() }
    }
}

impl Federation {
    fn rollout_task(&mut self, by: TaskId, turn: u64) -> Option<&mut RolloutTask> {
        let tasks = &mut self.regions[by.region].tasks[by.server];
        let task = (tasks.life == Some(by.life)).then_some(&mut tasks.rollouts);
        task.filter(|task| task.turn == turn)
    }

    /// A pause is over: all are asked who have a part in what is not over here.
    pub fn look_at_rollouts(&mut self, by: TaskId, turn: u64) {
        let next = self.next_turn();
        let may_act = self.may_act(by.region, by.server);
        let state = self.regions[by.region].world.servers[by.server].published.clone();
        let Some(task) = self.rollout_task(by, turn) else { return };
        task.turn = next;
        task.watched = if may_act { watched(&state, NAMES[by.region]) } else { Vec::new() };
        task.heard = vec![BTreeMap::new(); task.watched.len()];
        let all = task.watched.clone();
        if all.is_empty() {
            self.rest_from_rollouts(by, next);
            return;
        }
        for (nth, watched) in all.into_iter().enumerate() {
            for peer in watched.peers {
                let Some(to) = NAMES.iter().position(|name| *name == peer) else { continue };
                let letter = Letter::Progress { by, turn: next, nth, query: watched.query.clone() };
                self.post(by.region, to, letter);
            }
        }
        self.after(ANSWERS_MAX, Event::TimedOut { by, turn: next });
    }

    pub fn has_progress(
        &mut self,
        by: TaskId,
        turn: u64,
        nth: usize,
        region: usize,
        status: Option<DeploymentStatus>,
    ) {
        let Some(task) = self.rollout_task(by, turn) else { return };
        let Some(heard) = task.heard.get_mut(nth) else { return };
        heard.insert(NAMES[region].to_string(), status);
        let all = task.watched.iter().zip(&task.heard).all(|(one, heard)| one.peers.len() == heard.len());
        if all {
            self.decide_on_rollouts(by, turn);
        }
    }

    /// All have answered, or nobody waits for them any longer.
    pub fn decide_on_rollouts(&mut self, by: TaskId, turn: u64) {
        let (next, bug) = (self.next_turn(), self.bug);
        let Some(task) = self.rollout_task(by, turn) else { return };
        task.turn = next;
        let (all, heard) = (std::mem::take(&mut task.watched), std::mem::take(&mut task.heard));
        for (watched, mut heard) in all.into_iter().zip(heard) {
            if bug == Some(Bug::SilentIsDone) {
                for peer in &watched.peers {
                    heard.entry(peer.clone()).or_insert(Some(DeploymentStatus::Successful));
                }
            }
            let known = heard.into_iter().filter_map(|(region, status)| {
                let status = status?;
                Some(RegionProgress { region, status })
            });
            let command = watched.observed(known.collect());
            // Nobody waits for the answer: what is not decided now is looked at again in a moment.
            self.submit(by, next, Request::unnamed(Actor::Server("rollouts".to_string()), command));
        }
        self.rest_from_rollouts(by, next);
    }

    fn rest_from_rollouts(&mut self, by: TaskId, turn: u64) {
        let pause = self.regions[by.region].world.servers[by.server].clock.takes(PAUSE);
        self.after(pause, Event::Rested { by, turn });
    }
}
