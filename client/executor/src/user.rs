//! Becoming a user.

use std::io;

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use crate::spec::UserIds;

/// Of the whole process, which has one thread.
pub fn set_groups(groups: &[u32]) -> io::Result<()> {
    let groups: Vec<Gid> = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    Ok(setgroups(&groups)?)
}

/// As [`set_groups`]: the group first, while that is still allowed.
pub fn set_user(user: UserIds) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    setresgid(gid, gid, gid)?;
    Ok(setresuid(uid, uid, uid)?)
}
