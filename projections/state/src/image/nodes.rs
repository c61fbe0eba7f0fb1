use std::sync::Arc;

use base::Index;
use model::event::NodeMessage;
use model::{Eligibility, NodeId, NodeStatus};

use super::columns::{Column, Fault, Reader, Writer, state};
use crate::LazyDoc;
use crate::node::{Amount, Class, Drain, NodeCold, NodeHot};
use crate::row::ClassRow;

pub(super) fn encode(hot: &[NodeHot], cold: &[Arc<NodeCold>]) -> Vec<u8> {
    let mut to = Writer::default();
    to.u8s(hot.iter().map(|node| node.status as u8));
    to.u8s(hot.iter().map(|node| node.eligibility as u8));
    to.flags(hot.iter().map(|node| node.gone));
    to.u32s(hot.iter().map(|node| node.class.0));
    for amount in [|node: &NodeHot| node.capacity, |node: &NodeHot| node.used] {
        to.u32s(hot.iter().map(|node| amount(node).cpu_mhz));
        to.u32s(hot.iter().map(|node| amount(node).memory_mib));
        to.u32s(hot.iter().map(|node| amount(node).disk_mib));
    }
    to.u32s(hot.iter().map(|node| node.allocs));
    to.u32s(hot.iter().map(|node| node.allocs_max));
    to.indexes(hot.iter().map(|node| node.modified));
    to.indexes(hot.iter().map(|node| node.load_changed));
    to.indexes(hot.iter().map(|node| node.silent_since));
    to.indexes(hot.iter().map(|node| node.allocs_reported));
    to.ids(cold.iter().map(|node| node.id));
    cold.iter().for_each(|node| to.0.extend_from_slice(&node.secret_hash));
    to.indexes(cold.iter().map(|node| node.created));
    to.times(cold.iter().map(|node| node.status_updated));
    to.texts(cold.iter().map(|node| node.document.bytes()));
    encode_messages(&mut to, cold);
    if cold.iter().any(|node| node.drain.is_some()) {
        let drains: Vec<Vec<u8>> = cold.iter().map(|node| encode_drain(node)).collect();
        to.texts(drains.iter().map(Vec::as_slice));
    }
    to.0
}

fn encode_messages(to: &mut Writer, nodes: &[Arc<NodeCold>]) {
    to.counts(nodes.iter().map(|node| node.messages.len()));
    let messages = || nodes.iter().flat_map(|node| &node.messages);
    to.texts(messages().map(|(message, _)| message.text.as_bytes()));
    to.texts(messages().map(|(message, _)| message.subsystem.as_bytes()));
    to.times(messages().map(|(message, _)| message.time));
    to.indexes(messages().map(|(_, index)| *index));
    to.counts(messages().map(|(message, _)| message.details.len()));
    let details = || messages().flat_map(|(message, _)| &message.details);
    to.texts(details().map(|(name, _)| name.as_bytes()));
    to.texts(details().map(|(_, value)| value.as_bytes()));
}

pub(super) fn decode(bytes: &[u8], len: usize) -> Result<Vec<(NodeHot, NodeCold)>, Fault> {
    let mut from = Reader(bytes);
    let hot = decode_hot(&mut from, len)?;
    let cold = decode_cold(&mut from, len)?;
    from.end()?;
    Ok(hot.into_iter().zip(cold).collect())
}

fn decode_hot(from: &mut Reader<'_>, len: usize) -> Result<Vec<NodeHot>, Fault> {
    let (statuses, eligibilities, gone) = (from.u8s(len)?, from.u8s(len)?, from.u8s(len)?);
    let classes: Column<'_, 4> = from.column(len)?;
    let capacities = decode_amounts(from, len)?;
    let used = decode_amounts(from, len)?;
    let (allocs, allocs_max): (Column<'_, 4>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
    let (modified, load_changed): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let (silent, reported): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let row = |at: usize| {
        Ok(NodeHot {
            status: state(NodeStatus::from_number, statuses[at])?,
            eligibility: state(Eligibility::from_number, eligibilities[at])?,
            class: ClassRow(classes.u32(at)),
            gone: gone[at] != 0,
            capacity: capacities[at],
            used: used[at],
            allocs: allocs.u32(at),
            allocs_max: allocs_max.u32(at),
            modified: modified.index(at),
            load_changed: load_changed.index(at),
            silent_since: silent.index(at),
            allocs_reported: reported.index(at),
        })
    };
    (0..len).map(row).collect()
}

fn decode_amounts(from: &mut Reader<'_>, len: usize) -> Result<Vec<Amount>, Fault> {
    let (cpu, memory): (Column<'_, 4>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
    let disk: Column<'_, 4> = from.column(len)?;
    let amount = |at| Amount { cpu_mhz: cpu.u32(at), memory_mib: memory.u32(at), disk_mib: disk.u32(at) };
    Ok((0..len).map(amount).collect())
}

fn decode_cold(from: &mut Reader<'_>, len: usize) -> Result<Vec<NodeCold>, Fault> {
    let ids: Column<'_, 16> = from.column(len)?;
    let secrets: Column<'_, 32> = from.column(len)?;
    let (created, updated): (Column<'_, 8>, Column<'_, 8>) = (from.column(len)?, from.column(len)?);
    let documents = from.texts(len)?;
    let messages = decode_messages(from, len)?;
    let drains = decode_drains(from, len)?;
    let row = |((at, messages), drain): ((usize, _), _)| NodeCold {
        id: NodeId(ids.id(at)),
        document: LazyDoc::new(documents[at].to_vec()),
        secret_hash: secrets.0[at],
        created: created.index(at),
        status_updated: updated.time(at),
        messages,
        drain,
    };
    Ok(messages.into_iter().enumerate().zip(drains).map(row).collect())
}

/// The last column, which is there if one of the nodes ever was emptied: its document, or nothing.
fn encode_drain(node: &NodeCold) -> Vec<u8> {
    node.drain.as_ref().map(Drain::to_bytes).unwrap_or_default()
}

fn decode_drains(from: &mut Reader<'_>, len: usize) -> Result<Vec<Option<Drain>>, Fault> {
    if from.0.is_empty() {
        return Ok(vec![None; len]);
    }
    let drain = |bytes: &[u8]| match bytes {
        [] => Ok(None),
        bytes => Drain::from_bytes(bytes).map(Some).ok_or("it is not a document of a drain"),
    };
    from.texts(len)?.into_iter().map(drain).collect()
}

/// For each node its messages, each with the index of the batch that brought it.
fn decode_messages(from: &mut Reader<'_>, len: usize) -> Result<Vec<Vec<(NodeMessage, Index)>>, Fault> {
    let (counts, all) = from.counts(len)?;
    let (texts, subsystems) = (from.strings(all)?, from.strings(all)?);
    let (times, indexes): (Column<'_, 8>, Column<'_, 8>) = (from.column(all)?, from.column(all)?);
    let (detail_counts, details) = from.counts(all)?;
    let (names, values) = (from.strings(details)?, from.strings(details)?);
    let mut details = names.iter().zip(&values).map(|(name, value)| (name.to_string(), value.to_string()));
    let mut messages = (0..all).map(|at| {
        let message = NodeMessage {
            text: texts[at].to_string(),
            subsystem: subsystems[at].to_string(),
            details: details.by_ref().take(detail_counts.count(at)).collect(),
            time: times.time(at),
        };
        (message, indexes.index(at))
    });
    Ok((0..len).map(|at| messages.by_ref().take(counts.count(at)).collect()).collect())
}

pub(super) fn encode_classes(classes: &[Class]) -> Vec<u8> {
    let mut to = Writer::default();
    to.texts(classes.iter().map(|class| class.name.as_bytes()));
    to.indexes(classes.iter().map(|class| class.capacity_since));
    to.0
}

pub(super) fn decode_classes(bytes: &[u8], len: usize) -> Result<Vec<Class>, Fault> {
    let mut from = Reader(bytes);
    let names = from.strings(len)?;
    let since: Column<'_, 8> = from.column(len)?;
    from.end()?;
    let class = |(at, name): (usize, &&str)| Class { name: (*name).into(), capacity_since: since.index(at) };
    Ok(names.iter().enumerate().map(class).collect())
}
