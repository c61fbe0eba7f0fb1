//! log/journal
