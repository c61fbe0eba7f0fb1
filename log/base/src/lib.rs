//! The floor everything stands on: ids, time, chance, hashes, counters and dense pages.
//!
//! No domain word lives here, no clock is read and no entropy is drawn. Read [`pages`] next: it is what
//! state is made of.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

mod duration;
mod glob;
mod hash;
mod id;
mod id_map;
mod occurrences;
pub mod pages;
mod panics;
mod reasons;
mod rng;
mod time;

pub use duration::{Duration, DurationError};
pub use glob::matches_glob;
pub use hash::StableHash;
pub use id::{IdError, Uuid};
pub use id_map::{IdMap, Key};
pub use occurrences::Occurrences;
pub use panics::panic_text;
pub use reasons::reasons;
pub use rng::Rng;
pub use time::{Index, Term, Time};

/// Declares a newtype over [`Uuid`] for one kind of thing, so that two kinds cannot be confused.
#[macro_export]
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize, serde::Serialize, serde::Deserialize)]
        pub struct $name(pub $crate::Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl $crate::Key for $name {
            fn shard(&self) -> u16 {
                $crate::Key::shard(&self.0)
            }
        }

        impl From<$name> for $crate::Uuid {
            fn from(id: $name) -> $crate::Uuid {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::IdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }
    };
}
