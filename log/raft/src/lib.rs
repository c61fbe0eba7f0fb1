//! log/raft
