//! Which tasks of an allocation may start, and in which order they are stopped.

use std::collections::BTreeMap;

use model::document::{Task, TaskState};

use super::events::{DEAD, KillReason, PENDING, RUNNING};

/// When a task runs in the life of its allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Prestart,
    Main,
    Poststart,
    Poststop,
}

/// The role of a task among its siblings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    pub stage: Stage,
    /// Lives as long as the main tasks; the others of its stage end by themselves.
    pub sidecar: bool,
    pub leader: bool,
}

impl Role {
    pub fn of(task: &Task) -> Role {
        let stage = match task.lifecycle.as_ref().map_or("", |lifecycle| lifecycle.hook.as_str()) {
            "prestart" => Stage::Prestart,
            "poststart" => Stage::Poststart,
            "poststop" => Stage::Poststop,
            _ => Stage::Main,
        };
        let sidecar = task.lifecycle.as_ref().is_some_and(|lifecycle| lifecycle.sidecar);
        Role { stage, sidecar: sidecar && stage != Stage::Main, leader: task.leader }
    }

    /// Ends by itself, and is waited for.
    fn is_ephemeral(self, stage: Stage) -> bool {
        self.stage == stage && !self.sidecar
    }
}

pub type Roles = BTreeMap<String, Role>;
pub type States = BTreeMap<String, TaskState>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    Init,
    Prestart,
    Main,
    Poststart,
    WaitAlloc,
    Poststop,
}

/// Opens and closes the gates of the stages as the tasks move.
#[derive(Debug)]
pub struct Coordinator {
    phase: Phase,
}

impl Coordinator {
    /// For tasks that have yet to start.
    pub fn fresh() -> Coordinator {
        Coordinator { phase: Phase::Init }
    }

    /// For tasks that already ran under an earlier agent: goes forward as far as they got.
    pub fn restored() -> Coordinator {
        Coordinator { phase: Phase::Prestart }
    }

    /// All tasks start over.
    pub fn start_over(&mut self) {
        self.phase = Phase::Init;
    }

    /// Moves forward as far as the states of the tasks allow.
    pub fn advance(&mut self, roles: &Roles, states: &States) {
        let bodies_dead = all(roles, states, |role| role.stage != Stage::Poststop, is_dead);
        let has_body = roles.values().any(|role| role.stage != Stage::Poststop);
        if self.phase != Phase::Init && bodies_dead && has_body {
            self.phase = Phase::Poststop;
        }
        while let Some(next) = self.next(roles, states) {
            self.phase = next;
        }
    }

    fn next(&self, roles: &Roles, states: &States) -> Option<Phase> {
        let (left, next) = match self.phase {
            Phase::Init => (all(roles, states, |_| true, |state| state.state == PENDING), Phase::Prestart),
            Phase::Prestart => {
                let done = all(
                    roles,
                    states,
                    |role| role.is_ephemeral(Stage::Prestart),
                    |state| is_dead(state) && !state.failed,
                );
                let up = all(
                    roles,
                    states,
                    |role| role.stage == Stage::Prestart && role.sidecar,
                    |state| state.state == RUNNING,
                );
                (done && up, Phase::Main)
            }
            Phase::Main => {
                let up = all(roles, states, |role| role.stage == Stage::Main, |state| state.state != PENDING);
                (up, Phase::Poststart)
            }
            Phase::Poststart => {
                (all(roles, states, |role| role.is_ephemeral(Stage::Poststart), is_dead), Phase::WaitAlloc)
            }
            Phase::WaitAlloc => {
                (all(roles, states, |role| role.stage != Stage::Poststop, is_dead), Phase::Poststop)
            }
            Phase::Poststop => return None,
        };
        left.then_some(next)
    }

    /// True when a task of this role may start now.
    pub fn is_open(&self, role: Role) -> bool {
        match (self.phase, role.stage) {
            (Phase::Init, _) => false,
            (Phase::Poststop, stage) => stage == Stage::Poststop,
            (_, Stage::Poststop) => false,
            (Phase::Prestart, stage) => stage == Stage::Prestart,
            (Phase::WaitAlloc, stage) => role.sidecar || stage == Stage::Main,
            (Phase::Main, Stage::Poststart) => false,
            (Phase::Main | Phase::Poststart, Stage::Prestart) => role.sidecar,
            (Phase::Main | Phase::Poststart, Stage::Main) => true,
            (Phase::Poststart, Stage::Poststart) => true,
        }
    }
}

/// Why the remaining tasks must now be stopped, if they must: a task failed, the leader ended, or nobody
/// but sidecars is left.
pub fn must_stop(roles: &Roles, states: &States) -> Option<KillReason> {
    let bodies = || {
        roles
            .iter()
            .filter(|(_, role)| role.stage != Stage::Poststop)
            .filter_map(|(name, role)| Some((name, role, states.get(name)?)))
    };
    if let Some((name, ..)) = bodies().find(|(_, _, state)| state.failed) {
        return Some(KillReason::SiblingFailed(name.clone()));
    }
    if bodies().any(|(_, role, state)| role.leader && is_dead(state)) {
        return Some(KillReason::LeaderDead);
    }
    let mut live = bodies().filter(|(_, _, state)| !is_dead(state)).peekable();
    live.peek()?;
    live.all(|(_, role, _)| role.sidecar).then_some(KillReason::MainDead)
}

/// The tasks to stop next, given that all must stop: the leader first, then the others, then sidecars.
/// Empty when none is left alive; poststop tasks are never among them.
pub fn next_to_stop(roles: &Roles, states: &States) -> Vec<String> {
    let live = |wanted: &dyn Fn(&Role) -> bool| -> Vec<String> {
        roles
            .iter()
            .filter(|(_, role)| role.stage != Stage::Poststop && wanted(role))
            .filter(|(name, _)| states.get(*name).is_some_and(|state| !is_dead(state)))
            .map(|(name, _)| name.clone())
            .collect()
    };
    let leader = live(&|role| role.leader);
    if !leader.is_empty() {
        return leader;
    }
    let bodies = live(&|role| !role.sidecar);
    if bodies.is_empty() { live(&|role| role.sidecar) } else { bodies }
}

pub fn is_dead(state: &TaskState) -> bool {
    state.state == DEAD
}

fn all(
    roles: &Roles,
    states: &States,
    wanted: impl Fn(&Role) -> bool,
    holds: impl Fn(&TaskState) -> bool,
) -> bool {
    roles.iter().filter(|(_, role)| wanted(role)).all(|(name, _)| states.get(name).is_some_and(&holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind, named after what it is; all pending.
    fn cast() -> (Roles, States) {
        let role = |stage, sidecar, leader| Role { stage, sidecar, leader };
        let roles: Roles = [
            ("init", role(Stage::Prestart, false, false)),
            ("proxy", role(Stage::Prestart, true, false)),
            ("web", role(Stage::Main, false, false)),
            ("hello", role(Stage::Poststart, false, false)),
            ("watch", role(Stage::Poststart, true, false)),
            ("clean", role(Stage::Poststop, false, false)),
        ]
        .into_iter()
        .map(|(name, role)| (name.to_string(), role))
        .collect();
        let states = roles.keys().map(|name| (name.clone(), state(PENDING, false))).collect();
        (roles, states)
    }

    fn state(state: &str, failed: bool) -> TaskState {
        TaskState { state: state.into(), failed, ..TaskState::default() }
    }

    fn open(coordinator: &Coordinator, roles: &Roles) -> String {
        let open: Vec<&str> =
            roles.iter().filter(|(_, role)| coordinator.is_open(**role)).map(|(name, _)| &name[..]).collect();
        open.join(" ")
    }

    #[test]
    fn gates_open_stage_by_stage() {
        let (roles, mut states) = cast();
        let mut coordinator = Coordinator::fresh();
        assert_eq!(open(&coordinator, &roles), "");
        let steps = [
            ("", "", "init proxy"),
            ("proxy", RUNNING, "init proxy"),
            ("init", DEAD, "proxy web"),
            ("web", RUNNING, "hello proxy watch web"),
            ("watch", RUNNING, "hello proxy watch web"),
            ("hello", DEAD, "proxy watch web"),
            ("web", PENDING, "proxy watch web"),
            ("web", DEAD, "proxy watch web"),
            ("watch", DEAD, "proxy watch web"),
            ("proxy", DEAD, "clean"),
        ];
        for (name, to, expected) in steps {
            if !name.is_empty() {
                states.insert(name.into(), state(to, false));
            }
            coordinator.advance(&roles, &states);
            assert_eq!(open(&coordinator, &roles), expected, "after {name} became {to}");
        }
    }

    #[test]
    fn a_failed_prestart_keeps_the_main_tasks_closed() {
        let (roles, mut states) = cast();
        let mut coordinator = Coordinator::fresh();
        states.insert("proxy".into(), state(RUNNING, false));
        states.insert("init".into(), state(DEAD, true));
        coordinator.phase = Phase::Prestart;
        coordinator.advance(&roles, &states);
        assert_eq!(open(&coordinator, &roles), "init proxy");
        assert_eq!(must_stop(&roles, &states), Some(KillReason::SiblingFailed("init".into())));
    }

    #[test]
    fn a_restored_allocation_finds_its_place() {
        let (roles, mut states) = cast();
        for (name, to) in [("init", DEAD), ("proxy", RUNNING), ("web", RUNNING), ("hello", DEAD)] {
            states.insert(name.into(), state(to, false));
        }
        let mut coordinator = Coordinator::restored();
        coordinator.advance(&roles, &states);
        assert_eq!(open(&coordinator, &roles), "proxy watch web");
    }

    #[test]
    fn sidecars_follow_the_main_tasks_and_the_leader_goes_first() {
        let (mut roles, mut states) = cast();
        for name in ["proxy", "web", "watch"] {
            states.insert(name.into(), state(RUNNING, false));
        }
        for name in ["init", "hello"] {
            states.insert(name.into(), state(DEAD, false));
        }
        assert_eq!(must_stop(&roles, &states), None);
        assert_eq!(next_to_stop(&roles, &states), ["web"]);
        roles.get_mut("watch").unwrap().leader = true;
        assert_eq!(next_to_stop(&roles, &states), ["watch"]);
        states.insert("watch".into(), state(DEAD, false));
        assert_eq!(must_stop(&roles, &states), Some(KillReason::LeaderDead));
        roles.get_mut("watch").unwrap().leader = false;
        states.insert("web".into(), state(DEAD, false));
        assert_eq!(must_stop(&roles, &states), Some(KillReason::MainDead));
        assert_eq!(next_to_stop(&roles, &states), ["proxy"]);
        states.insert("proxy".into(), state(DEAD, false));
        assert_eq!(must_stop(&roles, &states), None);
        assert!(next_to_stop(&roles, &states).is_empty());
    }
}
