//! Has what ended long ago forgotten, so that a cluster that runs for years holds what is of use.

use base::{Duration, Rng, Time};
use model::Command;
use rules::COLLECTED_MAX;
use state::{Delta, State};

use super::controller::Controller;

/// How often it is looked for garbage.
const EVERY: Duration = Duration::from_secs(5 * 60);
/// One collection bounds how much it forgets; if it reached that, the next follows soon.
const SOON: Duration = Duration::from_secs(1);
/// How long an ended job, and a node that is down, stay to be looked at. As in Nomad.
const JOBS_AFTER: Duration = Duration::from_secs(4 * 3600);
const NODES_AFTER: Duration = Duration::from_secs(24 * 3600);

/// When garbage is collected next.
#[derive(Debug, Default)]
pub struct Garbage {
    next: Option<Time>,
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "garbage"
    }

    fn lead(&mut self, _: &State, now: Time) {
        self.next = Some(now.plus(EVERY));
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
        self.next = Some(now.plus(EVERY));
        vec![Command::CollectGarbage { jobs_after: JOBS_AFTER, nodes_after: NODES_AFTER }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_collected_every_five_minutes_while_this_server_leads() {
        let (state, mut rng) = (State::default(), Rng::new(1));
        let mut garbage = Garbage::default();
        assert_eq!(garbage.next_deadline(), None);
        garbage.lead(&state, Time::from_secs(1000));
        assert!(garbage.expire(&state, Time::from_secs(1299), &mut rng).is_empty());
        let commands = garbage.expire(&state, Time::from_secs(1300), &mut rng);
        assert!(matches!(commands[..], [Command::CollectGarbage { jobs_after: JOBS_AFTER, .. }]));
        assert_eq!(garbage.next_deadline(), Some(Time::from_secs(1600)));
        garbage.follow();
        assert_eq!(garbage.next_deadline(), None);
    }
}
