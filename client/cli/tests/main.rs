//! The program as a process: its commands against a fake HTTP API, and agents as users run them.

mod commands;
mod end_to_end;
