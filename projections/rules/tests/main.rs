//! What commands lead to.

mod acl;
mod claims;
mod classes;
mod configurations;
mod cursors;
mod deployments;
mod erasure;
mod families;
mod forgetting;
mod leftovers;
mod logins;
mod namespaces;
mod node_life;
mod plans;
mod restore;
mod rollouts;
mod root_keys;
mod services;
mod sinks;
mod stories;
mod variables;
mod volumes;
