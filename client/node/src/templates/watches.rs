//! What templates read from the servers: one blocking query for each thing, however many templates read it.
//!
//! A query is made with the token of a task, and what the task may not read it does not get. So templates share a query
//! if they belong to the same task of the same job, in whatever allocation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use model::document::Allocation;
use template::{Dependency, Fetched, VaultRead};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::context::Context;
use crate::server::{ServerError, TemplateRead};
use crate::vault::reads::{Access, Follower};

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

impl Reader {
    /// A task, in the namespace of its job.
    pub fn of(alloc: &Allocation, task: &str) -> Reader {
        Reader {
            namespace: alloc.namespace.clone(),
            job_id: alloc.job_id.clone(),
            group: alloc.task_group.clone(),
            task: task.to_string(),
        }
    }
}

/// The queries of a node.
#[derive(Debug, Default)]
pub struct Watches(Mutex<Shared>);

/// What is read with the token of one allocation is shared by nobody else, and has its id.
type Shared = BTreeMap<(Reader, Dependency, String), Weak<Watch>>;

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
        let key = (reader.clone(), dependency.clone(), String::new());
        let watch = match all.get(&key).and_then(Weak::upgrade) {
            Some(watch) => watch,
            None => {
                make_room(&mut all)?;
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

    /// The same for a secret of Vault. It may be leased to the token that read it, so no other allocation gets it.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn subscribe_vault(
        context: &Arc<Context>,
        reader: &Reader,
        access: Access,
        read: &VaultRead,
        alloc_id: &str,
    ) -> Result<Subscription, String> {
        let mut all = lock(&context.watches.0);
        make_room(&mut all)?;
        let (sender, answer) = watch::channel(Fetched::Pending);
        let settings = context.settings.templates.clone();
        let follower = Follower::new(access, read.clone(), settings, context.seed);
        let shutdown = context.shutdown.clone();
        let asking = tokio::spawn(async move {
            tokio::select! {
                () = follower.run(sender) => {}
                () = shutdown.cancelled() => {}
            }
        });
        let asking = AbortOnDropHandle::new(asking);
        let watch = Arc::new(Watch { answer, tokens: Arc::default(), _asking: asking });
        let key = (reader.clone(), Dependency::Vault(read.clone()), alloc_id.to_string());
        all.insert(key, Arc::downgrade(&watch));
        Ok(Subscription { answer: watch.answer.clone(), watch, alloc_id: alloc_id.to_string() })
    }

    /// How many queries wait.
    pub fn count(&self) -> usize {
        lock(&self.0).values().filter(|watch| watch.strong_count() > 0).count()
    }
}

fn make_room(all: &mut Shared) -> Result<(), String> {
    all.retain(|_, watch| watch.strong_count() > 0);
    if all.len() >= WATCHES_MAX {
        return Err(format!("templates of this node read {WATCHES_MAX} things, and cannot read more"));
    }
    Ok(())
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
            let token = lock(&self.tokens).values().next_back().cloned().unwrap_or_default();
            let read = TemplateRead {
                dependency: self.dependency.clone(),
                namespace: self.namespace.clone(),
                token: Some(token.clone()),
                min_index,
                wait: settings.block_query_wait,
            };
            let (answered, retry) = match (&self.dependency, &self.context.settings.consul) {
                (Dependency::Consul(what), Some(consul)) => {
                    (consul.read(what, &token, min_index, read.wait).await, settings.consul_retry)
                }
                _ => (servers.read(&read).await, settings.retry),
            };
            match answered {
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
                    if retry.attempts != 0 && refusals > retry.attempts {
                        self.publish(Fetched::Failed(error.to_string()));
                    }
                    sleep(doubled(retry.backoff, refusals - 1).min(retry.max_backoff)).await;
                }
                Err(error) => {
                    unreached += 1;
                    tracing::debug!(dependency = %self.dependency, %error, "what a template reads was not found out");
                    sleep(doubled(retry.backoff, unreached - 1).min(UNREACHED_PAUSE_MAX)).await;
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
