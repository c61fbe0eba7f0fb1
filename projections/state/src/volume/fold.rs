#![warn(clippy::wildcard_enum_match_arm)]

use model::event::{VolumeDeregistered, VolumeRegistered};

use super::state::{Document, Registered, Volumes};
use crate::Delta;
use crate::moment::Moment;

impl Volumes {
    pub(crate) fn registered(&mut self, at: Moment, event: &VolumeRegistered, delta: &mut Delta) {
        let before = self.get(&event.volume);
        let (created, create_time) =
            before.map_or((at.index, at.time), |before| (before.created, before.create_time));
        let volume = Registered {
            document: Document::new(event.volume.kind, event.document.0.clone()),
            created,
            modified: at.index,
            create_time,
            modify_time: at.time,
        };
        self.set(&event.volume, Some(volume));
        self.changed = at.index;
        // A blocked evaluation may wait for it.
        delta.capacity = true;
    }

    /// # Panics
    /// If the log names a volume that is not there: the log is damaged, and going on would spread the damage.
    pub(crate) fn deregistered(&mut self, at: Moment, event: &VolumeDeregistered) {
        assert!(self.get(&event.volume).is_some(), "a volume that is deregistered was registered");
        self.set(&event.volume, None);
        self.changed = match at.epoch {
            // What an image of that time says.
            ..=2 => self.iter().map(|(_, volume)| volume.modified).max().unwrap_or_default(),
            3.. => at.index,
        };
    }
}
