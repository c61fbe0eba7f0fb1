//! Keeps a plugin running: one that has died is started again, at ever longer intervals while that does not help.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::call::CallError;
use crate::launch::{Running, exited};

/// The first start after an end comes at once; then the pauses double, from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// A plugin that has run for this long has not died of being started.
const STEADY: Duration = Duration::from_secs(60);

/// Starts the plugin and makes it ready to be used.
pub type Launch = Arc<dyn Fn() -> BoxFuture<'static, Result<Running, String>> + Send + Sync>;

/// A plugin between two of its ends. What was begun in one is not there in the next.
#[derive(Clone, Debug)]
pub struct Instance {
    /// From 1.
    pub number: u64,
    pub running: Running,
}

/// Dropping it leaves the plugin as it is, and starts it no more.
#[derive(Debug)]
pub struct Supervisor {
    current: watch::Receiver<Option<Instance>>,
    keeper: JoinHandle<()>,
}

impl Supervisor {
    /// Keeps a plugin that runs already, and starts it again with `launch`.
    pub fn new(name: &str, running: Running, launch: Launch) -> Supervisor {
        let first = Instance { number: 1, running };
        let (current, watched) = watch::channel(Some(first.clone()));
        let keeper = tokio::spawn(keep(name.to_string(), first, launch, current));
        Supervisor { current: watched, keeper }
    }

    /// The plugin as it runs, waited for while it is started again.
    ///
    /// # Errors
    /// When it does not run within `patience`.
    pub async fn get(&self, patience: Duration) -> Result<Instance, CallError> {
        let mut current = self.current.clone();
        let running = current.wait_for(Option::is_some);
        match tokio::time::timeout(patience, running).await {
            Ok(Ok(instance)) => Ok(instance.clone().expect("waited until there is one")),
            _ => Err(CallError::Gone("it does not run".to_string())),
        }
    }

    /// `None` while it does not run; for those who follow it.
    pub fn watch(&self) -> watch::Receiver<Option<Instance>> {
        self.current.clone()
    }

    /// Ends the plugin for good.
    pub async fn end(&self) {
        self.keeper.abort();
        let current = self.current.borrow().clone();
        if let Some(instance) = current {
            instance.running.end().await;
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

async fn keep(
    plugin: String,
    mut instance: Instance,
    launch: Launch,
    current: watch::Sender<Option<Instance>>,
) {
    let mut failures = 0;
    loop {
        let since = Instant::now();
        exited(&instance.running.address.process).await;
        current.send_replace(None);
        tracing::warn!(plugin, "a plugin has ended, and is started again");
        if since.elapsed() > STEADY {
            failures = 0;
        }
        let running = loop {
            tokio::time::sleep(pause(failures)).await;
            failures += 1;
            match launch().await {
                Ok(running) => break running,
                Err(error) => tracing::warn!(plugin, error, "a plugin was not started"),
            }
        };
        instance = Instance { number: instance.number + 1, running };
        current.send_replace(Some(instance.clone()));
    }
}

/// Before the start after so many that did not last.
fn pause(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_does_not_last_is_started_ever_less_often() {
        let pauses: Vec<u64> = [0, 1, 2, 3, 5, 6, 100, u32::MAX].map(|n| pause(n).as_secs()).into();
        assert_eq!(pauses, [0, 5, 10, 20, 80, 120, 120, 120]);
    }
}
