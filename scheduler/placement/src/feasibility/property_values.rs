//! The values that nodes have for one property, as numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use state::node::NodeCold;

use super::constraint::Target;

/// The number of a node that does not have the property.
pub const NO_VALUE: u32 = u32::MAX;

/// The values of one property among the nodes, each with its number.
pub type PropertyValues = BTreeMap<Arc<str>, u32>;

/// The number of the node's value. A value that is new gets the next number.
pub fn value_number(target: &Target, node: &NodeCold, values: &mut PropertyValues) -> u32 {
    let Some(value) = target.resolve(node) else { return NO_VALUE };
    let next = values.len() as u32;
    values.get(&*value).copied().unwrap_or_else(|| *values.entry((&*value).into()).or_insert(next))
}
