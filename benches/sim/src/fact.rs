//! What a layer lets the checks see, and what they have in common.

use std::sync::Arc;

use api::EventId;
use base::{Duration, Index, Term, Time};
use control::broker::Delivery;
use control::{Receipt, SubmitError};
use feed::Segment;
use journal::EncodedBatch;
use model::command::Plan;
use model::{Batch, CommandRecord, Event, NodeId, Request};
use state::State;

use crate::witness::Witness;

/// Something a check may judge.
pub enum Fact<'a> {
    /// The log holds this batch for ever.
    Committed(&'a Batch),
    /// One command of a committed batch, folded by the witness.
    Folded(Folded<'a>),
    /// A server says that the log has this batch.
    InLog {
        server: usize,
        batch: &'a EncodedBatch,
    },
    /// A server is notified that it may propose in a term.
    Leads {
        server: usize,
        term: Term,
    },
    /// A server lets everybody read this state. `decided` on what it proposed itself, or folded from the log.
    Published {
        server: usize,
        state: &'a Arc<State>,
        decided: bool,
    },
    /// A server begins again with nothing in memory.
    Restarted {
        server: usize,
    },
    /// A server begins again with the state of its image.
    Restored {
        server: usize,
        state: &'a Arc<State>,
    },
    /// A server's clock was set forward by so much, or back.
    ClockMoved {
        server: usize,
        by: Duration,
    },
    /// A server begins to count heartbeats from now.
    CountsAnew {
        server: usize,
        /// By the server's own clock.
        at: Time,
    },
    /// A leader granted a node this time to live, by the leader's own clock.
    Heard {
        server: usize,
        node: NodeId,
        at: Time,
        ttl: Duration,
    },
    /// A leader did not hear from a node for too long, by its own clock.
    GivenUp {
        server: usize,
        node: NodeId,
        at: Time,
    },
    /// A leader handed out an evaluation.
    Delivered {
        delivery: &'a Delivery,
    },
    /// A worker made a plan of what its server knew.
    Scheduled {
        delivery: &'a Delivery,
        state: &'a State,
        plan: &'a Plan,
    },
    /// A client is about to send a command for the first time.
    Asked {
        op: u64,
        request: &'a Request,
    },
    /// A client learned what became of it. `open`: an earlier attempt may still take effect.
    Answered {
        op: u64,
        outcome: &'a Result<Receipt, SubmitError>,
        open: bool,
    },
    /// Somebody is about to ask what a reader must have seen.
    ReadAsked {
        read: u64,
    },
    ReadAnswered {
        read: u64,
        server: usize,
        index: Index,
    },
    /// A stream was opened after an event, or at the beginning.
    StreamOpened {
        reader: usize,
        after: Option<EventId>,
    },
    Streamed {
        reader: usize,
        segment: &'a Segment,
    },
}

/// The events of one command between the states before and after it.
#[derive(Clone, Copy)]
pub struct Folded<'a> {
    pub batch: &'a Batch,
    pub record: &'a CommandRecord,
    pub events: &'a [&'a Event],
    pub before: &'a State,
    pub after: &'a State,
}

/// The end of a run: faults are off, and everything had the time to settle.
pub struct Rest<'a> {
    pub servers: Vec<&'a Arc<State>>,
    /// What each reader has received: all batches below this.
    pub readers: Vec<Index>,
}

/// A sentence that must hold. `Err` says how it was violated.
pub trait Check {
    /// The sentence, with its number.
    fn sentence(&self) -> &'static str;

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String>;

    fn rest(&mut self, _: &Rest<'_>, _: &Witness) -> Result<(), String> {
        Ok(())
    }
}

/// A sentence that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub sentence: String,
    pub how: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.sentence, self.how)
    }
}
