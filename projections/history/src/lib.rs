//! projections/history
