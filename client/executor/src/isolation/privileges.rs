//! The user, the capabilities and the system calls that a task is left with.

use std::fs::File;
use std::io;

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
};

use super::filter;
use crate::spec::{IsolationSpec, UserIds};
use crate::user::{set_groups, set_user};

/// The name for all that the agent has.
const ALL: &str = "ALL";

/// Becomes the user with the task's capabilities and no others, for ever.
///
/// Returns the capabilities.
///
/// # Errors
/// Names a capability that does not exist.
pub fn give_up(isolation: &IsolationSpec, user: Option<UserIds>) -> io::Result<CapabilitySet> {
    let wanted = wanted(isolation)?;
    match user.filter(|_| isolation.user_namespace) {
        Some(user) => enter_own_users(user)?,
        None => become_user(isolation, user, wanted)?,
    }
    keep_only(isolation, user, wanted)
}

/// As [`give_up`], for a command beside a task that has a user namespace: this one, of which the calling process is not
/// a part yet.
///
/// # Errors
/// As there.
pub fn give_up_into(
    users: File,
    isolation: &IsolationSpec,
    user: Option<UserIds>,
) -> io::Result<CapabilitySet> {
    let wanted = wanted(isolation)?;
    // Inside nobody may do that.
    set_groups(&[])?;
    setns(users, CloneFlags::CLONE_NEWUSER)?;
    set_user(UserIds { uid: 0, gid: 0 })?;
    keep_only(isolation, user, wanted)
}

fn become_user(isolation: &IsolationSpec, user: Option<UserIds>, wanted: CapabilitySet) -> io::Result<()> {
    let Some(user) = user else { return Ok(()) };
    bound(wanted)?;
    // Kept over the change of the user, to be cut down afterwards.
    set_keep_capabilities(true)?;
    set_groups(&isolation.groups)?;
    set_user(user)
}

/// Makes a user namespace that belongs to the user, and in which it has number 0. All that had to be mounted is: those mounts
/// stay the host's, and no capability inside can change them.
///
/// # Errors
/// When the kernel or its operator allows none.
fn enter_own_users(user: UserIds) -> io::Result<()> {
    // Where only privileged processes may make such namespaces, this is still one.
    set_keep_capabilities(true)?;
    set_groups(&[])?;
    set_user(user)?;
    let kept = capabilities(None)?.permitted;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    // Its own files in `/proc` are root's after the change of the user, unless that is said.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let refused = |what: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("user_namespace: {what}: {error}"))
    };
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| refused("this kernel makes no user namespace", error.into()))?;
    let maps = [
        ("setgroups", "deny".to_string()),
        ("uid_map", format!("0 {} 1", user.uid)),
        ("gid_map", format!("0 {} 1", user.gid)),
    ];
    for (name, text) in maps {
        std::fs::write(format!("/proc/self/{name}"), text).map_err(|error| refused(name, error))?;
    }
    Ok(())
}

/// No process of the task will ever have more than these.
fn bound(wanted: CapabilitySet) -> io::Result<()> {
    for capability in known_to_kernel().difference(wanted).iter() {
        remove_capability_from_bounding_set(capability)?;
    }
    Ok(())
}

fn keep_only(
    isolation: &IsolationSpec,
    user: Option<UserIds>,
    wanted: CapabilitySet,
) -> io::Result<CapabilitySet> {
    // A user namespace begins with all of them; a user that is not root has lost what this needs.
    let root = isolation.user_namespace || user.is_none_or(|user| user.uid == 0);
    if isolation.user_namespace || user.is_none() {
        bound(wanted)?;
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
