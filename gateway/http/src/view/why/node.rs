//! Whether a node takes work, why not, and how much room it has.

use api::{NodeWhy, Room, Wait};
use model::{ClientStatus, Eligibility, NodeStatus};
use state::State;
use state::alloc::Alloc;
use state::node::{Amount, NodeRow};

/// Messages about the node that are shown.
const MESSAGES_MAX: usize = 5;
/// Allocations that are being stopped there and are named.
const STOPPING_MAX: usize = 8;

pub(crate) fn node(state: &State, row: NodeRow) -> NodeWhy {
    let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
    let here = || {
        let allocs = state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
        allocs.filter(|alloc| alloc.takes_room())
    };
    let count = |of: &dyn Fn(&Alloc) -> bool| here().filter(|alloc| of(alloc)).count() as u64;
    let live = |status: ClientStatus| count(&|alloc| !alloc.is_stopping() && alloc.client == status);
    let ending = here().filter(|alloc| alloc.is_stopping());
    let ending = ending.fold(Amount::default(), |sum, alloc| sum.plus(alloc.amount()));
    let messages = cold.messages.iter().rev().take(MESSAGES_MAX);
    NodeWhy {
        approximate: String::new(),
        id: cold.id.to_string(),
        name: cold.document.name.clone(),
        status: hot.status.to_string(),
        eligibility: hot.eligibility.to_string(),
        takes_work: hot.takes_work(),
        obstacles: obstacles(state, row).into(),
        room: room(hot.capacity, hot.used, ending).into(),
        running: live(ClientStatus::Running),
        starting: live(ClientStatus::Pending),
        stopping: count(&|alloc| alloc.is_stopping()),
        unknown: live(ClientStatus::Unknown),
        waits_for: waits(state, row).into(),
        messages: messages.map(|(message, index)| message.document(*index)).collect(),
    }
}

fn obstacles(state: &State, row: NodeRow) -> Vec<String> {
    let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
    let mut obstacles = Vec::new();
    if hot.status != NodeStatus::Ready {
        obstacles.push(format!("it is {}, not ready", hot.status));
    }
    if let Some(drain) = cold.draining() {
        let who = if drain.order.accessor.is_empty() { "" } else { " by order of " };
        obstacles.push(format!("it is being drained{who}{}", drain.order.accessor));
    } else if hot.eligibility != Eligibility::Eligible {
        obstacles.push("it is not eligible for scheduling".to_string());
    }
    if hot.allocs_max > 0 && hot.allocs >= hot.allocs_max {
        obstacles.push(format!("it has its most allocations, {}", hot.allocs_max));
    }
    obstacles
}

fn waits(state: &State, row: NodeRow) -> Vec<Wait> {
    let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
    let wait = |what: String| Wait { what, ..Wait::default() };
    let here = || state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
    let mut waits = Vec::new();
    if hot.status.is_silent() {
        waits.push(wait("the node to connect again".to_string()));
    } else if hot.status == NodeStatus::Initializing && hot.allocs > 0 {
        waits.push(wait("the node to say what it runs".to_string()));
    } else if hot.status == NodeStatus::Initializing {
        waits.push(wait("the node to say that it is ready".to_string()));
    }
    if let Some(drain) = cold.draining() {
        let leaving = here().filter(|alloc| alloc.takes_room()).count();
        let until = drain.deadline().filter(|at| *at > state.time);
        let allocs = if leaving == 1 { "allocation" } else { "allocations" };
        let what = format!("{leaving} {allocs} to leave it (drain)");
        waits.push(Wait { until: until.map(Into::into), ..wait(what) });
    }
    let ending = here().filter(|alloc| alloc.takes_room() && alloc.is_stopping());
    waits.extend(ending.take(STOPPING_MAX).map(|alloc| {
        let since = alloc.desired_description.as_ref();
        wait(format!("{} to stop: {since}", alloc.name()))
    }));
    waits
}

fn room(capacity: Amount, used: Amount, stopping: Amount) -> Vec<Room> {
    let one = |what: &str, unit: &str, of: &dyn Fn(Amount) -> u32| Room {
        what: what.to_string(),
        unit: unit.to_string(),
        capacity: of(capacity).into(),
        used: of(used).into(),
        stopping: of(stopping).into(),
    };
    vec![
        one("cpu", "MHz", &|amount| amount.cpu_mhz),
        one("memory", "MiB", &|amount| amount.memory_mib),
        one("disk", "MiB", &|amount| amount.disk_mib),
    ]
}
