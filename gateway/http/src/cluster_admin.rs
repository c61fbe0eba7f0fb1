use std::io;
use std::time::Instant;

use api::{
    AgentMember, JoinResponse, KeyringResponse, LeadershipTransferResponse, OperatorHealthReply,
    RaftConfiguration, UpgradeServer,
};
use base::Index;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use journal::store::{HistoryFile, HistoryStatus, StoreError};
use metrics::Figures;
use serde::{Deserialize, Serialize};

use crate::elsewhere::OtherHistory;

/// The servers of all regions, and the raft cluster of this one.
///
/// What only the leader can do or knows is requested from it, and fails with [`ClusterError::NotLeading`] while there is none.
pub trait ClusterAdmin: Send + Sync + 'static {
    /// Every server that is known, this one included.
    fn members(&self) -> Vec<AgentMember>;

    /// Regions that have servers, sorted.
    fn regions(&self) -> Vec<String>;

    /// The leader's RPC address; `None` while there is none.
    fn leader(&self) -> Option<String>;

    /// The RPC address of a server of this region, by its name with or without the region, its id, or as `leader`.
    fn find(&self, server: &str) -> Option<String>;

    /// RPC addresses of the raft cluster, sorted.
    fn peers(&self) -> Vec<String>;

    /// What this server measures of the others.
    fn figures(&self, now: Instant) -> Figures;

    /// Joins the servers at these addresses, as far as they can be reached.
    fn join(&self, addresses: Vec<String>) -> BoxFuture<'_, JoinResponse>;

    /// Has a failed server count as one that left, also if it died just now; an unknown name does nothing.
    ///
    /// # Errors
    /// [`ClusterError::Invalid`] if this server does not gossip with the others.
    fn force_leave(&self, name: String, prune: bool) -> BoxFuture<'_, Result<(), ClusterError>>;

    /// Has every live server do something with its gossip keys; none changes anything unless all of them can follow.
    ///
    /// # Errors
    /// [`ClusterError::Invalid`] if the key is none; [`ClusterError::Failed`] if some server did not follow.
    fn gossip_keys(&self, operation: GossipKeys) -> BoxFuture<'_, Result<KeyringResponse, ClusterError>>;

    fn raft_configuration(&self) -> RaftConfiguration;

    /// The servers of the raft cluster, with their releases.
    fn releases(&self) -> Vec<UpgradeServer>;

    /// # Errors
    /// [`ClusterError`]; the raft cluster is as it was.
    fn remove_peer(&self, peer: PeerName) -> BoxFuture<'_, Result<(), ClusterError>>;

    /// Returns once the other server leads.
    ///
    /// # Errors
    /// [`ClusterError`]; some server leads, or will after the next election.
    fn transfer(&self, to: PeerName) -> BoxFuture<'_, Result<LeadershipTransferResponse, ClusterError>>;

    /// How far back the other servers of the region go that answer.
    fn histories(&self) -> BoxFuture<'_, Vec<OtherHistory>>;

    /// How well the servers are, in the eyes of the leader.
    ///
    /// # Errors
    /// [`ClusterError`].
    fn health(&self) -> BoxFuture<'_, Result<OperatorHealthReply, ClusterError>>;
}

/// What is to be done with the keys that encrypt gossip. Keys are in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GossipKeys {
    List,
    Install(String),
    Use(String),
    Remove(String),
}

/// A member of the raft cluster, as operators name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerName {
    /// The server's id, or its number in raft.
    Id(String),
    /// Its RPC address.
    Address(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ClusterError {
    #[error("this server does not lead{}", leader.as_ref().map(|at| format!(": {at} does")).unwrap_or_default())]
    NotLeading { leader: Option<String> },
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Failed(String),
}

/// A snapshot file on its way. An error ends it, and the file is of no use.
pub type FileStream = BoxStream<'static, io::Result<Bytes>>;

/// A snapshot file that was made, and what is known before it is sent.
pub struct SnapshotFile {
    /// SHA-256 or another digest of the whole file, in the form of the `Digest` header, like `sha-256=…`.
    pub digest: String,
    pub bytes: u64,
    pub index: u64,
    pub stream: FileStream,
}

/// Snapshots of the whole state as files.
pub trait Snapshots: Send + Sync + 'static {
    /// Makes a file of everything that is committed here.
    ///
    /// # Errors
    /// [`ClusterError`].
    fn save(&self) -> BoxFuture<'_, Result<SnapshotFile, ClusterError>>;

    /// Puts the state of a file in place of what is there. The file is read whole and checked first.
    ///
    /// # Errors
    /// [`ClusterError`]; nothing has changed then.
    fn restore(&self, file: FileStream) -> BoxFuture<'_, Result<(), ClusterError>>;
}

/// Which files of history are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Those of the log and of the archive.
    All,
    /// Those of facts that are kept of older entries.
    Kept,
}

/// The files in which this server keeps history. What reads one blocks.
pub trait HistoryFiles: Send + Sync + 'static {
    fn status(&self) -> HistoryStatus;

    /// Reads the file that a batch is in and compares all of it with its checksums; `None` when that batch is not committed. Of
    /// kept facts it is the first file that does not end below the index, and `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where it is not what was written, [`StoreError::Compacted`] when it is no longer kept.
    fn verify(&self, of: Entries, index: Index) -> Result<Option<HistoryFile>, StoreError>;

    /// A copy of the file that a batch is in, compressed; `None` when that batch is not committed.
    ///
    /// # Errors
    /// As [`HistoryFiles::verify`].
    fn export(&self, of: Entries, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError>;
}
