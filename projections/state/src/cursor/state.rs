use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash, Time};
use model::{EventCursorSettings, EventPosition};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// A cursor as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    pub settings: EventCursorSettings,
    /// Of one that is split: where the member is that has come least far.
    pub position: EventPosition,
    /// As many as `settings.members` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    pub created: Index,
    /// The last batch that changed it, in whatever way.
    pub modified: Index,
    pub created_at: Time,
    /// When somebody last did something with it.
    pub used_at: Time,
    pub acknowledged: Option<Acknowledged>,
}

/// How far one of the readers has come that a cursor is split among.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub position: EventPosition,
    pub acknowledged: Option<Acknowledged>,
}

/// When a reader last moved a cursor on, and who that was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acknowledged {
    pub at: Time,
    pub index: Index,
    /// As the log names who asked.
    pub by: String,
}

impl Cursor {
    /// When it is deleted unless somebody uses it; `None` for never.
    pub fn expires(&self) -> Option<Time> {
        (self.settings.ttl.0 > 0).then(|| self.used_at.plus(self.settings.ttl))
    }
}

/// All cursors, by name; a clone is a pointer copy. There are few: rules bound their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cursors(Arc<Content>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    by_name: BTreeMap<String, Arc<Cursor>>,
    changed: Index,
    /// The sum of the hashes of all cursors.
    sum: u64,
}

impl Cursors {
    pub(crate) fn of(rows: Vec<(String, Cursor)>, changed: Index) -> Cursors {
        let mut cursors = Cursors::default();
        for (name, cursor) in rows {
            cursors.set(changed, &name, Some(cursor));
        }
        Arc::make_mut(&mut cursors.0).changed = changed;
        cursors
    }

    /// The last batch that changed one.
    pub fn changed(&self) -> Index {
        self.0.changed
    }

    pub fn get(&self, name: &str) -> Option<&Cursor> {
        self.0.by_name.get(name).map(|cursor| &**cursor)
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Cursor)> {
        self.0.by_name.iter().map(|(name, cursor)| (name.as_str(), &**cursor))
    }

    pub fn len(&self) -> usize {
        self.0.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.by_name.is_empty()
    }

    pub(crate) fn is_same(&self, other: &Cursors) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn rows(&self) -> Vec<(String, Cursor)> {
        self.iter().map(|(name, cursor)| (name.to_string(), cursor.clone())).collect()
    }

    pub(crate) fn set(&mut self, now: Index, name: &str, cursor: Option<Cursor>) {
        let content = Arc::make_mut(&mut self.0);
        content.changed = now;
        if let Some(before) = content.by_name.remove(name) {
            content.sum = content.sum.wrapping_sub(hash(name, &before));
        }
        if let Some(cursor) = cursor {
            content.sum = content.sum.wrapping_add(hash(name, &cursor));
            content.by_name.insert(name.to_string(), Arc::new(cursor));
        }
    }

    /// Everything is as in the state that was restored. A cluster without cursors keeps its digest.
    pub(crate) fn restored(&mut self, now: Index, before: &Cursors) {
        if self.changed().max(before.changed()) > Index::ZERO {
            Arc::make_mut(&mut self.0).changed = now;
        }
    }

    /// Nothing was made or changed after `limit`, and nobody has read further.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        if self.changed() == Index::ZERO {
            return;
        }
        let mut rows = self.rows();
        for (_, cursor) in &mut rows {
            (cursor.created, cursor.modified) = (cursor.created.min(limit), cursor.modified.min(limit));
            let last = EventPosition { index: limit, ordinal: u32::MAX };
            cursor.position = cursor.position.min(last);
            cursor.members.iter_mut().for_each(|member| member.position = member.position.min(last));
            let of_members = cursor.members.iter_mut().map(|member| &mut member.acknowledged);
            for acknowledged in of_members.chain([&mut cursor.acknowledged]).flatten() {
                acknowledged.index = acknowledged.index.min(limit);
            }
        }
        *self = Cursors::of(rows, self.changed().min(limit));
    }

    /// Zero for a cluster that never had a cursor: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        self.hash_with(self.0.sum)
    }

    /// What [`Cursors::hash`] has to be.
    pub(crate) fn recomputed_hash(&self) -> u64 {
        let rows = self.iter();
        self.hash_with(rows.fold(0, |sum: u64, (name, cursor)| sum.wrapping_add(hash(name, cursor))))
    }

    fn hash_with(&self, sum: u64) -> u64 {
        if self.changed() == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::EventCursors as u64);
        hash.pair(self.changed().0, sum);
        hash.finish()
    }
}

fn hash(name: &str, cursor: &Cursor) -> u64 {
    let Cursor { settings, position, members, created, modified, created_at, used_at, acknowledged } = cursor;
    // How many members there are follows from `members`.
    let EventCursorSettings { topics, namespace, filter, from, reader, ttl, members: _ } = settings;
    let mut hash = StableHash::new(Domain::EventCursors as u64);
    for text in [name, namespace, filter, from, reader] {
        hash.text(text);
    }
    hash.pair(topics.len() as u64, ttl.0 as u64);
    topics.iter().for_each(|topic| hash.text(topic));
    hash.pair(position.index.0, u64::from(position.ordinal));
    hash.pair(created.0, modified.0);
    hash.pair(created_at.0 as u64, used_at.0 as u64);
    hash_of(&mut hash, acknowledged.as_ref());
    for (number, member) in members.iter().enumerate() {
        hash.pair(number as u64, u64::from(member.acknowledged.is_some()));
        hash.pair(member.position.index.0, u64::from(member.position.ordinal));
        hash_of(&mut hash, member.acknowledged.as_ref());
    }
    hash.finish()
}

fn hash_of(hash: &mut StableHash, acknowledged: Option<&Acknowledged>) {
    if let Some(Acknowledged { at, index, by }) = acknowledged {
        hash.pair(at.0 as u64, index.0);
        hash.text(by);
    }
}
