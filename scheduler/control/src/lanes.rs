//! The queues in front of the sequencer: one lane for each urgency, each with its share.

use std::collections::VecDeque;

use model::Command;

/// Commands waiting in one lane at most. A full lane rejects: the caller may try again later.
pub const LANE_MAX: usize = 16_384;

/// Kinds of commands that must not wait behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Whether nodes are alive: late news here kills healthy work.
    Liveness = 0,
    /// What nodes say about allocations.
    Reports = 1,
    /// What workers bring back.
    Plans = 2,
    /// What people and their tools write.
    Writes = 3,
}

/// Whose turn it is, in a circle: of 15 turns liveness has 6, reports 3, plans 4 and writes 2.
const TURNS: [Lane; 15] = {
    use Lane::{Liveness as L, Plans as P, Reports as R, Writes as W};
    [L, P, L, R, W, L, P, L, R, P, L, W, R, L, P]
};

impl Lane {
    pub const fn of(command: &Command) -> Lane {
        match command {
            Command::RegisterNode { .. }
            | Command::UpdateNodeStatus { .. }
            | Command::MissHeartbeat { .. }
            | Command::FoundCluster { .. } => Lane::Liveness,
            Command::UpdateAllocs { .. }
            | Command::EmitNodeMessages { .. }
            | Command::RegisterServices { .. }
            | Command::DeregisterService { .. }
            | Command::DeregisterServicesOfNode { .. }
            | Command::ClaimCsiVolume { .. }
            | Command::DetachCsiClaim { .. }
            | Command::ReleaseCsiClaim { .. }
            | Command::AdvanceDeployment { .. }
            | Command::AdvanceDrain { .. }
            | Command::LaunchJob { .. } => Lane::Reports,
            Command::SettleEval(_) | Command::FailEval { .. } => Lane::Plans,
            Command::SetNodeEligibility { .. }
            | Command::SetNodeDrain { .. }
            | Command::DeregisterNode { .. }
            | Command::RegisterJob(_)
            | Command::DeregisterJob { .. }
            | Command::EvaluateJob { .. }
            | Command::EvaluateNode { .. }
            | Command::StopAlloc { .. }
            | Command::UpsertNodePool(_)
            | Command::DeleteNodePool { .. }
            | Command::RevertJob { .. }
            | Command::SetJobStability { .. }
            | Command::DispatchJob(_)
            | Command::CollectGarbage { .. }
            | Command::CollectDue { .. }
            | Command::CollectLeftovers { .. }
            | Command::ScaleJob(_)
            | Command::TagJobVersion { .. }
            | Command::UntagJobVersion { .. }
            | Command::UpsertNamespace(_)
            | Command::DeleteNamespace { .. }
            | Command::PromoteDeployment { .. }
            | Command::FailDeployment { .. }
            | Command::PauseDeployment { .. }
            | Command::ResumeDeployment { .. }
            | Command::SetAllocHealth { .. }
            | Command::RegisterCsiVolume { .. }
            | Command::RegisterHostVolume { .. }
            | Command::CreateHostVolume { .. }
            | Command::DeregisterVolume { .. }
            | Command::SetEventCursor(_)
            | Command::AckEventCursor { .. }
            | Command::ResetEventCursor { .. }
            | Command::DeleteEventCursor { .. }
            | Command::ExpireEventCursors
            | Command::SetEventSink(_)
            | Command::DeleteEventSink { .. }
            | Command::PauseEventSink { .. }
            | Command::ResumeEventSink { .. }
            | Command::SkipEventSink { .. }
            | Command::ParkEventSink(_)
            | Command::SetAutopilot { .. }
            | Command::SetScheduler { .. }
            | Command::SetSampling { .. }
            | Command::DeleteEvals { .. }
            | Command::AnnounceServerKey { .. }
            | Command::ActivateRootKey(_)
            | Command::SealRootKey { .. }
            | Command::RemoveRootKey { .. }
            | Command::UpsertAclPolicy(_)
            | Command::DeleteAclPolicy { .. }
            | Command::CreateAclRole(_)
            | Command::UpdateAclRole(_)
            | Command::DeleteAclRole { .. }
            | Command::BootstrapAcl { .. }
            | Command::CreateAclToken(_)
            | Command::UpdateAclToken(_)
            | Command::DeleteAclTokens { .. }
            | Command::CollectExpiredTokens
            | Command::CreateAuthMethod(_)
            | Command::UpdateAuthMethod(_)
            | Command::DeleteAuthMethod { .. }
            | Command::CreateBindingRule(_)
            | Command::UpdateBindingRule(_)
            | Command::DeleteBindingRule { .. }
            | Command::IssueLoginToken(_)
            | Command::CreateOneTimeToken { .. }
            | Command::ExchangeOneTimeToken { .. }
            | Command::SetVariable(_)
            | Command::DeleteVariable { .. }
            | Command::AcquireVariableLock(_)
            | Command::ReleaseVariableLock { .. }
            | Command::ExpireVariableLock { .. }
            | Command::ResealVariables { .. }
            | Command::FinishRekey
            | Command::GiveStateChunk { .. }
            | Command::RestoreState { .. } => Lane::Writes,
        }
    }
}

/// The lanes, in front of one reader.
#[derive(Debug)]
pub struct Lanes<T> {
    queues: [VecDeque<T>; 4],
    turn: usize,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Lanes { queues: Default::default(), turn: 0 }
    }
}

impl<T> Lanes<T> {
    /// # Errors
    /// The item itself, when its lane is full.
    pub fn push(&mut self, lane: Lane, item: T) -> Result<(), T> {
        let queue = &mut self.queues[lane as usize];
        if queue.len() >= LANE_MAX {
            return Err(item);
        }
        queue.push_back(item);
        Ok(())
    }

    /// The next item by turn; a lane without work gives its turn away.
    pub fn pop(&mut self) -> Option<T> {
        for _ in 0..TURNS.len() {
            let lane = TURNS[self.turn];
            self.turn = (self.turn + 1) % TURNS.len();
            if let Some(item) = self.queues[lane as usize].pop_front() {
                return Some(item);
            }
        }
        None
    }

    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    pub fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_in_one_lane_does_not_starve_another() {
        let mut lanes = Lanes::default();
        (0..1_000).for_each(|_| lanes.push(Lane::Writes, "write").unwrap());
        lanes.push(Lane::Liveness, "beat").unwrap();
        let first: Vec<&str> = std::iter::from_fn(|| lanes.pop()).take(2).collect();
        assert!(first.contains(&"beat"), "{first:?}");
    }

    #[test]
    fn every_lane_gets_its_share() {
        let mut lanes = Lanes::default();
        for lane in [Lane::Liveness, Lane::Reports, Lane::Plans, Lane::Writes] {
            (0..100).for_each(|_| lanes.push(lane, lane).unwrap());
        }
        let round: Vec<Lane> = std::iter::from_fn(|| lanes.pop()).take(TURNS.len()).collect();
        let share = |lane| round.iter().filter(|l| **l == lane).count();
        assert_eq!(
            [share(Lane::Liveness), share(Lane::Reports), share(Lane::Plans), share(Lane::Writes)],
            [6, 3, 4, 2]
        );
    }

    #[test]
    fn a_full_lane_refuses_and_the_others_do_not() {
        let mut lanes = Lanes::default();
        (0..LANE_MAX).for_each(|_| lanes.push(Lane::Plans, ()).unwrap());
        assert_eq!(lanes.push(Lane::Plans, ()), Err(()));
        assert_eq!(lanes.push(Lane::Reports, ()), Ok(()));
    }
}
