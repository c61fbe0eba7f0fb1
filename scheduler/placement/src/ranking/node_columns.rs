//! All nodes as columns, updated from one evaluation to the next.

use state::State;
use state::node::{Amount, ClassRow, NodeHot, NodeRow, Nodes};

use crate::feasibility::capacity::Capacity;
use crate::ranking::score::{Column, Need, fits};
use model::Algorithm;

/// No node has this position.
const NOWHERE: u32 = u32::MAX;

/// Changes of nodes that are kept for rankings that have not applied them, as a multiple of the number of nodes. A
/// ranking that is further behind is quicker to rebuild.
const CHANGES_KEPT: usize = 1;

/// Nodes in the order of their ids: equal scores go to the lower id, and a server that numbers its rows differently
/// decides the same.
#[derive(Debug)]
pub struct NodeColumns {
    nodes: Nodes,
    pub rows: Vec<NodeRow>,
    /// By row.
    positions: Vec<u32>,
    pub class: Vec<u32>,
    /// It accepts new allocations.
    pub takes_work: Vec<bool>,
    cpu: Column,
    memory: Column,
    disk: Column,
    allocs: Column,
    classes: Vec<Class>,
    /// Nodes that changed, oldest first; the first of them is change number `forgotten`.
    changes: Vec<Change>,
    forgotten: u64,
}

/// Nodes for which static checks have the same result.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// One of them.
    pub example: NodeRow,
    /// How many of them accept new allocations.
    pub open: u32,
}

/// A node that changed.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub position: u32,
    /// Its class changed.
    pub of_class: bool,
}

impl NodeColumns {
    pub fn new(state: &State) -> NodeColumns {
        let nodes = state.nodes.clone();
        let len = nodes.len();
        let mut rows = Vec::with_capacity(len);
        nodes.rows().for_each(|row| rows.push(row));
        let mut positions = vec![NOWHERE; nodes.rows_len()];
        (0..).zip(&rows).for_each(|(position, row)| positions[row.0 as usize] = position);
        let column = || Column { capacity: vec![0; len], used: vec![0; len] };
        let mut node_columns = NodeColumns {
            nodes: Nodes::default(),
            rows,
            positions,
            class: vec![0; len],
            takes_work: vec![false; len],
            cpu: column(),
            memory: column(),
            disk: column(),
            allocs: column(),
            classes: Vec::new(),
            changes: Vec::new(),
            forgotten: 0,
        };
        // The table is read in its own order, page after page: in the order of ids each read would miss the cache.
        for (row, hot) in nodes.scan() {
            if let Some(position) = node_columns.position(row) {
                node_columns.enter(position, row, hot);
            }
        }
        NodeColumns { nodes, ..node_columns }
    }

    /// Applies what changed in the state. False if nodes were added or removed: then the columns have to be rebuilt.
    #[must_use]
    pub fn follow(&mut self, state: &State) -> bool {
        if !state.nodes.knows_as_many(&self.nodes) {
            return false;
        }
        let now = state.nodes.clone();
        let mut orphans = Vec::new();
        let before = std::mem::replace(&mut self.nodes, now.clone());
        for row in now.differing(&before) {
            let Some(position) = self.position(row) else { continue };
            let (hot, old) = (now.hot(row), before.hot(row));
            let class = &mut self.classes[old.class.0 as usize];
            class.open -= u32::from(old.takes_work());
            if class.example == row && hot.class != old.class {
                orphans.push(old.class.0);
            }
            self.enter(position, row, hot);
            self.changes.push(Change { position, of_class: hot.class != old.class });
        }
        for class in orphans {
            if let Some(at) = self.class.iter().position(|other| *other == class) {
                self.classes[class as usize].example = self.rows[at];
            }
        }
        let surplus = self.changes.len().saturating_sub(CHANGES_KEPT * self.rows.len());
        self.changes.drain(..surplus);
        self.forgotten += surplus as u64;
        true
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn position(&self, row: NodeRow) -> Option<u32> {
        self.positions.get(row.0 as usize).copied().filter(|position| *position != NOWHERE)
    }

    /// The number of the next change.
    pub fn changes(&self) -> u64 {
        self.forgotten + self.changes.len() as u64
    }

    /// The changes from that one on, perhaps several of one node; `None` if some of them are no longer kept.
    pub fn changed_since(&self, change: u64) -> Option<&[Change]> {
        let from = change.checked_sub(self.forgotten)? as usize;
        self.changes.get(from..)
    }

    /// A node of the class.
    pub fn example(&self, class: u32) -> NodeRow {
        self.classes[class as usize].example
    }

    /// Classes with nodes that accept new allocations, by number.
    pub fn classes(&self) -> impl Iterator<Item = (u32, Class)> + '_ {
        (0..).zip(&self.classes).map(|(number, class)| (number, *class)).filter(|(_, class)| class.open > 0)
    }

    pub fn capacity(&self, position: u32) -> Capacity {
        let at = position as usize;
        let amount = Amount {
            cpu_mhz: self.cpu.capacity[at],
            memory_mib: self.memory.capacity[at],
            disk_mib: self.disk.capacity[at],
        };
        Capacity { amount, allocs_max: self.allocs.capacity[at] }
    }

    pub fn used(&self, position: u32) -> Amount {
        let at = position as usize;
        Amount { cpu_mhz: self.cpu.used[at], memory_mib: self.memory.used[at], disk_mib: self.disk.used[at] }
    }

    pub fn allocs(&self, position: u32) -> u32 {
        self.allocs.used[position as usize]
    }

    /// The fit of the amount on each node, whether or not there is room for it.
    pub fn fits(&self, amount: Amount, algorithm: Algorithm) -> Vec<f64> {
        let need = Need { cpu_mhz: amount.cpu_mhz, memory_mib: amount.memory_mib, algorithm };
        fits(&self.cpu, &self.memory, need)
    }

    fn enter(&mut self, position: u32, row: NodeRow, hot: &NodeHot) {
        let at = position as usize;
        let NodeHot { capacity, used, allocs, allocs_max, .. } = *hot;
        for (column, capacity, used) in [
            (&mut self.cpu, capacity.cpu_mhz, used.cpu_mhz),
            (&mut self.memory, capacity.memory_mib, used.memory_mib),
            (&mut self.disk, capacity.disk_mib, used.disk_mib),
            (&mut self.allocs, allocs_max, allocs),
        ] {
            (column.capacity[at], column.used[at]) = (capacity, used);
        }
        let takes_work = hot.takes_work();
        (self.class[at], self.takes_work[at]) = (hot.class.0, takes_work);
        let ClassRow(class) = hot.class;
        let nobody = Class { example: row, open: 0 };
        if self.classes.len() <= class as usize {
            self.classes.resize(class as usize + 1, nobody);
        }
        let class = &mut self.classes[class as usize];
        if takes_work {
            *class = Class { example: row, open: class.open + 1 };
        }
    }
}
