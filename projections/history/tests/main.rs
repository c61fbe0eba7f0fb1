//! One program: what the tests have in common is compiled once.

mod chain;
mod kept_facts;
mod life;
mod moments;
mod spans;
