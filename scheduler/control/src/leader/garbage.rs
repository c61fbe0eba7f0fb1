//! Has what ended long ago forgotten, so that a cluster that runs for years holds what is of use.

use base::{Duration, Rng, Time};
use model::Command;
use rules::COLLECTED_MAX;
use state::{Delta, State};

use super::controller::Controller;

/// One collection bounds how much it forgets; if it reached that, the next follows soon.
const SOON: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GarbageSettings {
    /// The time between two collections.
    pub every: Duration,
    /// How long an ended job stays to be looked at after its last change.
    pub jobs_after: Duration,
    /// How long a node stays that is down.
    pub nodes_after: Duration,
}

/// As in Nomad.
impl Default for GarbageSettings {
    fn default() -> GarbageSettings {
        GarbageSettings {
            every: Duration::from_secs(5 * 60),
            jobs_after: Duration::from_secs(4 * 3600),
            nodes_after: Duration::from_secs(24 * 3600),
        }
    }
}

/// When garbage is collected next.
#[derive(Debug)]
pub struct Garbage {
    settings: GarbageSettings,
    next: Option<Time>,
}

impl Garbage {
    pub fn new(settings: GarbageSettings) -> Garbage {
        Garbage { settings, next: None }
    }
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "garbage"
    }

    fn lead(&mut self, _: &State, now: Time) {
        self.next = Some(now.plus(self.settings.every));
    }

    fn follow(&mut self) {
        self.next = None;
    }

    fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        let purged = delta.jobs.iter().filter(|row| state.jobs.get(**row).purged).count();
        let left = delta.nodes.iter().filter(|row| state.nodes.hot(**row).gone).count();
        if purged.max(left) >= COLLECTED_MAX {
            self.next = self.next.map(|next| next.min(now.plus(SOON)));
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next
    }

    fn expire(&mut self, _: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let GarbageSettings { every, jobs_after, nodes_after } = self.settings;
        self.next = Some(now.plus(every));
        vec![Command::CollectGarbage { jobs_after, nodes_after }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_collected_every_five_minutes_while_this_server_leads() {
        let (state, mut rng) = (State::default(), Rng::new(1));
        let mut garbage = Garbage::new(GarbageSettings::default());
        assert_eq!(garbage.next_deadline(), None);
        garbage.lead(&state, Time::from_secs(1000));
        assert!(garbage.expire(&state, Time::from_secs(1299), &mut rng).is_empty());
        let commands = garbage.expire(&state, Time::from_secs(1300), &mut rng);
        let four_hours = Duration::from_secs(4 * 3600);
        assert!(
            matches!(commands[..], [Command::CollectGarbage { jobs_after, .. }] if jobs_after == four_hours)
        );
        assert_eq!(garbage.next_deadline(), Some(Time::from_secs(1600)));
        garbage.follow();
        assert_eq!(garbage.next_deadline(), None);
    }
}
