//! Bugs put in on purpose: what the checks find in them is what they are worth.
//!
//! Some sit in the seams of the simulated cluster, some in the rules that a replica is given in place of the real ones,
//! some in what the leader's controllers get to see.

use base::Time;
use journal::EncodedBatch;
use model::Event;
use state::Delta;

pub mod rules;
mod volumes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The log takes appends of a leader that was deposed.
    NoTermFence,
    /// A leader publishes and answers when it has proposed.
    AckBeforeCommit,
    /// Two commits come in the wrong order.
    OutOfOrder,
    /// A repeated command is taken for another one.
    ForgetfulRetry,
    /// A reader that resumes leaves one event out.
    CursorOffByOne,
    /// Whoever folds a batch puts its own time in.
    WallClockInFold,
    /// Placements of a batch are folded in an order of each server's own.
    HashOrderInFold,
    /// Heartbeats are judged by another server's clock.
    ForeignClock,
    /// Heartbeats are judged by a clock that runs at the true speed, and counted by the server's own.
    ForeignSpeed,
    /// A worker does not wait for its server to catch up.
    OldState,
    /// Room that appears wakes no blocked evaluation.
    NobodyUnblocks,
    /// A new leader's controller of that name does not know what there is.
    LeadsBlind(&'static str),
    /// The controller of that name forgets what it has to watch, with each batch.
    Forgets(&'static str),
    /// A worker brings its plan twice.
    SettledTwice,
    /// What a silent node reports is taken.
    SilentNodeAccepted,
    /// Registering makes a node ready.
    RegisterSetsReady,
    /// An acknowledgement cancels nothing.
    AckCancelsNothing,
    /// A return is recorded again with each report.
    ReturnRecordedAgain,
    /// What is replaced is replaced twice.
    TwoSubstitutes,
    /// An original of an older version is stopped when it returns, also while canaries are tried out.
    OldReturnsEnd,
    /// A reader may have done with what is still to come.
    AheadAcknowledged,
    /// What is encrypted with a key that was given up is written.
    ForgottenWritten,
    /// Any number of jobs may write to every CSI volume.
    ManyWriters,
    /// A volume is forgotten as if by force.
    ForgottenInUse,
    /// What takes the place of an allocation with a sticky volume goes to any node that has one.
    StickyWanders,
    /// An evaluation of a job with volumes is not noted as one that any node may help.
    VolumesWakeNobody,
    /// A disk says that it has synced, and has not.
    SkippedSync,
    /// The same for the names of files.
    SkippedNames,
    /// That a sync failed is taken for a success.
    FailedSyncIgnored,
    /// A server that lost its log comes back under its old number.
    SameNumber,
    /// And founds its cluster once more.
    FoundsAgain,
    /// Any server says what a reader must have seen, without asking anybody.
    StaleReads,
    /// A sequencer does not hear that it leads no more.
    DeafToDeposition,
    /// An image is kept as that of the index before its own.
    ImageMisnamed,
    /// What is gone in the authoritative region is not deleted in others.
    DeletionsOverlooked,
    /// An answer of another region that does not come is waited for without end.
    WaitsForEver,
    /// Only who leads a region first follows the authoritative one.
    FollowsFirstOnly,
    /// A region that says nothing is taken for done with its part of a job.
    SilentIsDone,
}

impl Bug {
    /// Those that sit in the seams of the first layer.
    pub const SEAMS: [Bug; 12] = [
        Bug::NoTermFence,
        Bug::AckBeforeCommit,
        Bug::OutOfOrder,
        Bug::ForgetfulRetry,
        Bug::CursorOffByOne,
        Bug::WallClockInFold,
        Bug::HashOrderInFold,
        Bug::ForeignClock,
        Bug::ForeignSpeed,
        Bug::OldState,
        Bug::NobodyUnblocks,
        Bug::SettledTwice,
    ];

    /// Those that sit in the seams of the second layer.
    pub const LOG: [Bug; 11] = [
        Bug::SkippedSync,
        Bug::SkippedNames,
        Bug::FailedSyncIgnored,
        Bug::SameNumber,
        Bug::FoundsAgain,
        Bug::StaleReads,
        Bug::DeafToDeposition,
        Bug::ImageMisnamed,
        Bug::AckBeforeCommit,
        Bug::ForgetfulRetry,
        Bug::CursorOffByOne,
    ];

    /// Those that sit between regions.
    pub const REGIONS: [Bug; 4] =
        [Bug::DeletionsOverlooked, Bug::WaitsForEver, Bug::FollowsFirstOnly, Bug::SilentIsDone];

    /// Those that sit in the leader's controllers.
    pub const CONTROLLERS: [Bug; 7] = [
        Bug::LeadsBlind("broker"),
        Bug::LeadsBlind("heartbeats"),
        Bug::LeadsBlind("launches"),
        Bug::Forgets("deployments"),
        Bug::Forgets("drains"),
        Bug::LeadsBlind("locks"),
        Bug::Forgets("locks"),
    ];

    /// Those that sit in the rules.
    pub const RULES: [Bug; 8] = [
        Bug::SilentNodeAccepted,
        Bug::RegisterSetsReady,
        Bug::AckCancelsNothing,
        Bug::ReturnRecordedAgain,
        Bug::TwoSubstitutes,
        Bug::OldReturnsEnd,
        Bug::AheadAcknowledged,
        Bug::ForgottenWritten,
    ];

    /// Those in the rules that take volumes to be found.
    pub const VOLUMES: [Bug; 4] =
        [Bug::ManyWriters, Bug::ForgottenInUse, Bug::StickyWanders, Bug::VolumesWakeNobody];

    /// What the controllers of a server that has the bug do not see of a batch.
    pub fn overlook(self, delta: &mut Delta) {
        if self == Bug::NobodyUnblocks {
            delta.capacity = false;
        }
    }

    /// What a server that has the bug reads in a committed batch of another.
    pub fn misread(self, batch: &EncodedBatch, clock: Time, server: usize) -> EncodedBatch {
        if !matches!(self, Bug::WallClockInFold | Bug::HashOrderInFold) {
            return batch.clone();
        }
        let Ok(mut read) = batch.decode() else { return batch.clone() };
        if self == Bug::WallClockInFold {
            read.time = clock;
        }
        for logged in &mut read.events {
            if let Event::AllocsPlaced(placed) = &mut logged.event
                && self == Bug::HashOrderInFold
                && placed.ports.is_empty()
            {
                let by = server % placed.ids.len().max(1);
                placed.ids.rotate_left(by);
                placed.nodes.rotate_left(by);
                placed.names.rotate_left(by);
                if !placed.previous.is_empty() {
                    placed.previous.rotate_left(by);
                }
            }
        }
        journal::encode(&read)
    }
}
