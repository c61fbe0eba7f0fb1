//! projections/state
