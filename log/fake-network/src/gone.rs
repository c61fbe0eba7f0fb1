use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// That a process is no more: nothing reaches it, and nothing that is left of it reaches anybody.
#[derive(Default)]
pub struct Gone {
    gone: AtomicBool,
    told: Notify,
}

impl Gone {
    pub fn go(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.told.notify_waiters();
    }

    pub fn is(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub async fn wait(&self) {
        let told = self.told.notified();
        if !self.is() {
            told.await;
        }
    }

    /// What comes of something that a process does; `None` if it dies over it.
    ///
    /// In a task of its own: openraft panics if somebody stops waiting for its end while others go on.
    pub async fn unless<T: Send + 'static>(
        &self,
        done: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let done = tokio::spawn(done);
        tokio::select! {
            biased;
            () = self.wait() => None,
            // Its panic was recorded.
            done = done => done.ok(),
        }
    }
}
