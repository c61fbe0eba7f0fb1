//! client/sdk
