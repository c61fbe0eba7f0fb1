use base::{Duration, Time};
use model::{ClientStatus, Desired, NodeStatus};
use state::State;
use state::alloc::Alloc;

use super::PassContext;
use super::alloc_set::AllocSet;

/// The condition of a node, for the allocations on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeCondition {
    /// Ready or initializing.
    Present,
    Disconnected,
    Down,
    Deleted,
}

pub fn node_condition(state: &State, alloc: &Alloc) -> NodeCondition {
    let hot = state.nodes.hot(alloc.node);
    if hot.gone {
        return NodeCondition::Deleted;
    }
    match hot.status {
        NodeStatus::Initializing | NodeStatus::Ready => NodeCondition::Present,
        NodeStatus::Disconnected => NodeCondition::Disconnected,
        NodeStatus::Down => NodeCondition::Down,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Untainted,
    Migrate,
    Lost,
    Disconnecting,
    Reconnecting,
    Ignore,
    Expiring,
}

/// Allocations of a group by class.
#[derive(Debug, Default)]
pub struct Classes<'a> {
    pub untainted: AllocSet<'a>,
    pub migrate: AllocSet<'a>,
    pub lost: AllocSet<'a>,
    pub disconnecting: AllocSet<'a>,
    pub reconnecting: AllocSet<'a>,
    pub ignore: AllocSet<'a>,
    pub expiring: AllocSet<'a>,
}

impl<'a> Classes<'a> {
    pub fn of(cx: &PassContext<'a>, allocs: impl Iterator<Item = &'a Alloc>) -> Classes<'a> {
        let mut sets: [Vec<&Alloc>; 7] = Default::default();
        for alloc in allocs {
            sets[classify(alloc, node_condition(cx.state, alloc), cx.now) as usize].push(alloc);
        }
        // In the order of `Class`.
        let [untainted, migrate, lost, disconnecting, reconnecting, ignore, expiring] =
            sets.map(AllocSet::from_iter);
        Classes { untainted, migrate, lost, disconnecting, reconnecting, ignore, expiring }
    }
}

/// The first condition that holds decides, from 1 to 18.
fn classify(alloc: &Alloc, node: NodeCondition, now: Time) -> Class {
    let returning = is_returning(alloc);
    let unknown = alloc.client == ClientStatus::Unknown;
    if returning && alloc.desired == Desired::Run && alloc.client == ClientStatus::Failed {
        return Class::Reconnecting; // 1
    }
    if alloc.is_stopping() && !returning {
        // 2 and 3
        return if alloc.transition.disable_placement { Class::Untainted } else { Class::Ignore };
    }
    if alloc.client.is_terminal() && !returning && alloc.health.canary && alloc.transition.migrate {
        return Class::Migrate; // 4
    }
    if alloc.client.is_terminal() && !returning {
        return Class::Untainted; // 5
    }
    if is_expired_unknown(alloc, node, now) {
        return Class::Expiring; // 6
    }
    if returning && alloc.client == ClientStatus::Failed && alloc.is_stopping() {
        return Class::Ignore; // 7
    }
    match node {
        NodeCondition::Disconnected if unknown => Class::Untainted, // 8
        NodeCondition::Disconnected if alloc.client == ClientStatus::Pending => Class::Lost, // 9
        NodeCondition::Disconnected if alloc.lost_after() <= Duration::ZERO => Class::Lost, // 10
        NodeCondition::Disconnected => Class::Disconnecting,        // 11
        NodeCondition::Present | NodeCondition::Down | NodeCondition::Deleted if alloc.transition.migrate => {
            Class::Migrate
        } // 12
        // P5: what is being stopped never reconnects. Nomad would stop it once more.
        NodeCondition::Present if returning && alloc.is_stopping() => Class::Ignore,
        NodeCondition::Present if returning => Class::Reconnecting, // 13
        NodeCondition::Present => Class::Untainted,                 // 14
        NodeCondition::Deleted => Class::Lost,                      // 15
        NodeCondition::Down if !replaces(alloc) && unknown => Class::Untainted, // 16
        NodeCondition::Down if !replaces(alloc) && alloc.client == ClientStatus::Running => {
            Class::Disconnecting
        } // 17
        NodeCondition::Down => Class::Lost,                         // 18
    }
}

/// It was unknown for longer than its `lost_after`. Without one it expires at once, unless its node is connected again:
/// then its report is awaited.
pub fn is_expired_unknown(alloc: &Alloc, node: NodeCondition, now: Time) -> bool {
    let awaits_report = node == NodeCondition::Present && alloc.lost_after() <= Duration::ZERO;
    !awaits_report && alloc.is_expired(now)
}

/// The servers marked it as unknown, and it may be running: it reconnects, now or later.
fn is_returning(alloc: &Alloc) -> bool {
    let may_run =
        matches!(alloc.client, ClientStatus::Unknown | ClientStatus::Running | ClientStatus::Failed);
    may_run && alloc.needs_to_reconnect()
}

/// The group replaces allocations that are unknown.
pub fn replaces(alloc: &Alloc) -> bool {
    let disconnect = alloc.version.group(&alloc.group).and_then(|group| group.disconnect.as_ref());
    disconnect.and_then(|block| block.replace).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::test_alloc::{TestAlloc, lost_after};

    const NOW: Time = Time::from_secs(1_000_000);

    /// C05, D24-D30, D65: all node conditions with all client statuses; U is unknown and not expired, E expired.
    #[test]
    fn classes_follow_node_and_client_status() {
        use Class::*;
        let columns = ["pending", "running", "running-rc", "failed", "failed-rc", "complete", "U", "E"];
        let rows: [(&str, NodeCondition, i64, bool, [Class; 8]); 7] = [
            (
                "present without lost_after",
                NodeCondition::Present,
                0,
                true,
                [
                    Untainted,
                    Untainted,
                    Reconnecting,
                    Untainted,
                    Reconnecting,
                    Untainted,
                    Reconnecting,
                    Reconnecting,
                ],
            ),
            (
                "present",
                NodeCondition::Present,
                300,
                true,
                [
                    Untainted,
                    Untainted,
                    Reconnecting,
                    Untainted,
                    Reconnecting,
                    Untainted,
                    Reconnecting,
                    Expiring,
                ],
            ),
            (
                "disconnected",
                NodeCondition::Disconnected,
                300,
                true,
                [Lost, Disconnecting, Disconnecting, Untainted, Reconnecting, Untainted, Untainted, Expiring],
            ),
            (
                "disconnected without lost_after",
                NodeCondition::Disconnected,
                0,
                true,
                [Lost, Lost, Lost, Untainted, Reconnecting, Untainted, Expiring, Expiring],
            ),
            (
                "down",
                NodeCondition::Down,
                300,
                true,
                [Lost, Lost, Lost, Untainted, Reconnecting, Untainted, Lost, Expiring],
            ),
            (
                "down, replace false",
                NodeCondition::Down,
                300,
                false,
                [Lost, Disconnecting, Disconnecting, Untainted, Reconnecting, Untainted, Untainted, Expiring],
            ),
            (
                "deleted",
                NodeCondition::Deleted,
                300,
                true,
                [Lost, Lost, Lost, Untainted, Reconnecting, Untainted, Lost, Expiring],
            ),
        ];
        for (name, node, after, replace, expected) in rows {
            for (column, expected) in columns.iter().zip(expected) {
                let sample = TestAlloc::new(lost_after(after, replace));
                let ago = |secs: i64| Time::from_secs(1_000_000 - secs);
                let alloc = match *column {
                    "pending" => sample.client(ClientStatus::Pending),
                    "running" => sample.client(ClientStatus::Running),
                    "running-rc" => sample.client(ClientStatus::Running).unknown_since(ago(60)),
                    "failed" => sample.client(ClientStatus::Failed),
                    "failed-rc" => sample.client(ClientStatus::Failed).unknown_since(ago(60)),
                    "complete" => sample.client(ClientStatus::Complete),
                    "U" => sample.client(ClientStatus::Unknown).unknown_since(ago(60)),
                    _ => sample.client(ClientStatus::Unknown).unknown_since(ago(301)),
                };
                assert_eq!(classify(&alloc.alloc, node, NOW), expected, "{name}, {column}");
            }
        }
    }

    #[test]
    fn a_request_to_move_wins_over_everything_but_silence() {
        let mut alloc = TestAlloc::new(lost_after(300, true)).client(ClientStatus::Running).alloc;
        alloc.transition.migrate = true;
        assert_eq!(classify(&alloc, NodeCondition::Present, NOW), Class::Migrate);
        assert_eq!(classify(&alloc, NodeCondition::Down, NOW), Class::Migrate);
        assert_eq!(classify(&alloc, NodeCondition::Disconnected, NOW), Class::Disconnecting);
    }

    /// D23: unknown without a time since when.
    #[test]
    fn what_became_unknown_at_no_time_never_expires() {
        let alloc = TestAlloc::new(lost_after(300, true)).client(ClientStatus::Unknown).alloc;
        for now in [NOW, NOW.plus(Duration::from_secs(1_000_000))] {
            assert_eq!(classify(&alloc, NodeCondition::Disconnected, now), Class::Untainted);
        }
    }

    /// P5.
    #[test]
    fn what_is_wanted_to_stop_never_reconnects() {
        for client in ClientStatus::ALL {
            for node in [
                NodeCondition::Present,
                NodeCondition::Disconnected,
                NodeCondition::Down,
                NodeCondition::Deleted,
            ] {
                let mut alloc =
                    TestAlloc::new(lost_after(300, true)).client(*client).unknown_since(NOW).alloc;
                alloc.desired = Desired::Stop;
                assert_ne!(classify(&alloc, node, NOW), Class::Reconnecting, "{client} {node:?}");
            }
        }
    }
}
