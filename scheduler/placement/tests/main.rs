//! Whole passes over a small cluster: the cases of `docs/behaviour`.

mod canaries;
mod chaos;
mod choice;
mod counts;
mod deployments;
mod disconnects;
mod drains;
mod dry_runs;
mod evaluations;
mod explain;
mod hints;
mod moves;
mod nodes;
mod oracle;
mod outages;
mod per_node;
mod per_node_deployments;
mod preemption;
mod reschedules;
mod returns;
mod support;
mod volumes;
