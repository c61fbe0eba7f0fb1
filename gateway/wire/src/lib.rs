//! gateway/wire
