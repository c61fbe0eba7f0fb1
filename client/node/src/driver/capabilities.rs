//! Which capabilities of Linux a task has.

use std::collections::BTreeSet;

/// What tasks have by default.
const BASIS: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const ALL: &str = "ALL";

/// What the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    All,
    These(BTreeSet<String>),
}

impl Allowed {
    /// The basis when nothing is listed.
    pub fn read(listed: &[String]) -> Allowed {
        let listed = normalized(listed);
        if listed.contains(ALL) {
            Allowed::All
        } else if listed.is_empty() {
            Allowed::These(BASIS.map(str::to_string).into())
        } else {
            Allowed::These(listed)
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Allowed::All => true,
            Allowed::These(names) => names.contains(name),
        }
    }
}

/// What a task has to be given and deprived of, as engines want it: all is dropped first.
///
/// The result is ((basis, as far as it is allowed) less `drop`) and `add`.
///
/// # Errors
/// Names what of `add` is not allowed.
pub fn delta(
    allowed: &Allowed,
    add: &[String],
    drop: &[String],
) -> Result<(Vec<String>, Vec<String>), String> {
    let (add, drop) = (normalized(add), normalized(drop));
    let refused: Vec<&str> = add.iter().map(String::as_str).filter(|name| !allowed.has(name)).collect();
    if !refused.is_empty() {
        let names = refused.join(", ").to_lowercase();
        return Err(format!("driver does not allow the following capabilities: {names}"));
    }
    if add.contains(ALL) {
        return Ok((vec![ALL.to_string()], drop.into_iter().collect()));
    }
    let dropped = |name: &str| drop.contains(ALL) || drop.contains(name);
    let kept = BASIS.iter().filter(|name| allowed.has(name) && !dropped(name)).map(|name| name.to_string());
    let given: BTreeSet<String> = kept.chain(add).collect();
    Ok((given.into_iter().collect(), vec![ALL.to_string()]))
}

/// The same for a process of a user: what it has, by name, and what of "all" it has not. Root has all that is not dropped.
///
/// # Errors
/// Names what of `add` is not allowed, and what is no capability.
pub fn of_process(
    allowed: &Allowed,
    root: bool,
    add: &[String],
    drop: &[String],
) -> Result<(Vec<String>, Vec<String>), String> {
    let all = |name: &&String| name.as_str() != ALL;
    let (added, dropped) = (normalized(add), normalized(drop));
    let exists = |name: &&String| rustix::thread::CapabilitySet::from_name(name).is_some();
    if let Some(name) = added.iter().chain(&dropped).filter(all).find(|name| !exists(name)) {
        return Err(format!("there is no capability \"{}\"", name.to_lowercase()));
    }
    let (given, without) = delta(allowed, add, drop)?;
    let keeps_all = given.iter().any(|name| name == ALL) || root && !dropped.contains(ALL);
    match keeps_all {
        true => Ok((vec![ALL.to_string()], dropped.difference(&added).filter(all).cloned().collect())),
        false => Ok((given, without.into_iter().filter(|name| name != ALL).collect())),
    }
}

fn normalized(names: &[String]) -> BTreeSet<String> {
    let one = |name: &String| {
        let upper = name.trim().to_uppercase();
        upper.strip_prefix("CAP_").map(str::to_string).unwrap_or(upper)
    };
    names.iter().map(one).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn a_task_has_the_basis_without_what_is_dropped_and_with_what_is_added() {
        let basis = Allowed::read(&[]);
        let (given, dropped) = delta(&basis, &[], &texts(&["cap_kill", "Mknod"])).unwrap();
        assert_eq!((given.len(), dropped), (BASIS.len() - 2, texts(&["ALL"])));
        let (given, _) = delta(&basis, &texts(&["chown"]), &texts(&["all"])).unwrap();
        assert_eq!(given, ["CHOWN"]);
        let narrow = Allowed::read(&texts(&["chown", "CAP_SYS_TIME"]));
        assert_eq!(delta(&narrow, &[], &[]).unwrap().0, ["CHOWN"]);
        assert_eq!(delta(&narrow, &texts(&["sys_time"]), &[]).unwrap().0, ["CHOWN", "SYS_TIME"]);
        let all = Allowed::read(&texts(&["all"]));
        assert_eq!(
            delta(&all, &texts(&["all"]), &texts(&["kill"])).unwrap(),
            (texts(&["ALL"]), texts(&["KILL"]))
        );
    }

    #[test]
    fn root_has_all_that_is_not_dropped_and_others_have_the_basis() {
        let basis = Allowed::read(&[]);
        let of = |root, add: &[&str], drop: &[&str]| of_process(&basis, root, &texts(add), &texts(drop));
        assert_eq!(of(true, &[], &["cap_kill"]).unwrap(), (texts(&["ALL"]), texts(&["KILL"])));
        assert_eq!(of(true, &["chown"], &["all"]).unwrap(), (texts(&["CHOWN"]), Vec::new()));
        let (given, dropped) = of(false, &[], &["mknod"]).unwrap();
        assert_eq!((given.len(), dropped), (BASIS.len() - 1, Vec::new()));
        let all = Allowed::read(&texts(&["all"]));
        let own = of_process(&all, false, &texts(&["all"]), &texts(&["kill"])).unwrap();
        assert_eq!(own, (texts(&["ALL"]), texts(&["KILL"])));
        assert_eq!(of(false, &[], &["no_such"]).unwrap_err(), "there is no capability \"no_such\"");
        assert!(of(true, &["sys_admin"], &[]).unwrap_err().ends_with("capabilities: sys_admin"));
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let error = delta(&Allowed::read(&[]), &texts(&["SYS_ADMIN", "kill", "net_raw"]), &[]).unwrap_err();
        assert_eq!(error, "driver does not allow the following capabilities: net_raw, sys_admin");
        assert!(delta(&Allowed::read(&[]), &texts(&["all"]), &[]).is_err());
    }
}
