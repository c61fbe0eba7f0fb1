use state::node::Amount;

use super::static_checks::{ALLOCS_MAX, ReasonId, dimension};

/// What one node has in all.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    pub amount: Amount,
    /// Most allocations at once; 0 for no limit.
    pub allocs_max: u32,
}

impl Capacity {
    /// Why one more allocation of this size does not fit beside what is used, unless it does.
    #[inline]
    pub fn exceeded_by(self, used: Amount, allocs: u32, requested: Amount) -> Option<ReasonId> {
        if self.allocs_max > 0 && allocs >= self.allocs_max {
            return Some(ALLOCS_MAX);
        }
        self.amount.exceeded_by(used.plus(requested)).map(dimension)
    }
}
