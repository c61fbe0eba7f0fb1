//! Tokens of tasks that have ended: whoever made them gets them back, also when that is not reached for a while, and also
//! by the next agent.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::store::{Store, WeakStore};

/// Tokens that wait. More are left to expire.
const RETURNED_MAX: usize = 4096;

/// Between two tries while it is not reached.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long an agent that stops tries.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// Stored: fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReturnedToken {
    pub token: String,
    pub namespace: String,
}

/// Those of one place.
#[derive(Debug)]
pub(crate) struct Returned {
    /// Which place, in keys of the local state.
    of: String,
    /// Whose agent has stopped keeps nothing any more.
    store: Mutex<WeakStore>,
    waiting: Mutex<BTreeMap<String, ReturnedToken>>,
    changed: Notify,
}

impl Returned {
    pub(crate) fn new(of: &str) -> Returned {
        Returned {
            of: of.to_string(),
            store: Mutex::default(),
            waiting: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Takes up what an earlier agent has left there, and keeps what waits there from now on.
    pub(crate) fn keep_in(&self, store: &Store) {
        let found = store.load_returned(&self.of);
        self.lock().extend(found);
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store.downgrade();
        self.changed.notify_one();
    }

    fn store(&self) -> Option<Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ReturnedToken>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token that nobody needs any more.
    pub(crate) fn add(&self, token: ReturnedToken) {
        let digest = Sha256::digest(&token.token);
        let key =
            format!("{}/{}", self.of, digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let mut waiting = self.lock();
        if waiting.len() >= RETURNED_MAX {
            tracing::warn!(of = self.of, "too many tokens are to be given back: one is left to expire");
            return;
        }
        if let Some(store) = self.store() {
            store.put_returned(&key, &token);
        }
        waiting.insert(key, token);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Gives them back with `give`, until it is dropped.
    pub(crate) async fn run<F: Future<Output = Result<(), String>>>(
        &self,
        give: impl Fn(ReturnedToken) -> F,
    ) {
        let mut pause = PAUSE;
        loop {
            match self.pass(&give).await {
                Ok(()) => {
                    pause = PAUSE;
                    self.changed.notified().await;
                }
                Err(why) => {
                    tracing::warn!(of = self.of, why, "a token was not given back yet");
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// One try, of bounded time.
    pub(crate) async fn leave<F: Future<Output = Result<(), String>>>(
        &self,
        give: impl Fn(ReturnedToken) -> F,
    ) {
        if let Ok(Err(why)) = timeout(LEAVE_WITHIN, self.pass(&give)).await {
            tracing::warn!(of = self.of, why, "a token was not given back: the next agent tries");
        }
    }

    async fn pass<F: Future<Output = Result<(), String>>>(
        &self,
        give: &impl Fn(ReturnedToken) -> F,
    ) -> Result<(), String> {
        let waiting = self.lock().clone();
        for (key, token) in waiting {
            give(token).await?;
            self.lock().remove(&key);
            if let Some(store) = self.store() {
                store.forget_returned(&key);
            }
        }
        Ok(())
    }
}
