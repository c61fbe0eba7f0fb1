//! Long histories of everything that can happen, drawn from a seed: no rule is asked, only what folds demand.

mod draw;
mod draw_claims;
mod draw_cursors;
mod draw_erasure;
mod draw_logins;
mod draw_recording;
mod draw_services;
mod draw_sinks;
mod draw_variables;

use std::collections::BTreeSet;

use base::{Index, Rng, Time, Uuid};
use model::{Actor, Batch, Caller, CommandRecord, Event, LoggedEvent, RequestId};
use state::job::JobRow;
use state::{Delta, Moment, State};

pub struct History {
    pub state: State,
    pub log: Vec<Batch>,
    rng: Rng,
}

impl History {
    pub fn new(seed: u64) -> History {
        History { state: State::default(), log: Vec::new(), rng: Rng::new(seed) }
    }

    pub fn of(seed: u64, batches: usize) -> History {
        let mut history = History::new(seed);
        (0..batches).for_each(|_| history.step());
        history
    }

    /// One more batch, of up to four commands with an event each, or a few that belong together.
    pub fn step(&mut self) {
        let time = Time(1_000_000_000 * (self.log.len() as i64 + 1));
        let mut batch = self.state.next_batch(time, Uuid::from(1));
        let at = Moment { index: batch.index, time, epoch: batch.epoch };
        let (mut working, mut delta) = (self.state.clone(), Delta::default());
        for number in 0..=self.rng.below(4) as u16 {
            let events = if working.cluster.is_nil() {
                vec![model::event::ClusterFounded { cluster: self.rng.uuid() }.into()]
            } else if number == 0 && self.rng.below(100) == 0 {
                draw::restored(&self.state, &mut self.rng)
            } else {
                draw::events(&working, &mut self.rng)
            };
            let record = self.record();
            working.absorb(at, &record, events.iter(), &mut delta);
            batch.commands.push(record);
            batch.events.extend(events.into_iter().map(|event| LoggedEvent { command: number, event }));
        }
        working.seal(at, &delta);
        let touched = self.state.apply(&batch).expect("the batch was made for this state");
        assert_all_named(&self.state, &touched);
        assert!(self.state == working, "batch {} leads to two states", batch.index);
        assert_eq!(self.state.digest(), self.state.recomputed_digest(), "batch {}", batch.index);
        self.log.push(batch);
    }

    fn record(&mut self) -> CommandRecord {
        let request = if self.rng.below(2) == 0 { RequestId(self.rng.uuid()) } else { RequestId::default() };
        let actor = match self.rng.below(3) {
            0 => Actor::ANONYMOUS,
            1 => Actor::Server("drawn".to_string()),
            _ => Actor::Caller(Caller {
                accessor: "a-token".to_string(),
                name: "operator".to_string(),
                address: Some([10, 0, 0, self.rng.below(256) as u8].into()),
                agent: "curl/8.5.0".to_string(),
            }),
        };
        CommandRecord { request, kind: 1, actor }
    }
}

/// Who waits for an object is woken by what a batch says it touched: nothing that it changed may be left out.
fn assert_all_named(state: &State, touched: &Delta) {
    if touched.restored {
        return;
    }
    let now = |index: Index| index == state.index;
    for row in state.nodes.rows().filter(|row| now(state.nodes.hot(*row).modified)) {
        assert!(touched.nodes.contains(&row), "{row:?} at {}", state.index);
    }
    let parent = |row: &JobRow| state.jobs.get(*row).parent().and_then(|parent| state.jobs.find(&parent));
    let parents: Vec<JobRow> = touched.jobs.iter().filter_map(parent).collect();
    for (row, job) in state.jobs.iter().filter(|(_, job)| now(job.modified) || now(job.summary_modified)) {
        let named = touched.jobs.contains(&row) || (!now(job.modified) && parents.contains(&row));
        assert!(named, "{row:?} at {}", state.index);
    }
    for (row, _) in state.evals.iter().filter(|(_, eval)| now(eval.modified)) {
        assert!(touched.evals.contains(&row), "{row:?} at {}", state.index);
    }
    for (row, _) in state.allocs.iter().filter(|(_, alloc)| now(alloc.modified)) {
        assert!(touched.allocs.contains(&row), "{row:?} at {}", state.index);
    }
    for (row, _) in state.deployments.iter().filter(|(_, deployment)| now(deployment.modified)) {
        assert!(touched.deployments.contains(&row), "{row:?} at {}", state.index);
    }
    assert!(!now(state.variables.changed()) || !touched.variables.is_empty(), "at {}", state.index);
}

/// Kinds of events that a log has none of.
pub fn missing(log: &[Batch]) -> Vec<&'static str> {
    macro_rules! names {
        ($(($kind:literal, $version:literal) $name:ident)+) => { [$(stringify!($name)),+] };
    }
    let events = log.iter().flat_map(|batch| &batch.events);
    let known: BTreeSet<&str> = events.map(|logged: &LoggedEvent| Event::name(&logged.event)).collect();
    model::for_each_event!(names).into_iter().filter(|name| !known.contains(name)).collect()
}
