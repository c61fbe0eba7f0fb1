//! One life of a server: its log, and the real replica on it, which lives in a task. To drop it is to kill it.

use std::rc::Rc;
use std::sync::Arc;

use base::{Index, Rng, Term, Time, Uuid};
use control::SubmitError;
use control::lanes::{Lane, Lanes};
use control::replica::{Effect, Notice, Replica};
use control::sequencer::{Published, Submission};
use fake_network::Gone;
use feed::Feed;
use journal::{EncodedBatch, Journal, KeepError, Sink};
use model::{Actor, Command, Image, Request, SchedulerRules};
use parking_lot::Mutex;
use raft::RaftJournal;
use state::{Imager, State};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::server::Server;
use super::world::World;
use crate::fact::Fact;
use crate::planted::Bug;
use crate::shown::Shown;

/// What the replica wakes up for. As many as come, as in a real server's inbox: submissions wait in lanes.
pub enum Wake {
    Notice(Notice),
    Submit(Box<Submission>),
    KeepImage,
}

/// What the log reports to.
pub struct Ear(pub UnboundedSender<Wake>);

impl Ear {
    /// Nobody listens any more when the server is dead.
    fn notice(&self, notice: Notice) {
        self.0.send(Wake::Notice(notice)).unwrap_or(());
    }
}

impl Sink for Ear {
    fn committed(&mut self, batch: EncodedBatch) {
        self.notice(Notice::Committed(batch));
    }

    fn restored(&mut self, image: Image) {
        self.notice(Notice::Restored(image));
    }

    fn leading(&mut self, term: Term) {
        self.notice(Notice::Leading(term));
    }

    fn following(&mut self, leader: Option<u64>) {
        self.notice(Notice::Following(leader));
    }

    fn halted(&mut self, why: String) {
        self.notice(Notice::Halted(why));
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
            replica: Replica::new(Uuid::from(u128::from(world.servers[place].number.get())), rules::decide),
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
        if let Err(refused) = self.wakes.send(Wake::Submit(Box::new(submission)))
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

/// The replica of one process.
struct Life {
    world: Rc<World>,
    place: usize,
    journal: Arc<RaftJournal>,
    shown: Arc<Shown>,
    died: Died,
    replica: Replica,
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
                if let Err(why) = self.take(wake) {
                    self.replica.follow();
                    *self.died.lock() = Some(why);
                    self.server().ended.notify_one();
                    return;
                }
                next = woken.try_recv().ok();
            }
            for effect in self.replica.publish_folded() {
                self.carry_out(effect, false);
            }
            self.decide();
        }
    }

    fn wait(&mut self) -> std::time::Duration {
        let usual = self.turns.below(self.world.options.turn_max.0 as u64 + 1);
        std::time::Duration::from_nanos(usual) + self.server().stalled.take()
    }

    /// # Errors
    /// Why the server cannot go on.
    fn take(&mut self, wake: Wake) -> Result<(), String> {
        match wake {
            Wake::Notice(notice) => self.notice(notice)?,
            Wake::Submit(submission) => self.submit(*submission),
            Wake::KeepImage => self.keep_image(),
        }
        Ok(())
    }

    fn notice(&mut self, notice: Notice) -> Result<(), String> {
        match &notice {
            Notice::Committed(batch) => {
                self.world.scene.borrow_mut().in_log(self.place, batch);
                self.tell(format_args!("learns of {}", batch.index()));
                if self.bug(Bug::AckBeforeCommit) && batch.index() <= self.replica.committed().index {
                    return Ok(());
                }
            }
            Notice::Following(_) if self.bug(Bug::DeafToDeposition) => return Ok(()),
            Notice::Restored(_) | Notice::Leading(_) | Notice::Following(_) | Notice::Halted(_) => {}
        }
        let sentence = match &notice {
            Notice::Committed(_) => Some("I3 every server can fold every batch onto its state"),
            Notice::Restored(_) => Some("I8 an image that the log hands over can be read"),
            Notice::Leading(_) | Notice::Following(_) | Notice::Halted(_) => None,
        };
        let decided = matches!(notice, Notice::Committed(_));
        match self.replica.notice(notice) {
            Ok(effects) => effects.into_iter().for_each(|effect| self.carry_out(effect, decided)),
            Err(fatal) => {
                if let Some(sentence) = sentence {
                    self.world.violated(sentence, format!("server {}: {fatal}", self.place));
                }
                return Err(fatal.to_string());
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect, decided: bool) {
        match effect {
            Effect::Publish(published) => self.publish(&published, decided),
            Effect::Answer(answers) => answers.give(),
            Effect::AnswerIfLeading(answers) => answers.give_while_leading(&*self.journal),
            Effect::Propose(term, batch) => self.propose(term, batch),
            Effect::Restored(state) => {
                self.tell(format_args!("has {} by image", state.index));
                self.world.see(&Fact::Restored { server: self.place, state: &state });
                self.shown.begin(&state);
            }
            Effect::Lead(term, state) => {
                self.tell(format_args!("leads in term {}", term.0));
                self.world.see(&Fact::Leads { server: self.place, term });
                if state.cluster.is_nil() {
                    self.found_cluster();
                }
            }
            Effect::Follow(_) => {
                self.tell(format_args!("leads no more"));
                while let Some(submission) = self.lanes.pop() {
                    (submission.answer)(Err(SubmitError::NotLeading));
                }
            }
            Effect::Diverged(why) => {
                let how = format!("server {}: {why}", self.place);
                self.world.violated("I3 every server can fold every batch onto its state", how);
            }
        }
    }

    fn propose(&mut self, term: Term, batch: EncodedBatch) {
        self.tell(format_args!("proposes {} in term {}", batch.index(), term.0));
        if let Err(error) = self.journal.propose(term, batch.clone()) {
            self.tell(format_args!("is rejected: {error}"));
            self.replica.refused(&error.into());
        } else if self.bug(Bug::AckBeforeCommit) {
            let effects = self.replica.notice(Notice::Committed(batch)).expect("it was made here");
            effects.into_iter().for_each(|effect| self.carry_out(effect, true));
        }
    }

    fn submit(&mut self, submission: Submission) {
        if !self.replica.leads() {
            return (submission.answer)(Err(SubmitError::NotLeading));
        }
        let lane = Lane::of(&submission.request.command);
        if let Err(submission) = self.lanes.push(lane, submission) {
            (submission.answer)(Err(SubmitError::Busy));
        }
    }

    fn found_cluster(&mut self) {
        let command = Command::FoundCluster { scheduler: SchedulerRules::default() };
        let actor = Actor::Server("leader".to_string());
        let request = Request::unnamed(actor, command);
        self.submit(Submission { request, answer: Box::new(|_| {}) });
    }

    fn publish(&mut self, published: &Published, decided: bool) {
        let Published { state, .. } = published;
        self.tell(format_args!("publishes {}", state.index));
        self.world.see(&Fact::Published { server: self.place, state, decided });
        self.shown.publish(state);
    }

    /// As the driver of a real server does.
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
        while self.replica.has_room() && (self.replica.holds_over() || !self.lanes.is_empty()) {
            let now = self.clock();
            let mut left = self.world.options.batch_max;
            let Life { replica, seeds, lanes, .. } = self;
            let next = || {
                left = left.checked_sub(1)?;
                lanes.pop()
            };
            if let Some(effect) = replica.fill(now, seeds, next) {
                self.carry_out(effect, false);
            }
        }
    }

    /// Its own idea of the time.
    fn clock(&self) -> Time {
        self.server().clock.borrow().shows(self.world.now())
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
