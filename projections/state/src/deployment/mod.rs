//! Deployments: versions of jobs on their way to being what runs, group by group.

pub(crate) mod decide;
pub(crate) mod fold;
pub(crate) mod hash;
mod state;
pub mod texts;
mod view;
mod watch;

pub use state::{Deployment, DeploymentRow, Deployments, GroupProgress};
pub use view::document;
pub(crate) use watch::advance;
pub use watch::next_deadline;
