//! Deserializers and visitors behind `dyn`.
//!
//! Serde calls a type with a deserializer, which calls the type's visitor, which calls an access for its parts, which
//! calls the parts with deserializers again. Each of these calls passes through a trait object here: [`Source`] is a
//! deserializer, [`Target`] a visitor, [`Seq`], [`Fields`] and [`Variant`] are accesses, [`Seed`] is a part.

use std::fmt;

use serde::de::DeserializeSeed;
use serde::de::{Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::Error;

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

pub trait Source<'de> {
    fn is_human_readable(&self) -> bool;
    fn read(&mut self, hint: Hint, to: &mut dyn Target<'de>) -> Result<(), Error>;
}

pub trait Target<'de> {
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn scalar(&mut self, value: Scalar<'_, 'de>) -> Result<(), Error>;
    fn some(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error>;
    fn newtype(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error>;
    fn seq(&mut self, from: &mut dyn Seq<'de>) -> Result<(), Error>;
    fn map(&mut self, from: &mut dyn Fields<'de>) -> Result<(), Error>;
    fn variant(&mut self, from: &mut dyn Variant<'de>) -> Result<(), Error>;
}

/// A part that is to be read.
pub trait Seed<'de> {
    fn read(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error>;
}

pub trait Seq<'de> {
    /// False at the end.
    fn next(&mut self, to: &mut dyn Seed<'de>) -> Result<bool, Error>;
    fn size_hint(&self) -> Option<usize>;
}

pub trait Fields<'de> {
    /// False at the end.
    fn next_key(&mut self, to: &mut dyn Seed<'de>) -> Result<bool, Error>;
    fn next_value(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error>;
    fn size_hint(&self) -> Option<usize>;
}

/// `name` is called first, then one of the others.
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

// Of the format: its deserializers and accesses behind `dyn`.

/// A deserializer or an access of a format, with the error that it returned.
pub(super) struct Erased<D, E> {
    inner: Option<D>,
    kept: Option<E>,
}

impl<D, E> Erased<D, E> {
    fn keep<T>(&mut self, result: Result<T, E>) -> Result<T, Error> {
        result.map_err(|error| {
            self.kept = Some(error);
            Error::kept()
        })
    }
}

impl<'de, D: Deserializer<'de>> Erased<D, D::Error> {
    fn of(inner: D) -> Self {
        Erased { inner: Some(inner), kept: None }
    }
}

impl<'de, D: Deserializer<'de>> Source<'de> for Erased<D, D::Error> {
    fn is_human_readable(&self) -> bool {
        self.inner.as_ref().is_some_and(D::is_human_readable)
    }

    fn read(&mut self, hint: Hint, to: &mut dyn Target<'de>) -> Result<(), Error> {
        let from = self.inner.take().expect(TWICE);
        let to = Bridge(to);
        let result = match hint {
            Hint::Any => from.deserialize_any(to),
            Hint::Bool => from.deserialize_bool(to),
            Hint::I8 => from.deserialize_i8(to),
            Hint::I16 => from.deserialize_i16(to),
            Hint::I32 => from.deserialize_i32(to),
            Hint::I64 => from.deserialize_i64(to),
            Hint::U8 => from.deserialize_u8(to),
            Hint::U16 => from.deserialize_u16(to),
            Hint::U32 => from.deserialize_u32(to),
            Hint::U64 => from.deserialize_u64(to),
            Hint::F32 => from.deserialize_f32(to),
            Hint::F64 => from.deserialize_f64(to),
            Hint::Char => from.deserialize_char(to),
            Hint::Str => from.deserialize_str(to),
            Hint::String => from.deserialize_string(to),
            Hint::Bytes => from.deserialize_bytes(to),
            Hint::ByteBuf => from.deserialize_byte_buf(to),
            Hint::Option => from.deserialize_option(to),
            Hint::Unit => from.deserialize_unit(to),
            Hint::UnitStruct(name) => from.deserialize_unit_struct(name, to),
            Hint::NewtypeStruct(name) => from.deserialize_newtype_struct(name, to),
            Hint::Seq => from.deserialize_seq(to),
            Hint::Tuple(len) => from.deserialize_tuple(len, to),
            Hint::TupleStruct(name, len) => from.deserialize_tuple_struct(name, len, to),
            Hint::Map => from.deserialize_map(to),
            Hint::Struct(name, fields) => from.deserialize_struct(name, fields, to),
            Hint::Enum(name, variants) => from.deserialize_enum(name, variants, to),
            Hint::Identifier => from.deserialize_identifier(to),
            Hint::Ignored => from.deserialize_ignored_any(to),
        };
        self.keep(result)
    }
}

impl<'de, A: SeqAccess<'de>> Seq<'de> for Erased<A, A::Error> {
    fn next(&mut self, to: &mut dyn Seed<'de>) -> Result<bool, Error> {
        let next = self.inner.as_mut().expect(TWICE).next_element_seed(Part(to));
        self.keep(next).map(|next| next.is_some())
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.as_ref().and_then(A::size_hint)
    }
}

impl<'de, A: MapAccess<'de>> Fields<'de> for Erased<A, A::Error> {
    fn next_key(&mut self, to: &mut dyn Seed<'de>) -> Result<bool, Error> {
        let next = self.inner.as_mut().expect(TWICE).next_key_seed(Part(to));
        self.keep(next).map(|next| next.is_some())
    }

    fn next_value(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error> {
        let value = self.inner.as_mut().expect(TWICE).next_value_seed(Part(to));
        self.keep(value)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.as_ref().and_then(A::size_hint)
    }
}

struct ErasedVariant<'de, A: EnumAccess<'de>> {
    access: Erased<A, A::Error>,
    variant: Option<A::Variant>,
}

impl<'de, A: EnumAccess<'de>> Variant<'de> for ErasedVariant<'de, A> {
    fn name(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error> {
        let named = self.access.inner.take().expect(TWICE).variant_seed(Part(to));
        let ((), variant) = self.access.keep(named)?;
        self.variant = Some(variant);
        Ok(())
    }

    fn unit(&mut self) -> Result<(), Error> {
        let read = self.variant.take().expect(TWICE).unit_variant();
        self.access.keep(read)
    }

    fn newtype(&mut self, to: &mut dyn Seed<'de>) -> Result<(), Error> {
        let read = self.variant.take().expect(TWICE).newtype_variant_seed(Part(to));
        self.access.keep(read)
    }

    fn tuple(&mut self, len: usize, to: &mut dyn Target<'de>) -> Result<(), Error> {
        let read = self.variant.take().expect(TWICE).tuple_variant(len, Bridge(to));
        self.access.keep(read)
    }

    fn fields(&mut self, fields: &'static [&'static str], to: &mut dyn Target<'de>) -> Result<(), Error> {
        let read = self.variant.take().expect(TWICE).struct_variant(fields, Bridge(to));
        self.access.keep(read)
    }
}

/// A part that the format reads for the type.
struct Part<'a, 'de>(&'a mut dyn Seed<'de>);

impl<'de> DeserializeSeed<'de> for Part<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let mut erased = Erased::of(from);
        self.0.read(&mut erased).map_err(|error| error.restore(erased.kept))
    }
}

/// The visitor that formats see. What it visits goes to the type's own visitor.
struct Bridge<'a, 'de>(&'a mut dyn Target<'de>);

macro_rules! scalars {
    ($($visit:ident($type:ty) => $scalar:expr;)+) => {
        $(fn $visit<E: serde::de::Error>(self, value: $type) -> Result<(), E> {
            self.scalar($scalar(value.into()))
        })+
    };
}

impl<'de> Bridge<'_, 'de> {
    fn scalar<E: serde::de::Error>(self, value: Scalar<'_, 'de>) -> Result<(), E> {
        self.0.scalar(value).map_err(|error| error.restore(None))
    }
}

impl<'de> Visitor<'de> for Bridge<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    scalars! {
        visit_bool(bool) => Scalar::Bool;
        visit_i64(i64) => Scalar::I64;
        visit_u64(u64) => Scalar::U64;
        visit_f64(f64) => Scalar::F64;
        visit_char(char) => Scalar::Char;
        visit_str(&str) => Scalar::Str;
        visit_borrowed_str(&'de str) => Scalar::BorrowedStr;
        visit_string(String) => Scalar::String;
        visit_bytes(&[u8]) => Scalar::Bytes;
        visit_borrowed_bytes(&'de [u8]) => Scalar::BorrowedBytes;
        visit_byte_buf(Vec<u8>) => Scalar::ByteBuf;
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar(Scalar::None)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar(Scalar::Unit)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let mut erased = Erased::of(from);
        self.0.some(&mut erased).map_err(|error| error.restore(erased.kept))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let mut erased = Erased::of(from);
        self.0.newtype(&mut erased).map_err(|error| error.restore(erased.kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<(), A::Error> {
        let mut erased = Erased { inner: Some(from), kept: None };
        self.0.seq(&mut erased).map_err(|error| error.restore(erased.kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<(), A::Error> {
        let mut erased = Erased { inner: Some(from), kept: None };
        self.0.map(&mut erased).map_err(|error| error.restore(erased.kept))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<(), A::Error> {
        let access = Erased { inner: Some(from), kept: None };
        let mut erased = ErasedVariant { access, variant: None };
        self.0.variant(&mut erased).map_err(|error| error.restore(erased.access.kept))
    }
}

// Of the type: its visitors and seeds behind `dyn`, and what it sees of the format.

/// A visitor of the type, and what it made.
struct Slot<'de, V: Visitor<'de>> {
    visitor: Option<V>,
    value: Option<V::Value>,
}

impl<'de, V: Visitor<'de>> Slot<'de, V> {
    fn of(visitor: V) -> Self {
        Slot { visitor: Some(visitor), value: None }
    }

    fn fill(&mut self, made: Result<V::Value, Error>) -> Result<(), Error> {
        self.value = Some(made?);
        Ok(())
    }

    fn take(&mut self) -> V {
        self.visitor.take().expect(TWICE)
    }
}

impl<'de, V: Visitor<'de>> Target<'de> for Slot<'de, V> {
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.as_ref().map_or(Ok(()), |visitor| visitor.expecting(f))
    }

    fn scalar(&mut self, value: Scalar<'_, 'de>) -> Result<(), Error> {
        let visitor = self.take();
        let made = match value {
            Scalar::Bool(value) => visitor.visit_bool(value),
            Scalar::I64(value) => visitor.visit_i64(value),
            Scalar::U64(value) => visitor.visit_u64(value),
            Scalar::F64(value) => visitor.visit_f64(value),
            Scalar::Char(value) => visitor.visit_char(value),
            Scalar::Str(value) => visitor.visit_str(value),
            Scalar::BorrowedStr(value) => visitor.visit_borrowed_str(value),
            Scalar::String(value) => visitor.visit_string(value),
            Scalar::Bytes(value) => visitor.visit_bytes(value),
            Scalar::BorrowedBytes(value) => visitor.visit_borrowed_bytes(value),
            Scalar::ByteBuf(value) => visitor.visit_byte_buf(value),
            Scalar::None => visitor.visit_none(),
            Scalar::Unit => visitor.visit_unit(),
        };
        self.fill(made)
    }

    fn some(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error> {
        let made = self.take().visit_some(Reader(from));
        self.fill(made)
    }

    fn newtype(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error> {
        let made = self.take().visit_newtype_struct(Reader(from));
        self.fill(made)
    }

    fn seq(&mut self, from: &mut dyn Seq<'de>) -> Result<(), Error> {
        let made = self.take().visit_seq(Items(from));
        self.fill(made)
    }

    fn map(&mut self, from: &mut dyn Fields<'de>) -> Result<(), Error> {
        let made = self.take().visit_map(Entries(from));
        self.fill(made)
    }

    fn variant(&mut self, from: &mut dyn Variant<'de>) -> Result<(), Error> {
        let made = self.take().visit_enum(Choice(from));
        self.fill(made)
    }
}

/// A seed of the type, and what it made.
struct PartSlot<'de, S: DeserializeSeed<'de>> {
    seed: Option<S>,
    value: Option<S::Value>,
}

impl<'de, S: DeserializeSeed<'de>> PartSlot<'de, S> {
    fn of(seed: S) -> Self {
        PartSlot { seed: Some(seed), value: None }
    }

    fn value(self) -> S::Value {
        self.value.expect(MISSING)
    }
}

impl<'de, S: DeserializeSeed<'de>> Seed<'de> for PartSlot<'de, S> {
    fn read(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error> {
        self.value = Some(self.seed.take().expect(TWICE).deserialize(Reader(from))?);
        Ok(())
    }
}

/// The deserializer that every document is read from, whatever the format.
pub struct Reader<'a, 'de>(pub &'a mut dyn Source<'de>);

impl<'de> Reader<'_, 'de> {
    fn read<V: Visitor<'de>>(self, hint: Hint, visitor: V) -> Result<V::Value, Error> {
        let mut slot = Slot::of(visitor);
        self.0.read(hint, &mut slot)?;
        Ok(slot.value.expect(MISSING))
    }
}

macro_rules! hints {
    ($($method:ident($($name:ident: $type:ty),*) => $hint:expr;)+) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Error> {
            self.read($hint, visitor)
        })+
    };
}

impl<'de> Deserializer<'de> for Reader<'_, 'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }

    hints! {
        deserialize_any() => Hint::Any;
        deserialize_bool() => Hint::Bool;
        deserialize_i8() => Hint::I8;
        deserialize_i16() => Hint::I16;
        deserialize_i32() => Hint::I32;
        deserialize_i64() => Hint::I64;
        deserialize_u8() => Hint::U8;
        deserialize_u16() => Hint::U16;
        deserialize_u32() => Hint::U32;
        deserialize_u64() => Hint::U64;
        deserialize_f32() => Hint::F32;
        deserialize_f64() => Hint::F64;
        deserialize_char() => Hint::Char;
        deserialize_str() => Hint::Str;
        deserialize_string() => Hint::String;
        deserialize_bytes() => Hint::Bytes;
        deserialize_byte_buf() => Hint::ByteBuf;
        deserialize_option() => Hint::Option;
        deserialize_unit() => Hint::Unit;
        deserialize_unit_struct(name: &'static str) => Hint::UnitStruct(name);
        deserialize_newtype_struct(name: &'static str) => Hint::NewtypeStruct(name);
        deserialize_seq() => Hint::Seq;
        deserialize_tuple(len: usize) => Hint::Tuple(len);
        deserialize_tuple_struct(name: &'static str, len: usize) => Hint::TupleStruct(name, len);
        deserialize_map() => Hint::Map;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) => Hint::Struct(name, fields);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) => Hint::Enum(name, variants);
        deserialize_identifier() => Hint::Identifier;
        deserialize_ignored_any() => Hint::Ignored;
    }
}

struct Items<'a, 'de>(&'a mut dyn Seq<'de>);

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let mut slot = PartSlot::of(seed);
        let next = self.0.next(&mut slot)?;
        Ok(next.then(|| slot.value()))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

struct Entries<'a, 'de>(&'a mut dyn Fields<'de>);

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let mut slot = PartSlot::of(seed);
        let next = self.0.next_key(&mut slot)?;
        Ok(next.then(|| slot.value()))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let mut slot = PartSlot::of(seed);
        self.0.next_value(&mut slot)?;
        Ok(slot.value())
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

struct Choice<'a, 'de>(&'a mut dyn Variant<'de>);

impl<'a, 'de> EnumAccess<'de> for Choice<'a, 'de> {
    type Error = Error;
    type Variant = Choice<'a, 'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), Error> {
        let mut slot = PartSlot::of(seed);
        self.0.name(&mut slot)?;
        Ok((slot.value(), self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.0.unit()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        let mut slot = PartSlot::of(seed);
        self.0.newtype(&mut slot)?;
        Ok(slot.value())
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let mut slot = Slot::of(visitor);
        self.0.tuple(len, &mut slot)?;
        Ok(slot.value.expect(MISSING))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut slot = Slot::of(visitor);
        self.0.fields(fields, &mut slot)?;
        Ok(slot.value.expect(MISSING))
    }
}
