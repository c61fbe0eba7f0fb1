//! Messages between regions: which get through, how late, how often.

use base::Duration;
use federation::rollouts::RolloutQuery;
use federation::{Answer, Failure};
use model::{DeploymentStatus, Request};

use super::options::NAMES;
use super::tasks::TaskId;
use super::world::{Event, Federation};
use crate::fact::Violation;
use crate::model::call::Reply;
use crate::model::world::World;

/// What goes from a region to another one.
#[derive(Clone, Debug)]
pub(super) enum Letter {
    /// A follower reads; what it reads goes back to it alone.
    Read {
        by: TaskId,
        turn: u64,
        path: String,
    },
    HasRead {
        by: TaskId,
        turn: u64,
        answer: Result<Answer, Failure>,
    },
    /// How far the region is with a job.
    Progress {
        by: TaskId,
        turn: u64,
        nth: usize,
        query: RolloutQuery,
    },
    HasProgress {
        by: TaskId,
        turn: u64,
        nth: usize,
        region: usize,
        status: Option<DeploymentStatus>,
    },
    /// A command of somebody in another region.
    Write {
        by: usize,
        attempt: u64,
        request: Box<Request>,
    },
    HasWritten {
        by: usize,
        attempt: u64,
        reply: Reply,
    },
}

/// One way of a link is down until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub from: usize,
    pub to: usize,
    pub number: u64,
}

impl Federation {
    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.apart && from != to || self.cuts.iter().any(|cut| (cut.from, cut.to) == (from, to))
    }

    pub fn post(&mut self, from: usize, to: usize, letter: Letter) {
        if self.is_cut(from, to) {
            return;
        }
        let links = self.options.links.clone();
        let storm = !self.calm;
        if storm && self.wires.below(1_000) < links.lost {
            return;
        }
        // A request that comes twice would be two: connections do not repeat themselves, callers do.
        let is_request = matches!(letter, Letter::Write { .. });
        if storm && !is_request && self.wires.below(1_000) < links.twice {
            let again = World::up_to(&mut self.wires, Duration::from_secs(5));
            self.agenda.after(again, Event::Arrive { from, to, letter: Box::new(letter.clone()) });
        }
        let late = storm && self.wires.below(1_000) < links.late;
        let most = if late { Duration::from_secs(30) } else { links.delay_max };
        let delay = World::up_to(&mut self.wires, most);
        self.agenda.after(delay, Event::Arrive { from, to, letter: Box::new(letter) });
    }

    /// What was on its way when the link was cut does not arrive.
    pub fn arrive(&mut self, from: usize, to: usize, letter: Letter) -> Result<(), Violation> {
        if self.is_cut(from, to) {
            return Ok(());
        }
        match letter {
            Letter::Read { by, turn, path } => {
                self.is_read(by, turn, &path);
                Ok(())
            }
            Letter::HasRead { by, turn, answer } => {
                self.has_read(by, turn, answer);
                Ok(())
            }
            Letter::Progress { by, turn, nth, query } => {
                if let Some(server) = self.any_server(to) {
                    let state = &self.regions[to].world.servers[server].published;
                    let status = federation::rollouts::progress(state, &query);
                    self.post(to, from, Letter::HasProgress { by, turn, nth, region: to, status });
                }
                Ok(())
            }
            Letter::HasProgress { by, turn, nth, region, status } => {
                self.has_progress(by, turn, nth, region, status);
                Ok(())
            }
            Letter::Write { by, attempt, request } => {
                self.is_written(to, by, attempt, *request);
                Ok(())
            }
            Letter::HasWritten { by, attempt, reply } => self.client_hears(by, attempt, Some(reply)),
        }
    }

    /// One that answers.
    pub fn any_server(&mut self, region: usize) -> Option<usize> {
        let servers = &self.regions[region].world.servers;
        let well: Vec<usize> =
            (0..servers.len()).filter(|at| servers[*at].up && !servers[*at].paused).collect();
        well.get(self.wires.below(well.len().max(1) as u64) as usize).copied()
    }

    /// Some link breaks, one way or both, and heals.
    pub fn cut_something(&mut self) {
        if self.calm {
            return;
        }
        self.plan_cut();
        let count = self.regions.len() as u64;
        let from = self.faults.below(count) as usize;
        let to = (from + 1 + self.faults.below(count - 1) as usize) % self.regions.len();
        let both = self.faults.below(3) > 0;
        let span = World::up_to(&mut self.faults, Duration::from_secs(40));
        let ways = if both { vec![(from, to), (to, from)] } else { vec![(from, to)] };
        for (from, to) in ways {
            self.cut_count += 1;
            let number = self.cut_count;
            self.tell(format_args!(
                "{} does not reach {} for {} ms",
                NAMES[from],
                NAMES[to],
                span.as_millis()
            ));
            self.cuts.push(Cut { from, to, number });
            self.agenda.after(span, Event::Mend(number));
        }
    }

    pub fn plan_cut(&mut self) {
        if let Some(every) = self.options.links.cut {
            let span = World::up_to(&mut self.faults, Duration(2 * every.0));
            self.agenda.after(span, Event::Cut);
        }
    }

    pub fn mend(&mut self, number: u64) {
        self.cuts.retain(|cut| cut.number != number);
    }
}
