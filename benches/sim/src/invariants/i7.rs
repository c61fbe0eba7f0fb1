//! I7: the past, folded again, is what was published then.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Index;
use state::State;

use crate::fact::{Check, Fact, Rest};
use crate::witness::Witness;

/// Published states that are remembered, evenly spread: every so many at first, thinned out when there are more.
const REMEMBERED: usize = 64;

pub struct AsOf {
    spacing: u64,
    published: BTreeMap<(Index, usize), Arc<State>>,
}

impl Default for AsOf {
    fn default() -> Self {
        AsOf { spacing: 1, published: BTreeMap::new() }
    }
}

impl Check for AsOf {
    fn sentence(&self) -> &'static str {
        "I7 the state as of an index is the one that was published there"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Published { server, state, .. } = fact else { return Ok(()) };
        if state.index.0.is_multiple_of(self.spacing) {
            self.published.insert((state.index, *server), Arc::clone(state));
        }
        while self.published.len() > REMEMBERED {
            self.spacing *= 2;
            let spacing = self.spacing;
            self.published.retain(|(index, _), _| index.0.is_multiple_of(spacing));
        }
        Ok(())
    }

    fn rest(&mut self, _: &Rest<'_>, witness: &Witness) -> Result<(), String> {
        let mut state = State::default();
        for encoded in &witness.batches {
            let batch = encoded.decode().map_err(|error| error.to_string())?;
            state.apply(&batch).map_err(|error| error.to_string())?;
            for (server, published) in self.published.range((state.index, 0)..=(state.index, usize::MAX)) {
                if **published != state {
                    return Err(format!("server {} at {}", server.1, state.index));
                }
            }
        }
        Ok(())
    }
}
