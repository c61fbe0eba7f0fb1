//! The socket and the clock of a [`Pool`].

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::key_query::KeyReport;
use super::keyring::KeyOperation;
use super::member::{Member, Parting};
use super::pool::{Greeted, Pool};
use super::{Counts, GREETING_PATIENCE, JoinError, Sightings};

/// How often a greeting without an answer is sent again: packets get lost.
const GREETING_REPEAT: Duration = Duration::from_millis(500);

/// How long the news of a leaving server may spread before it is gone.
const LEAVE_SPREAD: Duration = Duration::from_secs(1);

/// Longer packets than ours are cut, and do not authenticate.
const BUFFER: usize = 2_048;

/// After a failing read of the socket: it must not become a busy loop.
const READ_RETRY: Duration = Duration::from_millis(100);

/// What the handle asks for.
pub(super) enum GossipRequest {
    Join { address: SocketAddr, answer: oneshot::Sender<Result<Arc<Member>, JoinError>> },
    AnnounceLog,
    ForceLeave { name: String, prune: bool, answer: oneshot::Sender<bool> },
    Keys { operation: KeyOperation, answer: oneshot::Sender<Result<KeyReport, String>> },
    Leave { answer: oneshot::Sender<()> },
}

pub(super) struct Driver {
    pool: Pool,
    socket: UdpSocket,
    requests: mpsc::Receiver<GossipRequest>,
    began: Instant,
    sightings: watch::Sender<Sightings>,
    counts: watch::Sender<Counts>,
    /// Greetings without an answer. Each is given up after [`GREETING_PATIENCE`].
    joins: BTreeMap<u64, Join>,
    /// Operations on keys whose callers wait. The pool bounds them and ends each.
    key_operations: BTreeMap<u64, oneshot::Sender<Result<KeyReport, String>>>,
    /// The number of the last greeting or operation on keys, counted from a number drawn at random.
    joined: u64,
    leaving: Option<(Instant, oneshot::Sender<()>)>,
}

struct Join {
    address: SocketAddr,
    again: Instant,
    until: Instant,
    answer: oneshot::Sender<Result<Arc<Member>, JoinError>>,
}

impl Driver {
    pub(super) fn new(
        pool: Pool,
        socket: UdpSocket,
        requests: mpsc::Receiver<GossipRequest>,
        began: Instant,
        joined: u64,
    ) -> (Driver, watch::Receiver<Sightings>, watch::Receiver<Counts>) {
        let (sightings, seen) = watch::channel(list(&pool));
        let (counts, counted) = watch::channel(Counts::default());
        let (joins, key_operations, leaving) = (BTreeMap::new(), BTreeMap::new(), None);
        let driver = Driver {
            pool,
            socket,
            requests,
            began,
            sightings,
            counts,
            joins,
            key_operations,
            joined,
            leaving,
        };
        (driver, seen, counted)
    }

    /// Until it has left, or there is no handle any more.
    pub(super) async fn run(mut self) {
        let mut buffer = vec![0; BUFFER];
        loop {
            self.flush().await;
            if self.has_left() {
                return;
            }
            let due = self.due();
            tokio::select! {
                read = self.socket.recv_from(&mut buffer) => self.read(read, &buffer).await,
                request = self.requests.recv() => match request {
                    Some(request) => self.handle(request),
                    None => return,
                },
                () = tokio::time::sleep_until(due) => {}
            }
            self.pass();
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn due(&self) -> Instant {
        let joins = self.joins.values().map(|join| join.again);
        let leaving = self.leaving.iter().map(|(at, _)| *at);
        joins.chain(leaving).fold(self.began + self.pool.next(), Instant::min)
    }

    async fn read(&mut self, read: io::Result<(usize, SocketAddr)>, buffer: &[u8]) {
        match read {
            Ok((length, from)) => self.pool.receive(self.began.elapsed(), from, &buffer[..length]),
            Err(error) => {
                tracing::warn!(%error, "gossip cannot be read");
                tokio::time::sleep(READ_RETRY).await;
            }
        }
    }

    fn handle(&mut self, request: GossipRequest) {
        match request {
            GossipRequest::Join { address, answer } => {
                self.joined = self.joined.wrapping_add(1);
                let now = Instant::now();
                let join = Join { address, again: now, until: now + GREETING_PATIENCE, answer };
                self.joins.insert(self.joined, join);
            }
            GossipRequest::AnnounceLog => self.pool.describe(|own| own.has_log = true),
            GossipRequest::ForceLeave { name, prune, answer } => {
                // A caller that has gone does not wait for the answer.
                let _ = answer.send(self.pool.force_leave(&name, prune));
            }
            GossipRequest::Keys { operation, answer } => {
                self.joined = self.joined.wrapping_add(1);
                self.key_operations.insert(self.joined, answer);
                self.pool.change_keys(self.joined, operation);
            }
            GossipRequest::Leave { answer } => {
                self.pool.describe(|own| own.parting = Parting::Leaving);
                self.leaving = Some((Instant::now() + LEAVE_SPREAD, answer));
            }
        }
    }

    /// Does what is due, and passes on what came of it.
    fn pass(&mut self) {
        self.pool.pass(self.now());
        let now = Instant::now();
        self.joins.retain(|_, join| join.until > now && !join.answer.is_closed());
        for (number, join) in self.joins.iter_mut().filter(|(_, join)| join.again <= now) {
            self.pool.greet(join.address, *number);
            join.again = now + GREETING_REPEAT;
        }
        for (number, greeted) in self.pool.greeted() {
            let Some(join) = self.joins.remove(&number) else { continue };
            let outcome = match greeted {
                Greeted::Welcome(member) => Ok(member),
                Greeted::Refused(why) => Err(JoinError::Refused(join.address, why)),
                Greeted::Ourselves => Err(JoinError::Ourselves(join.address)),
            };
            // A caller that has gone does not wait for the answer.
            let _ = join.answer.send(outcome);
        }
        for (number, report) in self.pool.key_reports() {
            if let Some(answer) = self.key_operations.remove(&number) {
                // A caller that has gone does not wait for the answer.
                let _ = answer.send(report);
            }
        }
        for notice in self.pool.notices() {
            tracing::warn!("{notice}");
        }
        if self.pool.has_changed() {
            self.sightings.send_replace(list(&self.pool));
        }
        let counts = self.pool.counts();
        self.counts.send_if_modified(|known| std::mem::replace(known, counts) != counts);
    }

    async fn flush(&mut self) {
        while let Some((to, packet)) = self.pool.outgoing() {
            // What cannot be sent is as good as lost on the way, which gossip is made for.
            if let Err(error) = self.socket.send_to(&packet, to).await {
                tracing::debug!(%to, %error, "gossip cannot be sent");
            }
        }
    }

    fn has_left(&mut self) -> bool {
        let Some((_, answer)) = self.leaving.take_if(|(at, _)| *at <= Instant::now()) else { return false };
        self.pool.leave();
        while let Some((to, packet)) = self.pool.outgoing() {
            // The last words, as far as they get.
            let _ = self.socket.try_send_to(&packet, to);
        }
        // A caller that has gone does not wait for it.
        let _ = answer.send(());
        true
    }
}

fn list(pool: &Pool) -> Sightings {
    Arc::new(pool.sightings().cloned().collect())
}
