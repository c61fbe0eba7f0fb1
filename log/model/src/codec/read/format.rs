//! What belongs to the format: its deserializers and accesses behind `dyn`, and the visitors that it sees.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::{Fields, Hint, Scalar, Seed, Seq, Source, TWICE, Target, Variant};
use crate::codec::Error;

/// A deserializer or an access of a format, with the error that it returned.
pub(super) struct Erased<D, E> {
    inner: Option<D>,
    pub(super) kept: Option<E>,
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
    pub(super) fn of(inner: D) -> Self {
        Erased { inner: Some(inner), kept: None }
    }
}

impl<'de, D: Deserializer<'de>> Source<'de> for Erased<D, D::Error> {
    fn is_human_readable(&self) -> bool {
        self.inner.as_ref().is_some_and(D::is_human_readable)
    }

    fn read(&mut self, hint: Hint, to: &mut dyn Target<'de>) -> Result<(), Error> {
        let from = self.inner.take().expect(TWICE);
        let result = match hint {
            Hint::Option => from.deserialize_option(OptionBridge(to)),
            Hint::Seq => from.deserialize_seq(SeqBridge(to)),
            Hint::Map => from.deserialize_map(MapBridge(to)),
            Hint::Struct(name, fields) => from.deserialize_struct(name, fields, StructBridge(to)),
            Hint::Enum(name, variants) => from.deserialize_enum(name, variants, EnumBridge(to)),
            Hint::Identifier => from.deserialize_identifier(NameBridge(to)),
            Hint::Any => from.deserialize_any(Bridge(to)),
            Hint::Bool => from.deserialize_bool(Bridge(to)),
            Hint::I8 => from.deserialize_i8(Bridge(to)),
            Hint::I16 => from.deserialize_i16(Bridge(to)),
            Hint::I32 => from.deserialize_i32(Bridge(to)),
            Hint::I64 => from.deserialize_i64(Bridge(to)),
            Hint::U8 => from.deserialize_u8(Bridge(to)),
            Hint::U16 => from.deserialize_u16(Bridge(to)),
            Hint::U32 => from.deserialize_u32(Bridge(to)),
            Hint::U64 => from.deserialize_u64(Bridge(to)),
            Hint::F32 => from.deserialize_f32(Bridge(to)),
            Hint::F64 => from.deserialize_f64(Bridge(to)),
            Hint::Char => from.deserialize_char(Bridge(to)),
            Hint::Str => from.deserialize_str(Bridge(to)),
            Hint::String => from.deserialize_string(Bridge(to)),
            Hint::Bytes => from.deserialize_bytes(Bridge(to)),
            Hint::ByteBuf => from.deserialize_byte_buf(Bridge(to)),
            Hint::Unit => from.deserialize_unit(Bridge(to)),
            Hint::UnitStruct(name) => from.deserialize_unit_struct(name, Bridge(to)),
            Hint::NewtypeStruct(name) => from.deserialize_newtype_struct(name, Bridge(to)),
            Hint::Tuple(len) => from.deserialize_tuple(len, Bridge(to)),
            Hint::TupleStruct(name, len) => from.deserialize_tuple_struct(name, len, Bridge(to)),
            Hint::Ignored => from.deserialize_ignored_any(Bridge(to)),
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
        let read = self.variant.take().expect(TWICE).struct_variant(fields, StructBridge(to));
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

/// The visitor that formats see where the type may accept anything. What it visits goes to the type's own visitor.
///
/// The visitors that derived code uses with the other hints accept little, and most visitors are of that kind. So these
/// hints have bridges of their own, and what such a visitor does not accept is not compiled for it.
struct Bridge<'a, 'de>(&'a mut dyn Target<'de>);

/// The visitor of a struct.
struct StructBridge<'a, 'de>(&'a mut dyn Target<'de>);

/// The visitor of the name of a field or a variant. Derived ones compare bytes as they compare text.
struct NameBridge<'a, 'de>(&'a mut dyn Target<'de>);

struct OptionBridge<'a, 'de>(&'a mut dyn Target<'de>);

struct SeqBridge<'a, 'de>(&'a mut dyn Target<'de>);

/// The visitor of a map. That of JSON objects accepts unit too.
struct MapBridge<'a, 'de>(&'a mut dyn Target<'de>);

struct EnumBridge<'a, 'de>(&'a mut dyn Target<'de>);

fn scalar<'de, E: serde::de::Error>(to: &mut dyn Target<'de>, value: Scalar<'_, 'de>) -> Result<(), E> {
    to.scalar(value).map_err(|error| error.restore(None))
}

macro_rules! expects {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.expecting(f)
        }
    };
}

macro_rules! scalars {
    ($($visit:ident($type:ty) => $scalar:expr;)+) => {
        $(fn $visit<E: serde::de::Error>(self, value: $type) -> Result<(), E> {
            scalar(self.0, $scalar(value.into()))
        })+
    };
}

macro_rules! visits {
    (none) => {
        fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
            scalar(self.0, Scalar::None)
        }
    };
    (unit) => {
        fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
            scalar(self.0, Scalar::Unit)
        }
    };
    (some) => {
        fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
            let mut erased = Erased::of(from);
            self.0.some(&mut erased).map_err(|error| error.restore(erased.kept))
        }
    };
    (newtype) => {
        fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
            let mut erased = Erased::of(from);
            self.0.newtype(&mut erased).map_err(|error| error.restore(erased.kept))
        }
    };
    (seq) => {
        fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<(), A::Error> {
            let mut erased = Erased { inner: Some(from), kept: None };
            self.0.seq(&mut erased).map_err(|error| error.restore(erased.kept))
        }
    };
    (map) => {
        fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<(), A::Error> {
            let mut erased = Erased { inner: Some(from), kept: None };
            self.0.map(&mut erased).map_err(|error| error.restore(erased.kept))
        }
    };
    (variant) => {
        fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<(), A::Error> {
            let access = Erased { inner: Some(from), kept: None };
            let mut erased = ErasedVariant { access, variant: None };
            self.0.variant(&mut erased).map_err(|error| error.restore(erased.access.kept))
        }
    };
}

macro_rules! bridges {
    ($($bridge:ident visits $($what:ident)+;)+) => {
        $(impl<'de> Visitor<'de> for $bridge<'_, 'de> {
            type Value = ();

            expects! {}
            $(visits! { $what })+
        })+
    };
}

bridges! {
    StructBridge visits seq map;
    OptionBridge visits none unit some;
    SeqBridge visits seq;
    MapBridge visits unit map;
    EnumBridge visits variant;
}

impl<'de> Visitor<'de> for NameBridge<'_, 'de> {
    type Value = ();

    expects! {}
    scalars! {
        visit_u64(u64) => Scalar::U64;
        visit_str(&str) => Scalar::Str;
    }

    fn visit_bytes<E: serde::de::Error>(self, name: &[u8]) -> Result<(), E> {
        self.visit_str(&String::from_utf8_lossy(name))
    }
}

impl<'de> Visitor<'de> for Bridge<'_, 'de> {
    type Value = ();

    expects! {}
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
    visits! { none }
    visits! { unit }
    visits! { some }
    visits! { newtype }
    visits! { seq }
    visits! { map }
    visits! { variant }
}
