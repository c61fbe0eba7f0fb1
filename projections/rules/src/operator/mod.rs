//! What operators set for the whole cluster.

pub(crate) mod decide;
pub(crate) mod restore;
