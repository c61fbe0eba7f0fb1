//! Forks that are kept.

use model::document::ForkKept;

use super::{cell, whatif};
use crate::output::Table;

/// The list of forks.
pub(crate) fn table(forks: &[ForkKept]) -> String {
    let mut table = Table::new(["ID", "From Index", "Passed", "Changes", "Result", "Kept For"]);
    for fork in forks {
        table.row([
            fork.id.clone(),
            cell(fork.index),
            fork.virtual_time.0.to_string(),
            cell(fork.changes),
            whatif::counts(&fork.counts),
            remaining(fork),
        ]);
    }
    table.render()
}

/// How long it is kept, in whole seconds.
pub(crate) fn remaining(fork: &ForkKept) -> String {
    const SECOND: i64 = 1_000_000_000;
    base::Duration(fork.remaining.0.0 / SECOND * SECOND).to_string()
}
