//! One life of a server: its log, and the sequencer on it, which lives in a task. To drop it is to kill it.
//!
//! It repeats the sequencer's thread of `control/src/driver.rs`, which is bound to threads and a clock; whoever changes one
//! looks at the other.

use std::rc::Rc;
use std::sync::Arc;

use base::{Index, Rng, Term, Time, Uuid};
use control::SubmitError;
use control::lanes::{Lane, Lanes};
use control::sequencer::{Damage, Filled, Published, Sequencer, Submission};
use http_gateway::events::Feed;
use journal::{EncodedBatch, Journal, KeepError, Sink};
use model::{Actor, Command, Image, Request, RequestId};
use parking_lot::Mutex;
use raft::RaftJournal;
use state::{Imager, State};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::server::Server;
use super::web::Gone;
use super::world::World;
use crate::fact::Fact;
use crate::planted::Bug;
use crate::shown::Shown;

/// What the sequencer wakes up for. As many as come, as at `control/src/inbox.rs`: submissions wait in lanes.
pub enum Wake {
    Committed(EncodedBatch),
    Restored(Image),
    Leading(Term),
    Following,
    Halted(String),
    Submit(Submission),
    KeepImage,
}

/// What the log is told to speak to.
pub struct Ear(pub UnboundedSender<Wake>);

impl Sink for Ear {
    // Nobody listens any more when the server is dead.
    fn committed(&mut self, batch: EncodedBatch) {
        self.0.send(Wake::Committed(batch)).unwrap_or(());
    }

    fn restored(&mut self, image: Image) {
        self.0.send(Wake::Restored(image)).unwrap_or(());
    }

    fn leading(&mut self, term: Term) {
        self.0.send(Wake::Leading(term)).unwrap_or(());
    }

    fn following(&mut self, _: Option<u64>) {
        self.0.send(Wake::Following).unwrap_or(());
    }

    fn halted(&mut self, why: String) {
        self.0.send(Wake::Halted(why)).unwrap_or(());
    }
}

/// Why a server cannot go on, once it cannot.
pub type Died = Arc<Mutex<Option<String>>>;

pub struct Process {
    pub journal: Arc<RaftJournal>,
    pub shown: Arc<Shown>,
    pub feed: Feed,
    pub gone: Arc<Gone>,
    pub died: Died,
    wakes: UnboundedSender<Wake>,
    task: JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.gone.go();
        self.task.abort();
    }
}

/// What a process begins with.
pub struct Begin {
    pub journal: Arc<RaftJournal>,
    pub gone: Arc<Gone>,
    pub died: Died,
    pub seed: u64,
    pub wakes: UnboundedSender<Wake>,
    pub woken: UnboundedReceiver<Wake>,
}

impl Process {
    pub fn begin(world: &Rc<World>, place: usize, begin: Begin) -> Process {
        let Begin { journal, gone, died, seed, wakes, woken } = begin;
        let shown = Arc::new(Shown::new(journal.clone()));
        let life = Life {
            world: world.clone(),
            place,
            journal: journal.clone(),
            shown: shown.clone(),
            died: died.clone(),
            sequencer: Sequencer::new(Uuid::from(u128::from(world.servers[place].number.get()))),
            seeds: Rng::stream(seed, "seeds"),
            turns: Rng::stream(seed, "turns"),
            lanes: Lanes::default(),
            imager: Imager::default(),
        };
        let task = tokio::task::spawn_local(life.run(woken));
        let feed = shown.feed();
        Process { journal, shown, feed, gone, died, wakes, task }
    }

    pub fn submit(&self, submission: Submission) {
        if let Err(refused) = self.wakes.send(Wake::Submit(submission))
            && let Wake::Submit(submission) = refused.0
        {
            (submission.answer)(Err(SubmitError::NotLeading));
        }
    }

    pub fn published(&self) -> Index {
        self.shown.state().index
    }

    /// Keeps an image of what it knows.
    pub fn keep_image(&self) {
        self.wakes.send(Wake::KeepImage).unwrap_or(());
    }
}

/// The sequencer of one process.
struct Life {
    world: Rc<World>,
    place: usize,
    journal: Arc<RaftJournal>,
    shown: Arc<Shown>,
    died: Died,
    sequencer: Sequencer,
    seeds: Rng,
    turns: Rng,
    lanes: Lanes<Submission>,
    imager: Imager,
}

impl Life {
    async fn run(mut self, mut woken: UnboundedReceiver<Wake>) {
        while let Some(wake) = woken.recv().await {
            // By the time it gets its turn, more may have come.
            sleep(self.wait()).await;
            let mut next = Some(wake);
            while let Some(wake) = next {
                if let Err(why) = self.hear(wake) {
                    self.sequencer.follow();
                    *self.died.lock() = Some(why);
                    self.server().ended.notify_one();
                    return;
                }
                next = woken.try_recv().ok();
            }
            self.publish_folded();
            self.decide();
        }
    }

    fn wait(&mut self) -> std::time::Duration {
        let usual = self.turns.below(self.world.options.turn_max.0 as u64 + 1);
        std::time::Duration::from_nanos(usual) + self.server().stalled.take()
    }

    /// # Errors
    /// Why the server cannot go on.
    fn hear(&mut self, wake: Wake) -> Result<(), String> {
        match wake {
            Wake::Committed(batch) => self.commit(&batch)?,
            Wake::Restored(image) => self.restore(&image),
            Wake::Leading(term) => {
                self.publish_folded();
                self.tell(format_args!("leads in term {}", term.0));
                self.world.see(&Fact::Leads { server: self.place, term });
                self.sequencer.lead(term);
                if self.sequencer.committed().cluster.is_nil() {
                    self.found_cluster();
                }
            }
            Wake::Following if self.world.bug == Some(Bug::DeafToDeposition) => {}
            Wake::Following => {
                self.tell(format_args!("leads no more"));
                self.sequencer.follow();
                while let Some(submission) = self.lanes.pop() {
                    (submission.answer)(Err(SubmitError::NotLeading));
                }
            }
            Wake::Halted(why) => return Err(why),
            Wake::Submit(submission) => self.submit(submission),
            Wake::KeepImage => self.keep_image(),
        }
        Ok(())
    }

    fn submit(&mut self, submission: Submission) {
        if !self.sequencer.leads() {
            return (submission.answer)(Err(SubmitError::NotLeading));
        }
        let lane = Lane::of(&submission.request.command);
        if let Err(submission) = self.lanes.push(lane, submission) {
            (submission.answer)(Err(SubmitError::Busy));
        }
    }

    fn found_cluster(&mut self) {
        let (actor, command) = (Actor::Server("leader".to_string()), Command::FoundCluster);
        let request = Request { id: RequestId::default(), actor, command };
        self.submit(Submission { request, answer: Box::new(|_| {}) });
    }

    fn commit(&mut self, batch: &EncodedBatch) -> Result<(), String> {
        self.world.scene.borrow_mut().in_log(self.place, batch);
        self.tell(format_args!("hears of {}", batch.index()));
        if self.bug(Bug::AckBeforeCommit) && batch.index() <= self.sequencer.committed().index {
            return Ok(());
        }
        self.fold(batch).map_err(|damage| {
            let how = format!("server {}: {damage}", self.place);
            self.world.violated("I3 every server can fold every batch onto its state", how);
            damage.to_string()
        })
    }

    fn fold(&mut self, batch: &EncodedBatch) -> Result<(), Damage> {
        if let Some((published, answers)) = self.sequencer.commit(batch)? {
            self.publish(&published, true);
            answers.give();
        }
        Ok(())
    }

    fn restore(&mut self, image: &Image) {
        let index = image.index;
        match state::restore(image) {
            Ok(state) => {
                self.tell(format_args!("has {index} by image"));
                let state = Arc::new(state);
                self.world.see(&Fact::Restored { server: self.place, state: &state });
                self.shown.begin(&state);
                self.sequencer.restore(State::clone(&state));
                self.publish(&Published { state, delta: Default::default() }, false);
            }
            Err(error) => {
                let how = format!("server {}, at {index}: {error}", self.place);
                self.world.violated("I8 an image that the log hands over can be read", how);
            }
        }
    }

    fn publish_folded(&mut self) {
        if self.shown.state().index < self.sequencer.committed().index {
            let state = Arc::new(self.sequencer.committed().clone());
            self.publish(&Published { state, delta: Default::default() }, false);
        }
    }

    fn publish(&mut self, published: &Published, decided: bool) {
        let Published { state, .. } = published;
        self.tell(format_args!("publishes {}", state.index));
        self.world.see(&Fact::Published { server: self.place, state, decided });
        self.shown.publish(state);
    }

    /// As `control/src/images.rs` does.
    fn keep_image(&mut self) {
        let state = self.shown.state();
        let journal = self.journal.clone();
        let mut kept = journal.keep(self.image(&state));
        if let Err(KeepError::UnknownChunk(_)) = kept {
            self.imager.reset();
            kept = journal.keep(self.image(&state));
        }
        match kept {
            Ok(()) => self.tell(format_args!("keeps an image of {}", state.index)),
            Err(KeepError::NotNewer { .. }) => {}
            Err(error) => {
                self.imager.reset();
                self.tell(format_args!("keeps no image: {error}"));
            }
        }
    }

    fn image(&mut self, state: &State) -> Image {
        let mut image = self.imager.image(state);
        if self.bug(Bug::ImageMisnamed) {
            image.index.0 = image.index.0.saturating_sub(1);
        }
        image
    }

    fn decide(&mut self) {
        while self.sequencer.has_room() && !self.lanes.is_empty() {
            let now = self.clock();
            let mut left = self.world.options.batch_max;
            let Life { sequencer, seeds, lanes, .. } = self;
            let next = || {
                left = left.checked_sub(1)?;
                lanes.pop()
            };
            let (term, batch) = match sequencer.fill(now, seeds, next) {
                Filled::Batch(term, batch) => (term, batch),
                Filled::Answers(answers) => {
                    answers.give_while_leading(&*self.journal);
                    continue;
                }
                Filled::Nothing => continue,
            };
            self.tell(format_args!("proposes {} in term {}", batch.index(), term.0));
            if let Err(error) = self.journal.propose(term, batch.clone()) {
                self.tell(format_args!("is refused: {error}"));
                self.sequencer.refused(&error.into());
                return;
            }
            if self.bug(Bug::AckBeforeCommit) {
                self.fold(&batch).expect("it was made here");
            }
        }
    }

    /// Its own idea of the time.
    fn clock(&self) -> Time {
        self.world.scene.borrow().now().plus(self.server().ahead.get())
    }

    fn server(&self) -> &Server {
        &self.world.servers[self.place]
    }

    fn bug(&self, bug: Bug) -> bool {
        self.world.bug == Some(bug)
    }

    fn tell(&self, what: std::fmt::Arguments<'_>) {
        self.world.tell(format_args!("server {} {what}", self.place));
    }
}
