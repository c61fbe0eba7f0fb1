//! The regions and what happens between them, one step after another.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::{Duration, Index, Rng, Time};

use super::calm::Calm;
use super::clients::Traveller;
use super::link::{Cut, Letter};
use super::options::{NAMES, RegionsOptions, seed_of};
use super::order::Orders;
use super::source::PendingRead;
use super::spread::Spread;
use super::tasks::{ServerTasks, TaskId};
use crate::agenda::Agenda;
use crate::fact::Violation;
use crate::layer::{Run, Verdict};
use crate::model::world::World;
use crate::panics::{self, Listening};
use crate::planted::Bug;
use crate::story::Story;

/// What is due between regions.
pub(super) enum Event {
    Arrive {
        from: usize,
        to: usize,
        letter: Box<Letter>,
    },
    /// A task of a server has rested.
    Rested {
        by: TaskId,
        turn: u64,
    },
    /// It has waited long enough.
    TimedOut {
        by: TaskId,
        turn: u64,
    },
    /// A reading has waited long enough for news.
    ReadOver(u64),
    Cut,
    Mend(u64),
    Shared,
    Local,
    Stray,
    Spread,
    Attempt(usize),
    ClientTimedOut {
        by: usize,
        attempt: u64,
    },
    Look,
}

pub(super) struct Region {
    pub world: World,
    /// What each server does because of other regions, while it is up.
    pub tasks: Vec<ServerTasks>,
    /// What each of them had published when somebody last looked.
    pub seen: Vec<Index>,
    pub reads: Vec<PendingRead>,
    /// Who waits for the answer to a call of the region's own network.
    pub calls: BTreeMap<u64, Caller>,
    /// Batches of its log that were looked at.
    pub judged: usize,
}

/// Who called a leader.
#[derive(Clone, Copy, Debug)]
pub(super) enum Caller {
    Task {
        by: TaskId,
        turn: u64,
    },
    /// Somebody of another region, or of this one.
    Traveller {
        from: usize,
        by: usize,
        attempt: u64,
    },
}

pub(super) struct Federation {
    pub bug: Option<Bug>,
    pub options: RegionsOptions,
    pub agenda: Agenda<Event>,
    pub story: Story,
    pub regions: Vec<Region>,
    pub cuts: Vec<Cut>,
    pub cut_count: u64,
    /// No region reaches another one.
    pub apart: bool,
    /// Faults and new writes are over.
    pub calm: bool,
    pub phase: Calm,
    pub orders: Orders,
    pub travellers: Vec<Traveller>,
    pub spread: Spread,
    pub turns: u64,
    pub wires: Rng,
    pub faults: Rng,
    pub work: Rng,
}

/// Runs one seed to its end or to the first sentence that does not hold.
pub fn run(run: Run) -> Verdict {
    let listening = panics::listen();
    let mut federation = Federation::new(run);
    let mut violation = federation.begin().err();
    while violation.is_none() && !federation.phase.over {
        violation = federation.step(&listening).err();
        if federation.story.steps() > run.steps_max {
            break;
        }
    }
    federation.verdict(violation)
}

impl Federation {
    fn new(run: Run) -> Federation {
        let Run { seed, bug, .. } = run;
        let options = RegionsOptions::draw(seed);
        let of = |(region, options): (usize, &crate::options::Options)| {
            // What is planted here sits between regions.
            let run = Run { seed: seed_of(seed, region), bug: None, ..run };
            Region::new(World::new(run, options.clone()))
        };
        let regions: Vec<Region> = options.regions.iter().enumerate().map(of).collect();
        let start = regions[0].world.agenda.now();
        Federation {
            bug,
            agenda: Agenda::new(start),
            story: Story::new(start, run.story),
            cuts: Vec::new(),
            cut_count: 0,
            apart: false,
            calm: false,
            phase: Calm::default(),
            orders: Orders::default(),
            travellers: Traveller::all(seed, regions.len()),
            spread: Spread::default(),
            turns: 0,
            wires: Rng::stream(seed, "links"),
            faults: Rng::stream(seed, "cuts"),
            work: Rng::stream(seed, "work of regions"),
            regions,
            options,
        }
    }

    fn begin(&mut self) -> Result<(), Violation> {
        for region in &mut self.regions {
            region.world.begin();
        }
        self.plan_cut();
        self.plan_work();
        let storm = self.options.regions[0].storm;
        self.agenda.after(storm, Event::Look);
        (0..self.regions.len()).try_for_each(|region| self.notice(region))
    }

    /// The next thing happens, wherever it is due first.
    fn step(&mut self, listening: &Listening) -> Result<(), Violation> {
        let next = |(at, region): (usize, &Region)| region.world.agenda.next().map(|due| (due, at));
        let first = self.regions.iter().enumerate().filter_map(next).min();
        let own = self.agenda.next();
        match (first, own) {
            (Some((due, region)), own) if own.is_none_or(|own| due <= own) => {
                self.regions[region].world.step(listening)?;
                self.caught(listening, |federation| federation.notice(region))
            }
            (_, Some(due)) => {
                for region in &mut self.regions {
                    region.world.agenda.advance(due);
                }
                self.caught(listening, Federation::happen)
            }
            (_, None) => {
                self.phase.over = true;
                Ok(())
            }
        }
    }

    fn caught(
        &mut self,
        listening: &Listening,
        happen: impl FnOnce(&mut Federation) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let happened = catch_unwind(AssertUnwindSafe(|| happen(self)));
        happened.unwrap_or_else(|_| {
            let sentence = "what the code asserts holds".to_string();
            Err(Violation { sentence, how: listening.first().unwrap_or_default() })
        })
    }

    fn happen(&mut self) -> Result<(), Violation> {
        let Some(event) = self.agenda.take_next() else { return Ok(()) };
        match event {
            Event::Arrive { from, to, letter } => self.arrive(from, to, *letter),
            Event::Rested { by, turn } => {
                self.has_rested(by, turn);
                Ok(())
            }
            Event::TimedOut { by, turn } => {
                self.task_timed_out(by, turn);
                Ok(())
            }
            Event::ReadOver(number) => {
                self.read_is_over(number);
                Ok(())
            }
            Event::Cut => {
                self.cut_something();
                Ok(())
            }
            Event::Mend(number) => {
                self.mend(number);
                Ok(())
            }
            Event::Shared | Event::Local | Event::Stray => self.somebody_writes(&event),
            Event::Spread => self.somebody_spreads(),
            Event::Attempt(by) => self.client_attempts(by),
            Event::ClientTimedOut { by, attempt } => self.client_hears(by, attempt, None),
            Event::Look => self.look(),
        }
    }

    /// Something happened in a region: what follows from it for others.
    pub fn notice(&mut self, region: usize) -> Result<(), Violation> {
        let now = self.regions[region].world.agenda.now();
        self.agenda_to(now);
        self.judge(region)?;
        self.keep_tasks(region);
        for (number, reply) in std::mem::take(&mut self.regions[region].world.heard) {
            match self.regions[region].calls.remove(&number) {
                Some(Caller::Task { by, turn }) => self.task_hears(by, turn, reply),
                Some(Caller::Traveller { from, by, attempt }) if from == region => {
                    self.client_hears(by, attempt, Some(reply))?;
                }
                Some(Caller::Traveller { from, by, attempt }) => {
                    self.post(region, from, Letter::HasWritten { by, attempt, reply });
                }
                None => {}
            }
        }
        let published: Vec<Index> =
            self.regions[region].world.servers.iter().map(|server| server.published.index).collect();
        if published != self.regions[region].seen {
            self.regions[region].seen = published;
            self.answer_reads(region);
            self.tasks_reach(region);
        }
        Ok(())
    }

    /// What is due here is not before that: else it would have happened.
    fn agenda_to(&mut self, now: Time) {
        self.agenda.advance(now.max(self.agenda.now()));
    }

    pub fn now(&self) -> Time {
        self.agenda.now()
    }

    pub fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        self.story.tell(self.agenda.now(), what);
    }

    pub fn after(&mut self, span: Duration, event: Event) {
        self.agenda.after(span, event);
    }

    fn verdict(self, violation: Option<Violation>) -> Verdict {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.story.hash().as_bytes());
        let mut lines: Vec<String> = self.story.lines().map(str::to_string).collect();
        let (mut steps, mut batches, mut astray) = (self.story.steps(), 0, Duration::ZERO);
        for (name, region) in NAMES.iter().zip(&self.regions) {
            let world = &region.world;
            hasher.update(world.story.hash().as_bytes());
            steps += world.story.steps();
            batches += world.checks.witness.batches.len();
            astray = astray.max(world.astray);
            let of_region = |line: &str| match line.split_once(" s  ") {
                Some((time, what)) => format!("{time} s  {name}: {what}"),
                None => line.to_string(),
            };
            lines.extend(world.story.lines().map(of_region));
        }
        // All begin with the time; what happened at the same one stays in order.
        lines.sort_by(|one, two| one.split(" s  ").next().cmp(&two.split(" s  ").next()));
        Verdict {
            options: self.options.to_string(),
            hash: hasher.finalize(),
            steps,
            batches,
            astray,
            violation,
            story: lines,
        }
    }
}

impl Region {
    fn new(world: World) -> Region {
        let servers = world.servers.len();
        Region {
            world,
            tasks: (0..servers).map(|_| ServerTasks::default()).collect(),
            seen: vec![Index::ZERO; servers],
            reads: Vec::new(),
            calls: BTreeMap::new(),
            judged: 0,
        }
    }
}
