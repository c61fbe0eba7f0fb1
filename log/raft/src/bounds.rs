//! What a server of the cluster can say. The rest is dropped before consensus sees it.
//!
//! Consensus stores every higher term that it receives and never goes back. So one message with a term near the end of
//! the numbers, forged or damaged on its way, would leave a server that no other one can follow, also after a restart.

use std::fmt::Display;
use std::time::Duration;

use base::Occurrences;
use openraft::raft::AppendEntriesResponse;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::{LogId, Types};
use crate::message::Message;
use crate::peers::PeerError;

/// How far a term may lead beyond the highest known one. An election takes half a second at least: a server that was away
/// for five days in which nothing but elections happened comes back, and there are 18 trillion such leaps in a term's 64
/// bits.
pub(crate) const TERM_LEAP_MAX: u64 = 1_000_000;

/// A server that has stored no term yet may join a cluster of any age, as long as that has room to grow.
const FIRST_TERM_MAX: u64 = 1 << 62;

pub(crate) struct Bounds {
    /// `None` before the first term is known.
    terms: Mutex<Option<Terms>>,
    /// The shortest time between two elections.
    election: Duration,
    dropped: Occurrences,
}

/// What is believed of terms. Higher ones use up what is between `highest` and `ceiling`, and time gives it back: else one
/// leap would follow the other.
struct Terms {
    /// The highest that this server has received or sent.
    highest: u64,
    /// The highest that is believed.
    ceiling: u64,
    /// Until when time has been counted.
    counted: Instant,
}

impl Bounds {
    /// `stored` is the server's term, if it has one yet.
    pub fn new(stored: Option<u64>, election: Duration) -> Bounds {
        Bounds { terms: Mutex::new(stored.map(Terms::from)), election, dropped: Occurrences::default() }
    }

    /// Messages that were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped.count()
    }

    /// Notes the term of a message that this server sends: its own elections need no permission.
    pub fn sends(&self, message: &Message) {
        if let Some(term) = message.term() {
            let mut terms = self.terms.lock();
            let terms = terms.get_or_insert_with(|| Terms::from(term));
            terms.highest = terms.highest.max(term);
            terms.ceiling = terms.ceiling.max(term);
        }
    }

    /// Whether the server `from` can have sent this.
    pub fn check(&self, from: u64, message: &Message) -> Result<(), String> {
        if let Some(sender) = message.sender().filter(|sender| *sender != from) {
            return Err(format!("server {from} speaks in the name of server {sender}"));
        }
        let Some(term) = message.term() else { return Ok(()) };
        let mut terms = self.terms.lock();
        match &mut *terms {
            None if term > FIRST_TERM_MAX => Err(format!("no elections lead to term {term}")),
            None => {
                *terms = Some(Terms::from(term));
                Ok(())
            }
            Some(terms) => terms.follow(term, self.election),
        }
    }

    /// Counts a message that is dropped.
    pub fn refuse(&self, from: Option<u64>, why: impl Display) -> PeerError {
        if let Some(dropped) = self.dropped.add() {
            tracing::warn!(dropped, from, %why, "a message of another server was dropped");
        }
        PeerError::Refused(why.to_string())
    }
}

impl From<u64> for Terms {
    fn from(term: u64) -> Terms {
        Terms { highest: term, ceiling: term.saturating_add(TERM_LEAP_MAX), counted: Instant::now() }
    }
}

impl Terms {
    fn follow(&mut self, term: u64, election: Duration) -> Result<(), String> {
        self.count(election);
        if term > self.ceiling {
            let known = self.highest;
            return Err(format!("no elections explain term {term}: the highest known one is {known}"));
        }
        self.highest = self.highest.max(term);
        Ok(())
    }

    fn count(&mut self, election: Duration) {
        let elections = self.counted.elapsed().as_micros() / election.as_micros().max(1);
        if elections > 0 {
            let more = u64::try_from(elections).unwrap_or(u64::MAX);
            let most = self.highest.saturating_add(TERM_LEAP_MAX);
            self.ceiling = self.ceiling.saturating_add(more).min(most);
            self.counted = Instant::now();
        }
    }
}

/// Whether a follower can answer this when it was sent the entries after `previous` up to `last`.
pub(crate) fn answers(
    answer: &AppendEntriesResponse<Types>,
    previous: Option<LogId>,
    last: Option<LogId>,
) -> bool {
    match answer {
        AppendEntriesResponse::PartialSuccess(upto) => previous <= *upto && *upto <= last,
        // Nothing comes before the first entry that could be another.
        AppendEntriesResponse::Conflict => previous.is_some(),
        AppendEntriesResponse::Success | AppendEntriesResponse::HigherVote(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use openraft::raft::VoteRequest;
    use openraft::vote::leader_id_std::LeaderId;

    use super::*;
    use crate::config::Vote;
    use crate::formats;
    use journal::store;

    const ELECTION: Duration = Duration::from_millis(500);

    fn asks(term: u64) -> Message {
        let vote = Vote { leader_id: LeaderId { term, voted_for: 2 }, committed: false };
        Message::Vote(VoteRequest::new(vote, None))
    }

    #[tokio::test(start_paused = true)]
    async fn a_leap_is_followed_by_no_other_one_before_elections_could_explain_it() {
        let bounds = Bounds::new(Some(7), ELECTION);
        assert!(bounds.check(2, &asks(u64::MAX)).is_err());
        assert!(bounds.check(2, &asks(8 + TERM_LEAP_MAX)).is_err());
        assert!(bounds.check(2, &asks(7 + TERM_LEAP_MAX)).is_ok());
        assert!(bounds.check(2, &asks(8 + TERM_LEAP_MAX)).is_err());
        tokio::time::advance(ELECTION).await;
        assert!(bounds.check(2, &asks(8 + TERM_LEAP_MAX)).is_ok());
        assert!(bounds.check(2, &asks(9 + TERM_LEAP_MAX)).is_err());
        // A year later there is no more than one leap to be had.
        tokio::time::advance(Duration::from_secs(365 * 86_400)).await;
        assert!(bounds.check(2, &asks(9 + 2 * TERM_LEAP_MAX)).is_err());
        assert!(bounds.check(2, &asks(8 + 2 * TERM_LEAP_MAX)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_sends_is_known_to_it() {
        let bounds = Bounds::new(Some(7), ELECTION);
        bounds.sends(&asks(9 * TERM_LEAP_MAX));
        assert!(bounds.check(2, &asks(9 * TERM_LEAP_MAX)).is_ok());
        tokio::time::advance(ELECTION).await;
        assert!(bounds.check(2, &asks(9 * TERM_LEAP_MAX + 1)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_server_joins_a_cluster_of_any_age() {
        let bounds = Bounds::new(None, ELECTION);
        assert!(bounds.check(2, &asks(u64::MAX)).is_err());
        assert!(bounds.check(2, &asks(50 * TERM_LEAP_MAX)).is_ok());
        assert!(bounds.check(2, &asks(51 * TERM_LEAP_MAX + 1)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_speaks_for_another() {
        let bounds = Bounds::new(Some(7), ELECTION);
        assert!(bounds.check(2, &asks(8)).is_ok());
        assert!(bounds.check(3, &asks(8)).is_err());
    }

    #[test]
    fn an_answer_speaks_of_what_was_sent() {
        let id = |index| Some(formats::log_id(store::LogId { index, term: 3 }));
        let upto = |index| AppendEntriesResponse::PartialSuccess(id(index));
        for (upto, possible) in [(upto(4), false), (upto(5), true), (upto(8), true), (upto(9), false)] {
            assert_eq!(answers(&upto, id(5), id(8)), possible, "{upto:?}");
        }
        assert!(!answers(&AppendEntriesResponse::PartialSuccess(None), id(5), id(8)));
        assert!(!answers(&AppendEntriesResponse::Conflict, None, id(8)));
        assert!(answers(&AppendEntriesResponse::Conflict, id(5), id(8)));
    }
}
