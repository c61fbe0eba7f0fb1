//! benches/plan
