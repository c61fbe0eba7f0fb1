//! The machines of the leader, over logs and states that real commands led to.

mod broker;
mod interleavings;
mod pace;
mod recording;
mod sequencer;
mod whatif;
mod worker;
