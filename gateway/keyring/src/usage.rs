//! Which keys still prove something.

use base::{Duration, Time, Uuid};
use model::document::Task;
use state::State;

use crate::claims::key_of;

/// Nomad signs a token for every task. Here only those are signed that somebody gets to see: the task itself, or its
/// templates.
pub fn uses_identity(task: &Task) -> bool {
    !task.templates.is_empty() || task.identity.as_ref().is_some_and(|own| own.env || own.file)
}

/// A token that the key has signed may still be presented: one without an end by a task that lives, or one that has not
/// expired since the key was replaced; or it seals the secret of an access token, one of an auth method, or a version of a
/// variable. The active key is always in use.
pub fn is_used(state: &State, key: Uuid, now: Time) -> bool {
    let keys = state.keyring.keys();
    let Some(own) = keys.get(&key) else { return false };
    if state.variables.iter().any(|(_, variable)| variable.is_sealed_with(key)) {
        return true;
    }
    if state.acl.tokens().any(|(_, token)| token.secret.sealed.key == key) {
        return true;
    }
    let methods = state.acl.methods.names().into_iter().filter_map(|name| state.acl.methods.get(name));
    let mut secrets = methods.flat_map(|set| [&set.document.client_secret, &set.document.private_key]);
    if secrets.any(|sealed| sealed.as_ref().is_some_and(|sealed| sealed.key == key)) {
        return true;
    }
    let later = keys.iter().filter(|(id, other)| (other.created, **id) > (own.created, key));
    let Some((_, next)) = later.min_by_key(|(id, other)| (other.created, **id)) else { return true };
    let pools = state.pools.names().into_iter().filter_map(|name| state::pool::document(&state.pools, name));
    let mut longest = pools.map(|pool| pool.node_identity_ttl.0).max().unwrap_or_default();
    let living = state.allocs.iter().map(|(_, alloc)| alloc).filter(|alloc| !alloc.client.is_terminal());
    for alloc in living {
        let tasks = alloc.version.group(&alloc.group).into_iter().flat_map(|group| &*group.tasks);
        for task in tasks {
            if uses_identity(task) && key_of(&state.keyring, alloc.created) == Some(key) {
                return true;
            }
            longest = task.identities.iter().map(|own| own.ttl.0).fold(longest, Duration::max);
        }
    }
    next.created_at.plus(longest) > now
}

#[cfg(test)]
mod tests {
    use base::Index;
    use model::event::RootKeyActivated;
    use model::{Actor, CommandRecord, Event, RequestId};
    use state::{Delta, Moment};

    use super::*;

    #[test]
    fn a_former_key_is_in_use_until_the_last_node_has_another_token() {
        let mut state = State::default();
        let hour = |hour: i64| Time::ZERO.plus(Duration::from_secs(hour * 3600));
        for (index, key, time) in [(1, 8_u128, hour(0)), (2, 9, hour(10))] {
            let activated =
                RootKeyActivated { key: key.into(), modulus: vec![1], exponent: vec![1], sealed: vec![] };
            let at = Moment { index: Index(index), time, epoch: model::EPOCH };
            let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
            state.absorb(at, &record, [Event::from(activated)].iter(), &mut Delta::default());
        }
        let used = |key: u128, at: Time| is_used(&state, key.into(), at);
        assert!(used(8, hour(10 + 23)));
        assert!(!used(8, hour(10 + 24)), "identities of nodes live a day");
        assert!(used(9, hour(9_999)), "it is the active one");
        assert!(!used(7, hour(0)), "nobody knows it");
    }
}
