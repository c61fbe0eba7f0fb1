//! What happens to key trees, and what is forgotten or dropped.

use base::{Rng, Uuid};
use model::event::*;
use model::{EPOCH, SealedKey, VariableKey, auth_method_secrets, token_secrets};
use state::State;

use super::draw_variables::items;

/// With what happens to cursors and sinks, and what is recorded. The chance is their own, so that all else in a history stays as it was without them.
pub fn and_rarer(state: &State, rng: &mut Rng) -> Vec<Event> {
    let mut all = super::draw_sinks::events_with(super::draw_cursors::events(state, rng), state);
    all.extend(events(state, &mut Rng::new(state.index.0 + 1)));
    all.extend(super::draw_recording::events(state, &mut Rng::new(state.index.0 + 2)));
    all.extend(secrets(&mut Rng::new(state.index.0 + 3)));
    all.extend(dropped(state, &mut Rng::new(state.index.0 + 4)));
    all
}

/// More servers than are remembered, in a long history.
fn dropped(state: &State, rng: &mut Rng) -> Option<Event> {
    let server = format!("server-{}", rng.below(200));
    let is_said = state.epoch() == EPOCH && rng.below(2) == 0;
    is_said.then(|| HistoryDropped { server, oldest: state.index, time: state.time }.into())
}

/// Of tokens and auth methods that are not there: nothing of these is drawn anew for it.
fn secrets(rng: &mut Rng) -> Vec<Event> {
    let of = match rng.below(4) {
        0 => token_secrets(Uuid::from(u128::from(rng.below(3)))),
        1 => auth_method_secrets(["sso", "ci"][rng.below(2) as usize]),
        _ => return Vec::new(),
    };
    vec![SecretsForgotten { of }.into()]
}

fn events(state: &State, rng: &mut Rng) -> Vec<Event> {
    let server = Uuid::from(u128::from(1 + rng.below(3)));
    let sealed = SealedKey { server, bytes: vec![rng.below(256) as u8; 5] };
    // What needs something to be there comes with it, so that a short history has all of it.
    let mut events = Vec::new();
    if !state.erasure.holders().contains_key(&server) || rng.below(4) == 0 {
        events.push(KeyTreeRequested { server, public: [rng.below(256) as u8; 32] }.into());
    }
    let founded = Uuid::from(u128::from(rng.below(4)));
    let tree = match state.erasure.tree() {
        Some(tree) if rng.below(4) > 0 => tree,
        _ => {
            let sealed = if rng.below(2) == 0 { vec![sealed.clone()] } else { vec![] };
            events.push(KeyTreeFounded { tree: founded, sealed }.into());
            founded
        }
    };
    if rng.below(4) > 0 {
        events.push(KeyTreeShared { tree, sealed }.into());
    }
    if rng.below(4) > 0 {
        // Names of their own: what is drawn for other variables follows from which there are.
        let key = VariableKey::new("default", &format!("secret/{}", rng.below(3)));
        if rng.below(2) == 0 {
            events.push(VariableSet { key: key.clone(), items: items(rng) }.into());
        }
        events.push(VariableForgotten { key }.into());
    }
    if rng.below(4) > 0 {
        events.push(ForgottenErased { server, up_to: state.index }.into());
    }
    if rng.below(2) == 0 {
        events.push(KeyTreeHolderRemoved { server }.into());
    }
    events
}
