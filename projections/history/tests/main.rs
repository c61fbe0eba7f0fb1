//! One program: what the tests have in common is compiled once.

mod life;
mod moments;
