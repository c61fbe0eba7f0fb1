use super::state::{Class, NodeCold, NodeHot, Nodes};
use crate::domain::Domain;

impl Nodes {
    pub(crate) fn digest(&self) -> u64 {
        self.hot.sum().wrapping_add(self.cold.sum()).wrapping_add(self.classes.sum())
    }

    pub(crate) fn recomputed_digest(&self) -> u64 {
        let cold = self.cold.recomputed(|row, node| cold(row, node));
        self.hot.recomputed(hot).wrapping_add(cold).wrapping_add(self.classes.recomputed(class))
    }

    pub(crate) fn settle_digest(&mut self) {
        self.hot.settle(hot);
        self.cold.settle(|row, node| cold(row, node));
        self.classes.settle(class);
    }
}

pub(crate) fn hot(row: u32, node: &NodeHot) -> u64 {
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let mut hash = Domain::NodeHot.row(row);
    let states = u64::from(node.status as u8) | (node.eligibility as u64) << 8 | u64::from(node.gone) << 16;
    hash.pair(states, pair(node.class.0, node.allocs));
    hash.pair(
        pair(node.capacity.cpu_mhz, node.capacity.memory_mib),
        pair(node.capacity.disk_mib, node.allocs_max),
    );
    hash.pair(pair(node.used.cpu_mhz, node.used.memory_mib), u64::from(node.used.disk_mib));
    hash.pair(node.modified.0, node.load_changed.0);
    hash.pair(node.silent_since.0, node.allocs_reported.0);
    hash.finish()
}

pub(crate) fn cold(row: u32, node: &NodeCold) -> u64 {
    let mut hash = Domain::NodeCold.row(row);
    hash.id(node.id);
    hash.bytes(&node.secret_hash);
    hash.pair(node.document.hash(), node.created.0);
    hash.pair(node.status_updated.0 as u64, node.messages.len() as u64);
    for (message, index) in &node.messages {
        hash.text(&message.text);
        hash.text(&message.subsystem);
        hash.word(message.details.len() as u64);
        for (name, value) in &message.details {
            hash.text(name);
            hash.text(value);
        }
        hash.pair(message.time.0 as u64, index.0);
    }
    if let Some(drain) = &node.drain {
        hash.bytes(&drain.to_bytes());
    }
    hash.finish()
}

pub(crate) fn class(row: u32, class: &Class) -> u64 {
    let mut hash = Domain::Class.row(row);
    hash.text(&class.name);
    hash.word(class.capacity_since.0);
    hash.finish()
}
