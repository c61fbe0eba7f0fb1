//! After the storm: first each region by itself, cut off from all others; then together again.

use std::collections::BTreeSet;

use base::{Duration, Time};
use federation::rollouts::{RolloutQuery, progress};
use model::document::Multiregion;
use model::{Command, DeploymentId, DeploymentStatus, JobKey};
use state::State;
use state::deployment::Deployment;
use state::job::JobState;

use super::equal::difference;
use super::options::NAMES;
use super::order::on_failure;
use super::tasks::AUTHORITATIVE;
use super::world::{Event, Federation};
use crate::fact::Violation;
use crate::model::rest::{Others, is_stuck};
use crate::model::world::World;

/// How often somebody looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The longest that it may take until all regions have what is decided for all, once they reach each other: the longest wait for an
/// answer that does not come, the longest pause after a failure, a list's wait for news, and room.
const HEALS_WITHIN: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Storm,
    /// No region reaches another one, and each goes on.
    Apart,
    /// They reach each other.
    Together,
    /// All is as it was decided; what waited for others goes on.
    Resting,
}

#[derive(Default)]
pub(super) struct Calm {
    stage: Stage,
    since: Time,
    pub over: bool,
}

impl Federation {
    pub fn look(&mut self) -> Result<(), Violation> {
        self.after(LOOK_EVERY, Event::Look);
        match self.phase.stage {
            Stage::Storm => {
                self.tell(format_args!("calm; no region reaches another one"));
                (self.calm, self.apart) = (true, true);
                self.enter(Stage::Apart, Others::Unreachable);
            }
            Stage::Apart => {
                let long_enough = self.now() >= self.phase.since.plus(self.options.apart);
                if long_enough && self.regions.iter().all(|region| region.world.rest.settled) {
                    self.tell(format_args!("all regions reach each other"));
                    self.apart = false;
                    self.cuts.clear();
                    self.enter(Stage::Together, Others::Reachable);
                }
            }
            Stage::Together => self.come_together()?,
            Stage::Resting => {
                self.excuse();
                self.unblock()?;
                self.phase.over = self.regions.iter().all(|region| region.world.over);
                if let Some(how) = self.is_apart().filter(|_| self.phase.over) {
                    return Err(Violation { sentence: "what all have in common stays so".to_string(), how });
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, stage: Stage, others: Others) {
        (self.phase.stage, self.phase.since) = (stage, self.now());
        for region in &mut self.regions {
            region.world.rest.others = others;
        }
    }

    fn come_together(&mut self) -> Result<(), Violation> {
        self.finish_spread()?;
        let Some(how) = self.is_apart() else {
            self.tell(format_args!("all regions have what is decided for all"));
            self.enter(Stage::Resting, Others::None);
            return Ok(());
        };
        if self.now() < self.phase.since.plus(HEALS_WITHIN) {
            return Ok(());
        }
        let within = HEALS_WITHIN.as_millis() / 1_000;
        let sentence = format!("{within} s after regions reach each other all have what is decided for all");
        Err(Violation { sentence, how })
    }

    fn is_apart(&self) -> Option<String> {
        if let Some(by) = self.travellers.iter().position(|traveller| !traveller.is_free()) {
            return Some(format!("caller {by} waits for an answer"));
        }
        if !self.spread.is_whole() {
            return Some("a job is registered in some of its regions only".to_string());
        }
        let there = &self.regions[AUTHORITATIVE].world.checks.witness.state;
        let others = self.regions.iter().enumerate().skip(1);
        others.into_iter().find_map(|(at, region)| {
            let differs = difference(there, &region.world.checks.witness.state)?;
            Some(format!("{}: {differs}", NAMES[at]))
        })
    }

    /// Notes what waits for a region that waits for room itself.
    fn excuse(&mut self) {
        for (at, own) in NAMES.iter().enumerate().take(self.regions.len()) {
            let excused = self.waits_for_room_elsewhere(own, &self.regions[at].world);
            self.regions[at].world.rest.excused = excused;
        }
    }

    fn waits_for_room_elsewhere(&self, own: &str, world: &World) -> BTreeSet<DeploymentId> {
        let state = &world.checks.witness.state;
        let open = state.deployments.iter().map(|(_, one)| one);
        let open = open.filter(|one| one.is_multiregion && !one.gone && one.is_active());
        let waits = open.filter(|one| {
            let (owner, block) = part_of(state, one);
            let mut names = block.into_iter().flat_map(|block| block.regions.iter());
            names.any(|region| region.name != own && self.lacks_room(&region.name, &owner.key))
        });
        waits.map(|one| one.id).collect()
    }

    /// Its own part is under way, and finds no place for all that it wants.
    fn lacks_room(&self, name: &str, key: &JobKey) -> bool {
        let Some(at) = NAMES.iter().position(|known| *known == name) else { return false };
        let state = &self.regions[at].world.checks.witness.state;
        let parts = state.deployments.iter().map(|(_, one)| one).filter(|one| one.is_active() && !one.gone);
        let of_job = parts.filter(|one| state.jobs.get(one.job).key == *key);
        of_job.into_iter().any(|one| one.status == DeploymentStatus::Running && is_stuck(state, one))
    }

    /// Without a word about failures, a region that was done before another one failed waits for an operator.
    fn unblock(&mut self) -> Result<(), Violation> {
        for at in 0..self.regions.len() {
            let waits = self.blocked_for_good(at).filter(|_| self.travellers[at].is_free());
            if let Some(deployment) = waits {
                self.ask(at, at, Command::UnblockDeployment { deployment })?;
            }
        }
        Ok(())
    }

    fn blocked_for_good(&self, at: usize) -> Option<DeploymentId> {
        let state = &self.regions[at].world.checks.witness.state;
        let is_blocked =
            |one: &&Deployment| one.is_multiregion && !one.gone && one.status == DeploymentStatus::Blocked;
        let waits = |one: &&Deployment| {
            let (owner, block) = part_of(state, one);
            block.is_some_and(|block| self.one_after_has_failed(at, &owner.key, block))
        };
        let active = state.deployments.iter().map(|(_, one)| one).filter(is_blocked);
        active.into_iter().find(waits).map(|one| one.id)
    }

    fn one_after_has_failed(&self, at: usize, key: &JobKey, block: &Multiregion) -> bool {
        let query = RolloutQuery { key: key.clone(), rollout: block.rollout.clone() };
        let own = block.regions.iter().position(|region| region.name == NAMES[at]).unwrap_or(0);
        let failed = |name: &str| {
            let peer = NAMES.iter().position(|known| *known == name);
            let peer = peer.map(|peer| &self.regions[peer].world.checks.witness.state);
            peer.and_then(|peer| progress(peer, &query)) == Some(DeploymentStatus::Failed)
        };
        on_failure(block).is_empty() && block.regions.iter().skip(own + 1).any(|region| failed(&region.name))
    }
}

/// The job of a deployment, and what its version says about regions.
fn part_of<'a>(state: &'a State, one: &Deployment) -> (&'a JobState, Option<&'a Multiregion>) {
    let owner = state.jobs.get(one.job);
    let version = owner.version(one.version);
    (owner, version.and_then(|version| version.job.multiregion.as_ref()))
}
