//! Deployments: what operators order, and what is due for one that is under way.

pub(crate) mod advance;
pub(crate) mod decide;
pub(crate) mod rollout;
pub mod texts;
