//! Each document's codec is compiled once.
//!
//! Serde compiles the code of a type again for every format and in every crate that reads it. Documents are large and
//! are read from five formats, so that a third of the program was copies. Here the code of a document is compiled for
//! one deserializer and one serializer only, [`Reader`] and [`Writer`], which call the format's own through `dyn`. Bytes
//! and error texts are the same as without.
//!
//! A type takes part by `#[serde(remote = "Self")]`, which makes the derived code a function of the type, and an entry
//! in a [`compiled_once`] list, which implements the trait. List the types that are read by themselves: their parts are
//! compiled with them, and a part that is listed too costs a second `dyn` call for each of its fields.

mod error;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use error::Error;
pub(crate) use read::{Reader, Source, read};
pub(crate) use write::{Sink, Writer, write};

/// Implements serde's traits for types whose derived code is their own: see the module.
macro_rules! compiled_once {
    ($($name:ident)+) => {
        $(impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                #[inline(never)]
                fn read<'de>(from: &mut dyn $crate::codec::Source<'de>) -> Result<$name, $crate::codec::Error> {
                    $name::deserialize($crate::codec::Reader(from))
                }
                $crate::codec::read(from, read)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                #[inline(never)]
                fn write(
                    document: &$name,
                    to: &mut dyn $crate::codec::Sink,
                ) -> Result<(), $crate::codec::Error> {
                    $name::serialize(document, $crate::codec::Writer(to))
                }
                $crate::codec::write(self, to, write)
            }
        })+
    };
}

pub(crate) use compiled_once;
