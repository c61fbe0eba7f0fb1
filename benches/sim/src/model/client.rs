//! A client: asks one thing at a time, and repeats it under the same id until it knows what became of it.

use base::Rng;
use control::{LeaderAnswer, Receipt, SubmitError};
use model::{Command, Request, RequestId};

use super::call::Reply;
use crate::planted::Bug;

/// Attempts of one command before its fate is left open.
const ATTEMPTS_MAX: u32 = 8;

/// A command whose fate its client does not know yet.
pub struct Op {
    pub number: u64,
    pub request: Request,
    attempts: u32,
    /// An attempt that was not answered may still take effect, at any time.
    open: bool,
    /// An attempt was answered with an unknown fate, which is decided before the next leader decides anything.
    unknown: bool,
}

pub struct Client {
    pub op: Option<Op>,
    pub pending: Option<u64>,
    pub chance: Rng,
    bug: Option<Bug>,
}

/// What a client does next.
pub enum Next {
    Again,
    Known { op: u64, outcome: Result<Receipt, SubmitError>, open: bool },
}

impl Client {
    pub fn new(number: usize, seed: u64, bug: Option<Bug>) -> Client {
        Client { op: None, pending: None, chance: Rng::stream(seed ^ number as u64, "client"), bug }
    }

    pub fn begin(&mut self, number: u64, command: Command) -> Request {
        let id = RequestId(self.chance.uuid());
        let request = Request::named(id, model::Actor::ANONYMOUS, command);
        self.op = Some(Op { number, request: request.clone(), attempts: 0, open: false, unknown: false });
        request
    }

    /// What to send now.
    pub fn attempt(&mut self) -> Option<Request> {
        let op = self.op.as_mut()?;
        op.attempts += 1;
        let mut request = op.request.clone();
        if self.bug == Some(Bug::ForgetfulRetry) && op.attempts > 1 {
            request.id = RequestId(self.chance.uuid());
        }
        Some(request)
    }

    /// The answer to an attempt; `None` when none came.
    pub fn hear(&mut self, reply: Option<Reply>) -> Option<Next> {
        self.pending = None;
        let mut op = self.op.take()?;
        let outcome = match reply {
            Some(Reply::Leader(LeaderAnswer::Submitted(outcome))) => outcome,
            Some(Reply::NoLeader) => Err(SubmitError::NotLeading),
            _ => {
                op.open = true;
                Err(SubmitError::Unknown)
            }
        };
        op.unknown |= outcome == Err(SubmitError::Unknown);
        let settled = matches!(outcome, Ok(_) | Err(SubmitError::Rejected(_)));
        if settled || op.attempts >= ATTEMPTS_MAX {
            let open = op.open || op.unknown && !settled;
            return Some(Next::Known { op: op.number, outcome, open });
        }
        self.op = Some(op);
        Some(Next::Again)
    }
}
