//! gateway/api
