//! What commands lead to, and what of it is kept.

mod deployments;
mod digest;
mod families;
mod history;
mod image;
mod museum;
mod namespaces;
mod node_life;
mod plans;
mod stories;
mod story;
mod support;
mod volumes;
