//! Which type the payload of a (kind, version) is. A kind's number is never reused and a logged type is frozen.

use model::Event;
use model::event as payload;
use rkyv::rancor;
use rkyv::util::AlignedVec;

use crate::frame::FrameError;
use crate::upcasts;

/// Lists every kind with the type and version this release writes.
macro_rules! registry {
    ($(($kind:literal, $version:literal) $name:ident)+) => {
        pub(crate) fn encode<const ALIGN: usize>(event: &Event, bytes: AlignedVec<ALIGN>) -> AlignedVec<ALIGN> {
            match event {
                $(Event::$name(payload) => rkyv::api::high::to_bytes_in::<_, rancor::Error>(payload, bytes),)+
            }
            .expect("events hold nothing that cannot be written to memory")
        }

        /// The current version first, then what older releases wrote.
        pub(crate) fn decode(kind: u16, version: u16, bytes: &[u8]) -> Result<Event, FrameError> {
            match kind {
                $($kind if version == $version => aligned(bytes, |bytes| {
                    rkyv::from_bytes::<payload::$name, rancor::Error>(bytes)
                })
                .map(Event::$name),)+
                _ => return upcasts::decode(kind, version, bytes),
            }
            .map_err(|why| FrameError::Payload { kind, version, why: why.to_string() })
        }

        /// The version in which this release writes the event.
        pub(crate) const fn version(event: &Event) -> u16 {
            match event { $(Event::$name(_) => $version,)+ }
        }
    };
}

model::for_each_event!(registry);

/// Payloads are aligned within their batch, but a batch may start anywhere in memory.
pub(crate) fn aligned<T>(bytes: &[u8], read: impl FnOnce(&[u8]) -> T) -> T {
    if bytes.as_ptr().addr().is_multiple_of(16) {
        return read(bytes);
    }
    let mut copy = AlignedVec::<16>::with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    read(&copy)
}
