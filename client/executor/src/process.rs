//! Processes as `/proc` shows them: who they are, whose children they are, what they use.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process that cannot be confused with a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Which boot: ticks begin anew with each.
    pub boot_id: String,
}

/// The fields of `/proc/<pid>/stat` that matter here. Times in clock ticks, memory in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    pub pid: i32,
    pub state: char,
    pub parent: i32,
    pub session: i32,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub start_ticks: u64,
    pub resident_pages: u64,
}

/// How often a session is looked through: a process may start another one while it is being killed.
const KILL_ROUNDS: usize = 100;

/// Clock ticks in a second, as `/proc` counts them on every Linux of today.
pub const TICKS_PER_SECOND: u64 = 100;

impl ProcessIdentity {
    /// The process of this number that runs now.
    pub fn of(pid: i32) -> io::Result<ProcessIdentity> {
        let stat = stat(pid).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(ProcessIdentity { pid, start_ticks: stat.start_ticks, boot_id: boot_id() })
    }

    /// True while this very process runs; one that only waits to be reaped counts as gone.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id()
            && stat(self.pid)
                .is_some_and(|stat| stat.start_ticks == self.start_ticks && !matches!(stat.state, 'Z' | 'X'))
    }
}

/// Which run of the kernel this is.
pub fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_string()
}

/// `None` when there is no such process.
pub fn stat(pid: i32) -> Option<ProcessStat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is a name in parentheses that may itself hold spaces and parentheses.
fn parse_stat(line: &str) -> Option<ProcessStat> {
    let (head, tail) = (line.split_once(' ')?.0, line.rsplit_once(") ")?.1);
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // Counted from the third field of proc(5), which is `fields[0]`.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        pid: head.parse().ok()?,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        start_ticks: number(22)?,
        resident_pages: number(24)?,
    })
}

fn all() -> Vec<ProcessStat> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The children of `root`, their children and so on. Whoever has set itself up as their reaper sees also
/// those whose parents are gone.
pub fn descendants(root: i32) -> Vec<ProcessStat> {
    Processes::read().descendants(root)
}

/// Every process of the host by its parent, as they were at one moment: for those who ask about many.
#[derive(Debug)]
pub struct Processes(BTreeMap<i32, Vec<ProcessStat>>);

impl Processes {
    pub fn read() -> Processes {
        let mut children: BTreeMap<i32, Vec<ProcessStat>> = BTreeMap::new();
        for stat in all() {
            children.entry(stat.parent).or_default().push(stat);
        }
        Processes(children)
    }

    /// As [`descendants`].
    pub fn descendants(&self, root: i32) -> Vec<ProcessStat> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let mut open = vec![root];
        while let Some(parent) = open.pop() {
            // A number that was used again while the table was read could close a circle.
            if seen.insert(parent) {
                let children = self.0.get(&parent).into_iter().flatten();
                found.extend(children.clone().copied());
                open.extend(children.map(|stat| stat.pid));
            }
        }
        found
    }
}

/// Kills what is left of the session that `leader` led, given that the leader is gone. Its number is
/// given to no other session as long as a member lives.
pub fn kill_orphans(leader: &ProcessIdentity) {
    if leader.boot_id != boot_id() || stat(leader.pid).is_some_and(|stat| stat.state != 'Z') {
        return;
    }
    for member in all().iter().filter(|stat| stat.session == leader.pid && stat.state != 'Z') {
        signal(member.pid, Signal::SIGKILL).ok();
    }
}

/// Kills `leader`, what runs in the session that it led, and what its members have started since, with the sessions that this
/// leads. One that has just been started has no session yet. It must not have been reaped while nothing of its session was
/// left: another may have its number then.
pub fn kill_session(leader: i32) {
    let mut sessions = BTreeSet::from([leader]);
    for _ in 0..KILL_ROUNDS {
        let of_it = |stat: &ProcessStat| stat.pid == leader || sessions.contains(&stat.session);
        let members: Vec<ProcessStat> =
            all().into_iter().filter(|stat| of_it(stat) && stat.state != 'Z').collect();
        if members.is_empty() {
            return;
        }
        let started: Vec<ProcessStat> = members.iter().flat_map(|member| descendants(member.pid)).collect();
        sessions
            .extend(started.iter().filter(|process| process.session == process.pid).map(|leader| leader.pid));
        for process in members.iter().chain(&started) {
            signal(process.pid, Signal::SIGKILL).ok();
        }
    }
}

/// Sends a signal; a process that is gone already is no error.
pub fn signal(pid: i32, signal: Signal) -> nix::Result<()> {
    match kill(Pid::from_raw(pid), signal) {
        Err(Errno::ESRCH) => Ok(()),
        sent => sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses() {
        let line = "42 (a) b (c)) S 7 42 41 0 -1 4194560 1 2 3 4 11 12 0 0 20 0 1 0 5555 1000 99 18446744073709551615";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.pid, stat.state, stat.parent, stat.session), (42, 'S', 7, 41));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.start_ticks), (11, 12, 5555));
        assert_eq!(stat.resident_pages, 99);
    }

    #[test]
    fn a_leader_is_killed_before_it_has_made_its_session() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        kill_session(child.id() as i32);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_process_differs_from_a_later_one_with_its_number() {
        let own = ProcessIdentity::of(std::process::id() as i32).unwrap();
        assert!(own.is_alive());
        let earlier = ProcessIdentity { start_ticks: own.start_ticks + 1, ..own.clone() };
        assert!(!earlier.is_alive());
        assert!(!ProcessIdentity { boot_id: "another".into(), ..own }.is_alive());
    }

    #[test]
    fn children_are_found() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let found = descendants(std::process::id() as i32);
        assert!(found.iter().any(|stat| stat.pid == child.id() as i32));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_leader_without_its_session_is_killed_too() {
        use std::os::unix::process::ExitStatusExt;
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        kill_session(child.id() as i32);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));
    }
}
