//! The memory that requests may hold together before they are complete: a peer that begins a thousand large ones and ends
//! none of them is refused, whatever its streams and connections would allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::RpcError;

#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Budget {
        Budget(Arc::new(Shared { max, used: AtomicUsize::new(0) }))
    }

    /// For one request, which holds nothing yet.
    pub(crate) fn charge(&self) -> Charge {
        Charge { of: self.0.clone(), bytes: 0 }
    }
}

/// What one request holds. Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    of: Arc<Shared>,
    bytes: usize,
}

impl Charge {
    /// # Errors
    /// [`RpcError::Busy`] when others hold too much.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), RpcError> {
        let more = bytes.saturating_sub(self.bytes);
        let grown = |used: usize| used.checked_add(more).filter(|used| *used <= self.of.max);
        let used = &self.of.used;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).map_err(|_| RpcError::Busy)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_request_holds_others_cannot_have_until_it_ends() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (budget.charge(), budget.charge());
        one.grow_to(60).unwrap();
        one.grow_to(50).unwrap();
        other.grow_to(40).unwrap();
        assert!(matches!(other.grow_to(41), Err(RpcError::Busy)));
        drop(one);
        other.grow_to(100).unwrap();
        drop(other);
        assert_eq!(budget.0.used.load(Ordering::Relaxed), 0);
    }
}
