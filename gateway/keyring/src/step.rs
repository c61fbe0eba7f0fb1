//! What a server has to do about the keyring.

use std::time::Duration;

use base::{Time, Uuid};
use state::keyring::Keyring;

/// When root keys are replaced and removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootKeySettings {
    /// The time between two looks for old keys.
    pub every: base::Duration,
    /// The active key is replaced when it is this old.
    pub rotate_after: base::Duration,
    /// A former key is removed so long after the time at which it had to be replaced at the latest: what was signed with it
    /// has expired by then.
    pub remove_after: base::Duration,
}

/// As Nomad's `root_key_gc_interval`, `root_key_rotation_threshold` and `root_key_gc_threshold`.
impl Default for RootKeySettings {
    fn default() -> RootKeySettings {
        RootKeySettings {
            every: base::Duration::from_secs(10 * 60),
            rotate_after: base::Duration::from_secs(720 * 60 * 60),
            remove_after: base::Duration::from_secs(60 * 60),
        }
    }
}

/// How long a leader waits for others to give it the active key, before it draws another.
pub const STUCK_AFTER: Duration = Duration::from_secs(30);

/// A server, and what it knows besides the keyring.
#[derive(Clone, Copy, Debug)]
pub struct Viewpoint {
    pub server: Uuid,
    pub public: [u8; 32],
    /// How long it has led; `None` while it does not.
    pub leading_for: Option<Duration>,
    pub now: Time,
    /// After how long keys are replaced and removed; `None` while it is not time to look for old ones.
    pub old_after: Option<OldAfter>,
}

/// Ages of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldAfter {
    pub rotate: base::Duration,
    pub remove: base::Duration,
}

impl RootKeySettings {
    pub fn old_after(&self) -> OldAfter {
        let remove = base::Duration(self.rotate_after.0.saturating_add(self.remove_after.0));
        OldAfter { rotate: self.rotate_after, remove }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Announces the own key.
    Announce,
    /// Draws a key and makes it the active one, instead of `after`; nil stands for none.
    Activate { after: Uuid },
    /// Gives a server its copy of a key.
    Share { key: Uuid, server: Uuid },
    /// Removes a former key that nothing needs any more.
    Remove { key: Uuid },
}

/// One step at a time. Every server shares what it can open, so that any of them may be lost. `is_used` says which keys still
/// prove something.
pub fn next_step(keyring: &Keyring, own: &Viewpoint, is_used: impl Fn(Uuid) -> bool) -> Option<Step> {
    if keyring.servers().get(&own.server).is_none_or(|known| known.public != own.public) {
        return Some(Step::Announce);
    }
    if let Some(leading_for) = own.leading_for {
        let Some((active, key)) = keyring.active() else { return Some(Step::Activate { after: Uuid::NIL }) };
        let is_stuck = !key.sealed.contains_key(&own.server) && leading_for >= STUCK_AFTER;
        let is_old = |created: Time, age: base::Duration| own.now >= created.plus(age);
        if is_stuck || own.old_after.is_some_and(|after| is_old(key.created_at, after.rotate)) {
            return Some(Step::Activate { after: active });
        }
        if let Some(after) = own.old_after {
            let former = keyring.keys().iter().filter(|(id, _)| **id != active);
            let mut old = former.filter(|(id, key)| is_old(key.created_at, after.remove) && !is_used(**id));
            if let Some((id, _)) = old.next() {
                return Some(Step::Remove { key: *id });
            }
        }
    }
    let opened = keyring.keys().iter().filter(|(_, key)| key.sealed.contains_key(&own.server));
    opened.into_iter().find_map(|(id, key)| {
        let without = keyring.servers().keys().find(|server| !key.sealed.contains_key(server))?;
        Some(Step::Share { key: *id, server: *without })
    })
}

#[cfg(test)]
mod tests {
    use base::Index;
    use model::SealedKey;
    use model::event::{RootKeyActivated, ServerKeyAnnounced};
    use model::{Actor, CommandRecord, Event, RequestId};
    use state::{Delta, Moment, State};

    use super::*;

    const PUBLIC: [u8; 32] = [7; 32];

    fn keyring(events: Vec<Event>) -> Keyring {
        let mut state = State::default();
        let at = Moment { index: Index(1), time: Time::ZERO, epoch: model::EPOCH };
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        state.absorb(at, &record, events.iter(), &mut Delta::default());
        state.keyring
    }

    fn announced(server: u128) -> Event {
        ServerKeyAnnounced { server: server.into(), public: PUBLIC }.into()
    }

    fn activated(key: u128, servers: &[u128]) -> Event {
        let sealed = servers.iter().map(|id| SealedKey { server: (*id).into(), bytes: vec![1] });
        RootKeyActivated { key: key.into(), modulus: vec![1], exponent: vec![1], sealed: sealed.collect() }
            .into()
    }

    fn step(events: Vec<Event>, leading_for: Option<u64>, now: Duration) -> Option<Step> {
        let leading_for = leading_for.map(Duration::from_secs);
        let now = Time::ZERO.plus(now.into());
        let old_after = Some(RootKeySettings::default().old_after());
        let own = Viewpoint { server: 1.into(), public: PUBLIC, leading_for, now, old_after };
        next_step(&keyring(events), &own, |_| false)
    }

    #[test]
    fn a_server_announces_itself_and_the_leader_founds_the_keyring() {
        let early = Duration::ZERO;
        assert_eq!(step(vec![], None, early), Some(Step::Announce));
        assert_eq!(step(vec![announced(1)], None, early), None);
        assert_eq!(step(vec![announced(1)], Some(0), early), Some(Step::Activate { after: Uuid::NIL }));
        assert_eq!(step(vec![announced(1), activated(9, &[1])], Some(0), early), None);
    }

    #[test]
    fn a_server_that_comes_later_gets_its_copy_from_any_that_has_one() {
        let joined = vec![announced(1), activated(9, &[1]), announced(2)];
        let share = Step::Share { key: 9.into(), server: 2.into() };
        assert_eq!(step(joined.clone(), None, Duration::ZERO), Some(share));
        assert_eq!(step(joined, Some(0), Duration::ZERO), Some(share));
    }

    #[test]
    fn a_leader_without_the_active_key_waits_for_it_and_then_draws_another() {
        let without = || vec![announced(2), activated(9, &[2]), announced(1)];
        assert_eq!(step(without(), Some(29), Duration::ZERO), None);
        assert_eq!(step(without(), Some(30), Duration::ZERO), Some(Step::Activate { after: 9.into() }));
        assert_eq!(step(without(), None, Duration::ZERO), None, "it does not lead");
    }

    #[test]
    fn a_former_key_is_removed_when_what_it_signed_has_expired() {
        let replaced = || vec![announced(1), activated(8, &[1]), activated(9, &[1])];
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        // The active one is as old here, so it has to go first.
        assert_eq!(step(replaced(), Some(0), hours(721)), Some(Step::Activate { after: 9.into() }));
        let now = Time::ZERO.plus(hours(721).into());
        let old_after = OldAfter { rotate: hours(9_999).into(), remove: hours(721).into() };
        let mut own = Viewpoint {
            server: 1.into(),
            public: PUBLIC,
            leading_for: Some(Duration::ZERO),
            now,
            old_after: Some(old_after),
        };
        let keyring = keyring(replaced());
        assert_eq!(next_step(&keyring, &own, |_| false), Some(Step::Remove { key: 8.into() }));
        assert_eq!(next_step(&keyring, &own, |_| true), None, "it still proves something");
        own.now = Time::ZERO.plus(hours(720).into());
        assert_eq!(next_step(&keyring, &own, |_| false), None);
        (own.now, own.old_after) = (now, None);
        assert_eq!(next_step(&keyring, &own, |_| false), None, "it is not time to look for old keys");
        (own.leading_for, own.old_after) = (None, Some(old_after));
        assert_eq!(next_step(&keyring, &own, |_| false), None, "it does not lead");
    }

    #[test]
    fn an_old_key_is_replaced() {
        let founded = || vec![announced(1), activated(9, &[1])];
        let limit = Duration::from_secs(720 * 3600);
        let almost = limit - Duration::from_secs(1);
        assert_eq!(step(founded(), Some(0), almost), None);
        assert_eq!(step(founded(), Some(0), limit), Some(Step::Activate { after: 9.into() }));
        assert_eq!(step(founded(), None, limit), None);
    }
}
