//! scheduler/control
