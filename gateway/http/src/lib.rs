//! gateway/http
