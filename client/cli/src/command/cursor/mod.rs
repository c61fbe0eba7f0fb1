//! Durable cursors of the event stream.

mod change;
mod show;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] =
    &[&show::LIST, &show::STATUS, &change::CREATE, &change::RESET, &change::DELETE];
