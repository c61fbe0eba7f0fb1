//! Whether a node is feasible for a group: what the group requires, and every check of it.
//!
//! `requirements` is what a group asks of any node. `static_checks` looks at what a node is and has; its result is the
//! same for all nodes of a class, unless a check looks at a `unique.` attribute. `node_check` adds what depends on the
//! allocations of the node. `proposed` is the node as the plan in progress leaves it.

pub mod candidates;
pub mod capacity;
pub mod constraint;
pub mod cores;
pub mod dedicated;
pub mod devices;
pub mod distinct_property;
pub mod memory_max;
pub mod metrics;
pub mod networks;
pub mod node_check;
pub mod ports;
pub mod property_values;
pub mod proposed;
pub mod requirements;
pub mod resource_request;
pub mod static_checks;
pub mod volumes;
