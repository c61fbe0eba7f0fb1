//! Work that gives way to the server's own, unless that leaves it nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;

/// Does the work of one caller at a time on a thread that runs while no other thread wants the processor: Linux's `SCHED_IDLE`. A low
/// nice value is not enough: who wakes beside it still waits for the rest of its slice, milliseconds.
///
/// While others want every processor all the time, such a thread gets next to nothing (0.3 %), and cannot raise itself again without
/// privileges. Work that starves there begins once more on its caller's thread, and so does that of a second caller.
#[derive(Default)]
pub(crate) struct Yielding {
    busy: Arc<AtomicBool>,
    /// Of the last work, which may still be at it for nobody.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// One work is being done; dropped when its thread ends, or if there never was one.
struct Turn(Arc<AtomicBool>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Yielding {
    /// The result of `work`, which may be begun twice.
    pub fn run<T: Send + 'static>(&self, work: impl Fn() -> T + Clone + Send + 'static) -> T {
        if self.busy.swap(true, Ordering::AcqRel) {
            return work();
        }
        let turn = Turn(self.busy.clone());
        // `None` also when the work panicked there: then it does so here.
        idle::run(turn, work.clone(), &self.thread).unwrap_or_else(work)
    }

    /// Waits until nothing that `work` had is in use any more.
    pub fn shutdown(&self) {
        let thread = self.thread.lock().take();
        // A panic was repeated where the work was asked for.
        drop(thread.map(JoinHandle::join));
    }
}

#[cfg(target_os = "linux")]
mod idle {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
    use std::thread::{Builder, JoinHandle};
    use std::time::Duration;

    use parking_lot::Mutex;
    use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_native_id};
    use thread_priority::{ThreadPriority, set_thread_priority_and_policy};

    use super::Turn;

    /// How often it is looked whether the work gets on.
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    /// It does if it had a processor for half of the time since.
    const ENOUGH: Duration = Duration::from_millis(50);

    /// `None` when the work did not get on.
    pub(super) fn run<T: Send + 'static>(
        turn: Turn,
        work: impl FnOnce() -> T + Send + 'static,
        last: &Mutex<Option<JoinHandle<()>>>,
    ) -> Option<T> {
        let (begun, clock) = sync_channel(1);
        let (done, result) = sync_channel(1);
        let spawned = Builder::new().name("past".to_string()).spawn(move || {
            let _turn = turn;
            // While it still has its caller's rank.
            let Ok(clock) = File::open("/proc/thread-self/schedstat") else { return };
            if begun.send(clock).is_ok() && give_way() {
                // Nobody takes it if it starved.
                drop(done.send(work()));
            }
        });
        match spawned {
            Ok(thread) => *last.lock() = Some(thread),
            Err(error) => tracing::debug!(%error, "no thread for work that gives way"),
        }
        wait(&result, &clock.recv().ok()?)
    }

    /// Whether the calling thread has the lowest rank from now on.
    fn give_way() -> bool {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
        if let Err(error) = &set {
            tracing::debug!(%error, "reading the past does not give way to the server's other work");
        }
        set.is_ok()
    }

    /// The clock says what the thread has had of a processor.
    fn wait<T>(result: &Receiver<T>, clock: &File) -> Option<T> {
        let mut had = Duration::ZERO;
        loop {
            match result.recv_timeout(LOOK_EVERY) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    let now = on_a_processor(clock)?;
                    if now.saturating_sub(had) < ENOUGH {
                        return None;
                    }
                    had = now;
                }
            }
        }
    }

    /// The first of three numbers, in nanoseconds.
    fn on_a_processor(clock: &File) -> Option<Duration> {
        let mut line = [0; 64];
        let read = clock.read_at(&mut line, 0).ok()?;
        let nanos = std::str::from_utf8(&line[..read]).ok()?.split(' ').next()?;
        nanos.parse().ok().map(Duration::from_nanos)
    }
}

#[cfg(not(target_os = "linux"))]
mod idle {
    /// There is no such rank: all work is done by its caller.
    pub(super) fn run<T>(
        _: super::Turn,
        _: impl FnOnce() -> T,
        _: &super::Mutex<Option<super::JoinHandle<()>>>,
    ) -> Option<T> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    use thread_priority::thread_schedule_policy;
    use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy};

    use super::*;

    fn gives_way() -> bool {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        thread_schedule_policy().unwrap() == idle
    }

    #[test]
    fn one_at_a_time_gives_way_and_others_need_not_wait_for_it() {
        let (asked, answer) = channel();
        let yielding = Yielding::default();
        let turn = Turn(yielding.busy.clone());
        // A busy machine may leave it nothing for longer than its caller waits.
        idle::run(turn, move || asked.send(gives_way()).unwrap(), &yielding.thread);
        assert!(answer.recv().unwrap());
        assert!(!gives_way());
        let occupied = Yielding { busy: Arc::new(AtomicBool::new(true)), thread: Mutex::default() };
        assert!(!occupied.run(gives_way));
    }

    /// What gets no processor, here because it waits, is done by who asked.
    #[test]
    fn work_that_starves_begins_again() {
        let (begun, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
        let (times, there) = (begun.clone(), go_on.clone());
        let yielding = Yielding::default();
        let held = Arc::new(());
        let had = held.clone();
        let gave_way = yielding.run(move || {
            let _had = &had;
            if times.fetch_add(1, Ordering::Relaxed) == 0 {
                there.wait();
            }
            gives_way()
        });
        assert_eq!((gave_way, begun.load(Ordering::Relaxed)), (false, 2));
        assert!(Arc::strong_count(&held) > 1);
        go_on.wait();
        yielding.shutdown();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    #[should_panic(expected = "as the work did")]
    fn a_panic_is_that_of_who_asked() {
        Yielding::default().run(|| panic!("as the work did"))
    }
}
