//! Users that tasks have for themselves: numbers out of a range of which the host knows none by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::Rng;

/// Which numbers may be given to tasks, as users and as groups, and where these are at home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicUsers {
    pub uid_min: u32,
    pub uid_max: u32,
    /// As the task sees it. `None` for the task's own directory, `NOMAD_TASK_DIR`.
    pub home_dir: Option<PathBuf>,
}

impl Default for DynamicUsers {
    fn default() -> DynamicUsers {
        DynamicUsers { uid_min: 80_000, uid_max: 89_999, home_dir: None }
    }
}

/// Whose number it is: the ids of an allocation and one of its tasks.
type Holder = (String, String);

/// The numbers of one node. Which task has which is stored with the task, and told to the pool of the next agent before
/// anything is started.
#[derive(Debug)]
pub struct UserPool {
    range: DynamicUsers,
    given: Mutex<Given>,
}

#[derive(Debug)]
struct Given {
    by_uid: BTreeMap<u32, Holder>,
    /// Where the search for a free one begins: one that was given back rests as long as there are others.
    next: u32,
}

impl Given {
    fn of(&self, alloc_id: &str, task: &str) -> Option<u32> {
        let found = self.by_uid.iter().find(|(_, (alloc, name))| alloc == alloc_id && name == task);
        found.map(|(uid, _)| *uid)
    }
}

impl UserPool {
    pub fn new(range: DynamicUsers, seed: u64) -> UserPool {
        let count = u64::from(range.uid_max - range.uid_min) + 1;
        // Not always the same ones after each start of the agent, for what earlier holders have left somewhere.
        let first = Rng::stream(seed, "dynamic users").below(count) as u32;
        let given = Given { by_uid: BTreeMap::new(), next: range.uid_min + first };
        UserPool { range, given: Mutex::new(given) }
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of this task: the one that it has, else the one that it had if nobody else does, else a new one. `None`
    /// when all are given.
    pub fn take(&self, alloc_id: &str, task: &str, before: Option<u32>) -> Option<u32> {
        let mut given = self.lock();
        if let Some(uid) = given.of(alloc_id, task) {
            return Some(uid);
        }
        let (min, max) = (self.range.uid_min, self.range.uid_max);
        let free = |uid: &u32| (min..=max).contains(uid) && !given.by_uid.contains_key(uid);
        let next = given.next;
        let uid = before.filter(free).or_else(|| (next..=max).chain(min..next).find(free))?;
        given.by_uid.insert(uid, (alloc_id.to_string(), task.to_string()));
        if before != Some(uid) {
            given.next = if uid == max { min } else { uid + 1 };
        }
        Some(uid)
    }

    /// What a task of an earlier agent has, also when the range is another one now.
    pub fn restore(&self, alloc_id: &str, task: &str, uid: u32) {
        self.lock().by_uid.entry(uid).or_insert_with(|| (alloc_id.to_string(), task.to_string()));
    }

    pub fn of(&self, alloc_id: &str, task: &str) -> Option<u32> {
        self.lock().of(alloc_id, task)
    }

    pub fn give_back(&self, alloc_id: &str, task: &str) {
        self.lock().by_uid.retain(|_, (alloc, name)| alloc != alloc_id || name != task);
    }

    /// Of all tasks of the allocation.
    pub fn forget(&self, alloc_id: &str) {
        self.lock().by_uid.retain(|_, (alloc, _)| alloc != alloc_id);
    }
}

/// What such a user is called.
pub fn name_of(uid: u32) -> String {
    format!("nomad-{uid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(uid_min: u32, uid_max: u32) -> UserPool {
        UserPool::new(DynamicUsers { uid_min, uid_max, home_dir: None }, 7)
    }

    #[test]
    fn every_task_has_a_number_of_its_own_until_it_gives_it_back() {
        let pool = pool(10, 12);
        let mut given: Vec<u32> = ["a", "b", "c"].map(|task| pool.take("x", task, None).unwrap()).into();
        assert_eq!(pool.take("x", "d", None), None, "all are given");
        let of_b = given[1];
        assert_eq!(pool.take("x", "b", None), Some(of_b), "a task keeps what it has");
        given.sort();
        assert_eq!(given, [10, 11, 12]);
        pool.give_back("x", "b");
        assert_eq!(pool.of("x", "b"), None);
        assert_eq!(pool.take("y", "b", None), Some(of_b));
        pool.forget("x");
        assert_eq!((pool.of("x", "a"), pool.of("y", "b")), (None, Some(of_b)));
    }

    #[test]
    fn a_number_that_was_given_back_rests() {
        let pool = pool(10, 19);
        let first = pool.take("x", "a", None).unwrap();
        pool.give_back("x", "a");
        assert_ne!(pool.take("x", "b", None), Some(first));
        assert_eq!(
            pool.take("x", "a", Some(first)),
            Some(first),
            "unless it is the same task that comes again"
        );
    }

    #[test]
    fn what_an_earlier_agent_has_given_is_not_given_again() {
        let pool = pool(10, 11);
        pool.restore("x", "a", 10);
        pool.restore("x", "old", 99);
        assert_eq!((pool.of("x", "a"), pool.of("x", "old")), (Some(10), Some(99)));
        assert_eq!(pool.take("y", "b", Some(10)), Some(11));
        assert_eq!(pool.take("y", "c", Some(99)), None, "one outside of the range is not given");
    }
}
