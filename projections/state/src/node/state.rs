use std::sync::Arc;

use base::pages::{PAGE_ROWS, Pages};
use base::{Duration, IdMap, Index, Time};
use model::document::Node;
use model::event::{DrainOrder, NodeMessage};
use model::{DrainStatus, Eligibility, Given, NodeId, NodeStatus, Template};
use serde::{Deserialize, Serialize};

use super::ports::PortSet;
use crate::LazyDoc;
use crate::row::{AllocRow, ClassRow, NodeRow};
use crate::rows::Rows;

/// Amounts of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub cpu_mhz: u32,
    pub memory_mib: u32,
    pub disk_mib: u32,
}

impl Amount {
    /// What one placement takes: the resources of its group, and its reserved cores.
    pub fn of(template: &Template, given: &Given) -> Amount {
        let cpu_mhz = template.cpu_mhz.saturating_add(given.cpu_mhz());
        Amount { cpu_mhz, memory_mib: template.memory_mib, disk_mib: template.disk_mib }
    }

    pub fn plus(self, other: Amount) -> Amount {
        Amount {
            cpu_mhz: self.cpu_mhz.saturating_add(other.cpu_mhz),
            memory_mib: self.memory_mib.saturating_add(other.memory_mib),
            disk_mib: self.disk_mib.saturating_add(other.disk_mib),
        }
    }

    pub fn minus(self, other: Amount) -> Amount {
        Amount {
            cpu_mhz: self.cpu_mhz.saturating_sub(other.cpu_mhz),
            memory_mib: self.memory_mib.saturating_sub(other.memory_mib),
            disk_mib: self.disk_mib.saturating_sub(other.disk_mib),
        }
    }

    /// The first dimension in which `self` does not hold `used`, in the order they are compared.
    pub fn exceeded_by(self, used: Amount) -> Option<&'static str> {
        if used.cpu_mhz > self.cpu_mhz {
            Some("cpu")
        } else if used.memory_mib > self.memory_mib {
            Some("memory")
        } else if used.disk_mib > self.disk_mib {
            Some("disk")
        } else {
            None
        }
    }
}

/// What placement and the commit check look at for every node: small, and without pointers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeHot {
    pub status: NodeStatus,
    pub eligibility: Eligibility,
    pub class: ClassRow,
    /// Deregistered: the row stays, the node does not.
    pub gone: bool,
    /// Total resources less reserved ones.
    pub capacity: Amount,
    /// Taken by allocations that have not ended on the node.
    pub used: Amount,
    /// Allocations that have not ended on the node.
    pub allocs: u32,
    /// Most allocations at once; 0 means no limit.
    pub allocs_max: u32,
    /// The last batch that changed the node, as Nomad's `ModifyIndex` counts.
    pub modified: Index,
    /// The last batch after which an older placement decision has to be checked again.
    pub load_changed: Index,
    /// When the servers lost contact with it; zero once it is ready again.
    pub silent_since: Index,
    /// The last batch in which it reported its allocations.
    pub allocs_reported: Index,
}

impl NodeHot {
    /// May be given new work.
    pub fn takes_work(&self) -> bool {
        !self.gone && self.status == NodeStatus::Ready && self.eligibility == Eligibility::Eligible
    }
}

/// What changes rarely about a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCold {
    pub id: NodeId,
    /// As the node described itself, without its secret.
    pub document: LazyDoc<Node>,
    pub secret_hash: [u8; 32],
    pub created: Index,
    /// When status or eligibility last changed, or it last registered.
    pub status_updated: Time,
    /// The newest messages, oldest first.
    pub messages: Vec<(NodeMessage, Index)>,
    /// The drain that is under way, or the last one.
    pub drain: Option<Drain>,
}

impl NodeCold {
    /// The drain that is under way.
    pub fn draining(&self) -> Option<&Drain> {
        self.drain.as_ref().filter(|drain| drain.status == DrainStatus::Draining)
    }
}

/// A drain: what was ordered, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    pub status: DrainStatus,
    pub started: Time,
    /// When the order was last changed, or the drain ended.
    pub updated: Time,
    pub order: DrainOrder,
}

impl Drain {
    /// When what still runs is stopped: `None` without a limit, a time long past if everything is stopped at once.
    pub fn deadline(&self) -> Option<Time> {
        (self.order.deadline != Duration::ZERO).then_some(self.order.force_at)
    }

    /// As images and digests have it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("a drain holds only what msgpack can write")
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Drain> {
        rmp_serde::from_slice(bytes).ok()
    }
}

/// What is on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLoad {
    /// Every allocation ever placed there and not yet forgotten, in the order of placement.
    pub allocs: Vec<AllocRow>,
    /// Host ports taken by allocations that have not ended, on whatever address.
    pub ports: PortSet,
    /// Allocations that have not ended and were given more than their template says; lowest row first.
    pub equipped: Vec<AllocRow>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    pub(crate) by_id: IdMap<NodeId>,
    pub(crate) hot: Rows<NodeHot>,
    pub(crate) cold: Rows<Arc<NodeCold>>,
    pub(crate) load: Pages<Arc<NodeLoad>>,
    pub(crate) classes: Rows<Class>,
}

/// Nodes that answer constraints alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Class {
    pub name: Arc<str>,
    /// The last batch in which one of them gained free resources.
    pub capacity_since: Index,
}

impl Nodes {
    /// Nodes that are known now.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The columns of the table belong to the same rows.
    pub(crate) fn check(&self) {
        assert_eq!(self.hot.len(), self.cold.len(), "each node has a hot and a cold row");
        assert_eq!(self.hot.len(), self.load.len(), "each node has a list of its allocations");
        assert!(self.by_id.len() <= self.hot.len(), "each known node has a row of its own");
    }

    /// Rows ever given out: every row number lies below.
    pub fn rows_len(&self) -> usize {
        self.hot.len()
    }

    pub fn find(&self, id: NodeId) -> Option<NodeRow> {
        self.by_id.get(&id).map(NodeRow)
    }

    pub fn is_ready(&self, id: NodeId) -> bool {
        self.find(id).is_some_and(|row| self.hot(row).status == NodeStatus::Ready)
    }

    pub fn hot(&self, row: NodeRow) -> &NodeHot {
        &self.hot[row.0]
    }

    pub fn cold(&self, row: NodeRow) -> &NodeCold {
        &self.cold[row.0]
    }

    pub fn load(&self, row: NodeRow) -> &NodeLoad {
        &self.load[row.0 as usize]
    }

    pub fn class_name(&self, class: ClassRow) -> &str {
        &self.classes[class.0].name
    }

    /// The last batch in which a node of the class gained room for new work.
    pub fn capacity_since(&self, class: ClassRow) -> Index {
        self.classes[class.0].capacity_since
    }

    pub fn classes(&self) -> impl Iterator<Item = (ClassRow, &str)> {
        self.classes.iter().enumerate().map(|(row, class)| (ClassRow(row as u32), &*class.name))
    }

    /// Known nodes in the order of their ids.
    pub fn rows(&self) -> impl Iterator<Item = NodeRow> {
        self.by_id.rows().map(NodeRow)
    }

    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = NodeRow> {
        self.by_id.with_prefix(prefix).map(NodeRow)
    }

    /// Both have the same nodes in the same rows. `false` may be wrong, `true` never is.
    pub fn knows_as_many(&self, other: &Nodes) -> bool {
        self.by_id.is_shared(&other.by_id)
    }

    /// Rows that differ between the two tables, which have the same nodes. Pages that both still share are skipped.
    pub fn differing<'a>(&'a self, other: &'a Nodes) -> impl Iterator<Item = NodeRow> + 'a {
        let pages = (0..self.load.pages()).filter(|page| {
            let shared = self.hot.pages().shares_page(other.hot.pages(), *page)
                && self.cold.pages().shares_page(other.cold.pages(), *page)
                && self.load.shares_page(&other.load, *page);
            !shared
        });
        let rows = pages.flat_map(|page| {
            let first = (page * PAGE_ROWS) as u32;
            first..(first + PAGE_ROWS as u32).min(self.hot.len() as u32)
        });
        rows.map(NodeRow).filter(|row| {
            let same = self.hot(*row) == other.hot(*row)
                && Arc::ptr_eq(&self.cold[row.0], &other.cold[row.0])
                && Arc::ptr_eq(&self.load[row.0 as usize], &other.load[row.0 as usize]);
            !same
        })
    }

    /// Every row's hot columns in row order, forgotten nodes included.
    pub fn scan(&self) -> impl Iterator<Item = (NodeRow, &NodeHot)> {
        self.hot.iter().enumerate().map(|(row, hot)| (NodeRow(row as u32), hot))
    }

    pub(super) fn hot_mut(&mut self, row: NodeRow) -> &mut NodeHot {
        self.hot.get_mut(row.0).expect("the node's row was given out")
    }

    pub(super) fn cold_mut(&mut self, row: NodeRow) -> &mut NodeCold {
        Arc::make_mut(self.cold.get_mut(row.0).expect("the node's row was given out"))
    }

    pub(super) fn load_mut(&mut self, row: NodeRow) -> &mut NodeLoad {
        Arc::make_mut(self.load.get_mut(row.0 as usize).expect("the node's row was given out"))
    }
}

/// The form in which the log stores a node's secret.
pub fn secret_hash(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}
