//! openraft's state machine: hands committed batches on. The state they make lies behind the sink.

use std::io;

use base::Term;
use futures_util::{Stream, TryStreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::mpsc::Sender;

use crate::config::{LogId, StoredMembership, Types};
use crate::teller::News;

/// In memory only: after a restart every committed entry comes by again, from the first.
pub(crate) struct Machine {
    news: Sender<News>,
    applied: Option<LogId>,
    members: StoredMembership,
}

impl Machine {
    pub fn new(news: Sender<News>) -> Machine {
        Machine { news, applied: None, members: StoredMembership::default() }
    }

    async fn tell(&self, news: News) -> io::Result<()> {
        self.news.send(news).await.map_err(|_| io::Error::other("what receives committed batches is gone"))
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = ();
    type SnapshotBuilder = NoSnapshots;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.applied, self.members.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            self.applied = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Normal(data) => self.tell(News::Committed(data.batch)).await?,
                // A leader begins its term with one.
                EntryPayload::Blank => {
                    let term = Term(entry.log_id.committed_leader_id().term);
                    self.tell(News::Opened(term)).await?;
                }
                EntryPayload::Membership(members) => {
                    self.members = StoredMembership::new(Some(entry.log_id), members);
                }
            }
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> NoSnapshots {
        NoSnapshots
    }

    async fn install_snapshot(
        &mut self,
        _: &openraft::alias::SnapshotMetaOf<Types>,
        (): (),
    ) -> io::Result<()> {
        Err(no_snapshots())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<openraft::alias::SnapshotOf<Types, ()>>> {
        Ok(None)
    }
}

/// The log is kept whole, so nothing asks for snapshots yet.
pub(crate) struct NoSnapshots;

impl RaftSnapshotBuilder<Types> for NoSnapshots {
    type SnapshotData = ();

    async fn build_snapshot(&mut self) -> io::Result<openraft::alias::SnapshotOf<Types, ()>> {
        Err(no_snapshots())
    }
}

fn no_snapshots() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this release keeps the whole log and has no snapshots")
}
