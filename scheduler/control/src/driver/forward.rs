//! Calls that the leader answers: here if this server leads, otherwise forwarded to the one that does.

use std::time::Duration;

use base::{Index, Uuid};
use journal::{Freshness, NotLeading};
use model::command::Settlement;
use model::{Actor, Command, EvalId, JobType, NodeId, Request, RequestId, VariableKey};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::clock::entropy_bytes;
use super::control::Control;
use super::shared::{Leadership, Shared};
use crate::leader::broker::{Delivery, Release};
use crate::leader::locks::NotRenewed;
use crate::leader_client::{CallError, LeaderAnswer, LeaderCall};
use crate::sequencer::{Receipt, Submission, SubmitError};
use crate::worker::GROUP_MAX;

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

    /// A node says that it is ready. If it is known to be, the leader counts this as its heartbeat and the log has nothing to
    /// decide, so that a fleet's heartbeats wait for nothing that others write. Returns how long the node may be silent now;
    /// `None`: have it decided.
    pub async fn renew_heartbeat(&self, node: NodeId) -> Option<base::Duration> {
        match self.leadership_now() {
            Leadership::Mine => self.shared.renew_heartbeat_here(node),
            Leadership::Unknown => None,
            Leadership::Other(leader) => {
                if !self.state().nodes.is_ready(node) {
                    return None;
                }
                let call = LeaderCall::RenewHeartbeat { node };
                match self.shared.leader_client.call(leader, call, ANSWER_MAX).await {
                    Ok(LeaderAnswer::Heartbeat(ttl)) => ttl,
                    Ok(_) | Err(_) => None,
                }
            }
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
            LeaderCall::Dequeue { types, patience, max } => {
                let found = self.dequeue_for_peer(types, max.clamp(1, GROUP_MAX), patience.min(PATIENCE_MAX));
                let found = found.await;
                if max == 0 {
                    return LeaderAnswer::Dequeued(found.into_iter().next());
                }
                LeaderAnswer::DequeuedAll(found)
            }
            LeaderCall::Touch { eval, token } => LeaderAnswer::Held(self.shared.touch_here(eval, token)),
            LeaderCall::Ack { eval, token } => {
                self.shared.release_here(&Release { done: vec![held(eval, token)], ..Release::default() });
                LeaderAnswer::Held(Ok(()))
            }
            LeaderCall::Nack { eval, token } => {
                self.shared.release_here(&Release { back: vec![held(eval, token)], ..Release::default() });
                LeaderAnswer::Held(Ok(()))
            }
            LeaderCall::TouchAll(deliveries) => {
                LeaderAnswer::HeldAll(self.shared.touch_all_here(&deliveries))
            }
            LeaderCall::SubmitAll(requests) => {
                let mut outcomes = Vec::new();
                for answer in self.shared.submit_all(requests) {
                    outcomes.push(answer.await.unwrap_or(Err(SubmitError::Unknown)));
                }
                LeaderAnswer::SubmittedAll(outcomes)
            }
            LeaderCall::Release(release) => {
                self.shared.release_here(&release);
                LeaderAnswer::Released
            }
            LeaderCall::Heartbeat { node } => LeaderAnswer::Heartbeat(self.shared.heartbeat_here(node)),
            LeaderCall::RenewHeartbeat { node } => {
                LeaderAnswer::Heartbeat(self.shared.renew_heartbeat_here(node))
            }
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
        let (submission, answer) = submission(request);
        self.shared.inbox.submit(submission);
        answer.await.unwrap_or(Err(SubmitError::Unknown))
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
    async fn dequeue_for_peer(
        &self,
        types: Vec<JobType>,
        max: usize,
        patience: base::Duration,
    ) -> Vec<Delivery> {
        let (sender, receiver) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.runtime.spawn_blocking(move || {
            if let Err(back) = sender.send(shared.dequeue_here(&types, max, patience)) {
                shared.release_here(&Release { back, ..Release::default() });
            }
        });
        receiver.await.unwrap_or_default()
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
    /// The next evaluations of these types; none after `patience` or at the end.
    pub fn dequeue(&self, types: &[JobType], patience: base::Duration) -> Vec<Delivery> {
        if self.has_diverged() {
            self.pause(patience.to_std());
            return Vec::new();
        }
        let Leadership::Other(leader) = self.leadership_now() else {
            return self.dequeue_here(types, GROUP_MAX, patience);
        };
        let call = LeaderCall::Dequeue { types: types.to_vec(), patience, max: GROUP_MAX };
        let longer = base::Duration(patience.0 + ANSWER_MAX.0);
        match self.runtime.block_on(self.leader_client.call(leader, call, longer)) {
            Ok(LeaderAnswer::DequeuedAll(deliveries)) => deliveries,
            Ok(LeaderAnswer::Dequeued(delivery)) => delivery.into_iter().collect(),
            Ok(_) | Err(_) => {
                self.pause(RETRY_AFTER);
                Vec::new()
            }
        }
    }

    /// Which of them the worker still has. An answer that does not come counts as no.
    pub fn still_held(&self, deliveries: &[Delivery]) -> Vec<bool> {
        let lost = || vec![false; deliveries.len()];
        let leader = match self.leadership_now() {
            Leadership::Mine => return self.touch_all_here(deliveries),
            Leadership::Unknown => return lost(),
            Leadership::Other(leader) => leader,
        };
        let call = match deliveries {
            [Delivery { eval, token, .. }] => LeaderCall::Touch { eval: *eval, token: *token },
            several => LeaderCall::TouchAll(several.to_vec()),
        };
        match self.runtime.block_on(self.leader_client.call(leader, call, ANSWER_MAX)) {
            Ok(LeaderAnswer::Held(held)) => vec![held.is_ok(); deliveries.len()],
            Ok(LeaderAnswer::HeldAll(held)) if held.len() == deliveries.len() => held,
            Ok(_) | Err(_) => lost(),
        }
    }

    /// The worker is done, or gives back. If the leader does not get this, it takes the evaluations back when the worker
    /// stays silent.
    pub fn release(&self, release: Release) {
        let leader = match self.leadership_now() {
            Leadership::Mine => return self.release_here(&release),
            Leadership::Unknown => return,
            Leadership::Other(leader) => leader,
        };
        let call = match (&*release.done, &*release.back) {
            ([Delivery { eval, token, .. }], []) => LeaderCall::Ack { eval: *eval, token: *token },
            ([], [Delivery { eval, token, .. }]) => LeaderCall::Nack { eval: *eval, token: *token },
            _ => LeaderCall::Release(release),
        };
        if let Err(error) = self.runtime.block_on(self.leader_client.call(leader, call, ANSWER_MAX)) {
            tracing::debug!(%error, "the leader was not notified about evaluations");
        }
    }

    /// Puts the requests into one batch, as far as there is room.
    fn submit_all(&self, requests: Vec<Request>) -> Vec<Submitted> {
        let (submissions, answers): (Vec<_>, _) = requests.into_iter().map(submission).unzip();
        self.inbox.submit_all(submissions);
        answers
    }

    /// Has the leader decide a worker's plans in this order, and waits for all.
    pub fn settle(&self, settlements: Vec<Settlement>) -> Vec<Result<Receipt, SubmitError>> {
        let actor = || Actor::Server("worker".to_string());
        let requests = settlements.into_iter();
        let requests = requests.map(|one| Request::unnamed(actor(), Command::SettleEval(Box::new(one))));
        let mut requests: Vec<Request> = requests.collect();
        let Leadership::Other(leader) = self.leadership_now() else {
            let answers = self.submit_all(requests).into_iter();
            return answers
                .map(|answer| answer.blocking_recv().unwrap_or(Err(SubmitError::Unknown)))
                .collect();
        };
        let asked = requests.len();
        if asked == 1 {
            let call = LeaderCall::Submit(Box::new(requests.remove(0)));
            return vec![submitted(self.runtime.block_on(self.leader_client.call(leader, call, COMMIT_MAX)))];
        }
        let call = LeaderCall::SubmitAll(requests);
        let failed = |error: SubmitError| vec![Err(error); asked];
        match self.runtime.block_on(self.leader_client.call(leader, call, COMMIT_MAX)) {
            Ok(LeaderAnswer::SubmittedAll(outcomes)) if outcomes.len() == asked => outcomes,
            Err(CallError::NotSent(_)) => failed(SubmitError::NotLeading),
            Ok(_) | Err(CallError::NoAnswer(_)) => failed(SubmitError::Unknown),
        }
    }
}

/// What becomes of a command; nothing if the server stops before that is known.
type Submitted = oneshot::Receiver<Result<Receipt, SubmitError>>;

fn submission(request: Request) -> (Submission, Submitted) {
    let (sender, receiver) = oneshot::channel();
    (Submission { request, answer: Box::new(move |outcome| drop(sender.send(outcome))) }, receiver)
}

/// A delivery as its holder names it.
fn held(eval: EvalId, token: u64) -> Delivery {
    Delivery { eval, token, wait_index: Index::ZERO }
}

fn submitted(answer: Result<LeaderAnswer, CallError>) -> Result<Receipt, SubmitError> {
    match answer {
        Ok(LeaderAnswer::Submitted(outcome)) => outcome,
        Err(CallError::NotSent(_)) => Err(SubmitError::NotLeading),
        Ok(_) | Err(CallError::NoAnswer(_)) => Err(SubmitError::Unknown),
    }
}
