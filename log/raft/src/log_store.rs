//! openraft's log on the segment store.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use base::Index;
use futures_util::{Stream, TryStreamExt, stream};
use journal::store::{Done, Store, StoreError};
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::config::{Entry, LogId, Types, Vote};
use crate::formats;
use crate::message::ENTRIES_BYTES_MAX;

/// How often a wait is reported that has no end of its own: an image can be large, and its disk full.
const LONG: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct LogStore {
    store: Arc<Store>,
    /// False once the store is not driven any more.
    alive: watch::Receiver<bool>,
    /// Notified when an image is in place.
    installed: watch::Receiver<()>,
}

impl LogStore {
    pub fn new(store: Arc<Store>, alive: watch::Receiver<bool>, installed: watch::Receiver<()>) -> LogStore {
        LogStore { store, alive, installed }
    }

    /// Openraft may append what follows an image while that is still being put in place. Entries are dense, so nothing
    /// else can be missing.
    async fn reach(&mut self, entry: u64) -> io::Result<()> {
        while self.store.last().map_or(0, |last| last.index + 1) < entry {
            tokio::select! {
                biased;
                changed = self.installed.changed() => changed.map_err(|_| failed(StoreError::Stopped))?,
                Ok(_) = self.alive.wait_for(|alive| !alive) => return Err(failed(StoreError::Stopped)),
                () = sleep(LONG) => tracing::warn!(entry, "an append still waits for an image"),
            }
        }
        Ok(())
    }

    /// The bounds as first and one past last. What was purged is not in the log any more.
    fn range(&self, range: impl RangeBounds<u64>) -> std::ops::Range<u64> {
        let first = match range.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        first.max(self.store.purged().map_or(0, |purged| purged.index + 1))..end
    }

    /// Waits until the write is synced.
    async fn wait(&mut self, ask: impl FnOnce(&Store, Done) -> Result<(), StoreError>) -> io::Result<()> {
        let (done, written) = oneshot::channel();
        // The task that asked may be gone by then, with the server.
        ask(&self.store, Box::new(move || done.send(()).unwrap_or(()))).map_err(failed)?;
        tokio::select! {
            biased;
            written = written => written.map_err(|_| failed(StoreError::Stopped)),
            Ok(_) = self.alive.wait_for(|alive| !alive) => Err(failed(StoreError::Stopped)),
        }
    }

    fn some(&self, range: std::ops::Range<u64>, max_bytes: usize) -> io::Result<Vec<Entry>> {
        let entries = self.store.entries(range, max_bytes).map_err(failed)?;
        entries.into_iter().map(formats::entry).collect()
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R>(&mut self, range: R) -> io::Result<Vec<Entry>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.some(self.range(range), usize::MAX)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.some(self.range(start..end), ENTRIES_BYTES_MAX)
    }

    async fn entries_stream<R>(&mut self, range: R) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let chunks = stream::try_unfold((self.clone(), self.range(range)), |(log, range)| async move {
            let entries = log.some(range.clone(), ENTRIES_BYTES_MAX)?;
            let next = range.start + entries.len() as u64;
            Ok::<_, io::Error>(match entries.is_empty() {
                true => None,
                false => Some((stream::iter(entries.into_iter().map(Ok)), (log, next..range.end))),
            })
        });
        Box::pin(chunks.try_flatten())
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.store.vote().map(|bytes| formats::vote(&bytes)).transpose()
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let last_purged_log_id = self.store.purged().map(formats::log_id);
        let last_log_id = self.store.last().map(formats::log_id);
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let vote = formats::vote_bytes(vote);
        self.wait(|store, done| store.save_vote(vote, done)).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let Some(upto) = committed else { return Ok(()) };
        self.store.save_committed(formats::stored_id(&upto)).map_err(failed)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.store.committed().map(formats::log_id))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut entries = entries.into_iter().peekable();
        if let Some(first) = entries.peek() {
            self.reach(first.log_id.index).await?;
        }
        let mut last = self.store.batch_at(u64::MAX - 1);
        let entries = entries.map(|entry| fenced(entry, &mut last));
        let entries = entries.map(formats::stored_entry).collect();
        self.store.append(entries, Box::new(move || callback.io_completed(Ok(())))).map_err(failed)
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let from = last.map_or(0, |last| last.index + 1);
        self.wait(|store, done| store.truncate(from, done)).await
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        self.wait(|store, done| store.purge(formats::stored_id(&upto), done)).await
    }
}

/// A proposed batch that does not follow the last one was decided on a proposal that was refused: openraft refuses while no
/// majority is in contact with the leader, and takes again in the same term when one is.
fn fenced(entry: Entry, last: &mut Index) -> Entry {
    let EntryPayload::Normal(data) = &entry.payload else { return entry };
    if data.proposed && data.batch.index() != last.next() {
        tracing::debug!(index = data.batch.index().0, "a proposal stands on one that was refused");
        return Entry { log_id: entry.log_id, payload: EntryPayload::Blank };
    }
    *last = data.batch.index();
    entry
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    //! openraft's own suite for stores, but for what needs snapshots, or purges what was never there.

    use openraft::testing::log::{StoreBuilder, Suite};
    use tempfile::TempDir;

    use super::*;
    use crate::config::Data;
    use crate::driving::Blocking;
    use crate::machine::Machine;
    use journal::store::{self, Directory, Driving, RETENTION, Settings};

    struct Build;

    impl StoreBuilder<Types, LogStore, Machine, TempDir> for Build {
        async fn build(&self) -> Result<(TempDir, LogStore, Machine), openraft::StorageError<Types>> {
            let dir = tempfile::tempdir().unwrap();
            let (log, machine) = fresh(&dir);
            Ok((dir, log, machine))
        }
    }

    type Cases = Suite<Types, LogStore, Machine, Build, TempDir>;

    fn fresh(dir: &TempDir) -> (LogStore, Machine) {
        let files = Arc::new(Directory::open(dir.path()).unwrap());
        let store = Store::open(
            files,
            Settings {
                segment_bytes: 4096,
                retention: RETENTION,
                archive: None,
                keep: None,
                driving: Driving::Threads,
            },
            Arc::new(journal::store::abort),
        )
        .unwrap();
        // Nobody listens: the suite looks at the store.
        let (news, mut heard) = tokio::sync::mpsc::channel(64);
        tokio::spawn(async move { while heard.recv().await.is_some() {} });
        let (store, (done, installed)) = (Arc::new(store), watch::channel(()));
        let log = LogStore::new(store.clone(), watch::Sender::new(true).subscribe(), installed);
        (log, Machine::new(store, Blocking::Here, news, Arc::default(), done))
    }

    #[tokio::test]
    async fn a_proposal_that_stands_on_a_refused_one_leaves_a_blank() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = fresh(&dir);
        let entry =
            |index, payload| Entry { log_id: formats::log_id(store::LogId { index, term: 1 }), payload };
        let batch = |index: u64| {
            journal::encode(&model::Batch {
                epoch: model::EPOCH,
                digest: model::Digest::default(),
                index: Index(index),
                previous: Index(index - 1),
                time: base::Time(0),
                proposer: base::Uuid::NIL,
                commands: vec![],
                events: vec![],
            })
        };
        let proposed = |index| EntryPayload::Normal(Data::proposed(batch(index)));
        // Batch 2 was refused, and 3 was in the queue behind it. Then the proposer began again.
        let given = [EntryPayload::Blank, proposed(1), proposed(3), proposed(2), proposed(3)];
        let entries: Vec<Entry> = (0..).zip(given).map(|(index, payload)| entry(index, payload)).collect();
        log.append(entries, IOFlushed::noop()).await.unwrap();
        let kept = log.try_get_log_entries(0..5).await.unwrap();
        let logged = |index| EntryPayload::Normal(Data::logged(batch(index)));
        let expected = [EntryPayload::Blank, logged(1), EntryPayload::Blank, logged(2), logged(3)];
        assert_eq!(kept.into_iter().map(|entry| entry.payload).collect::<Vec<_>>(), expected);
    }

    macro_rules! suite {
        ($($case:ident)+) => {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let (log, machine) = fresh(&dir);
                Cases::$case(log, machine).await.unwrap();
            })+
        };
    }

    suite! {
        last_membership_in_log_initial
        get_membership_initial
        get_initial_state_without_init
        save_vote
        get_log_entries
        limited_get_log_entries
        leader_bounded_stream
        entries_stream
        try_get_log_entry
        log_reader_reads_new_entries
        initial_logs
        get_log_id
        last_id_in_log
        delete_logs_after_11
        delete_logs_after_5
        delete_logs_after_0
        delete_logs_after_none
        append_to_log
        purge_logs_upto_0
        purge_logs_upto_5
        apply_single
        apply_multiple
        snapshot_meta_optional
    }
}
