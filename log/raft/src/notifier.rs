//! Notifies the sink of what happened, one event at a time, on a thread of its own; on a task where there are no threads.
//!
//! openraft reports leadership and commits in different places. Here they meet: `leading` is called when this
//! server won a term *and* the blank entry it began the term with has come by, since all it inherited came before.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base::{Index, Term};
use journal::store::Fatal;
use journal::{EncodedBatch, Sink};
use model::Image;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::proposals::Proposals;

/// Most notifications in the queue. When it is full, applying waits: a slow sink slows commits down.
const NEWS_MAX: usize = 1024;

pub(crate) enum News {
    Committed(EncodedBatch),
    Restored(Image),
    /// The first entry of a term is applied.
    Opened(Term),
    Standing(Standing),
    Halted(String),
    Stop,
}

/// Who leads, as the votes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub term: Term,
    pub leader: Option<u64>,
    /// This server leads, and may propose once the term is opened.
    pub mine: bool,
    /// How often a term broke so far: if one did, it ends for the proposer, even if it is mended.
    pub breaks: u64,
}

pub(crate) struct Notifier<S> {
    sink: S,
    proposals: Arc<Proposals>,
    fatal: Fatal,
    standing: Option<Standing>,
    opened: Option<Term>,
    /// The term that the sink was notified of last, and how often one had broken by then.
    leading: Option<(Term, u64)>,
    /// The leader that the sink was notified of last.
    leader: Option<u64>,
    /// The last batch that the sink got; `None` before the first.
    committed: Option<Index>,
}

/// The two ends of the queue.
pub(crate) fn news() -> (Sender<News>, Receiver<News>) {
    channel(NEWS_MAX)
}

impl<S: Sink> Notifier<S> {
    pub fn new(sink: S, proposals: Arc<Proposals>, fatal: Fatal) -> Notifier<S> {
        Notifier {
            sink,
            proposals,
            fatal,
            standing: None,
            opened: None,
            leading: None,
            leader: None,
            committed: None,
        }
    }

    /// Runs until the queue is closed.
    pub fn run(mut self, mut news: Receiver<News>) {
        while let Some(news) = news.blocking_recv() {
            if self.handle(news).is_break() {
                return;
            }
        }
    }

    /// The same as a task.
    pub async fn run_as_task(mut self, mut news: Receiver<News>) {
        while let Some(news) = news.recv().await {
            if self.handle(news).is_break() {
                return;
            }
        }
    }

    fn handle(&mut self, news: News) -> ControlFlow<()> {
        // The sink may fold. A server whose state could not take a batch must not serve and not vote.
        catch_unwind(AssertUnwindSafe(|| self.dispatch(news))).unwrap_or_else(|_| {
            (self.fatal)("what receives committed batches panicked");
            ControlFlow::Break(())
        })
    }

    fn dispatch(&mut self, news: News) -> ControlFlow<()> {
        match news {
            News::Committed(batch) => {
                let before = self.committed.replace(batch.index());
                let follows = before.is_none_or(|before| batch.index() == before.next());
                assert!(follows, "batch {} follows on the last one, {before:?}", batch.index());
                self.proposals.set_committed(batch.index());
                self.sink.committed(batch);
            }
            News::Restored(image) => {
                self.committed = Some(image.index);
                self.proposals.set_committed(image.index);
                self.sink.restored(image);
            }
            News::Opened(term) => {
                self.opened = Some(term);
                self.settle();
            }
            News::Standing(standing) => {
                self.standing = Some(standing);
                self.settle();
            }
            News::Halted(why) => {
                self.proposals.close();
                self.sink.halted(why);
                return ControlFlow::Break(());
            }
            News::Stop => {
                self.proposals.close();
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn settle(&mut self) {
        let Some(standing) = self.standing else { return };
        let entitled =
            (standing.mine && self.opened == Some(standing.term)).then_some((standing.term, standing.breaks));
        let leader = standing.leader.filter(|_| !standing.mine);
        if self.leading.is_some() && self.leading != entitled {
            self.leading = None;
            self.proposals.close();
            self.follow(leader);
        }
        if self.leading.is_none() && leader.is_some() && leader != self.leader {
            self.follow(leader);
        }
        if let (None, Some((term, breaks))) = (self.leading, entitled)
            && self.proposals.open(term, breaks)
        {
            self.leading = entitled;
            self.sink.leading(term);
        }
    }

    fn follow(&mut self, leader: Option<u64>) {
        self.leader = leader;
        self.sink.following(leader);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn leading_waits_for_the_term_to_be_opened() {
        assert_eq!(
            calls([stand(2, Some(1), true), News::Opened(Term(1)), News::Opened(Term(2))]),
            ["leading 2"]
        );
        assert_eq!(calls([News::Opened(Term(2)), stand(2, Some(1), true)]), ["leading 2"]);
        assert_eq!(calls([stand(2, Some(1), true)]), [""; 0]);
    }

    #[test]
    fn one_term_ends_before_the_next_begins() {
        let news = [
            stand(2, Some(1), true),
            News::Opened(Term(2)),
            stand(2, Some(1), true),
            stand(3, Some(1), true),
            News::Opened(Term(3)),
        ];
        assert_eq!(calls(news), ["leading 2", "following None", "leading 3"]);
    }

    #[test]
    fn a_new_leader_is_announced_once() {
        let news = [
            stand(1, None, false),
            stand(2, Some(7), false),
            stand(2, Some(7), false),
            stand(3, None, false),
            stand(4, Some(8), false),
        ];
        assert_eq!(calls(news), ["following Some(7)", "following Some(8)"]);
    }

    #[test]
    fn losing_leadership_closes_proposals() {
        let proposals = Arc::new(Proposals::new());
        let news = [stand(2, Some(1), true), News::Opened(Term(2)), stand(3, Some(7), false)];
        assert_eq!(calls_with(news, &proposals), ["leading 2", "following Some(7)"]);
        let batch = journal::encode(&batch());
        let refused = proposals.pass(Term(2), &batch, |_| Ok(()));
        assert_eq!(refused, Err(journal::ProposeError::NotLeading { term: Term(2) }));
    }

    #[test]
    fn a_term_that_broke_ends_even_if_it_is_mended_before_anybody_looks() {
        let proposals = Arc::new(Proposals::new());
        let (calls, all) = mpsc::channel();
        let mut notifier = Notifier::new(Recorder(calls), proposals.clone(), Arc::new(|why| panic!("{why}")));
        let leads = |breaks| News::Standing(Standing { term: Term(2), leader: Some(1), mine: true, breaks });
        let break_and_mend = || {
            proposals.fail(Term(2));
            proposals.mend(Term(2));
        };
        assert!(notifier.handle(News::Opened(Term(2))).is_continue());
        assert!(notifier.handle(leads(0)).is_continue());
        break_and_mend();
        assert!(notifier.handle(leads(1)).is_continue());
        break_and_mend();
        break_and_mend();
        // This one is out of date when it is handled: proposals stay closed until the next.
        assert!(notifier.handle(leads(2)).is_continue());
        assert_eq!(proposals.term(), None);
        assert!(notifier.handle(leads(3)).is_continue());
        drop(notifier);
        let calls: Vec<String> = all.iter().collect();
        let expected = ["leading 2", "following None", "leading 2", "following None", "leading 2"];
        assert_eq!(calls, expected);
    }

    fn stand(term: u64, leader: Option<u64>, mine: bool) -> News {
        News::Standing(Standing { term: Term(term), leader, mine, breaks: 0 })
    }

    fn calls(news: impl IntoIterator<Item = News>) -> Vec<String> {
        calls_with(news, &Arc::new(Proposals::new()))
    }

    fn calls_with(news: impl IntoIterator<Item = News>, proposals: &Arc<Proposals>) -> Vec<String> {
        let (calls, all) = mpsc::channel();
        let fatal: Fatal = Arc::new(|why| panic!("{why}"));
        let mut notifier = Notifier::new(Recorder(calls), proposals.clone(), fatal);
        news.into_iter().for_each(|news| assert!(notifier.handle(news).is_continue()));
        drop(notifier);
        all.iter().collect()
    }

    fn batch() -> model::Batch {
        model::Batch {
            epoch: model::EPOCH,
            index: base::Index(1),
            previous: base::Index(0),
            digest: model::Digest::default(),
            time: base::Time(0),
            proposer: base::Uuid::NIL,
            commands: vec![],
            events: vec![],
        }
    }

    struct Recorder(mpsc::Sender<String>);

    impl Sink for Recorder {
        fn committed(&mut self, batch: EncodedBatch) {
            self.0.send(format!("committed {}", batch.index())).unwrap();
        }

        fn restored(&mut self, image: model::Image) {
            self.0.send(format!("restored {}", image.index)).unwrap();
        }

        fn leading(&mut self, term: Term) {
            self.0.send(format!("leading {}", term.0)).unwrap();
        }

        fn following(&mut self, leader: Option<u64>) {
            self.0.send(format!("following {leader:?}")).unwrap();
        }

        fn halted(&mut self, why: String) {
            self.0.send(why).unwrap();
        }
    }
}
