//! Evaluations: requests to look at a job, waiting, blocked or done.

pub(crate) mod fold;
pub(crate) mod hash;
mod state;
mod view;

pub use crate::row::EvalRow;
pub use state::{Eval, Evals, why_kept};
pub use view::{annotations, document, without_annotations};
