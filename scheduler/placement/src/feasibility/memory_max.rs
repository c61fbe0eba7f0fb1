//! The memory that a task may use beyond what it reserves.

use model::document::Resources;

/// What a task sets for no limit.
pub const UNLIMITED: i64 = -1;

/// The maximum in MiB, including secrets; 0 if the task may use no more than it reserves.
///
/// It is 0 where memory oversubscription is off for the node pool. It is never compared with the capacity of a node.
pub fn maximum(resources: &Resources, oversubscribed: bool) -> i64 {
    let asked = resources.memory_max_mb.filter(|_| oversubscribed).unwrap_or(0);
    match asked {
        UNLIMITED => UNLIMITED,
        asked if asked > 0 => asked.saturating_add(resources.secrets_mb.unwrap_or(0)),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maximum_of(memory_max: Option<i64>, secrets: i64, oversubscribed: bool) -> i64 {
        let secrets_mb = Some(secrets);
        let asked = Resources { memory_max_mb: memory_max, secrets_mb, ..Resources::default() };
        maximum(&asked, oversubscribed)
    }

    /// J07, J08.
    #[test]
    fn a_maximum_counts_where_memory_is_oversubscribed() {
        assert_eq!(maximum_of(Some(512), 0, true), 512);
        assert_eq!(maximum_of(Some(512), 10, true), 522);
        assert_eq!(maximum_of(Some(512), 10, false), 0);
        assert_eq!(maximum_of(Some(-1), 10, true), UNLIMITED);
        assert_eq!(maximum_of(Some(-1), 0, false), 0);
        assert_eq!((maximum_of(Some(0), 10, true), maximum_of(None, 10, true)), (0, 0));
    }
}
