//! Why the servers end allocations, in Nomad's words: its clients compare them, and so do the rules.

/// Its successor was placed after it failed.
pub const RESCHEDULED: &str = "alloc was rescheduled because it failed";

/// It makes room for one of a newer version.
pub const UPDATING: &str = "alloc is being updated due to job update";

/// It moves to another node.
pub const MIGRATING: &str = "alloc is being migrated";

/// There are more than are wanted, or none is wanted any more.
pub const NOT_NEEDED: &str = "alloc not needed due to job update";
