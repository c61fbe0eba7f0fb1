//! Where all commands meet the rules: one line each.

use model::{Actor, Command, Rejection};
use state::State;

use crate::decision::{Context, Decision};
use crate::{
    acl, alloc, claim, cursor, deployment, erasure, eval, expansion, gc, job, keyring, leftovers, namespace,
    node, operator, plan, pool, recording, service, sink, variable, volume,
};

/// Judges a command on a state.
///
/// # Errors
/// The [`Rejection`] the caller is to see; nothing changes then.
pub fn decide(
    state: &State,
    ctx: &mut Context,
    actor: &Actor,
    command: &Command,
) -> Result<Decision, Rejection> {
    let mut decision = decide_alone(state, ctx, actor, command)?;
    let ended = service::ended(state, &decision.events);
    decision.events.extend(ended);
    operator::decide::check_epoch(state.epoch(), &decision.events)?;
    Ok(decision)
}

/// Without what follows for services, which is the same whatever ends an allocation.
fn decide_alone(
    state: &State,
    ctx: &mut Context,
    actor: &Actor,
    command: &Command,
) -> Result<Decision, Rejection> {
    recording::check(state, command)?;
    match command {
        Command::FoundCluster { scheduler } => Ok(found(state, ctx, scheduler)),
        Command::RaiseEpoch { epoch } => operator::decide::raise_epoch(state.epoch(), *epoch),
        Command::NoteDroppedHistory { server, oldest, time } => {
            operator::decide::note_dropped_history(state, server, *oldest, *time)
        }
        Command::RegisterNode { document } => node::decide::register(state, ctx, document),
        Command::UpdateNodeStatus { node, claimed } => {
            node::decide::update_status(state, ctx, actor, *node, *claimed)
        }
        Command::MissHeartbeat { node } => node::decide::miss_heartbeat(state, ctx, *node),
        Command::EmitNodeMessages { node, messages } => node::decide::emit_messages(state, *node, messages),
        Command::SetNodeEligibility { node, to } => node::decide::set_eligibility(state, ctx, *node, *to),
        Command::SetNodeDrain { node, drain, mark_eligible, meta } => {
            node::drain::set(state, ctx, actor, *node, *drain, *mark_eligible, meta)
        }
        Command::AdvanceDrain { node } => node::drain::advance(state, ctx, *node),
        Command::DeregisterNode { node } => node::decide::deregister(state, ctx, *node),
        Command::EvaluateNode { node } => node::decide::evaluate(state, ctx, *node),
        Command::UpdateAllocs { node, updates } => alloc::report(state, ctx, *node, updates),
        Command::UpsertNodePool(document) => pool::upsert(state, document),
        Command::DeleteNodePool { name } => pool::delete(state, name),
        Command::RegisterJob(request) => job::decide::register(state, ctx, request),
        Command::DeregisterJob { key, purge, eval_priority, no_shutdown_delay } => {
            let how = job::decide::Deregister {
                purge: *purge,
                eval_priority: *eval_priority,
                no_shutdown_delay: *no_shutdown_delay,
            };
            job::decide::deregister(state, ctx, key, how)
        }
        Command::EvaluateJob { key, force_reschedule } => {
            job::decide::evaluate(state, ctx, key, *force_reschedule)
        }
        Command::RevertJob { key, version, only_from } => {
            job::decide::revert(state, ctx, key, *version, *only_from)
        }
        Command::SetJobStability { key, version, stable } => {
            job::decide::set_stability(state, key, *version, *stable)
        }
        Command::DispatchJob(request) => job::children::dispatch(state, ctx, request),
        Command::LaunchJob { key, at, forced } => job::children::launch(state, ctx, key, *at, *forced),
        Command::ScaleJob(request) => job::scale::scale(state, ctx, request),
        Command::TagJobVersion { key, version, name, description } => {
            job::tags::tag(state, key, *version, name, description)
        }
        Command::UntagJobVersion { key, name } => job::tags::untag(state, key, name),
        Command::UpsertNamespace(document) => namespace::upsert(state, document),
        Command::DeleteNamespace { name } => namespace::delete(state, name),
        Command::StopAlloc { alloc, no_shutdown_delay, reschedule } => {
            alloc::stop(state, ctx, *alloc, *no_shutdown_delay, *reschedule)
        }
        Command::SettleEval(settlement) => plan::decide::settle(state, ctx, settlement),
        Command::FailEval { eval, deliveries, follow_up_at } => {
            eval::fail(state, ctx, *eval, *deliveries, *follow_up_at)
        }
        Command::DeleteEvals { evals } => eval::delete(state, evals),
        Command::AdvanceDeployment { deployment } => deployment::advance::advance(state, ctx, *deployment),
        Command::PromoteDeployment { deployment, groups } => {
            deployment::decide::promote(state, ctx, *deployment, groups)
        }
        Command::FailDeployment { deployment } => deployment::decide::fail_by_hand(state, ctx, *deployment),
        Command::PauseDeployment { deployment } => deployment::decide::pause(state, *deployment),
        Command::UnblockDeployment { deployment } => deployment::rollout::unblock(state, ctx, *deployment),
        Command::ObserveRollout(observed) => deployment::rollout::observe(state, ctx, observed),
        Command::ResumeDeployment { deployment } => deployment::decide::resume(state, ctx, *deployment),
        Command::SetAllocHealth { deployment, healthy, unhealthy } => {
            deployment::decide::set_health(state, ctx, *deployment, healthy, unhealthy)
        }
        Command::RegisterCsiVolume { volume } => volume::register_csi(state, volume),
        Command::RegisterHostVolume { volume } | Command::CreateHostVolume { volume } => {
            volume::register_host(state, ctx, volume)
        }
        Command::DeregisterVolume { volume, force } => volume::deregister(state, volume, *force),
        Command::ClaimCsiVolume { volume, alloc, node } => claim::claim(state, *node, volume, *alloc),
        Command::DetachCsiClaim { volume, alloc, node } => claim::detach(state, volume, *alloc, *node),
        Command::AwaitCsiExpansion { volume, required_bytes, limit_bytes } => {
            expansion::awaited(state, volume, *required_bytes, *limit_bytes)
        }
        Command::EndCsiExpansion { volume, node, required_bytes } => {
            expansion::ended(state, volume, *node, *required_bytes)
        }
        Command::ReleaseCsiClaim { volume, alloc } => Ok(claim::release(state, volume, *alloc)),
        Command::SetEventCursor(wanted) => cursor::set(state, ctx, wanted),
        Command::AckEventCursor { name, after } => cursor::acknowledge(state, ctx, name, *after),
        Command::ResetEventCursor { name, to } => cursor::reset(state, ctx, name, *to),
        Command::AckEventCursorMember { name, member, after } => {
            cursor::acknowledge_member(state, ctx, name, *member, *after)
        }
        Command::SplitEventCursor { name, members, to } => cursor::split(state, ctx, name, *members, *to),
        Command::DeleteEventCursor { name } => cursor::delete(state, name),
        Command::ExpireEventCursors => Ok(cursor::expire(&state.cursors, ctx.time)),
        Command::SetEventSink(wanted) => sink::set(state, ctx, wanted),
        Command::DeleteEventSink { name } => sink::delete(state, name),
        Command::PauseEventSink { name } => sink::pause(state, name),
        Command::ResumeEventSink { name } => sink::resume(state, name),
        Command::SkipEventSink { name } => sink::skip(state, name),
        Command::ParkEventSink(parked) => sink::park(state, parked),
        Command::CollectGarbage { jobs_after, nodes_after } => {
            gc::collect(state, ctx, *jobs_after, *nodes_after)
        }
        Command::CollectDue { jobs, jobs_after, nodes_after } => {
            gc::collect_due(state, ctx, jobs, *jobs_after, *nodes_after)
        }
        Command::CollectLeftovers { named, ages } => {
            Ok(leftovers::collect(state, ctx.time, named.as_ref(), ages))
        }
        Command::AnnounceServerKey { server, public } => keyring::announce(&state.keyring, *server, *public),
        Command::ActivateRootKey(request) => keyring::activate(&state.keyring, request),
        Command::SealRootKey { key, sealed } => keyring::seal(&state.keyring, *key, sealed),
        Command::RemoveRootKey { key } => keyring::remove(&state.keyring, *key),
        Command::UpsertAclPolicy(policy) => acl::policy::upsert(&state.acl, policy),
        Command::DeleteAclPolicy { name } => acl::policy::delete(&state.acl, name),
        Command::CreateAclRole(role) => acl::role::create(&state.acl, role),
        Command::UpdateAclRole(role) => acl::role::update(&state.acl, role),
        Command::DeleteAclRole { role } => acl::role::delete(&state.acl, *role),
        Command::CreateAclToken(request) => {
            erasure::check_kept_token(state, request)?;
            acl::token::create(&state.acl, ctx.time, request)
        }
        Command::BootstrapAcl { token, reset } => acl::token::bootstrap(&state.acl, ctx.time, token, *reset),
        Command::UpdateAclToken(token) => acl::token::update(&state.acl, token),
        Command::DeleteAclTokens { accessors } => acl::token::delete(&state.acl, accessors),
        Command::CreateAuthMethod(record) => {
            erasure::check_kept_method(state, record)?;
            acl::method::create(&state.acl, ctx.time, record)
        }
        Command::UpdateAuthMethod(record) => {
            erasure::check_kept_method(state, record)?;
            acl::method::update(&state.acl, ctx.time, record)
        }
        Command::DeleteAuthMethod { name } => acl::method::delete(&state.acl, name),
        Command::CreateBindingRule(rule) => acl::binding::create(&state.acl, ctx.time, rule),
        Command::UpdateBindingRule(rule) => acl::binding::update(&state.acl, ctx.time, rule),
        Command::DeleteBindingRule { rule } => acl::binding::delete(&state.acl, *rule),
        Command::CopyAuthMethod(method) => acl::method::copy(&state.acl, method),
        Command::CopyBindingRule(rule) => acl::binding::copy(&state.acl, rule),
        Command::IssueLoginToken(request) => acl::login::issue(&state.acl, ctx.time, request),
        Command::CollectExpiredTokens => Ok(acl::token::collect_expired(&state.acl, ctx.time)),
        Command::CreateOneTimeToken { accessor, digest } => {
            acl::one_time::create(&state.acl, ctx.time, *accessor, *digest)
        }
        Command::ExchangeOneTimeToken { digest } => acl::one_time::exchange(&state.acl, ctx.time, digest),
        Command::SetVariable(wanted) => variable::set(state, wanted),
        Command::DeleteVariable { key, only_at, lock } => variable::delete(state, key, *only_at, *lock),
        Command::AcquireVariableLock(wanted) => variable::acquire(state, wanted),
        Command::ReleaseVariableLock { key, lock } => variable::release(state, key, *lock),
        Command::ExpireVariableLock { key, lock } => Ok(variable::expire(state, key, *lock)),
        Command::ResealVariables { versions } => variable::reseal(state, versions),
        Command::ForgetVariable { key, lock } => erasure::forget(state, key, *lock),
        Command::ForgetAclToken { accessor } => erasure::forget_token(state, *accessor),
        Command::ForgetAuthMethod { name } => erasure::forget_auth_method(state, name),
        Command::KeyTree(command) => erasure::key_tree(state, ctx.index, command),
        Command::FinishRekey => Ok(variable::finish_rekey(state)),
        Command::RegisterServices { node, services } => service::register(state, *node, services),
        Command::DeregisterService { key, name, node } => {
            service::deregister(state, key, name.as_deref(), *node)
        }
        Command::DeregisterServicesOfNode { node } => Ok(service::deregister_node(state, *node)),
        Command::SetAutopilot { rules, only_at } => {
            operator::decide::set_autopilot(&state.operator, rules, *only_at)
        }
        Command::SetScheduler { rules, only_at } => {
            operator::decide::set_scheduler(&state.operator, rules, *only_at)
        }
        Command::SetSampling { sampled } => Ok(operator::decide::set_sampling(&state.operator, *sampled)),
        Command::Observe(documents) => recording::observe(state, ctx, actor, documents),
        Command::NoteObservationGap(gap) => recording::note_gap(state, gap),
        Command::GiveStateChunk { restore, number, bytes } => {
            operator::restore::give(state, *restore, *number, bytes)
        }
        Command::RestoreState { restore, chunks, image } => {
            operator::restore::finish(state, *restore, *chunks, *image)
        }
    }
}

fn found(state: &State, ctx: &mut Context, scheduler: &model::SchedulerRules) -> Decision {
    if !state.cluster.is_nil() {
        return Decision::nothing();
    }
    let founded = model::event::ClusterFounded { cluster: ctx.mint() };
    let configured = model::event::SchedulerConfigured { rules: scheduler.clone() };
    // Servers that found a cluster together are of one release.
    let raised = model::event::EpochRaised { epoch: model::EPOCH };
    Decision::of(vec![founded.into(), configured.into(), raised.into()])
}
