//! Calls that the leader answers: here if this server leads, otherwise forwarded to the one that does.

use std::sync::Arc;
use std::time::Duration;

use base::{Index, Uuid};
use journal::{Freshness, NotLeading};
use model::{Actor, Command, JobType, NodeId, Request, RequestId, VariableKey};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::clock::entropy_bytes;
use super::control::Control;
use super::shared::{Leadership, Shared};
use crate::leader::broker::Delivery;
use crate::leader::locks::NotRenewed;
use crate::leader_client::{CallError, LeaderAnswer, LeaderCall};
use crate::sequencer::{Receipt, Submission, SubmitError};

/// How long to wait before the same leader is called again, unless another one is elected.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// How long a call may take that the leader answers without waiting for anything.
const ANSWER_MAX: base::Duration = base::Duration::from_secs(2);

/// How long a leader may take to make an image.
const KEEP_MAX: base::Duration = base::Duration::from_secs(30);

/// How long a worker waits until its plan is committed.
const COMMIT_MAX: base::Duration = base::Duration::from_secs(10);

/// How long a call from another server's worker may wait here for work.
const PATIENCE_MAX: base::Duration = base::Duration::from_secs(2);

impl Control {
    /// Has a command decided, by whichever server leads, and waits until its outcome is committed and can be read
    /// here.
    ///
    /// While the outcome is unknown the command is sent again under its id, also to the next leader, as long as a
    /// call may wait for a leader: it takes effect once.
    ///
    /// # Errors
    /// [`SubmitError`]; for `Unknown` repeat the request under the same id.
    pub async fn submit(&self, mut request: Request) -> Result<Receipt, SubmitError> {
        if request.id == RequestId::default() {
            request.id = RequestId(Uuid::from_random(entropy_bytes()));
        }
        let deadline = Instant::now() + self.shared.settings.rpc_hold.to_std();
        let mut failure = SubmitError::NotLeading;
        loop {
            let outcome = match self.leader_by(deadline).await {
                Leadership::Unknown => return Err(failure),
                Leadership::Mine => self.submit_here(request.clone()).await,
                Leadership::Other(leader) => self.submit_there(leader, request.clone(), deadline).await,
            };
            match outcome {
                Err(SubmitError::Unknown) => failure = SubmitError::Unknown,
                Err(SubmitError::NotLeading) => {}
                Ok(receipt) => {
                    // Not yet to be read here: the write stands all the same.
                    let _seen = self.published_by(receipt.index, deadline).await;
                    return Ok(receipt);
                }
                refused => return refused,
            }
            if Instant::now() >= deadline {
                return Err(failure);
            }
            self.pause_before_retry().await;
        }
    }

    /// Waits until this server's state holds everything that was acknowledged, by any server, before the call.
    ///
    /// # Errors
    /// Nobody leads, or nobody can be sure to.
    pub async fn catch_up(&self, freshness: Freshness) -> Result<(), NotLeading> {
        let deadline = Instant::now() + self.shared.settings.rpc_hold.to_std();
        loop {
            let index = match self.leader_by(deadline).await {
                Leadership::Unknown => return Err(NotLeading),
                Leadership::Mine => self.read_index_here(freshness).await,
                Leadership::Other(leader) => {
                    let call = LeaderCall::ReadIndex { confirmed: freshness == Freshness::Confirmed };
                    match self.shared.leader_client.call(leader, call, ANSWER_MAX).await {
                        Ok(LeaderAnswer::ReadIndex(index)) => index,
                        Ok(_) | Err(_) => None,
                    }
                }
            };
            if let Some(index) = index {
                return self.published_by(index, deadline).await;
            }
            if Instant::now() >= deadline {
                return Err(NotLeading);
            }
            self.pause_before_retry().await;
        }
    }

    /// Waits until this server's state is at least at `index`, which a caller has from a write at another server.
    ///
    /// # Errors
    /// It is still older after as long as a call may wait.
    pub async fn reach(&self, index: Index) -> Result<(), NotLeading> {
        self.published_by(index, Instant::now() + self.shared.settings.rpc_hold.to_std()).await
    }

    /// Has the leader keep an image of its state, for this server to fetch.
    ///
    /// # Errors
    /// Why there is none; also when no other server leads.
    pub async fn have_leader_keep_image(&self) -> Result<Index, String> {
        let Leadership::Other(leader) = self.leadership_now() else {
            return Err("no other server leads".to_string());
        };
        match self.shared.leader_client.call(leader, LeaderCall::KeepImage, KEEP_MAX).await {
            Ok(LeaderAnswer::Kept(kept)) => kept,
            Ok(_) => Err("the leader answered another call".to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// A node sent a heartbeat, and what it reported was decided. Returns how long it may be silent now; `None` when no
    /// leader counts its heartbeats.
    pub async fn heartbeat(&self, node: NodeId) -> Option<base::Duration> {
        match self.leadership_now() {
            Leadership::Mine => self.shared.heartbeat_here(node),
            Leadership::Unknown => None,
            Leadership::Other(leader) => {
                match self.shared.leader_client.call(leader, LeaderCall::Heartbeat { node }, ANSWER_MAX).await
                {
                    Ok(LeaderAnswer::Heartbeat(ttl)) => ttl,
                    Ok(_) | Err(_) => None,
                }
            }
        }
    }

    /// The holder of a variable's lock goes on holding it, as far as the leader is concerned, who alone counts; `None` when no
    /// leader answers.
    pub async fn renew_lock(&self, key: &VariableKey, lock: Uuid) -> Option<Result<(), NotRenewed>> {
        match self.leadership_now() {
            Leadership::Mine => self.shared.renew_lock_here(key, lock),
            Leadership::Unknown => None,
            Leadership::Other(leader) => {
                let call = LeaderCall::RenewLock { key: key.clone(), lock };
                match self.shared.leader_client.call(leader, call, ANSWER_MAX).await {
                    Ok(LeaderAnswer::Renewed(renewed)) => renewed,
                    Ok(_) | Err(_) => None,
                }
            }
        }
    }

    /// Answers another server. What needs a leader is rejected unless this server leads: no call is forwarded twice.
    pub async fn answer(&self, call: LeaderCall) -> LeaderAnswer {
        match call {
            LeaderCall::Submit(request) => LeaderAnswer::Submitted(self.submit_here(*request).await),
            LeaderCall::Dequeue { types, patience } => {
                LeaderAnswer::Dequeued(self.dequeue_for_peer(types, patience.min(PATIENCE_MAX)).await)
            }
            LeaderCall::Touch { eval, token } => LeaderAnswer::Held(self.shared.touch_here(eval, token)),
            LeaderCall::Ack { eval, token } => {
                self.shared.ack_here(eval, token);
                LeaderAnswer::Held(Ok(()))
            }
            LeaderCall::Nack { eval, token } => {
                self.shared.nack_here(eval, token);
                LeaderAnswer::Held(Ok(()))
            }
            LeaderCall::Heartbeat { node } => LeaderAnswer::Heartbeat(self.shared.heartbeat_here(node)),
            LeaderCall::RenewLock { key, lock } => {
                LeaderAnswer::Renewed(self.shared.renew_lock_here(&key, lock))
            }
            LeaderCall::ReadIndex { confirmed } => {
                let freshness = if confirmed { Freshness::Confirmed } else { Freshness::Lease };
                LeaderAnswer::ReadIndex(self.read_index_here(freshness).await)
            }
            LeaderCall::KeepImage => {
                let control = self.clone();
                let kept = self.shared.runtime.spawn_blocking(move || control.keep_image()).await;
                LeaderAnswer::Kept(match kept {
                    Ok(kept) => kept.map_err(|error| error.to_string()),
                    Err(panic) => Err(panic.to_string()),
                })
            }
        }
    }

    async fn submit_here(&self, request: Request) -> Result<Receipt, SubmitError> {
        let (sender, receiver) = oneshot::channel();
        let answer = Box::new(move |outcome| drop(sender.send(outcome)));
        self.shared.inbox.submit(Submission { request, answer });
        receiver.await.unwrap_or(Err(SubmitError::Unknown))
    }

    /// Gives up as soon as that server leads no more: its answer may never come.
    async fn submit_there(
        &self,
        leader: u64,
        request: Request,
        deadline: Instant,
    ) -> Result<Receipt, SubmitError> {
        let mut leadership = self.leadership();
        let patience = deadline.duration_since(Instant::now()).into();
        let call = self.shared.leader_client.call(leader, LeaderCall::Submit(Box::new(request)), patience);
        tokio::select! {
            answer = call => submitted(answer),
            _ = leadership.wait_for(|now| *now != Leadership::Other(leader)) => Err(SubmitError::Unknown),
        }
    }

    async fn read_index_here(&self, freshness: Freshness) -> Option<Index> {
        let (sender, receiver) = oneshot::channel();
        self.shared
            .journal
            .read_index(freshness, Box::new(move |answer| sender.send(answer).unwrap_or_default()));
        receiver.await.ok()?.ok()
    }

    /// Waits for work on a thread that may block. If the caller is gone by then, the work is given back.
    async fn dequeue_for_peer(&self, types: Vec<JobType>, patience: base::Duration) -> Option<Delivery> {
        let (sender, receiver) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.runtime.spawn_blocking(move || {
            if let Err(Some(unwanted)) = sender.send(shared.dequeue_here(&types, patience)) {
                shared.nack_here(unwanted.eval, unwanted.token);
            }
        });
        receiver.await.ok().flatten()
    }

    /// Who leads, as soon as that is known.
    async fn leader_by(&self, deadline: Instant) -> Leadership {
        let mut leadership = self.leadership();
        let known = leadership.wait_for(|now| *now != Leadership::Unknown);
        match timeout_at(deadline, known).await {
            Ok(Ok(now)) => *now,
            Ok(Err(_)) | Err(_) => Leadership::Unknown,
        }
    }

    async fn published_by(&self, index: Index, deadline: Instant) -> Result<(), NotLeading> {
        let mut published = self.watch();
        let reached = published.wait_for(|now| *now >= index);
        match timeout_at(deadline, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(NotLeading),
        }
    }

    /// Until another server may lead, or it is time to try again.
    async fn pause_before_retry(&self) {
        let mut leadership = self.leadership();
        leadership.mark_unchanged();
        let _changed = tokio::time::timeout(RETRY_AFTER, leadership.changed()).await;
    }
}

/// The workers' side: they are threads, and block.
impl Shared {
    /// The next evaluation of these types; `None` after `patience` or at the end.
    pub fn dequeue(&self, types: &[JobType], patience: base::Duration) -> Option<Delivery> {
        if self.has_diverged() {
            self.pause(patience.to_std());
            return None;
        }
        let Leadership::Other(leader) = self.leadership_now() else {
            return self.dequeue_here(types, patience);
        };
        let call = LeaderCall::Dequeue { types: types.to_vec(), patience };
        let longer = base::Duration(patience.0 + ANSWER_MAX.0);
        match self.runtime.block_on(self.leader_client.call(leader, call, longer)) {
            Ok(LeaderAnswer::Dequeued(delivery)) => delivery,
            Ok(_) | Err(_) => {
                self.pause(RETRY_AFTER);
                None
            }
        }
    }

    /// The worker still has it. An answer that does not come counts as no.
    pub fn still_holds(&self, delivery: &Delivery) -> bool {
        let Delivery { eval, token, .. } = *delivery;
        match self.leadership_now() {
            Leadership::Mine => self.touch_here(eval, token).is_ok(),
            Leadership::Unknown => false,
            Leadership::Other(leader) => {
                let touched = self.leader_client.call(leader, LeaderCall::Touch { eval, token }, ANSWER_MAX);
                self.runtime.block_on(touched) == Ok(LeaderAnswer::Held(Ok(())))
            }
        }
    }

    /// The worker is done. If the leader does not get this, it takes the evaluation back when the worker stays silent.
    pub fn ack(&self, delivery: &Delivery) {
        let Delivery { eval, token, .. } = *delivery;
        match self.leadership_now() {
            Leadership::Mine => self.ack_here(eval, token),
            Leadership::Unknown => {}
            Leadership::Other(leader) => self.notify(leader, LeaderCall::Ack { eval, token }),
        }
    }

    pub fn nack(&self, delivery: &Delivery) {
        let Delivery { eval, token, .. } = *delivery;
        match self.leadership_now() {
            Leadership::Mine => self.nack_here(eval, token),
            Leadership::Unknown => {}
            Leadership::Other(leader) => self.notify(leader, LeaderCall::Nack { eval, token }),
        }
    }

    fn notify(&self, leader: u64, call: LeaderCall) {
        if let Err(error) = self.runtime.block_on(self.leader_client.call(leader, call, ANSWER_MAX)) {
            tracing::debug!(%error, "the leader was not notified about an evaluation");
        }
    }

    /// # Errors
    /// [`SubmitError`].
    pub fn submit_and_wait(self: &Arc<Self>, command: Command, name: &str) -> Result<Receipt, SubmitError> {
        let request = Request::unnamed(Actor::Server(name.to_string()), command);
        let Leadership::Other(leader) = self.leadership_now() else {
            let (sender, receiver) = oneshot::channel();
            let answer = Box::new(move |outcome| drop(sender.send(outcome)));
            self.inbox.submit(Submission { request, answer });
            return receiver.blocking_recv().unwrap_or(Err(SubmitError::Unknown));
        };
        let call = LeaderCall::Submit(Box::new(request));
        submitted(self.runtime.block_on(self.leader_client.call(leader, call, COMMIT_MAX)))
    }
}

fn submitted(answer: Result<LeaderAnswer, CallError>) -> Result<Receipt, SubmitError> {
    match answer {
        Ok(LeaderAnswer::Submitted(outcome)) => outcome,
        Err(CallError::NotSent(_)) => Err(SubmitError::NotLeading),
        Ok(_) | Err(CallError::NoAnswer(_)) => Err(SubmitError::Unknown),
    }
}
