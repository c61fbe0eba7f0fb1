//! Volumes: who may write to one, that one in use is there, and that what is sticky comes back.
//!
//! Claims are not rows: whoever takes room and mounts a volume has it.

use std::collections::BTreeSet;

use model::event::AllocsPlaced;
use model::{AllocId, Command, Event, RequestId, VolumeKey, VolumeKind};
use state::State;
use state::alloc::Alloc;
use state::volume::{MANY_WRITERS, csi_users, is_used, mounts};

use crate::fact::{Check, Fact, Folded};
use crate::witness::Witness;

const SOLE_WRITER: &str = "single-node-single-writer";

/// What was placed and is still wanted after the command, in the order of placement.
fn placed<'a>(folded: &Folded<'a>) -> impl Iterator<Item = &'a Alloc> {
    let after = folded.after;
    let ids = folded.events.iter().flat_map(|event| match event {
        Event::AllocsPlaced(AllocsPlaced { ids, .. }) => ids.as_slice(),
        _ => &[],
    });
    ids.filter_map(|id| after.allocs.lookup(*id)).filter(|alloc| !alloc.is_terminal())
}

fn namespace<'a>(state: &'a State, alloc: &Alloc) -> &'a str {
    &state.jobs.get(alloc.job).key.namespace
}

/// The volume of that name that the allocation's node made, by its id.
fn made<'a>(state: &'a State, alloc: &Alloc, name: &str) -> Option<&'a str> {
    let info = state.nodes.cold(alloc.node).document.host_volumes.get(name)?;
    (!info.id.is_empty()).then_some(info.id.as_str())
}

#[derive(Default)]
pub struct WritersAreAlone;

impl Check for WritersAreAlone {
    fn sentence(&self) -> &'static str {
        "a volume for a single writer has the writers of one job, and one allocation of a node that writes alone"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for alloc in placed(folded) {
            let id = alloc.id;
            for (_, source) in mounts(alloc, VolumeKind::Csi).filter(|(request, _)| !request.read_only) {
                if let Some(other) = other_writer(folded.after, alloc, &source) {
                    return Err(format!("{id} was placed, and {other} of another job writes to {source}"));
                }
            }
            let alone = |access: &str, read_only: bool| access == SOLE_WRITER && !read_only;
            for (request, source) in mounts(alloc, VolumeKind::Host) {
                let other = writer_beside(folded.after, alloc, &source);
                if let Some(other) = other.filter(|_| alone(&request.access_mode, request.read_only)) {
                    return Err(format!("{id} was placed to write alone, and {other} writes to {source}"));
                }
            }
        }
        Ok(())
    }
}

/// Who writes to the CSI volume for another job, if only one job may.
fn other_writer(state: &State, alloc: &Alloc, id: &str) -> Option<AllocId> {
    let namespace = namespace(state, alloc);
    let volume = state.volumes.csi(namespace, id)?;
    if volume.requested_capabilities.iter().any(|own| own.access_mode == MANY_WRITERS) {
        return None;
    }
    let mut writers = csi_users(state, namespace, id).into_iter().filter(|(_, writes)| *writes);
    let other = writers.find(|(user, _)| user.job != alloc.job && !user.is_terminal());
    other.map(|(user, _)| user.id)
}

/// Who else on the node writes to the host volume.
fn writer_beside(state: &State, alloc: &Alloc, name: &str) -> Option<AllocId> {
    let here = state.nodes.load(alloc.node).allocs.iter().map(|row| state.allocs.get(*row));
    let same = |other: &Alloc| namespace(state, other) == namespace(state, alloc);
    let mut others = here.filter(|other| other.id != alloc.id && !other.is_terminal() && same(other));
    let writes = |other: &Alloc| {
        mounts(other, VolumeKind::Host).any(|(request, source)| !request.read_only && source == name)
    };
    others.find(|other| writes(other)).map(|other| other.id)
}

#[derive(Default)]
pub struct UsedVolumesAreThere {
    /// Requests to forget a volume even if it is used.
    forced: BTreeSet<RequestId>,
}

impl Check for UsedVolumesAreThere {
    fn sentence(&self) -> &'static str {
        "what is placed finds its volumes registered, and only by force one in use is forgotten"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        if let Fact::Asked { request, .. } = fact
            && let Command::DeregisterVolume { force: true, .. } = &request.command
        {
            self.forced.insert(request.id);
        }
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for event in folded.events {
            let Event::VolumeDeregistered(gone) = event else { continue };
            if is_used(folded.before, &gone.volume) && !self.forced.contains(&folded.record.request) {
                return Err(format!("{} is in use and was forgotten", gone.volume.id));
            }
        }
        placed(folded).try_for_each(|alloc| volumes_are_there(folded.after, alloc))
    }
}

fn volumes_are_there(state: &State, alloc: &Alloc) -> Result<(), String> {
    let csi = mounts(alloc, VolumeKind::Csi).map(|(_, id)| (VolumeKind::Csi, id));
    let made = mounts(alloc, VolumeKind::Host)
        .filter_map(|(_, name)| Some((VolumeKind::Host, made(state, alloc, &name)?.to_string())));
    for (kind, id) in csi.chain(made) {
        if state.volumes.get(&VolumeKey::new(kind, namespace(state, alloc), &id)).is_none() {
            return Err(format!("{} was placed, and volume {id} is not known", alloc.id));
        }
    }
    Ok(())
}

#[derive(Default)]
pub struct StickyComesBack;

impl Check for StickyComesBack {
    fn sentence(&self) -> &'static str {
        "what takes the place of an allocation with a sticky volume goes to a volume that its group has used"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for alloc in placed(folded) {
            let state = folded.after;
            let previous = alloc.previous.and_then(|id| state.allocs.lookup(id));
            // One that may come back keeps its volume meanwhile.
            let Some(previous) = previous.filter(|previous| previous.is_terminal()) else { continue };
            for (request, name) in mounts(alloc, VolumeKind::Host).filter(|(request, _)| request.sticky) {
                let had = mounts(previous, VolumeKind::Host).any(|(other, own)| other.sticky && own == name);
                if !had || made(state, previous, &name).is_none() {
                    continue;
                }
                let volume = made(state, alloc, &name).unwrap_or_default();
                if !used_before(state, alloc, &name).contains(volume) {
                    let source = &request.source;
                    return Err(format!(
                        "{} takes the place of {} on another {source}",
                        alloc.id, previous.id
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The volumes of that name that other allocations of the group had.
fn used_before<'a>(state: &'a State, alloc: &Alloc, name: &str) -> BTreeSet<&'a str> {
    let allocs = state.jobs.get(alloc.job).allocs.iter().map(|row| state.allocs.get(*row));
    let others = allocs.filter(|other| other.id != alloc.id && other.group == alloc.group);
    let sticks = |other: &&Alloc| {
        mounts(other, VolumeKind::Host).any(|(request, source)| request.sticky && source == name)
    };
    others.filter(sticks).filter_map(|other| made(state, other, name)).collect()
}
