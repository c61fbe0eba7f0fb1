//! client/node
