//! Tells the sink what happened, one thing at a time, on a thread of its own.
//!
//! Leadership and commits come from different corners of openraft. Here they meet: `leading` is told when this
//! server won a term *and* the blank entry it began the term with has come by, since all it inherited came before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use base::Term;
use journal::{EncodedBatch, Sink};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::gate::Gate;

/// News not told yet. When it is full, applying waits: a slow sink slows commits down, it does not pile them up.
const NEWS_MAX: usize = 1024;

pub(crate) enum News {
    Committed(EncodedBatch),
    /// The first entry of a term is applied.
    Opened(Term),
    Standing(Standing),
    Halted(String),
    Stop,
}

/// How the votes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub term: Term,
    pub leader: Option<u64>,
    /// This server leads, and may propose once the term is opened.
    pub mine: bool,
}

struct Teller<S> {
    sink: S,
    gate: Arc<Gate>,
    standing: Option<Standing>,
    opened: Option<Term>,
    leading: Option<Term>,
    /// The leader that was told last.
    leader: Option<u64>,
}

pub(crate) fn spawn<S: Sink>(sink: S, gate: Arc<Gate>) -> std::io::Result<(Sender<News>, JoinHandle<()>)> {
    let (tx, rx) = channel(NEWS_MAX);
    let teller = Teller { sink, gate, standing: None, opened: None, leading: None, leader: None };
    let run = move || {
        // The fold may run behind the sink. A state that could not take a batch must not serve, and not vote.
        if catch_unwind(AssertUnwindSafe(|| teller.run(rx))).is_err() {
            journal::store::abort("what receives committed batches panicked");
        }
    };
    Ok((tx, std::thread::Builder::new().name("log-sink".into()).spawn(run)?))
}

impl<S: Sink> Teller<S> {
    fn run(mut self, mut news: Receiver<News>) {
        while let Some(news) = news.blocking_recv() {
            match news {
                News::Committed(batch) => {
                    self.gate.set_committed(batch.index());
                    self.sink.committed(batch);
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
                    self.gate.close();
                    self.sink.halted(why);
                    return;
                }
                News::Stop => return self.gate.close(),
            }
        }
    }

    fn settle(&mut self) {
        let Some(standing) = self.standing else { return };
        let entitled = (standing.mine && self.opened == Some(standing.term)).then_some(standing.term);
        let leader = standing.leader.filter(|_| !standing.mine);
        if self.leading.is_some() && self.leading != entitled {
            self.leading = None;
            self.gate.close();
            self.follow(leader);
        }
        if self.leading.is_none() && leader.is_some() && leader != self.leader {
            self.follow(leader);
        }
        if let (None, Some(term)) = (self.leading, entitled) {
            self.leading = Some(term);
            self.gate.open(term);
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
            told([stand(2, Some(1), true), News::Opened(Term(1)), News::Opened(Term(2))]),
            ["leading 2"]
        );
        assert_eq!(told([News::Opened(Term(2)), stand(2, Some(1), true)]), ["leading 2"]);
        assert_eq!(told([stand(2, Some(1), true)]), [""; 0]);
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
        assert_eq!(told(news), ["leading 2", "following None", "leading 3"]);
    }

    #[test]
    fn a_new_leader_is_told_once() {
        let news = [
            stand(1, None, false),
            stand(2, Some(7), false),
            stand(2, Some(7), false),
            stand(3, None, false),
            stand(4, Some(8), false),
        ];
        assert_eq!(told(news), ["following Some(7)", "following Some(8)"]);
    }

    #[test]
    fn losing_leadership_closes_the_gate() {
        let gate = Arc::new(Gate::new());
        let news = [stand(2, Some(1), true), News::Opened(Term(2)), stand(3, Some(7), false)];
        assert_eq!(tell(news, &gate), ["leading 2", "following Some(7)"]);
        let batch = journal::encode(&batch());
        let refused = gate.pass(Term(2), &batch, |_| Ok(()));
        assert_eq!(refused, Err(journal::ProposeError::NotLeading { term: Term(2) }));
    }

    fn stand(term: u64, leader: Option<u64>, mine: bool) -> News {
        News::Standing(Standing { term: Term(term), leader, mine })
    }

    fn told(news: impl IntoIterator<Item = News>) -> Vec<String> {
        tell(news, &Arc::new(Gate::new()))
    }

    fn tell(news: impl IntoIterator<Item = News>, gate: &Arc<Gate>) -> Vec<String> {
        let (heard, all) = mpsc::channel();
        let (tx, thread) = spawn(Heard(heard), gate.clone()).unwrap();
        news.into_iter().for_each(|news| tx.blocking_send(news).unwrap());
        drop(tx);
        thread.join().unwrap();
        all.iter().collect()
    }

    fn batch() -> model::Batch {
        model::Batch {
            index: base::Index(1),
            previous: base::Index(0),
            digest: model::Digest::default(),
            time: base::Time(0),
            proposer: base::Uuid::NIL,
            commands: vec![],
            events: vec![],
        }
    }

    struct Heard(mpsc::Sender<String>);

    impl Sink for Heard {
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
