//! The runtime of openraft: tokio, without the randomness of tokio and openraft.
//!
//! Every random number comes from [`crate::Settings::seed`], and those who wait for a change are woken in the order of
//! subscribing, where tokio's own channel draws lots. So the whole journal repeats itself in a simulation; tasks,
//! timers and the other channels are tokio's, whose order is fixed on one thread.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use openraft::TokioRuntime;
use openraft::rt::deterministic_rng::DeterministicRng;
use openraft::rt::watch::{RecvError, SendError, Watch, WatchReceiver, WatchSender};
use openraft::rt::{AsyncRuntime, OptionalSend, OptionalSync};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

/// What a task of openraft's draws depends on its place in the tree of tasks alone.
pub(crate) type Runtime = DeterministicRng<Tokio>;

#[derive(Debug)]
pub(crate) struct Tokio(TokioRuntime);

impl AsyncRuntime for Tokio {
    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <TokioRuntime as AsyncRuntime>::Sleep;
    type Instant = <TokioRuntime as AsyncRuntime>::Instant;
    type TimeoutError = <TokioRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <TokioRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <TokioRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = Changes;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        TokioRuntime::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: Self::Instant,
        future: F,
    ) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(join_error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(join_error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        TokioRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        Tokio(TokioRuntime::new(threads))
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, future: F) -> T {
        self.0.block_on(future)
    }
}

/// Channels that keep the last value only, and wake in order.
pub(crate) struct Changes;

struct Channel<T> {
    value: RwLock<T>,
    signal: Mutex<Signal>,
}

#[derive(Default)]
struct Signal {
    version: u64,
    senders: usize,
    receivers: usize,
    /// The next receiver's number.
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

pub(crate) struct Sender<T>(Arc<Channel<T>>);

pub(crate) struct Receiver<T> {
    channel: Arc<Channel<T>>,
    number: u64,
    seen: u64,
}

impl Watch for Changes {
    type Sender<T: OptionalSend + OptionalSync> = Sender<T>;
    type Receiver<T: OptionalSend + OptionalSync> = Receiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = RwLockReadGuard<'a, T>;

    fn channel<T: OptionalSend + OptionalSync>(init: T) -> (Sender<T>, Receiver<T>) {
        let signal = Mutex::new(Signal { senders: 1, ..Signal::default() });
        let channel = Arc::new(Channel { value: RwLock::new(init), signal });
        let receiver = Receiver::new(channel.clone(), 0);
        (Sender(channel), receiver)
    }
}

impl<T> Channel<T> {
    /// The lock on the value is not held, so that who is woken can look at it.
    fn wake(&self) {
        let waiting = mem::take(&mut self.signal.lock().waiting);
        waiting.into_values().for_each(Waker::wake);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.signal.lock().senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let left = {
            let mut signal = self.0.signal.lock();
            signal.senders -= 1;
            signal.senders
        };
        if left == 0 {
            self.0.wake();
        }
    }
}

impl<T: OptionalSend + OptionalSync> WatchSender<Changes, T> for Sender<T> {
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.0.signal.lock().receivers == 0 {
            return Err(SendError(value));
        }
        self.send_if_modified(|current| {
            *current = value;
            true
        });
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        let modified = {
            let mut value = self.0.value.write();
            let modified = modify(&mut value);
            self.0.signal.lock().version += u64::from(modified);
            modified
        };
        if modified {
            self.0.wake();
        }
        modified
    }

    fn borrow_watched(&self) -> RwLockReadGuard<'_, T> {
        self.0.value.read_recursive()
    }

    fn subscribe(&self) -> Receiver<T> {
        let seen = self.0.signal.lock().version;
        Receiver::new(self.0.clone(), seen)
    }
}

impl<T> Receiver<T> {
    fn new(channel: Arc<Channel<T>>, seen: u64) -> Receiver<T> {
        let number = {
            let mut signal = channel.signal.lock();
            signal.receivers += 1;
            signal.next += 1;
            signal.next
        };
        Receiver { channel, number, seen }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver::new(self.channel.clone(), self.seen)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut signal = self.channel.signal.lock();
        signal.receivers -= 1;
        signal.waiting.remove(&self.number);
    }
}

impl<T: OptionalSend + OptionalSync> WatchReceiver<Changes, T> for Receiver<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        poll_fn(|context| {
            let mut signal = self.channel.signal.lock();
            if signal.version != self.seen {
                self.seen = signal.version;
                return Poll::Ready(Ok(()));
            }
            if signal.senders == 0 {
                return Poll::Ready(Err(RecvError(())));
            }
            signal.waiting.insert(self.number, context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn borrow_watched(&self) -> RwLockReadGuard<'_, T> {
        self.channel.value.read_recursive()
    }

    fn borrow_and_update(&mut self) -> RwLockReadGuard<'_, T> {
        // The version changes under the lock on the value.
        let value = self.channel.value.read_recursive();
        self.seen = self.channel.signal.lock().version;
        value
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use openraft::rt::testing::Suite;

    use super::*;

    #[test]
    fn openraft_finds_what_it_asks_of_a_runtime() {
        Suite::<Tokio>::test_all();
    }

    #[test]
    fn a_change_is_seen_once_and_an_end_is_told() {
        let (sender, mut receiver) = Changes::channel(1);
        assert!(receiver.changed().now_or_never().is_none());
        sender.send(2).unwrap();
        assert!(receiver.changed().now_or_never().unwrap().is_ok());
        assert!(receiver.changed().now_or_never().is_none());
        drop(sender);
        assert!(receiver.changed().now_or_never().unwrap().is_err());
    }

    #[tokio::test]
    async fn who_waits_is_woken_in_the_order_of_subscribing() {
        let (sender, first) = Changes::channel(0);
        let receivers: Vec<_> = (0..20).map(|_| first.clone()).collect();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let tasks = receivers.into_iter().enumerate().rev().map(|(nth, mut receiver)| {
            let woken = woken.clone();
            tokio::spawn(async move {
                receiver.changed().await.unwrap();
                woken.lock().push(nth);
            })
        });
        let tasks: Vec<_> = tasks.collect();
        tokio::task::yield_now().await;
        sender.send(1).unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock(), (0..20).collect::<Vec<_>>());
    }
}
