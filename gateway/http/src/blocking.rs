//! Reads: on the newest state, or on the first one that is newer than what the caller has.

use std::sync::Arc;

use api::{AsOf, Consistency, WAIT_MAX};
use axum::response::IntoResponse;
use base::{Index, Time};
use control::{Leadership, Receipt, Subject};
use history::{History, HistoryError};
use journal::Freshness;
use serde::Serialize;
use state::State;
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::{Duration, Instant, timeout_at};

use crate::answer::{self, Answer, Meta};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::page::Page;
use crate::rendering::{Begun, Rendering, too_many_large, write_json};
use crate::request::{self, Reading};

/// Reads that may wait at the same time; one more is answered 429. Each takes a few kilobytes and, for every
/// batch that concerns it, one look at an index.
pub const WAITING_READS_MAX: usize = 8_192;

/// Lists that are rendered at the same time, each until it is known whether it is large; others wait for their turn.
/// Rendering is pure work for a processor.
pub(crate) const RENDERS_MAX: usize = 4;

/// Moments of the past that are opened at the same time; others wait for their turn. It is pure work for a processor, and
/// the leader needs one too.
pub(crate) const OPENINGS_MAX: usize = 1;

/// Forks that run at the same time: each has a processor to itself, and up to 500 MiB. One more is answered 429.
pub(crate) const FORKS_MAX: usize = 2;

/// A wait is up to this part longer than asked for, so that clients who began together do not return together.
const JITTER: u32 = 16;

/// What a read is about, for those who wait until it is newer. A function that says how new it is will do: its readers are woken
/// by each batch, and look.
pub(crate) trait Watched {
    /// How new it is: the last change of an object, or that of its table while it does not exist.
    fn index(&self, state: &State) -> Index;

    /// What changes whenever that does.
    fn subject(&self, _: &State) -> Subject {
        Subject::Everything
    }
}

impl<I: Fn(&State) -> Index> Watched for I {
    fn index(&self, state: &State) -> Index {
        self(state)
    }
}

/// What many wait for, or for long: how new it is, and what they are woken by. While there is no such subject, they are by
/// each batch.
pub(crate) struct Changing<S, I> {
    pub subject: S,
    pub index: I,
}

impl<S: Fn(&State) -> Option<Subject>, I: Fn(&State) -> Index> Watched for Changing<S, I> {
    fn index(&self, state: &State) -> Index {
        (self.index)(state)
    }

    fn subject(&self, state: &State) -> Subject {
        (self.subject)(state).unwrap_or(Subject::Everything)
    }
}

impl AppState {
    /// Answers with one object.
    pub(crate) async fn read<T: Serialize>(
        &self,
        read: &Reading,
        watched: impl Watched,
        view: impl FnOnce(&State) -> Result<T, Failure>,
    ) -> Answer {
        let (state, known_leader) = self.newer(read, &watched).await?;
        read.check_again(self)?;
        let meta = Meta { index: shown_index(read, &state, &watched), known_leader, next_token: None };
        // What is not there is also true as of an index.
        let response = view(&state).map_or_else(Failure::into_response, |value| answer::json(&value));
        Ok(answer::with_meta(response, &meta))
    }

    /// Answers with a list of few things, each of which `view` has made.
    pub(crate) async fn list<T: Serialize + Send + 'static>(
        &self,
        read: impl Into<Reading>,
        watched: impl Watched,
        view: impl FnOnce(&State, &Reading) -> Result<Page<T>, Failure> + Send + 'static,
    ) -> Answer {
        self.render(read.into(), watched, view, |_, item, to| write_json(item, to)).await
    }

    /// Answers with a list that may be large: `find` says of what, and `view` shows one after the other, while those before
    /// are being sent.
    pub(crate) async fn list_each<R: Send + 'static, T: Serialize>(
        &self,
        read: impl Into<Reading>,
        watched: impl Watched,
        find: impl FnOnce(&State, &Reading) -> Result<Page<R>, Failure> + Send + 'static,
        view: impl Fn(&State, &R) -> T + Send + 'static,
    ) -> Answer {
        let write = move |state: &State, row: &R, to: &mut Vec<u8>| write_json(&view(state, row), to);
        self.render(read.into(), watched, find, write).await
    }

    /// Lists are rendered off the threads that serve all requests.
    async fn render<R: Send + 'static>(
        &self,
        read: Reading,
        watched: impl Watched,
        find: impl FnOnce(&State, &Reading) -> Result<Page<R>, Failure> + Send + 'static,
        write: impl Fn(&State, &R, &mut Vec<u8>) + Send + 'static,
    ) -> Answer {
        let (state, known_leader) = self.newer(&read, &watched).await?;
        read.check_again(self)?;
        let index = shown_index(&read, &state, &watched);
        let turn = self.renders.clone().acquire_owned().await.expect("nobody closes the semaphore");
        let seats = self.large_lists.clone();
        let (answered, answer) = oneshot::channel();
        let rendered = tokio::task::spawn_blocking(move || {
            let page = match find(&state, &read) {
                Ok(page) => page,
                Err(failure) => return drop(answered.send(Err(failure))),
            };
            let meta = Meta { index, known_leader, next_token: page.next };
            let rendering = Rendering {
                items: page.items.iter(),
                write: |row: &R, to: &mut Vec<u8>| write(&state, row, to),
            };
            match rendering.begin() {
                Begun::Whole(response) => drop(answered.send(Ok(answer::with_meta(response, &meta)))),
                Begun::Large(response, rest) => {
                    let Ok(seat) = seats.try_acquire_owned() else {
                        return drop(answered.send(Err(too_many_large())));
                    };
                    // How long it takes is up to its reader: others need not wait for that.
                    drop(turn);
                    if answered.send(Ok(answer::with_meta(response, &meta))).is_ok() {
                        rest.send(seat);
                    }
                }
            }
        });
        match answer.await {
            Ok(answer) => answer,
            // It was dropped unused: the thread panicked.
            Err(_) => {
                Err(rendered.await.map_or_else(Failure::from, |()| Failure::internal("nothing was rendered")))
            }
        }
    }

    /// The first state that is newer than the caller's, or the last one before its wait ended; and whether
    /// there is a leader.
    pub(crate) async fn newer(
        &self,
        read: &Reading,
        watched: &impl Watched,
    ) -> Result<(Arc<State>, bool), Failure> {
        let options = &read.options;
        if !options.is_of_now() {
            return self.unchanging(read).await;
        }
        let known_leader = self.fresh(options.consistency, options.min_index).await?;
        // Nothing is in a table before 1: who got 0 from an empty one, and waits with 1, waits for its first row.
        let is_newer = |state: &State| watched.index(state).0.max(1) > options.index.0;
        let state = self.control.state();
        if options.index == Index::ZERO || is_newer(&state) {
            return Ok((state, known_leader));
        }
        let mut news = self.control.changes_of(watched.subject(&state));
        // Who waits holds no state: an old one keeps every page that has changed since.
        drop(state);
        let _permit = self.waiting()?;
        let deadline = Instant::now() + with_jitter(options.wait.to_std());
        loop {
            // It may have become newer before anybody waited for news.
            let state = self.control.state();
            if is_newer(&state) {
                return Ok((state, known_leader));
            }
            drop(state);
            if timeout_at(deadline, news.changed()).await.is_err() {
                return Ok((self.control.state(), known_leader));
            }
        }
    }

    /// A moment of the past, or a fork. Who waits for it to change waits in vain, as long as it wants to.
    async fn unchanging(&self, read: &Reading) -> Result<(Arc<State>, bool), Failure> {
        let (state, known_leader) = self.moment(read).await?;
        if read.options.index >= state.index && read.options.index != Index::ZERO {
            let _permit = self.waiting()?;
            let mut published = self.control.watch();
            let ends = async { while published.changed().await.is_ok() {} };
            // Earlier only if the server stops.
            drop(timeout_at(Instant::now() + with_jitter(read.options.wait.to_std()), ends).await);
        }
        Ok((state, known_leader))
    }

    /// The state that a read is about: the newest one, or that of the past or of the fork which it asks for; and whether there
    /// is a leader.
    ///
    /// # Errors
    /// 410 for what is no longer kept, 400 for what is still to come, 404 for a fork that is not there.
    pub(crate) async fn moment(&self, read: &Reading) -> Result<(Arc<State>, bool), Failure> {
        let known_leader = self.fresh(read.options.consistency, read.options.min_index).await?;
        if let Some(fork) = &read.options.fork {
            return Ok((self.kept_forks.find(&read.access, fork)?.state().clone(), known_leader));
        }
        let Some(as_of) = read.options.as_of else { return Ok((self.control.state(), known_leader)) };
        let turn = self.openings.clone().acquire_owned().await.expect("nobody closes the semaphore");
        let history = self.history.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let state = index_of(&history, as_of).and_then(|index| history.state_at(index));
            state.map_err(|error| past("as_of", &error, &history))
        });
        Ok((opened.await??, known_leader))
    }

    fn waiting(&self) -> Result<SemaphorePermit<'_>, Failure> {
        self.waiting_reads.try_acquire().map_err(|_| {
            Failure::too_many(format!("{WAITING_READS_MAX} reads are waiting already: try again later"))
        })
    }

    /// Waits until this server's state is as new as requested; true if there is a leader.
    ///
    /// # Errors
    /// `No cluster leader`, unless any server may answer; and when the state does not come to `min_index`.
    pub(crate) async fn fresh(&self, consistency: Consistency, min_index: Index) -> Result<bool, Failure> {
        if let Some(why) = self.control.diverged().borrow().as_ref() {
            return Err(Failure::internal(why.clone()));
        }
        let freshness = match consistency {
            Consistency::Stale => None,
            Consistency::Leased => Some(Freshness::Lease),
            Consistency::Confirmed => Some(Freshness::Confirmed),
        };
        if let Some(freshness) = freshness {
            let caught_up = self.control.catch_up(freshness).await;
            caught_up.map_err(|_| Failure::internal("No cluster leader"))?;
        }
        if self.control.state().index < min_index {
            let reached = self.control.reach(min_index).await;
            reached
                .map_err(|_| Failure::internal(format!("this server has not seen index {min_index} yet")))?;
        }
        Ok(self.known_leader())
    }

    /// The state once this server has the write.
    ///
    /// # Errors
    /// `No cluster leader`: it does not come to it.
    pub(crate) async fn after(&self, receipt: &Receipt) -> Result<Arc<State>, Failure> {
        let reached = self.control.reach(receipt.index).await;
        reached.map_err(|_| Failure::internal("No cluster leader"))?;
        Ok(self.control.state())
    }

    /// There is a leader, as far as this server knows.
    pub(crate) fn known_leader(&self) -> bool {
        self.control.leadership_now() != Leadership::Unknown
    }
}

/// How new the answer is: of the past and of forks, the whole state is that of one index.
fn shown_index(read: &Reading, state: &State, watched: &impl Watched) -> Index {
    if read.options.is_of_now() { watched.index(state) } else { state.index }
}

/// The index that was the newest then.
///
/// # Errors
/// [`HistoryError::Gone`] and [`HistoryError::Ahead`].
pub(crate) fn index_of(history: &History, moment: AsOf) -> Result<Index, HistoryError> {
    match moment {
        AsOf::Index(index) => Ok(index),
        AsOf::Time(time) if time > now() => Err(HistoryError::Ahead { newest: history.newest() }),
        AsOf::Time(time) => history.index_at(time),
        AsOf::Ago(span) => history.index_at(ago(span)),
    }
}

pub(crate) fn ago(span: base::Duration) -> Time {
    Time(now().0.saturating_sub(span.0))
}

/// Why the moment that a parameter names cannot be read.
pub(crate) fn past(parameter: &str, error: &HistoryError, history: &History) -> Failure {
    match error {
        HistoryError::Gone { oldest } => {
            let mut text =
                format!("{parameter}: what was then is no longer kept: the oldest index is {oldest}");
            if let (_, spans) = history.kept()
                && let (Some(first), Some(last)) = (spans.first(), spans.last())
            {
                text += &format!(
                    ". From index {} on {} facts are kept: /v1/history and the histories of objects have them",
                    first.first, last.kinds
                );
            }
            Failure::gone(text, *oldest)
        }
        HistoryError::Ahead { newest } => {
            Failure::invalid(format!("{parameter}: that is still to come: the newest index is {newest}"))
        }
        error => Failure::internal(error.to_string()),
    }
}

fn with_jitter(wait: Duration) -> Duration {
    let wait = wait.min(WAIT_MAX.to_std());
    let part = u32::from_le_bytes(request::random());
    wait + wait.mul_f64(f64::from(part) / f64::from(u32::MAX)) / JITTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_grows_by_at_most_a_sixteenth() {
        for _ in 0..100 {
            let wait = with_jitter(Duration::from_secs(16));
            assert!(wait >= Duration::from_secs(16) && wait <= Duration::from_secs(17), "{wait:?}");
        }
    }
}
