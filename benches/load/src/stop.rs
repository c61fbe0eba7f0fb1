//! The end of a run before its time: nothing new is begun, and what is on its way to the server is waited for, because it
//! could not be taken away otherwise.

use tokio::sync::watch;

/// Says when to stop; a clone says the same.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The sender stops the run by `true`.
    pub(crate) fn new() -> (watch::Sender<bool>, Stop) {
        let (sender, receiver) = watch::channel(false);
        (sender, Stop(receiver))
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// What comes of the future, unless the run stops before.
    pub(crate) async fn or<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut stop = self.0.clone();
        tokio::select! {
            done = future => Some(done),
            Ok(_) = stop.wait_for(|stopped| *stopped) => None,
        }
    }
}
