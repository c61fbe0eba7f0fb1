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
    /// What they write that has schedulers place more. It can be held back until they are not behind any more.
    Work = 4,
}

/// Whose turn it is, in a circle: of 17 turns liveness has 6, reports 3, plans 4, writes 2 and work 2.
const TURNS: [Lane; 17] = {
    use Lane::{Liveness as L, Plans as P, Reports as R, Work as N, Writes as W};
    [L, P, L, R, W, N, L, P, L, R, P, L, W, N, R, L, P]
};

impl Lane {
    pub const fn of(command: &Command) -> Lane {
        match command {
            Command::RegisterNode { .. }
            | Command::UpdateNodeStatus { .. }
            | Command::MissHeartbeat { .. }
            | Command::FoundCluster { .. } => Lane::Liveness,
            Command::UpdateAllocs { .. }
            | Command::Observe(_)
            | Command::NoteObservationGap(_)
            | Command::EmitNodeMessages { .. }
            | Command::RegisterServices { .. }
            | Command::DeregisterService { .. }
            | Command::DeregisterServicesOfNode { .. }
            | Command::ClaimCsiVolume { .. }
            | Command::DetachCsiClaim { .. }
            | Command::ReleaseCsiClaim { .. }
            | Command::AwaitCsiExpansion { .. }
            | Command::EndCsiExpansion { .. }
            | Command::AdvanceDeployment { .. }
            | Command::ObserveRollout(_)
            | Command::AdvanceDrain { .. }
            | Command::LaunchJob { .. } => Lane::Reports,
            Command::SettleEval(_) | Command::FailEval { .. } => Lane::Plans,
            Command::RegisterJob(_)
            | Command::EvaluateJob { .. }
            | Command::RevertJob { .. }
            | Command::DispatchJob(_)
            | Command::ScaleJob(_) => Lane::Work,
            Command::SetNodeEligibility { .. }
            | Command::SetNodeDrain { .. }
            | Command::DeregisterNode { .. }
            | Command::DeregisterJob { .. }
            | Command::EvaluateNode { .. }
            | Command::StopAlloc { .. }
            | Command::UpsertNodePool(_)
            | Command::DeleteNodePool { .. }
            | Command::SetJobStability { .. }
            | Command::CollectGarbage { .. }
            | Command::CollectDue { .. }
            | Command::CollectLeftovers { .. }
            | Command::TagJobVersion { .. }
            | Command::UntagJobVersion { .. }
            | Command::UpsertNamespace(_)
            | Command::DeleteNamespace { .. }
            | Command::PromoteDeployment { .. }
            | Command::FailDeployment { .. }
            | Command::PauseDeployment { .. }
            | Command::ResumeDeployment { .. }
            | Command::UnblockDeployment { .. }
            | Command::SetAllocHealth { .. }
            | Command::RegisterCsiVolume { .. }
            | Command::RegisterHostVolume { .. }
            | Command::CreateHostVolume { .. }
            | Command::DeregisterVolume { .. }
            | Command::SetEventCursor(_)
            | Command::AckEventCursor { .. }
            | Command::AckEventCursorMember { .. }
            | Command::SplitEventCursor { .. }
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
            | Command::RaiseEpoch { .. }
            | Command::NoteDroppedHistory { .. }
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
            | Command::CopyAuthMethod(_)
            | Command::CopyBindingRule(_)
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
            | Command::ForgetVariable { .. }
            | Command::ForgetAclToken { .. }
            | Command::ForgetAuthMethod { .. }
            | Command::KeyTree(_)
            | Command::GiveStateChunk { .. }
            | Command::RestoreState { .. } => Lane::Writes,
        }
    }
}

/// The lanes, in front of one reader.
#[derive(Debug)]
pub struct Lanes<T> {
    queues: [VecDeque<T>; 5],
    turn: usize,
    /// Nothing comes out of [`Lane::Work`] by turn.
    work_is_held: bool,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Lanes { queues: Default::default(), turn: 0, work_is_held: false }
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

    /// Whether what waits in [`Lane::Work`] has to go on waiting. Says if that was not so before.
    pub fn hold_work(&mut self, held: bool) -> bool {
        std::mem::replace(&mut self.work_is_held, held) != held
    }

    /// The longest in [`Lane::Work`], while that is held back.
    pub fn held(&self) -> Option<&T> {
        self.queues[Lane::Work as usize].front().filter(|_| self.work_is_held)
    }

    /// Takes that one out.
    pub fn pop_held(&mut self) -> Option<T> {
        if self.work_is_held { self.queues[Lane::Work as usize].pop_front() } else { None }
    }

    /// The next item by turn; a lane without items, or that is held back, gives its turn away.
    pub fn pop(&mut self) -> Option<T> {
        for _ in 0..TURNS.len() {
            let lane = TURNS[self.turn];
            self.turn = (self.turn + 1) % TURNS.len();
            if lane == Lane::Work && self.work_is_held {
                continue;
            }
            if let Some(item) = self.queues[lane as usize].pop_front() {
                return Some(item);
            }
        }
        None
    }

    /// Nothing would come out by turn.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many would come out by turn.
    pub fn len(&self) -> usize {
        let held = if self.work_is_held { self.queues[Lane::Work as usize].len() } else { 0 };
        self.queues.iter().map(VecDeque::len).sum::<usize>() - held
    }

    /// How many there are in all.
    pub fn waiting(&self) -> usize {
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
        let all = [Lane::Liveness, Lane::Reports, Lane::Plans, Lane::Writes, Lane::Work];
        for lane in all {
            (0..100).for_each(|_| lanes.push(lane, lane).unwrap());
        }
        let round: Vec<Lane> = std::iter::from_fn(|| lanes.pop()).take(TURNS.len()).collect();
        let share = |lane| round.iter().filter(|l| **l == lane).count();
        assert_eq!(all.map(share), [6, 3, 4, 2, 2]);
    }

    #[test]
    fn a_full_lane_refuses_and_the_others_do_not() {
        let mut lanes = Lanes::default();
        (0..LANE_MAX).for_each(|_| lanes.push(Lane::Plans, ()).unwrap());
        assert_eq!(lanes.push(Lane::Plans, ()), Err(()));
        assert_eq!(lanes.push(Lane::Reports, ()), Ok(()));
    }

    #[test]
    fn work_that_is_held_back_waits_and_the_rest_goes() {
        let mut lanes = Lanes::default();
        lanes.push(Lane::Work, "job").unwrap();
        assert_eq!(lanes.held(), None);
        assert_eq!(lanes.pop_held(), None);
        assert!(lanes.hold_work(true) && !lanes.hold_work(true));
        lanes.push(Lane::Writes, "stop").unwrap();
        assert_eq!((lanes.len(), lanes.waiting()), (1, 2));
        assert_eq!((lanes.pop(), lanes.pop()), (Some("stop"), None));
        assert_eq!((lanes.is_empty(), lanes.held()), (true, Some(&"job")));
        assert!(lanes.hold_work(false));
        assert_eq!((lanes.len(), lanes.pop()), (1, Some("job")));
    }
}
