//! What must hold of each region's log, batch after batch: what is of one region alone is left alone by the others, and parts
//! of a job of several regions begin, and fail because of others, as its strategy says.

use std::collections::{BTreeMap, BTreeSet};

use federation::rollouts::{RolloutQuery, progress};
use model::document::{Multiregion, MultiregionStrategy};
use model::{Actor, DeploymentId, DeploymentStatus, Event};
use state::State;

use super::options::NAMES;
use super::world::Federation;
use crate::fact::Violation;

/// The number of `Command::ObserveRollout`.
const OBSERVE_ROLLOUT: u16 = 247;

/// How far regions have ever been with what was registered in several.
#[derive(Default)]
pub(super) struct Orders {
    known: BTreeMap<String, RolloutQuery>,
    seen: BTreeSet<(String, usize, DeploymentStatus)>,
}

impl Orders {
    pub fn know(&mut self, query: RolloutQuery) {
        self.known.insert(query.rollout.clone(), query);
    }

    fn note(&mut self, region: usize, state: &State) {
        for (rollout, query) in &self.known {
            if let Some(status) = progress(state, query) {
                self.seen.insert((rollout.clone(), region, status));
            }
        }
    }

    fn was(&self, rollout: &str, region: usize, is: impl Fn(DeploymentStatus) -> bool) -> bool {
        let seen = self.seen.iter();
        seen.filter(|seen| seen.0 == rollout && seen.1 == region).any(|seen| is(seen.2))
    }
}

impl Federation {
    /// Looks at the batches of a region's log that nobody has looked at.
    pub fn judge(&mut self, region: usize) -> Result<(), Violation> {
        let Federation { regions, orders, .. } = self;
        let one = &mut regions[region];
        let witness = &one.world.checks.witness;
        for encoded in &witness.batches[one.judged..] {
            let batch = encoded.decode().expect("the witness has read it");
            let Some(after) = witness.at(batch.index) else { continue };
            let before = witness.at(model_index(batch.index));
            for logged in &batch.events {
                let record = &batch.commands[usize::from(logged.command)];
                let is_copied =
                    matches!(&record.actor, Actor::Server(name) if name.starts_with("replication"));
                if let Some(how) = is_copied.then(|| touches_local(before, &logged.event)).flatten() {
                    let sentence = "what is of one region alone is not touched by others".to_string();
                    let how = format!("{} at {}: {how}", NAMES[region], batch.index);
                    return Err(Violation { sentence, how });
                }
                if let (OBSERVE_ROLLOUT, Event::DeploymentStatusChanged(changed)) =
                    (record.kind, &logged.event)
                    && let Some(how) = orders.is_wrong(after, region, changed.deployment, changed.status)
                {
                    let sentence = "parts of a job begin and fail as its strategy says".to_string();
                    let how = format!("{} at {}: {how}", NAMES[region], batch.index);
                    return Err(Violation { sentence, how });
                }
            }
            orders.note(region, after);
        }
        one.judged = witness.batches.len();
        Ok(())
    }
}

fn model_index(index: base::Index) -> base::Index {
    base::Index(index.0.saturating_sub(1))
}

/// Which token of one region alone is changed, or made, by the event.
fn touches_local(before: Option<&State>, event: &Event) -> Option<String> {
    let is_local = |accessor: &base::Uuid| {
        let known = before.and_then(|state| state.acl.token(*accessor));
        known.is_some_and(|token| !token.document.global)
    };
    match event {
        Event::AclTokenCreated(e) => {
            let token: model::document::ACLToken = e.document.read();
            (!token.global).then(|| format!("token {} is made", e.accessor))
        }
        Event::AclTokenUpdated(e) => {
            is_local(&e.accessor).then(|| format!("token {} is changed", e.accessor))
        }
        Event::AclTokensDeleted(e) => {
            let local = e.accessors.iter().find(|accessor| is_local(accessor));
            local.map(|accessor| format!("token {accessor} is deleted"))
        }
        _ => None,
    }
}

impl Orders {
    /// Why a region's part should not have come to this because of others.
    fn is_wrong(
        &self,
        state: &State,
        region: usize,
        deployment: DeploymentId,
        status: DeploymentStatus,
    ) -> Option<String> {
        let known = state.deployments.iter().map(|(_, known)| known).find(|known| known.id == deployment)?;
        let block = state.jobs.get(known.job).version(known.version)?.job.multiregion.clone()?;
        let at = block.regions.iter().position(|one| one.name == NAMES[region])?;
        let number = |name: &str| NAMES.iter().position(|known| *known == name);
        let numbers: Vec<usize> = block.regions.iter().filter_map(|one| number(&one.name)).collect();
        let (before, after) = (&numbers[..at], &numbers[at + 1..]);
        let rule = on_failure(&block);
        let is_done = |peer: &usize| self.was(&block.rollout, *peer, |status| ends(status, rule));
        let failed =
            |peer: &usize| self.was(&block.rollout, *peer, |status| status == DeploymentStatus::Failed);
        match status {
            DeploymentStatus::Running => {
                let parallel =
                    block.strategy.as_ref().and_then(|strategy| strategy.max_parallel).unwrap_or(0);
                let open = before.iter().filter(|peer| !is_done(peer)).count() as i64;
                (parallel > 0 && open >= parallel)
                    .then(|| format!("{deployment} begins while {open} before it are open, of {parallel}"))
            }
            DeploymentStatus::Successful => {
                let open = before.iter().chain(after).find(|peer| !is_done(peer))?;
                Some(format!("{deployment} is successful and {} was never done", NAMES[*open]))
            }
            DeploymentStatus::Failed => {
                let caused = match rule {
                    MultiregionStrategy::FAIL_LOCAL => false,
                    MultiregionStrategy::FAIL_ALL => before.iter().chain(after).any(failed),
                    _ => before.iter().any(failed),
                };
                (!caused).then(|| {
                    format!("{deployment} fails, with {rule:?}, and none has failed that it fails with")
                })
            }
            _ => None,
        }
    }
}

pub(super) fn on_failure(block: &Multiregion) -> &str {
    let strategy = block.strategy.as_ref();
    strategy.and_then(|strategy| strategy.on_failure.as_deref()).unwrap_or_default()
}

fn ends(status: DeploymentStatus, rule: &str) -> bool {
    use DeploymentStatus::{Blocked, Cancelled, Failed, Successful, Unblocking};
    match status {
        Blocked | Unblocking | Successful | Cancelled => true,
        Failed => rule == MultiregionStrategy::FAIL_LOCAL,
        _ => false,
    }
}
