//! Deployments: the rollout of a version of a job, group by group.

pub(crate) mod fold;
pub(crate) mod hash;
mod state;
mod view;

pub use crate::row::DeploymentRow;
pub use state::{Deployment, Deployments, GroupProgress, next_deadline};
pub use view::{document, progress};
