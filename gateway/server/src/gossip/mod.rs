//! How servers find each other: SWIM over UDP, sealed when there is a key.
//!
//! [`Gossip`] is the handle; `driver.rs` owns the socket and the clock; [`Pool`] is everything else and has neither.
//! `seal.rs` and `replay.rs` say which packets are read at all, `greeting.rs` how a server is accepted,
//! `member.rs` what gossip sends about one, `keyring.rs` how keys are replaced.

mod driver;
mod greeting;
mod key_query;
mod keyring;
mod member;
mod notice;
mod pool;
mod replay;
mod seal;
mod swim;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use driver::GossipRequest;
pub use key_query::{KeyReply, KeyReport};
pub use keyring::{KEYS_MAX, KeyOperation, Keyring, KeyringError};
pub use member::{Member, Parting, TEXT_MAX};
pub use notice::{Counts, Notice};
pub use pool::{MEMBERS_MAX, Pool, SaveKeys, Sighting, Standing, Timings};
pub use seal::{Key, KeyError};

/// Calls that may wait for the driver. It takes one within microseconds; a caller waits while it is full.
const REQUESTS_MAX: usize = 64;

/// How long a greeted server may take to answer.
const GREETING_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Settings {
    /// Its `generation` must be above that of every earlier start: the time in milliseconds does.
    pub own: Member,
    pub keyring: Keyring,
    pub timings: Timings,
    /// Drawn anew at each start: two processes with one seed would use the same nonces.
    pub seed: u64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GossipError {
    #[error("this server's {field} is empty or longer than {TEXT_MAX} bytes: others cannot be sent it")]
    Text { field: &'static str },
    #[error("gossip has ended")]
    Ended,
}

/// Why a server could not be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("no server answers at {0}")]
    Silent(SocketAddr),
    #[error("the servers at {0} refuse: {1}")]
    Refused(SocketAddr, String),
    #[error("this server itself listens at {0}")]
    Ourselves(SocketAddr),
    #[error("server \"{0}\" is alive: only a server that failed can be made to leave")]
    Alive(String),
    #[error("gossip has ended")]
    Ended,
}

/// All servers that are known, by the order of their ids; this one included.
pub type Sightings = Arc<Vec<Sighting>>;

/// This server's part in the gossip. Dropping the last handle ends it without leaving: the others see a failure.
#[derive(Clone)]
pub struct Gossip(Arc<Inner>);

struct Inner {
    requests: mpsc::Sender<GossipRequest>,
    sightings: watch::Receiver<Sightings>,
    counts: watch::Receiver<Counts>,
    address: SocketAddr,
    began: Instant,
    task: JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gossip {
    /// Begins to listen. No server is known yet: see [`Gossip::join`].
    ///
    /// # Errors
    /// [`GossipError::Text`] if this server's description cannot be sent.
    pub fn start(settings: Settings, save_keys: SaveKeys, socket: UdpSocket) -> Result<Gossip, GossipError> {
        if let Some(field) = settings.own.unfit() {
            return Err(GossipError::Text { field });
        }
        let address = socket.local_addr().unwrap_or(settings.own.serf);
        let Settings { own, keyring, timings, seed } = settings;
        let pool = Pool::new(own, keyring, save_keys, timings, seed);
        let (requests, received) = mpsc::channel(REQUESTS_MAX);
        let joined = base::Rng::stream(seed, "greetings").next();
        let began = Instant::now();
        let (driver, sightings, counts) = driver::Driver::new(pool, socket, received, began, joined);
        let task = tokio::spawn(driver.run());
        Ok(Gossip(Arc::new(Inner { requests, sightings, counts, address, began, task })))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub fn sightings(&self) -> Sightings {
        self.0.sightings.borrow().clone()
    }

    /// The clock of [`Sighting::since`].
    pub fn running_for(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// Wakes whenever something about a server changes.
    pub fn watch(&self) -> watch::Receiver<Sightings> {
        self.0.sightings.clone()
    }

    /// Packets that were not taken.
    pub fn counts(&self) -> Counts {
        *self.0.counts.borrow()
    }

    /// Greets a server, and with it all that it knows. Waits for its answer, at most three seconds.
    ///
    /// # Errors
    /// [`JoinError`]; joining again is harmless.
    pub async fn join(&self, address: SocketAddr) -> Result<Arc<Member>, JoinError> {
        let (answer, answered) = oneshot::channel();
        self.send(GossipRequest::Join { address, answer }).await.map_err(|_| JoinError::Ended)?;
        match tokio::time::timeout(GREETING_PATIENCE, answered).await {
            Err(_) => Err(JoinError::Silent(address)),
            Ok(answered) => answered.unwrap_or(Err(JoinError::Ended)),
        }
    }

    /// Tells the others that something was founded here, or that this server got its log.
    ///
    /// # Errors
    /// [`GossipError::Ended`].
    pub async fn announce_log(&self) -> Result<(), GossipError> {
        self.send(GossipRequest::AnnounceLog).await
    }

    /// Has a failed server count as one that left, also if it is found to have failed only in the next 30 seconds; `prune`
    /// also takes it off the list. False if there is none of that name.
    ///
    /// # Errors
    /// [`GossipError::Ended`].
    pub async fn force_leave(&self, name: &str, prune: bool) -> Result<bool, GossipError> {
        let (answer, answered) = oneshot::channel();
        let request = GossipRequest::ForceLeave { name: name.to_string(), prune, answer };
        self.send(request).await?;
        answered.await.map_err(|_| GossipError::Ended)
    }

    /// Has every live server do something with its keys. It changes nothing unless all of them answer and can follow; takes
    /// ten seconds at most.
    ///
    /// # Errors
    /// Why no server changed anything, for the operator.
    pub async fn change_keys(&self, operation: KeyOperation) -> Result<KeyReport, String> {
        let (answer, answered) = oneshot::channel();
        let ended = |_| GossipError::Ended.to_string();
        self.send(GossipRequest::Keys { operation, answer }).await.map_err(|error| error.to_string())?;
        answered.await.map_err(ended)?
    }

    /// Announces that this server leaves, gives that time to spread, and ends. Called a second time it returns at once.
    pub async fn leave(&self) {
        let (answer, answered) = oneshot::channel();
        if self.send(GossipRequest::Leave { answer }).await.is_ok() {
            // Gone already is gone.
            let _ = answered.await;
        }
    }

    async fn send(&self, request: GossipRequest) -> Result<(), GossipError> {
        self.0.requests.send(request).await.map_err(|_| GossipError::Ended)
    }
}
