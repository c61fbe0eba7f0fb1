//! scheduler/placement
