//! The sequencer over a log that can hold back, lose and depose.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use base::{Index, Rng, Term, Time, Uuid};
use control::sequencer::{Committed, Filled, IN_FLIGHT_MAX, Receipt, Sequencer, Submission, SubmitError};
use journal::{EncodedBatch, Journal, MemoryJournal, Sink};
use model::command::RegisterJob;
use model::document::Node;
use model::{Actor, Command, EPOCH, FIRST_EPOCH, JobKey, NodeId, NodeStatus, Rejection, Request, RequestId};
use parking_lot::Mutex;
use state::State;

/// What the log says, kept until the test looks.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<News>>>);

enum News {
    Committed(EncodedBatch),
    Leading(Term),
    Following,
}

impl Sink for Heard {
    fn committed(&mut self, batch: EncodedBatch) {
        self.0.lock().push(News::Committed(batch));
    }
    fn restored(&mut self, _: model::Image) {
        unreachable!("a log in memory hands over every batch");
    }
    fn leading(&mut self, term: Term) {
        self.0.lock().push(News::Leading(term));
    }
    fn following(&mut self, _: Option<u64>) {
        self.0.lock().push(News::Following);
    }
    fn halted(&mut self, why: String) {
        panic!("a log in memory does not halt: {why}");
    }
}

type Outcome = Result<Receipt, SubmitError>;

/// An outcome, with the number of the command.
type Told = (u128, Outcome);

struct Bench {
    sequencer: Sequencer,
    journal: MemoryJournal,
    heard: Heard,
    seeds: Rng,
    /// The newest state anybody may see.
    visible: State,
    answers: (Sender<Told>, Receiver<Told>),
}

impl Bench {
    fn new() -> Bench {
        let heard = Heard::default();
        let mut bench = Bench {
            sequencer: Sequencer::new(Uuid::NIL, rules::decide),
            journal: MemoryJournal::new(heard.clone()),
            heard,
            seeds: Rng::new(1),
            visible: State::default(),
            answers: channel(),
        };
        bench.listen();
        bench
    }

    /// Hands the log's news to the sequencer.
    fn listen(&mut self) {
        let news: Vec<News> = self.heard.0.lock().drain(..).collect();
        for one in news {
            match one {
                News::Committed(batch) => {
                    if let Committed::Own(published, answers) = self.sequencer.commit(&batch).unwrap() {
                        self.visible = State::clone(&published.state);
                        answers.give();
                    }
                    self.visible = self.sequencer.committed().clone();
                }
                News::Leading(term) => self.sequencer.lead(term),
                News::Following => self.sequencer.follow(),
            }
        }
    }

    /// Fills one batch with the commands and proposes it.
    fn submit(&mut self, commands: Vec<(u128, Command)>) {
        let sender = &self.answers.0;
        let mut queue = commands.into_iter().map(|(id, command)| {
            let sender = sender.clone();
            Submission {
                request: Request::named(RequestId(id.into()), Actor::ANONYMOUS, command),
                answer: Box::new(move |outcome| sender.send((id, outcome)).unwrap()),
            }
        });
        let filled = self.sequencer.fill(Time::from_secs(1), &mut self.seeds, || queue.next());
        drop(queue);
        match filled {
            Filled::Batch(term, batch) => {
                if let Err(error) = self.journal.propose(term, batch) {
                    self.sequencer.refused(&error.into());
                }
            }
            Filled::Answers(answers) => answers.give_while_leading(&self.journal),
            Filled::Nothing => {}
        }
        self.listen();
    }

    fn answers(&self) -> Vec<(u128, Outcome)> {
        self.answers.1.try_iter().collect()
    }

    fn check_replay(&self) {
        let mut replayed = State::default();
        for batch in self.journal.batches() {
            replayed.apply(&batch.decode().unwrap()).unwrap();
        }
        assert!(replayed == *self.sequencer.committed(), "replaying the log gives another state");
    }
}

fn node(number: u128) -> NodeId {
    NodeId(number.into())
}

fn register(number: u128) -> Command {
    let document = Node {
        id: node(number).to_string(),
        secret_id: "secret".to_string(),
        name: format!("n{number}"),
        datacenter: "dc1".to_string(),
        attributes: [("kernel.name".to_string(), "linux".to_string())].into_iter().collect(),
        ..Node::default()
    };
    Command::RegisterNode { document: Box::new(document) }
}

fn status(number: u128, claimed: NodeStatus) -> Command {
    Command::UpdateNodeStatus { node: node(number), claimed }
}

#[test]
fn nothing_is_seen_or_answered_before_the_log_has_it() {
    let mut bench = Bench::new();
    bench.journal.hold();
    bench.submit(vec![(1, register(1))]);
    assert!(bench.answers().is_empty());
    assert!(bench.visible.nodes.is_empty());
    bench.journal.release();
    bench.listen();
    assert_eq!(bench.answers()[0].1.as_ref().unwrap().index, Index(1));
    assert_eq!(bench.visible.nodes.len(), 1);
    bench.check_replay();
}

#[test]
fn a_later_command_is_decided_on_what_is_still_in_flight() {
    let mut bench = Bench::new();
    bench.journal.hold();
    bench.submit(vec![(1, register(1))]);
    bench.submit(vec![(2, status(1, NodeStatus::Ready))]);
    bench.journal.release();
    bench.listen();
    let indexes: Vec<Index> =
        bench.answers().into_iter().map(|(_, outcome)| outcome.unwrap().index).collect();
    assert_eq!(indexes, [Index(1), Index(2)]);
    bench.check_replay();
}

#[test]
fn a_refusal_that_rests_on_what_is_in_flight_waits_for_it() {
    let mut bench = Bench::new();
    bench.journal.hold();
    bench.submit(vec![(1, register(1))]);
    let stranger = Node { secret_id: "other".to_string(), ..document_of(register(1)) };
    bench.submit(vec![(2, Command::RegisterNode { document: Box::new(stranger) })]);
    assert!(bench.answers().is_empty(), "the refusal would tell of a node that nobody may know yet");
    bench.journal.release();
    bench.listen();
    let refused = SubmitError::Rejected(Rejection::NodeSecretMismatch(node(1)));
    assert_eq!(bench.answers().pop(), Some((2, Err(refused))));
}

/// Somebody else may have committed more by then: a refusal would be none of the cluster's.
#[test]
fn what_nothing_in_flight_vouches_for_is_answered_only_while_it_leads() {
    let stranger = |id| (id, status(9, NodeStatus::Ready));
    let mut bench = Bench::new();
    bench.submit(vec![stranger(1)]);
    assert!(matches!(bench.answers()[..], [(1, Err(SubmitError::Rejected(_)))]));
    bench.journal.depose(false);
    bench.submit(vec![stranger(2)]);
    assert_eq!(bench.answers(), [(2, Err(SubmitError::NotLeading))], "it has not heard of it yet");
}

/// The same for what has to be written.
#[test]
fn what_the_log_did_not_take_from_a_deposed_server_may_be_asked_again() {
    let mut bench = Bench::new();
    bench.journal.depose(false);
    bench.submit(vec![(1, register(1))]);
    assert_eq!(bench.answers(), [(1, Err(SubmitError::NotLeading))]);
}

#[test]
fn what_leadership_took_with_it_has_an_unknown_fate_and_leaves_no_trace() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, register(1))]);
    bench.journal.hold();
    bench.submit(vec![(2, register(2))]);
    bench.answers();
    bench.journal.depose(true);
    bench.listen();
    assert_eq!(bench.answers(), [(2, Err(SubmitError::Unknown))]);
    bench.journal.release();
    bench.journal.lead();
    bench.listen();
    assert_eq!(bench.visible.nodes.len(), 1);
    bench.submit(vec![(3, register(3))]);
    assert_eq!(bench.answers()[0].1.as_ref().unwrap().index, Index(2), "indexes stay dense");
    bench.check_replay();
}

#[test]
fn a_command_whose_fate_was_unknown_takes_effect_once_when_it_is_repeated() {
    let mut bench = Bench::new();
    bench.journal.hold();
    bench.submit(vec![(1, register(1))]);
    bench.journal.depose(false);
    bench.listen();
    assert_eq!(bench.answers(), [(1, Err(SubmitError::Unknown))]);
    bench.journal.lead();
    bench.listen();
    bench.submit(vec![(1, register(1))]);
    let receipt = bench.answers().pop().unwrap().1.unwrap();
    assert_eq!((receipt.index, bench.journal.committed()), (Index(1), Index(1)));
    bench.check_replay();
}

#[test]
fn a_repetition_within_the_same_batch_takes_effect_once() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, register(1)), (7, status(1, NodeStatus::Ready)), (7, status(1, NodeStatus::Down))]);
    let answers = bench.answers();
    assert_eq!(answers[1].1.as_ref().unwrap().index, answers[2].1.as_ref().unwrap().index);
    let row = bench.visible.nodes.find(node(1)).unwrap();
    assert_eq!(bench.visible.nodes.hot(row).status, NodeStatus::Ready);
}

#[test]
fn a_command_that_changes_nothing_writes_nothing() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, register(1))]);
    bench.submit(vec![(2, status(1, NodeStatus::Ready))]);
    bench.submit(vec![(3, status(1, NodeStatus::Ready))]);
    assert_eq!(bench.journal.committed(), Index(2));
    let beat = bench.answers().pop().unwrap().1.unwrap();
    assert_eq!((beat.index, beat.wrote), (Index(2), false));
}

#[test]
fn no_more_than_the_bound_is_in_flight() {
    let mut bench = Bench::new();
    bench.journal.hold();
    for number in 0..IN_FLIGHT_MAX as u128 {
        assert!(bench.sequencer.has_room());
        bench.submit(vec![(number + 1, register(number + 1))]);
    }
    assert!(!bench.sequencer.has_room());
    bench.journal.release_first(1);
    bench.listen();
    assert!(bench.sequencer.has_room());
}

#[test]
fn a_batch_that_the_log_did_not_take_is_undone() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, register(1))]);
    bench.answers();
    let sender = bench.answers.0.clone();
    let submission = Submission {
        request: Request::named(RequestId(2.into()), Actor::ANONYMOUS, register(2)),
        answer: Box::new(move |outcome| sender.send((2, outcome)).unwrap()),
    };
    let mut queue = Some(submission);
    let filled = bench.sequencer.fill(Time::ZERO, &mut bench.seeds, || queue.take());
    assert!(matches!(filled, Filled::Batch(..)));
    let full = SubmitError::Refused("the disk is full".to_string());
    bench.sequencer.refused(&full);
    assert_eq!(bench.answers(), [(2, Err(full))]);
    bench.submit(vec![(3, register(2))]);
    assert_eq!(bench.answers()[0].1.as_ref().unwrap().index, Index(2));
    bench.check_replay();
}

#[test]
fn time_in_the_log_never_runs_backwards() {
    let mut bench = Bench::new();
    for (number, now) in [(1, 50), (2, 20), (3, 60)] {
        let mut queue = Some(Submission {
            request: Request::unnamed(Actor::ANONYMOUS, register(number)),
            answer: Box::new(|_| {}),
        });
        let filled = bench.sequencer.fill(Time::from_secs(now), &mut bench.seeds, || queue.take());
        let Filled::Batch(term, batch) = filled else { panic!("a registration is written") };
        bench.journal.propose(term, batch).unwrap();
        bench.listen();
    }
    let times: Vec<i64> =
        bench.journal.batches().iter().map(|batch| batch.decode().unwrap().time.secs()).collect();
    assert_eq!(times, [50, 50, 60]);
}

fn document_of(command: Command) -> Node {
    match command {
        Command::RegisterNode { document } => *document,
        other => panic!("not a registration: {other:?}"),
    }
}

fn job(id: &str, text: &str, enforce_index: Option<u64>) -> Command {
    let mut job = model::document::Job {
        id: Some(id.to_string()),
        name: Some(id.to_string()),
        namespace: Some("default".to_string()),
        kind: Some("service".to_string()),
        ..model::document::Job::default()
    };
    job.meta = [("text".to_string(), text.to_string())].into_iter().collect();
    Command::RegisterJob(Box::new(RegisterJob { enforce_index, ..RegisterJob::new(job) }))
}

/// A client takes the index it is answered with for that of its own write, and writes on only at that.
#[test]
fn two_writes_of_one_job_have_two_indexes() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, job("a", "one", None)), (2, job("b", "", None)), (3, job("a", "three", None))]);
    let indexes = |bench: &Bench| -> Vec<(u128, u64, u64)> {
        let answers = bench.answers().into_iter();
        let receipts = answers.map(|(id, outcome)| (id, outcome.unwrap()));
        receipts.map(|(id, receipt)| (id, receipt.index.0, receipt.reply.job_modified.0)).collect()
    };
    assert_eq!(indexes(&bench), [(1, 1, 1), (2, 1, 1)]);
    assert!(bench.sequencer.holds_over());
    bench.submit(vec![(4, job("b", "four", None))]);
    assert_eq!(indexes(&bench), [(3, 2, 2), (4, 2, 2)]);
    bench.submit(vec![(5, job("a", "five", Some(1))), (6, job("a", "six", Some(2)))]);
    let answers = bench.answers();
    assert!(matches!(answers[0], (5, Err(SubmitError::Rejected(Rejection::JobIndexMismatch(_))))));
    assert_eq!(answers[1].1.as_ref().unwrap().reply.job_modified, Index(3));
    assert_eq!(bench.visible.jobs.lookup(&JobKey::new("default", "a")).unwrap().current().version, 2);
    bench.check_replay();
}

#[test]
fn what_waits_for_the_next_batch_is_answered_when_there_will_be_none() {
    let mut bench = Bench::new();
    bench.journal.hold();
    bench.submit(vec![(1, job("a", "one", None)), (2, job("a", "two", None))]);
    bench.journal.depose(true);
    bench.listen();
    assert_eq!(bench.answers(), [(1, Err(SubmitError::Unknown)), (2, Err(SubmitError::NotLeading))]);
    bench.journal.release();
    bench.journal.lead();
    bench.listen();
    bench.journal.depose(false);
    bench.submit(vec![(3, job("a", "one", None)), (4, job("a", "two", None))]);
    assert_eq!(bench.answers(), [(3, Err(SubmitError::NotLeading)), (4, Err(SubmitError::NotLeading))]);
    assert!(!bench.sequencer.holds_over());
}

/// After a repair that lost batches: what somebody remembers of them points at nothing, not at something else.
#[test]
fn indexes_that_were_given_once_are_skipped_before_the_next_command() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, job("a", "", None))]);
    bench.sequencer.skip_to(Index(5));
    for _ in 2..5 {
        bench.submit(vec![(2, job("a", "lost", None))]);
        assert_eq!(
            bench.answers.1.try_iter().filter(|(id, _)| *id == 2).count(),
            0,
            "nothing is decided yet"
        );
    }
    assert_eq!(bench.visible.index, Index(4));
    bench.submit(vec![(3, job("a", "new", None))]);
    let (id, outcome) = bench.answers().pop().unwrap();
    assert_eq!((id, outcome.unwrap().index), (3, Index(5)));
    assert!(bench.journal.batches()[1..4].iter().all(|batch| batch.event_count() == 0));
    bench.check_replay();
}

#[test]
fn a_batch_of_large_commands_ends_before_the_log_refuses_it() {
    let mut bench = Bench::new();
    let give = |number| Command::GiveStateChunk { restore: Uuid::from(7), number, bytes: vec![1; 8 << 20] };
    bench.submit((0..5).map(|number| (u128::from(number) + 1, give(number))).collect());
    let answers = bench.answers();
    assert_eq!(answers.len(), 2, "the others wait for the next batch");
    assert!(answers.iter().all(|(_, outcome)| outcome.is_ok()));
    bench.check_replay();
}

#[test]
fn a_higher_epoch_begins_with_a_batch() {
    let mut bench = Bench::new();
    bench.submit(vec![(1, Command::RaiseEpoch { epoch: EPOCH }), (2, register(1))]);
    assert!(bench.visible.nodes.is_empty(), "what was decided in it is not in a batch of the one before");
    bench.submit(vec![(3, register(1))]);
    let epochs: Vec<u16> =
        bench.journal.batches().iter().map(|batch| batch.decode().unwrap().epoch).collect();
    assert_eq!(epochs, [FIRST_EPOCH, EPOCH]);
    bench.check_replay();
}
