#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use base::Index;
use model::document::Node;
use model::event::{
    NodeAllocsReported, NodeDeregistered, NodeDrainEnded, NodeDrainStarted, NodeDrainUpdated,
    NodeEligibilityChanged, NodeMessage, NodeMessagesEmitted, NodeRegistered, NodeStatusChanged, NodeUpdated,
};
use model::{DrainStatus, Eligibility, NodeId, NodeStatus};

use super::state::{Amount, Class, Drain, NodeCold, NodeHot, NodeLoad, Nodes};
use crate::LazyDoc;
use crate::alloc::Alloc;
use crate::moment::Moment;
use crate::row::{AllocRow, ClassRow, NodeRow};

/// Messages kept per node; the oldest is dropped first.
const MESSAGES_KEPT: usize = 10;

impl Nodes {
    pub(crate) fn registered(&mut self, at: Moment, event: &NodeRegistered) -> NodeRow {
        assert!(self.find(event.node).is_none(), "a node that is known is updated, not registered again");
        let document: LazyDoc<Node> = LazyDoc::new(event.document.0.clone());
        let class = self.class(&event.computed_class);
        let row = self.hot.push(NodeHot {
            status: NodeStatus::Initializing,
            eligibility: Eligibility::from_word(&document.scheduling_eligibility)
                .unwrap_or(Eligibility::Eligible),
            class,
            gone: false,
            capacity: capacity(&document),
            used: Amount::default(),
            allocs: 0,
            allocs_max: allocs_max(&document),
            modified: at.index,
            load_changed: at.index,
            silent_since: Index::ZERO,
            allocs_reported: Index::ZERO,
        });
        let welcome = NodeMessage::new("Cluster", "Node registered", at.time);
        self.cold.push(Arc::new(NodeCold {
            id: event.node,
            document,
            secret_hash: event.secret_hash,
            created: at.index,
            status_updated: at.time,
            messages: vec![(welcome, at.index)],
            drain: None,
        }));
        self.load.push(Arc::new(NodeLoad::default()));
        self.by_id.insert(event.node, row);
        NodeRow(row)
    }

    pub(crate) fn updated(&mut self, at: Moment, event: &NodeUpdated) -> NodeRow {
        let row = self.known(event.node);
        let document: LazyDoc<Node> = LazyDoc::new(event.document.0.clone());
        let class = self.class(&event.computed_class);
        let hot = self.hot_mut(row);
        (hot.class, hot.modified, hot.load_changed) = (class, at.index, at.index);
        (hot.capacity, hot.allocs_max) = (capacity(&document), allocs_max(&document));
        self.may_have_gained_room(at.index, row);
        let cold = self.cold_mut(row);
        (cold.document, cold.status_updated) = (document, at.time);
        row
    }

    /// # Panics
    /// If the log names a node it never registered: the log is damaged, and going on would spread the damage.
    pub(crate) fn status_changed(&mut self, at: Moment, event: &NodeStatusChanged) -> NodeRow {
        let row = self.known(event.node);
        let hot = self.hot_mut(row);
        assert_eq!(hot.status, event.from, "a status change starts from the status before it");
        if event.to.is_silent() && !hot.status.is_silent() {
            hot.silent_since = at.index;
        }
        if event.to == NodeStatus::Ready {
            hot.silent_since = Index::ZERO;
        }
        (hot.status, hot.modified, hot.load_changed) = (event.to, at.index, at.index);
        self.may_have_gained_room(at.index, row);
        self.cold_mut(row).status_updated = at.time;
        self.keep_messages(at.index, row, event.message.iter());
        row
    }

    pub(crate) fn eligibility_changed(&mut self, at: Moment, event: &NodeEligibilityChanged) -> NodeRow {
        let row = self.known(event.node);
        let hot = self.hot_mut(row);
        (hot.eligibility, hot.modified, hot.load_changed) = (event.to, at.index, at.index);
        self.may_have_gained_room(at.index, row);
        self.cold_mut(row).status_updated = at.time;
        self.keep_messages(at.index, row, std::iter::once(&event.message));
        row
    }

    pub(crate) fn drain_started(&mut self, at: Moment, event: &NodeDrainStarted) -> NodeRow {
        let before = self.cold(self.known(event.node)).draining();
        assert!(before.is_none(), "a drain that is under way is updated, not started again");
        let order = event.order.clone();
        let drain = Drain { status: DrainStatus::Draining, started: at.time, updated: at.time, order };
        self.drain(at, event.node, drain, &event.message)
    }

    pub(crate) fn drain_updated(&mut self, at: Moment, event: &NodeDrainUpdated) -> NodeRow {
        let before = self.cold(self.known(event.node)).draining().expect("only a drain that goes on changes");
        let mut order = event.order.clone();
        if order.meta.is_empty() {
            order.meta = before.order.meta.clone();
        }
        let drain = Drain { updated: at.time, order, ..before.clone() };
        self.drain(at, event.node, drain, &event.message)
    }

    fn drain(&mut self, at: Moment, node: NodeId, drain: Drain, message: &NodeMessage) -> NodeRow {
        let row = self.known(node);
        let hot = self.hot_mut(row);
        (hot.eligibility, hot.modified, hot.load_changed) = (Eligibility::Ineligible, at.index, at.index);
        let cold = self.cold_mut(row);
        (cold.drain, cold.status_updated) = (Some(drain), at.time);
        self.keep_messages(at.index, row, std::iter::once(message));
        row
    }

    pub(crate) fn drain_ended(&mut self, at: Moment, event: &NodeDrainEnded) -> NodeRow {
        let row = self.known(event.node);
        let hot = self.hot_mut(row);
        (hot.modified, hot.load_changed) = (at.index, at.index);
        if event.eligible {
            hot.eligibility = Eligibility::Eligible;
        }
        self.may_have_gained_room(at.index, row);
        let cold = self.cold_mut(row);
        cold.status_updated = at.time;
        let drain = cold.drain.as_mut().expect("only a drain that began ends");
        assert_eq!(drain.status, DrainStatus::Draining, "a drain ends once");
        (drain.status, drain.updated) = (event.status, at.time);
        drain.order.accessor = event.accessor.clone();
        if !event.meta.is_empty() {
            drain.order.meta = event.meta.clone();
        }
        self.keep_messages(at.index, row, std::iter::once(&event.message));
        row
    }

    /// The node's own modify index stays: only its table moves.
    pub(crate) fn messages_emitted(&mut self, at: Moment, event: &NodeMessagesEmitted) -> NodeRow {
        let row = self.known(event.node);
        self.keep_messages(at.index, row, event.messages.iter());
        row
    }

    pub(crate) fn allocs_reported(&mut self, at: Moment, event: &NodeAllocsReported) -> NodeRow {
        let row = self.known(event.node);
        self.allocs_known_at(at.index, row);
        row
    }

    pub(crate) fn deregistered(&mut self, at: Moment, event: &NodeDeregistered) -> NodeRow {
        let row = self.known(event.node);
        let hot = self.hot_mut(row);
        (hot.gone, hot.modified, hot.load_changed) = (true, at.index, at.index);
        self.by_id.remove(&event.node);
        row
    }

    pub(crate) fn allocs_known_at(&mut self, index: Index, row: NodeRow) {
        self.hot_mut(row).allocs_reported = index;
    }

    /// An allocation was placed there.
    pub(crate) fn host(&mut self, index: Index, row: NodeRow, alloc: AllocRow, what: &Alloc) {
        self.load_mut(row).allocs.push(alloc);
        self.take(index, row, alloc, what);
    }

    /// An allocation takes its resources, for the first time or again.
    pub(crate) fn take(&mut self, index: Index, row: NodeRow, alloc: AllocRow, what: &Alloc) {
        let hot = self.hot_mut(row);
        hot.used = hot.used.plus(what.amount());
        hot.allocs += 1;
        hot.load_changed = index;
        if !what.ports.is_empty() {
            let load = self.load_mut(row);
            what.ports.iter().for_each(|port| load.ports.take(*port));
        }
        if what.is_equipped() {
            let equipped = &mut self.load_mut(row).equipped;
            let place = equipped.binary_search(&alloc).expect_err("room is taken once");
            equipped.insert(place, alloc);
        }
    }

    /// An allocation released its resources.
    pub(crate) fn give_back(&mut self, index: Index, row: NodeRow, alloc: AllocRow, what: &Alloc) {
        let hot = self.hot_mut(row);
        hot.used = hot.used.minus(what.amount());
        hot.allocs = hot.allocs.checked_sub(1).expect("room is given back once for each time it was taken");
        hot.load_changed = index;
        if !what.ports.is_empty() {
            let load = self.load_mut(row);
            what.ports.iter().for_each(|port| load.ports.give_back(*port));
        }
        if what.is_equipped() {
            let equipped = &mut self.load_mut(row).equipped;
            let place = equipped.binary_search(&alloc).expect("what is given back was taken");
            equipped.remove(place);
        }
        self.may_have_gained_room(index, row);
    }

    /// An allocation now takes other amounts of resources.
    pub(crate) fn resize(&mut self, index: Index, row: NodeRow, from: Amount, to: Amount) {
        let hot = self.hot_mut(row);
        hot.used = hot.used.minus(from).plus(to);
        hot.load_changed = index;
    }

    pub(crate) fn forget_alloc(&mut self, row: NodeRow, alloc: AllocRow) {
        self.load_mut(row).allocs.retain(|known| *known != alloc);
    }

    fn known(&self, id: NodeId) -> NodeRow {
        self.find(id).expect("the event names a registered node")
    }

    fn class(&mut self, name: &str) -> ClassRow {
        let known = self.classes.iter().position(|class| &*class.name == name);
        ClassRow(known.map_or_else(
            || self.classes.push(Class { name: Arc::from(name), capacity_since: Index::ZERO }),
            |row| row as u32,
        ))
    }

    /// The node has more free resources than before, if it takes work at all.
    fn may_have_gained_room(&mut self, index: Index, row: NodeRow) {
        let hot = self.hot(row);
        if hot.takes_work() {
            let ClassRow(class) = hot.class;
            self.classes.get_mut(class).expect("the class's row was given out").capacity_since = index;
        }
    }

    fn keep_messages<'a>(
        &mut self,
        index: Index,
        row: NodeRow,
        messages: impl Iterator<Item = &'a NodeMessage>,
    ) {
        let kept = &mut self.cold_mut(row).messages;
        kept.extend(messages.map(|message| (message.clone(), index)));
        let surplus = kept.len().saturating_sub(MESSAGES_KEPT);
        kept.drain(..surplus);
    }
}

/// Total resources less reserved ones.
fn capacity(document: &Node) -> Amount {
    let amount = |cpu: i64, memory: i64, disk: i64| Amount {
        cpu_mhz: clamped(cpu),
        memory_mib: clamped(memory),
        disk_mib: clamped(disk),
    };
    let total = document.node_resources.as_ref().map_or(Amount::default(), |resources| {
        amount(resources.cpu.cpu_shares, resources.memory.memory_mb, resources.disk.disk_mb)
    });
    let reserved = document.reserved_resources.as_ref().map_or(Amount::default(), |resources| {
        let cpu = i64::try_from(resources.cpu.cpu_shares).unwrap_or(i64::MAX);
        let memory = i64::try_from(resources.memory.memory_mb).unwrap_or(i64::MAX);
        amount(cpu, memory, i64::try_from(resources.disk.disk_mb).unwrap_or(i64::MAX))
    });
    total.minus(reserved)
}

fn allocs_max(document: &Node) -> u32 {
    clamped(document.node_max_allocs)
}

fn clamped(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}
