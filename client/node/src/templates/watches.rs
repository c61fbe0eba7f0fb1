//! What templates read from the servers: one blocking query for each thing, however many templates read it.
//!
//! A query is made with the token of a task, and what the task may not read it does not get. So templates share a query
//! if they belong to the same task of the same job, in whatever allocation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use template::{Dependency, Fetched};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::context::Context;
use crate::server::{ServerError, TemplateRead};

/// Most queries of one node that wait at the same time. A template that needs one more fails.
pub const WATCHES_MAX: usize = 8192;

/// Before the next query after an answer without changes: a server with a bug must not be called in a tight loop.
const NO_NEWS_PAUSE: Duration = Duration::from_millis(50);

/// Between two tries while no server is reached, at most.
const UNREACHED_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Who reads, as the servers judge it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    pub namespace: String,
    pub job_id: String,
    pub group: String,
    pub task: String,
}

/// The queries of a node.
#[derive(Debug, Default)]
pub struct Watches(Mutex<BTreeMap<(Reader, Dependency), Weak<Watch>>>);

/// One query, which is repeated until this is dropped.
#[derive(Debug)]
struct Watch {
    answer: watch::Receiver<Fetched>,
    /// By allocation: the token of one that has ended may be refused.
    tokens: Arc<Mutex<Tokens>>,
    _asking: AbortOnDropHandle<()>,
}

type Tokens = BTreeMap<String, String>;

/// The share of an allocation in a query. Dropping it gives it up.
#[derive(Debug)]
pub struct Subscription {
    pub answer: watch::Receiver<Fetched>,
    watch: Arc<Watch>,
    alloc_id: String,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.watch.tokens).remove(&self.alloc_id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watches {
    /// Takes part in the query, which is begun if nobody else does.
    ///
    /// # Errors
    /// When there are too many.
    pub fn subscribe(
        context: &Arc<Context>,
        reader: &Reader,
        dependency: &Dependency,
        alloc_id: &str,
        token: &str,
    ) -> Result<Subscription, String> {
        let mut all = lock(&context.watches.0);
        let key = (reader.clone(), dependency.clone());
        let watch = match all.get(&key).and_then(Weak::upgrade) {
            Some(watch) => watch,
            None => {
                all.retain(|_, watch| watch.strong_count() > 0);
                if all.len() >= WATCHES_MAX {
                    return Err(format!(
                        "templates of this node read {WATCHES_MAX} things, and cannot read more"
                    ));
                }
                let tokens = Arc::new(Mutex::new(Tokens::from([(alloc_id.to_string(), token.to_string())])));
                let (sender, answer) = watch::channel(Fetched::Pending);
                let asker = Asker {
                    context: Arc::clone(context),
                    namespace: reader.namespace.clone(),
                    dependency: dependency.clone(),
                    tokens: Arc::clone(&tokens),
                    answer: sender,
                };
                let asking = AbortOnDropHandle::new(tokio::spawn(asker.run()));
                let watch = Arc::new(Watch { answer, tokens, _asking: asking });
                all.insert(key, Arc::downgrade(&watch));
                watch
            }
        };
        lock(&watch.tokens).insert(alloc_id.to_string(), token.to_string());
        Ok(Subscription { answer: watch.answer.clone(), watch, alloc_id: alloc_id.to_string() })
    }

    /// How many queries wait.
    pub fn count(&self) -> usize {
        lock(&self.0).values().filter(|watch| watch.strong_count() > 0).count()
    }
}

/// Repeats a query.
struct Asker {
    context: Arc<Context>,
    namespace: String,
    dependency: Dependency,
    tokens: Arc<Mutex<Tokens>>,
    answer: watch::Sender<Fetched>,
}

impl Asker {
    async fn run(self) {
        let context = Arc::clone(&self.context);
        tokio::select! {
            () = self.ask() => {}
            () = context.shutdown.cancelled() => {}
        }
    }

    async fn ask(self) {
        let settings = &self.context.settings.templates;
        let (mut min_index, mut refusals, mut unreached) = (0, 0_u32, 0_u32);
        loop {
            let Some(servers) = self.context.servers.get() else { return };
            let read = TemplateRead {
                dependency: self.dependency.clone(),
                namespace: self.namespace.clone(),
                token: lock(&self.tokens).values().next_back().cloned().unwrap_or_default(),
                min_index,
                wait: settings.block_query_wait,
            };
            match servers.read(&read).await {
                Ok((found, index)) => {
                    (refusals, unreached) = (0, 0);
                    self.publish(found.map_or(Fetched::Absent, Fetched::There));
                    if index <= min_index {
                        sleep(NO_NEWS_PAUSE).await;
                    }
                    // An index that went back is one of servers that were set up anew.
                    min_index = index.max(1);
                }
                Err(
                    error @ (ServerError::Denied(_) | ServerError::Refused(_) | ServerError::NodeUnknown(_)),
                ) => {
                    refusals += 1;
                    tracing::warn!(dependency = %self.dependency, %error, refusals, "a template was refused what it reads");
                    if settings.retry.attempts != 0 && refusals > settings.retry.attempts {
                        self.publish(Fetched::Failed(error.to_string()));
                    }
                    sleep(doubled(settings.retry.backoff, refusals - 1).min(settings.retry.max_backoff))
                        .await;
                }
                Err(error) => {
                    unreached += 1;
                    tracing::debug!(dependency = %self.dependency, %error, "what a template reads was not found out");
                    sleep(doubled(settings.retry.backoff, unreached - 1).min(UNREACHED_PAUSE_MAX)).await;
                }
            }
        }
    }

    /// Templates are woken by what differs. Indexes and times of change alone do not differ for most of them, but some
    /// show them.
    fn publish(&self, fetched: Fetched) {
        self.answer.send_if_modified(|known| {
            let differs = *known != fetched;
            if differs {
                *known = fetched;
            }
            differs
        });
    }
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1 << times.min(16))
}
