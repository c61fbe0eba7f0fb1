//! What happened, step by step: hashed whole, printed in part.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use base::Time;

/// Steps kept for telling, unless the whole is asked for.
const KEPT: usize = 400;

/// Every step of a run in plain words. The hash over all of them says whether two runs were the same.
pub struct Story {
    hasher: blake3::Hasher,
    start: Time,
    steps: u64,
    line: String,
    told: VecDeque<String>,
    whole: bool,
}

impl Story {
    /// Keeps the last steps only, or the `whole` story.
    pub fn new(start: Time, whole: bool) -> Story {
        let (hasher, line) = (blake3::Hasher::new(), String::new());
        Story { hasher, start, steps: 0, line, told: VecDeque::new(), whole }
    }

    pub fn tell(&mut self, now: Time, what: fmt::Arguments<'_>) {
        self.steps += 1;
        self.line.clear();
        let nanos = now.since(self.start).0;
        let (millis, rest) = (nanos / 1_000_000, nanos % 1_000_000);
        // The full time is hashed, for two runs may differ in it alone.
        write!(self.line, "{:>6}.{:03} s  ", millis / 1_000, millis % 1_000).expect("a string takes all");
        self.line.write_fmt(what).expect("a string takes all");
        self.hasher.update(&rest.to_le_bytes());
        self.hasher.update(self.line.as_bytes());
        self.hasher.update(b"\n");
        if !self.whole && self.told.len() == KEPT {
            self.told.pop_front();
        }
        self.told.push_back(self.line.clone());
    }

    /// What is not printed, yet must be the same in every run.
    pub fn witness(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn hash(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(String::as_str)
    }
}
