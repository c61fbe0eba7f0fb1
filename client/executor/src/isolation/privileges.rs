//! The user, the capabilities and the system calls that a task is left with.

use std::io;

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
};

use super::filter;
use crate::spec::{IsolationSpec, UserIds};

/// The name for all that the agent has.
const ALL: &str = "ALL";

/// Becomes the user with the task's capabilities and no others, for ever.
///
/// Returns the capabilities.
///
/// # Errors
/// Names a capability that does not exist.
pub fn give_up(isolation: &IsolationSpec, user: Option<UserIds>) -> io::Result<CapabilitySet> {
    let known = known_to_kernel();
    let wanted = wanted(isolation)?;
    for capability in known.difference(wanted).iter() {
        remove_capability_from_bounding_set(capability)?;
    }
    let root = user.is_none_or(|user| user.uid == 0);
    if let Some(user) = user {
        // Kept over the change of the user, to be cut down below.
        set_keep_capabilities(true)?;
        let groups: Vec<Gid> = isolation.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        setgroups(&groups)?;
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
    }
    // Root gets its capabilities back with each program; all others need them as inheritable and ambient ones.
    let inheritable = if root { CapabilitySet::empty() } else { wanted };
    set_capabilities(None, CapabilitySets { effective: wanted, permitted: wanted, inheritable })?;
    clear_ambient_capability_set()?;
    for capability in inheritable.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(wanted)
}

/// From here on only what the task may do itself.
pub fn confine(isolation: &IsolationSpec, capabilities: CapabilitySet) -> io::Result<()> {
    if isolation.no_new_privileges {
        set_no_new_privs(true)?;
    }
    if isolation.seccomp {
        filter::install(capabilities)?;
    }
    Ok(())
}

/// The first of those that this kernel does not know ends them.
fn known_to_kernel() -> CapabilitySet {
    let known = (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    known.take_while(|capability| capability_is_in_bounding_set(*capability).is_ok()).collect()
}

/// What the task is to have, of what this process has.
fn wanted(isolation: &IsolationSpec) -> io::Result<CapabilitySet> {
    let own = capabilities(None)?.permitted;
    let without = named(&isolation.without)?;
    if isolation.capabilities.iter().any(|name| name == ALL) {
        return Ok(own.difference(without));
    }
    let wanted = named(&isolation.capabilities)?.difference(without);
    match wanted.difference(own).iter_names().next() {
        None => Ok(wanted),
        Some((name, _)) => {
            Err(io::Error::other(format!("this agent does not have the capability {name} itself")))
        }
    }
}

fn named(names: &[String]) -> io::Result<CapabilitySet> {
    let one = |name: &String| {
        let unknown = || io::Error::other(format!("there is no capability \"{name}\""));
        CapabilitySet::from_name(name).ok_or_else(unknown)
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_known_by_name() {
        let named = named(&["CHOWN".to_string(), "NET_RAW".to_string()]).unwrap();
        assert_eq!(named, CapabilitySet::CHOWN | CapabilitySet::NET_RAW);
        let error = super::named(&["SYS_MAGIC".to_string()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no capability \"SYS_MAGIC\"");
    }
}
