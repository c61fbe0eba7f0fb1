//! Where all events meet the rows: one line each.

#![warn(clippy::wildcard_enum_match_arm)]

use base::{Index, Time, Uuid};
use model::{Actor, Batch, CommandRecord, Event, LoggedEvent, RequestId};

use crate::moment::Moment;
use crate::requests::Remembered;
use crate::{Delta, State, TableIndexes};

/// Why a batch does not fold here: it was decided on another state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// It does not follow on what was folded: two servers decided at once, or a part of the log is missing.
    #[error("batch {batch} was decided on state {decided_on}, but the state here is {folded}")]
    OutOfOrder { folded: Index, batch: Index, decided_on: Index },
    /// The same log led to another state on this server. It must not go on, and must not serve reads.
    #[error(
        "the state of this server differs from what the cluster decided on: at index {index} its table {table} has the \
         digest {ours:016x}, that of the cluster {theirs:016x}"
    )]
    Diverged { table: &'static str, index: Index, ours: u64, theirs: u64 },
}

impl State {
    /// The batch that may follow, still empty.
    pub fn next_batch(&self, time: Time, proposer: Uuid) -> Batch {
        Batch {
            epoch: self.epoch(),
            index: self.index.next(),
            previous: self.index,
            digest: self.digest(),
            time,
            proposer,
            commands: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Folds a whole batch.
    ///
    /// # Errors
    /// [`FoldError`] if the batch was decided on another state; nothing is changed then.
    ///
    /// # Panics
    /// If an event contradicts the state: the log is damaged, and going on would spread the damage.
    pub fn apply(&mut self, batch: &Batch) -> Result<Delta, FoldError> {
        if batch.previous != self.index || batch.index != self.index.next() {
            let (folded, batch, decided_on) = (self.index, batch.index, batch.previous);
            return Err(FoldError::OutOfOrder { folded, batch, decided_on });
        }
        if let Some((table, ours, theirs)) = self.digest().difference(&batch.digest) {
            return Err(FoldError::Diverged { table, index: self.index, ours, theirs });
        }
        assert!(
            batch.time >= self.time,
            "the time of batch {} is not earlier than that before it",
            batch.index
        );
        let at = Moment { index: batch.index, time: batch.time, epoch: batch.epoch };
        let mut delta = Delta::default();
        let mut rest = &batch.events[..];
        for (number, record) in batch.commands.iter().enumerate() {
            let own = rest.iter().take_while(|e| usize::from(e.command) == number).count();
            self.absorb(at, record, rest[..own].iter().map(|LoggedEvent { event, .. }| event), &mut delta);
            rest = &rest[own..];
        }
        assert!(
            rest.is_empty(),
            "every event of batch {} answers one of its commands, in their order",
            batch.index
        );
        self.seal(at, &delta);
        Ok(delta)
    }

    /// Folds what one command led to, within the batch that is being filled.
    pub fn absorb<'a>(
        &mut self,
        at: Moment,
        record: &CommandRecord,
        events: impl Iterator<Item = &'a Event>,
        delta: &mut Delta,
    ) {
        let mut eval = None;
        for event in events {
            if let Event::EvalCreated(created) = event {
                eval = eval.or(Some(created.eval.id));
            }
            self.fold(at, &record.actor, event, delta);
        }
        if record.request != RequestId::default() {
            self.requests.remember(record.request, Remembered { index: at.index, eval });
        }
    }

    /// Ends the batch: from here on it is the state's index.
    pub fn seal(&mut self, at: Moment, delta: &Delta) {
        self.settle_job_statuses(at, delta);
        self.forget_old_pieces(at);
        let touched = |rows: usize, table: &mut Index| {
            if rows > 0 {
                *table = at.index;
            }
        };
        touched(delta.nodes.len(), &mut self.tables.nodes);
        touched(delta.jobs.len(), &mut self.tables.jobs);
        touched(delta.evals.len(), &mut self.tables.evals);
        touched(delta.allocs.len(), &mut self.tables.allocs);
        touched(delta.deployments.len(), &mut self.tables.deployments);
        (self.index, self.time) = (at.index, at.time);
        self.check_tables();
        self.settle_digest();
        self.release_forgotten(delta);
    }

    /// What every batch leaves behind, as far as it can be checked without a look at the rows.
    fn check_tables(&self) {
        let TableIndexes { nodes, jobs, evals, allocs, deployments } = self.tables;
        let newest = nodes.max(jobs).max(evals).max(allocs).max(deployments);
        assert!(newest <= self.index, "no table changed after the last batch");
        self.nodes.check();
        assert!(self.jobs.len() <= self.jobs.rows.len(), "each known job has a row of its own");
        assert!(self.evals.len() <= self.evals.rows.len(), "each known evaluation has a row of its own");
        assert!(self.evals.blocked.len() <= self.evals.len(), "what is blocked is a known evaluation");
        assert!(self.allocs.len() <= self.allocs.rows.len(), "each known allocation has a row of its own");
    }

    /// What became of a named request, as far as it is remembered.
    pub fn remembered(&self, request: RequestId) -> Option<Remembered> {
        if request == RequestId::default() { None } else { self.requests.get(request) }
    }

    fn fold(&mut self, at: Moment, by: &Actor, event: &Event, delta: &mut Delta) {
        match event {
            Event::ClusterFounded(e) => self.cluster = e.cluster,
            Event::EpochRaised(e) => self.raised = Some(e.epoch),
            Event::HistoryDropped(e) => self.history_dropped(at, e),
            Event::NodeRegistered(e) => delta.nodes.push(self.nodes.registered(at, e)),
            Event::NodeUpdated(e) => delta.node_may_have_room(self.nodes.updated(at, e)),
            Event::NodeStatusChanged(e) => delta.node_may_have_room(self.nodes.status_changed(at, e)),
            Event::NodeEligibilityChanged(e) => {
                delta.node_may_have_room(self.nodes.eligibility_changed(at, e))
            }
            Event::NodeDrainStarted(e) => delta.nodes.push(self.nodes.drain_started(at, e)),
            Event::NodeDrainUpdated(e) => delta.nodes.push(self.nodes.drain_updated(at, e)),
            Event::NodeDrainEnded(e) => delta.node_may_have_room(self.nodes.drain_ended(at, e)),
            Event::NodeMessagesEmitted(e) => delta.nodes.push(self.nodes.messages_emitted(at, e)),
            Event::NodeAllocsReported(e) => delta.nodes.push(self.nodes.allocs_reported(at, e)),
            Event::NodeDeregistered(e) => delta.nodes.push(self.nodes.deregistered(at, e)),
            Event::NodePoolUpserted(e) => self.pools.upserted(at, &e.name, &e.document),
            Event::NodePoolDeleted(e) => self.pools.deleted(at, &e.name),
            Event::NamespaceUpserted(e) => self.namespaces.upserted(at, &e.name, &e.document),
            Event::NamespaceDeleted(e) => self.namespaces.deleted(at, &e.name),
            Event::AclPolicyUpserted(e) => self.acl.policies.upserted(at, &e.name, &e.document),
            Event::AclPolicyDeleted(e) => self.acl.policies.deleted(at, &e.name),
            Event::AclRoleUpserted(e) => self.acl.roles.upserted(at, &e.role.to_string(), &e.document),
            Event::AclRoleDeleted(e) => self.acl.roles.deleted(at, &e.role.to_string()),
            Event::AclAuthMethodUpserted(e) => self.acl.methods.upserted(at, &e.name, &e.document),
            Event::AclAuthMethodDeleted(e) => self.acl.methods.deleted(at, &e.name),
            Event::AclBindingRuleUpserted(e) => self.acl.rules.upserted(at, &e.rule.to_string(), &e.document),
            Event::AclBindingRuleDeleted(e) => self.acl.rules.deleted(at, &e.rule.to_string()),
            Event::AclTokenIssuedByLogin(e) => self.acl.token_issued(at, e),
            Event::AclTokenCreated(e) => self.acl.token_created(at, e),
            Event::AclTokenUpdated(e) => self.acl.token_updated(at, e),
            Event::AclTokensDeleted(e) => self.acl.tokens_deleted(at, e),
            Event::OneTimeTokenCreated(e) => self.acl.one_time_created(at, e),
            Event::OneTimeTokenExchanged(e) => self.acl.one_time_exchanged(at, e),
            Event::OneTimeTokensExpired(e) => self.acl.one_time_expired(at, e),
            Event::JobRegistered(e) => delta.jobs.push(self.jobs.registered(at, e)),
            Event::JobStopped(e) => delta.jobs.push(self.jobs.stopped(at, e)),
            Event::JobPurged(e) => self.job_purged(at, e, delta),
            Event::AllocsCollected(e) => self.allocs_collected(at, e, delta),
            Event::JobStabilityChanged(e) => delta.jobs.push(self.jobs.stability_changed(at, e)),
            Event::JobLaunched(e) => delta.jobs.push(self.jobs.launched(at, e)),
            Event::JobScaled(e) => delta.jobs.push(self.jobs.scaled(at, e)),
            Event::JobVersionTagged(e) => delta.jobs.push(self.jobs.version_tagged(at, e)),
            Event::JobVersionUntagged(e) => delta.jobs.push(self.jobs.version_untagged(at, e)),
            Event::EvalCreated(e) => self.eval_created(at, e, delta),
            Event::EvalUpdated(e) => self.eval_updated(at, e, delta),
            Event::EvalAcked(e) => delta.evals.push(self.evals.acked(e)),
            Event::EvalsCanceled(e) => self.evals_canceled(at, e, delta),
            Event::EvalsDeleted(e) => self.evals_deleted(at, e, delta),
            Event::PlanCommitted(e) => delta.evals.push(self.evals.planned(at, e)),
            Event::AllocsPlaced(e) => self.allocs_placed(at, e, delta),
            Event::AllocsUpdatedInPlace(e) => self.allocs_updated_in_place(at, e, delta),
            Event::AllocsStopped(e) => self.allocs_stopped(at, e, delta),
            Event::AllocsPreempted(e) => self.allocs_preempted(at, e, delta),
            Event::AllocsMarkedUnknown(e) => self.allocs_marked_unknown(at, e, delta),
            Event::AllocsReconnected(e) => self.allocs_reconnected(at, e, delta),
            Event::AllocReported(e) => self.alloc_reported(at, e, delta),
            Event::VolumeRegistered(e) => self.volumes.registered(at, e, delta),
            Event::VolumeDeregistered(e) => self.volumes.deregistered(at, e),
            Event::AutopilotConfigured(e) => self.operator.autopilot_configured(at, e),
            Event::SchedulerConfigured(e) => self.operator.scheduler_configured(at, e),
            Event::ServerKeyAnnounced(e) => self.keyring.server_announced(at, e),
            Event::RootKeyActivated(e) => self.keyring.root_key_activated(at, e),
            Event::RootKeySealed(e) => self.keyring.root_key_sealed(at, e),
            Event::RootKeyRemoved(e) => self.keyring.root_key_removed(at, e),
            Event::RootKeysRekeying(e) => self.keyring.rekeying_began(at, e),
            Event::RootKeysRekeyed(e) => self.keyring.rekeyed(at, e),
            Event::VariableSet(e) => self.variables.was_set(at, by, e, delta),
            Event::VariableDeleted(e) => self.variables.deleted(at, e, delta),
            Event::VariableLockAcquired(e) => self.variables.lock_acquired(at, by, e, delta),
            Event::VariableLockReleased(e) => self.variables.lock_released(at, e, delta),
            Event::VariableForgotten(e) => self.variable_forgotten(at, e, delta),
            Event::SecretsForgotten(e) => self.erasure.secrets_forgotten(at, e),
            Event::KeyTreeRequested(e) => self.erasure.requested(at, e),
            Event::KeyTreeFounded(e) => self.erasure.founded(at, e, self.variables.changed() != Index::ZERO),
            Event::KeyTreeShared(e) => self.erasure.shared(at, e),
            Event::ForgottenErased(e) => self.erasure.erased(at, e),
            Event::KeyTreeHolderRemoved(e) => self.erasure.holder_removed(at, e),
            Event::VariablesResealed(e) => self.variables.resealed(e),
            Event::CsiVolumeClaimed(e) => self.claims.claimed(at, e),
            Event::CsiClaimDetached(e) => self.claims.detached(at, e),
            Event::CsiClaimReleased(e) => self.claims.released(at, e),
            Event::CsiExpansionAwaited(e) => self.expansions.awaited(e),
            Event::CsiExpansionEnded(e) => self.expansions.ended(e),
            Event::EventCursorSet(e) => self.cursors.was_set(at, e),
            Event::EventCursorAcked(e) => self.cursors.acked(at, by, e),
            Event::EventCursorReset(e) => self.cursors.reset(at, e),
            Event::EventCursorDeleted(e) => self.cursors.deleted(at, e),
            Event::EventCursorMemberAcked(e) => self.cursors.member_acked(at, by, e),
            Event::EventCursorSplit(e) => self.cursors.split(at, e),
            Event::EventSinkSet(e) => self.sinks.was_set(at, e),
            Event::EventSinkDeleted(e) => self.sinks.deleted(at, e),
            Event::EventSinkPaused(e) => self.sinks.paused(at, e),
            Event::EventSinkParked(e) => self.sinks.parked(at, e),
            Event::EventSinkResumed(e) => self.sinks.resumed(at, e),
            Event::ServicesRegistered(e) => self.services.registered(at, e),
            Event::ServicesDeregistered(e) => self.services.deregistered(at, e),
            Event::Observed(e) => self.observed(at, e),
            Event::ObservationGap(e) => self.observation_gap(at, e),
            Event::JobEndObserved(e) => delta.jobs.push(self.jobs.end_observed(e)),
            Event::StateChunkGiven(e) => self.chunk_given(at, e),
            Event::StateRestored(e) => self.state_restored(at, e, delta),
            Event::AllocTransitionRequested(e) => self.alloc_transition_requested(at, e, delta),
            Event::DeploymentCreated(e) => self.deployment_created(at, e, delta),
            Event::DeploymentProgressObserved(e) => self.deployments.progress_observed(at, e, delta),
            Event::DeploymentGoalsChanged(e) => self.deployments.goals_changed(at, e, delta),
            Event::DeploymentStatusChanged(e) => self.deployment_status_changed(at, e, delta),
            Event::DeploymentPromoted(e) => self.deployment_promoted(at, e, delta),
            Event::DeploymentCollected(e) => self.deployment_collected(at, e, delta),
            Event::AllocHealthSet(e) => self.alloc_health_set(at, e, delta),
        }
    }
}
