//! House rules, as tests: what a compiler does not know about the code and its documents.

mod behaviour;
mod pages;
mod tidy;
