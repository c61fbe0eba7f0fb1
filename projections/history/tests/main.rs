//! One program: what the tests have in common is compiled once.

mod chain;
mod life;
mod moments;
mod spans;
