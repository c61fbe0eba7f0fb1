//! gateway/server
