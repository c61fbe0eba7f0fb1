//! Panics, recorded wherever on this thread they happen and whoever catches them: in a simulation each contradicts a
//! fact, also one in a task that nobody waits for.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// What was recorded; `None` while nothing is.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Listens as long as it lives. One at a time on a thread.
pub struct Listening(());

/// From now on panics on this thread are recorded, and not printed.
pub fn listen() -> Listening {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !note(&panic.to_string()) {
                before(panic);
            }
        }));
    });
    HEARD.set(Some(Vec::new()));
    Listening(())
}

impl Listening {
    /// The first one: those after it may follow from it.
    pub fn first(&self) -> Option<String> {
        HEARD.with_borrow(|heard| heard.as_ref().and_then(|heard| heard.first().cloned()))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        HEARD.set(None);
    }
}

/// False if nobody listens.
fn note(panic: &str) -> bool {
    let take = |heard: &RefCell<Option<Vec<String>>>| {
        let mut heard = heard.try_borrow_mut().ok()?;
        heard.as_mut()?.push(panic.replace('\n', " "));
        Some(())
    };
    HEARD.try_with(take).ok().flatten().is_some()
}
