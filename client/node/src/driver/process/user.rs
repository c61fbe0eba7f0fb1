//! Who a task runs as.

use std::collections::BTreeMap;

use executor::spec::UserIds;
use nix::unistd::{Gid, Group, Uid, User};

use crate::driver::{DynamicUser, StartError};
use crate::users;

/// A user of the host as a task is it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskUser {
    pub ids: UserIds,
    /// All that it is in.
    pub groups: Vec<u32>,
}

/// Looks up the user of a task and adds its variables to `env`. An empty name keeps the agent's own user, which is
/// `None`. `denied_uids` and `denied_gids` are ranges as in [`in_ranges`].
///
/// # Errors
/// When there is no such user, or no task may run as it.
pub fn find_user(
    name: &str,
    denied_uids: &str,
    denied_gids: &str,
    env: &mut BTreeMap<String, String>,
) -> Result<Option<TaskUser>, StartError> {
    let found = match name.parse::<u32>() {
        _ if name.is_empty() => User::from_uid(Uid::current()),
        Ok(uid) => User::from_uid(Uid::from_raw(uid)),
        Err(_) => User::from_name(name),
    };
    let user = match found {
        Ok(Some(user)) => user,
        _ if name.is_empty() => return Ok(None),
        _ => return Err(StartError::fatal(format!("failed to find user \"{name}\""))),
    };
    let groups = groups_of(&user);
    let denied =
        in_ranges(denied_uids, user.uid.as_raw()) || groups.iter().any(|gid| in_ranges(denied_gids, *gid));
    if denied {
        return Err(StartError::fatal(format!("running as user \"{}\" is not allowed", user.name)));
    }
    if name.is_empty() {
        return Ok(None);
    }
    env.insert("USER".into(), user.name.clone());
    env.insert("LOGNAME".into(), user.name);
    env.insert("HOME".into(), user.dir.display().to_string());
    let ids = UserIds { uid: user.uid.as_raw(), gid: user.gid.as_raw() };
    Ok(Some(TaskUser { ids, groups }))
}

/// A user that only its number makes one, and the group of that number. Adds its variables to `env`.
///
/// # Errors
/// When no task may run as it.
pub fn dynamic_user(
    user: &DynamicUser,
    denied_uids: &str,
    denied_gids: &str,
    env: &mut BTreeMap<String, String>,
) -> Result<TaskUser, StartError> {
    let (uid, name) = (user.uid, users::name_of(user.uid));
    if in_ranges(denied_uids, uid) || in_ranges(denied_gids, uid) {
        return Err(StartError::fatal(format!("running as user \"{name}\" is not allowed")));
    }
    env.insert("USER".into(), name.clone());
    env.insert("LOGNAME".into(), name);
    env.insert("HOME".into(), user.home.display().to_string());
    Ok(TaskUser { ids: UserIds { uid, gid: uid }, groups: vec![uid] })
}

fn groups_of(user: &User) -> Vec<u32> {
    let mut groups = vec![user.gid.as_raw()];
    if let Ok(name) = std::ffi::CString::new(user.name.clone())
        && let Ok(all) = nix::unistd::getgrouplist(&name, user.gid)
    {
        groups.extend(all.iter().map(|gid| gid.as_raw()));
    }
    groups.retain(|gid| Group::from_gid(Gid::from_raw(*gid)).is_ok());
    groups
}

/// True when `number` lies in one of the ranges of a text like `0,10-15`.
pub fn in_ranges(ranges: &str, number: u32) -> bool {
    ranges.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&number),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_their_ends() {
        for (number, expected) in [(0, true), (9, false), (10, true), (15, true), (16, false)] {
            assert_eq!(in_ranges("0,10-15", number), expected, "{number}");
        }
        assert!(!in_ranges("", 0));
    }

    #[test]
    fn a_denied_user_is_rejected_by_name() {
        let mut env = BTreeMap::new();
        let error = find_user("0", "0-0", "", &mut env).unwrap_err();
        assert_eq!(error.to_string(), "running as user \"root\" is not allowed");
        let root = find_user("0", "", "", &mut env).unwrap().unwrap();
        assert_eq!((root.ids.uid, env["USER"].as_str()), (0, "root"));
    }
}
