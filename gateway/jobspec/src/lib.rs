//! gateway/jobspec
