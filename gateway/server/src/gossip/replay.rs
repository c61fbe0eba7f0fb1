//! Which packets are new: what was recorded and is sent again does nothing.
//!
//! A process is one session, and numbers its packets. A session is accepted once it sends our cookie, which nobody can
//! have recorded before this process began; from then on each number counts once.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Uuid;

use super::seal::Session;

/// Most processes remembered at a time. The one that was silent for longest is forgotten for a new one.
pub(super) const SESSIONS_MAX: usize = 1_024;

/// What a new session has to send to be accepted.
pub(super) type Cookie = [u8; 16];

/// Packets that may come late and still count, behind the newest one of their session.
const WINDOW: u64 = 128;

pub(super) struct ReplayGuard {
    cookie: Cookie,
    known: BTreeMap<Session, KnownSession>,
}

struct KnownSession {
    who: Uuid,
    last_received: Duration,
    newest: u64,
    /// Bit n: the packet n before the newest one has come.
    seen: u128,
}

/// What a packet's head says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketCheck {
    New,
    /// It was received before, or is too old to know.
    Repeated,
    /// Its session was not accepted.
    UnknownSession,
}

impl ReplayGuard {
    pub(super) fn new(cookie: Cookie) -> ReplayGuard {
        ReplayGuard { cookie, known: BTreeMap::new() }
    }

    /// What an unknown session has to send.
    pub(super) fn cookie(&self) -> Cookie {
        self.cookie
    }

    pub(super) fn take(&mut self, session: &Session, number: u64, now: Duration) -> PacketCheck {
        let Some(known) = self.known.get_mut(session) else { return PacketCheck::UnknownSession };
        if number > known.newest {
            let shift = number - known.newest;
            known.seen = if shift < WINDOW { known.seen << shift | 1 } else { 1 };
            known.newest = number;
        } else {
            let behind = known.newest - number;
            if behind >= WINDOW || known.seen & (1 << behind) != 0 {
                return PacketCheck::Repeated;
            }
            known.seen |= 1 << behind;
        }
        known.last_received = now;
        PacketCheck::New
    }

    /// Accepts a session that sent the cookie. `next_cookie` replaces the cookie if a session had to be forgotten:
    /// otherwise its recorded packets would have it accepted again.
    pub(super) fn admit(
        &mut self,
        session: Session,
        number: u64,
        who: Uuid,
        now: Duration,
        next_cookie: Cookie,
    ) {
        if self.known.len() >= SESSIONS_MAX
            && let Some(silent) =
                self.known.iter().min_by_key(|(_, known)| known.last_received).map(|(id, _)| *id)
        {
            self.known.remove(&silent);
            self.cookie = next_cookie;
        }
        // Packets from before it was accepted are rejected now as they were then.
        self.known.insert(session, KnownSession { who, last_received: now, newest: number, seen: u128::MAX });
    }

    /// Whether some process of this server was accepted.
    pub(super) fn knows(&self, who: Uuid) -> bool {
        self.known.values().any(|known| known.who == who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn one(number: u64) -> ReplayGuard {
        let mut sessions = ReplayGuard::new([7; 16]);
        sessions.admit([1; 16], number, Uuid::NIL, NOW, [8; 16]);
        sessions
    }

    #[test]
    fn each_number_counts_once_in_any_order() {
        let mut sessions = one(10);
        let mut take = |number| sessions.take(&[1; 16], number, NOW);
        assert_eq!([take(10), take(9), take(1)], [PacketCheck::Repeated; 3], "from before it was accepted");
        assert_eq!([take(13), take(11), take(12)], [PacketCheck::New; 3]);
        assert_eq!([take(11), take(12), take(13)], [PacketCheck::Repeated; 3]);
        assert_eq!(take(13 + WINDOW), PacketCheck::New);
        assert_eq!([take(13), take(1)], [PacketCheck::Repeated; 2], "too old to know");
        assert_eq!(take(14), PacketCheck::New, "the oldest one that is in the window");
        assert_eq!(take(u64::MAX), PacketCheck::New);
        assert_eq!(take(u64::MAX), PacketCheck::Repeated);
    }

    #[test]
    fn packets_of_unknown_sessions_are_rejected() {
        assert_eq!(one(1).take(&[2; 16], 5, NOW), PacketCheck::UnknownSession);
    }

    #[test]
    fn a_forgotten_session_needs_a_new_cookie() {
        let mut sessions = one(1);
        for n in 1..SESSIONS_MAX {
            let session = (n as u128 + 1_000).to_le_bytes();
            sessions.admit(session, 1, Uuid::NIL, Duration::from_secs(n as u64), [8; 16]);
        }
        assert_eq!(sessions.cookie(), [7; 16]);
        sessions.admit([9; 16], 1, Uuid::from(3), Duration::from_secs(5_000), [8; 16]);
        assert_eq!(
            sessions.take(&[1; 16], 2, NOW),
            PacketCheck::UnknownSession,
            "the one silent for longest has gone"
        );
        assert_eq!(sessions.cookie(), [8; 16]);
        assert!(sessions.knows(Uuid::from(3)) && sessions.known.len() == SESSIONS_MAX);
    }
}
