//! Deserializers and visitors behind `dyn`.
//!
//! Serde calls a type with a deserializer, which calls the type's visitor, which calls an access for its parts, which
//! calls the parts with deserializers again. Each of these calls passes through a trait object here: [`Source`] is a
//! deserializer, [`Target`] a visitor, [`Seq`], [`Fields`] and [`Variant`] are accesses, [`Seed`] is a part. `format`
//! puts the format's types behind them, `document` the document's.

mod document;
mod format;

use std::fmt;

use serde::de::Deserializer;

use super::Error;
use format::Erased;

pub use document::Reader;

/// What the type asks its deserializer for.
#[derive(Clone, Copy)]
pub enum Hint {
    Any,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Char,
    Str,
    String,
    Bytes,
    ByteBuf,
    Option,
    Unit,
    UnitStruct(&'static str),
    NewtypeStruct(&'static str),
    Seq,
    Tuple(usize),
    TupleStruct(&'static str, usize),
    Map,
    Struct(&'static str, &'static [&'static str]),
    Enum(&'static str, &'static [&'static str]),
    Identifier,
    Ignored,
}

/// A value without parts.
pub enum Scalar<'a, 'de> {
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Char(char),
    Str(&'a str),
    BorrowedStr(&'de str),
    String(String),
    Bytes(&'a [u8]),
    BorrowedBytes(&'de [u8]),
    ByteBuf(Vec<u8>),
    None,
    Unit,
}

/// A deserializer. It is read once.
pub trait Source<'de> {
    fn is_human_readable(&self) -> bool;
    fn read(&mut self, hint: Hint, to: &mut dyn Target<'de>) -> Result<(), Error>;
}

/// A visitor. Which of its methods are called depends on the [`Hint`] that it is used with: see `format::Bridge`.
pub trait Target<'de> {
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn scalar(&mut self, _: Scalar<'_, 'de>) -> Result<(), Error> {
        never()
    }

    fn some(&mut self, _: &mut dyn Source<'de>) -> Result<(), Error> {
        never()
    }

    fn newtype(&mut self, _: &mut dyn Source<'de>) -> Result<(), Error> {
        never()
    }

    fn seq(&mut self, _: &mut dyn Seq<'de>) -> Result<(), Error> {
        never()
    }

    fn map(&mut self, _: &mut dyn Fields<'de>) -> Result<(), Error> {
        never()
    }

    fn variant(&mut self, _: &mut dyn Variant<'de>) -> Result<(), Error> {
        never()
    }
}

#[cold]
#[inline(never)]
fn never() -> Result<(), Error> {
    unreachable!("a bridge calls only what its hint allows")
}

/// A part that is to be read.
pub trait Seed<'de> {
    fn read(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error>;
}

/// The items of a list.
pub trait Seq<'de> {
    /// False at the end.
    fn next(&mut self, to: &mut dyn Seed<'de>) -> Result<bool, Error>;
    fn size_hint(&self) -> Option<usize>;
}

/// The entries of a map, or the fields of a struct.
pub trait Fields<'de> {
    /// False at the end.
    fn next_key(&mut self, to: &mut dyn Seed<'de>) -> Result<bool, Error>;
    fn next_value(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error>;
    fn size_hint(&self) -> Option<usize>;
}

/// A variant of an enum. `name` is called first, then one of the others.
pub trait Variant<'de> {
    fn name(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error>;
    fn unit(&mut self) -> Result<(), Error>;
    fn newtype(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error>;
    fn tuple(&mut self, len: usize, to: &mut dyn Target<'de>) -> Result<(), Error>;
    fn fields(&mut self, fields: &'static [&'static str], to: &mut dyn Target<'de>) -> Result<(), Error>;
}

const TWICE: &str = "serde uses a visitor, a seed and a deserializer once";
const MISSING: &str = "what was read without an error has a value";

/// Reads one value of `T` with a function that is compiled once, from a deserializer of any format.
pub fn read<'de, D: Deserializer<'de>, T>(
    from: D,
    read: fn(&mut dyn Source<'de>) -> Result<T, Error>,
) -> Result<T, D::Error> {
    let mut erased = Erased::of(from);
    read(&mut erased).map_err(|error| error.restore(erased.kept))
}
