//! What belongs to the type: its visitors and seeds behind `dyn`, and the deserializer and accesses that it sees.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::{Fields, Hint, MISSING, Scalar, Seed, Seq, Source, TWICE, Target, Variant};
use crate::codec::Error;

/// A visitor of the type, and what it made. `K` is what the visitor accepts.
struct Slot<'de, V: Visitor<'de>, K> {
    visitor: Option<V>,
    value: Option<V::Value>,
    kind: PhantomData<K>,
}

// What visitors accept, as the bridges of `format` have it.
struct Anything;
struct StructParts;
struct Name;
struct Maybe;
struct List;
struct Map;
struct Enum;

impl<'de, V: Visitor<'de>, K> Slot<'de, V, K> {
    fn fill(&mut self, made: Result<V::Value, Error>) -> Result<(), Error> {
        self.value = Some(made?);
        Ok(())
    }

    fn take(&mut self) -> V {
        self.visitor.take().expect(TWICE)
    }
}

macro_rules! accepts {
    (expecting) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.visitor.as_ref().map_or(Ok(()), |visitor| visitor.expecting(f))
        }
    };
    (some) => {
        fn some(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error> {
            let made = self.take().visit_some(Reader(from));
            self.fill(made)
        }
    };
    (newtype) => {
        fn newtype(&mut self, from: &mut dyn Source<'de>) -> Result<(), Error> {
            let made = self.take().visit_newtype_struct(Reader(from));
            self.fill(made)
        }
    };
    (seq) => {
        fn seq(&mut self, from: &mut dyn Seq<'de>) -> Result<(), Error> {
            let made = self.take().visit_seq(Items(from));
            self.fill(made)
        }
    };
    (map) => {
        fn map(&mut self, from: &mut dyn Fields<'de>) -> Result<(), Error> {
            let made = self.take().visit_map(Entries(from));
            self.fill(made)
        }
    };
    (variant) => {
        fn variant(&mut self, from: &mut dyn Variant<'de>) -> Result<(), Error> {
            let made = self.take().visit_enum(Choice(from));
            self.fill(made)
        }
    };
    (none) => {
        fn scalar(&mut self, value: Scalar<'_, 'de>) -> Result<(), Error> {
            let visitor = self.take();
            let made = if let Scalar::None = value { visitor.visit_none() } else { visitor.visit_unit() };
            self.fill(made)
        }
    };
    (unit) => {
        fn scalar(&mut self, _: Scalar<'_, 'de>) -> Result<(), Error> {
            let made = self.take().visit_unit();
            self.fill(made)
        }
    };
    (name) => {
        fn scalar(&mut self, value: Scalar<'_, 'de>) -> Result<(), Error> {
            let visitor = self.take();
            let made = match value {
                Scalar::U64(number) => visitor.visit_u64(number),
                Scalar::Str(name) => visitor.visit_str(name),
                _ => return super::never(),
            };
            self.fill(made)
        }
    };
    (scalar) => {
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
    };
}

macro_rules! targets {
    ($($kind:ident accepts $($what:ident)+;)+) => {
        $(impl<'de, V: Visitor<'de>> Target<'de> for Slot<'de, V, $kind> {
            accepts! { expecting }
            $(accepts! { $what })+
        })+
    };
}

targets! {
    Anything accepts scalar some newtype seq map variant;
    StructParts accepts seq map;
    Name accepts name;
    Maybe accepts none some;
    List accepts seq;
    Map accepts unit map;
    Enum accepts variant;
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

fn visit<'de, V: Visitor<'de>, K>(
    visitor: V,
    read: impl FnOnce(&mut Slot<'de, V, K>) -> Result<(), Error>,
) -> Result<V::Value, Error> {
    let mut slot = Slot { visitor: Some(visitor), value: None, kind: PhantomData };
    read(&mut slot)?;
    Ok(slot.value.expect(MISSING))
}

macro_rules! hints {
    ($($method:ident($($name:ident: $type:ty),*) => $hint:expr, $kind:ident;)+) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Error> {
            visit::<V, $kind>(visitor, |slot| self.0.read($hint, slot))
        })+
    };
}

impl<'de> Deserializer<'de> for Reader<'_, 'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }

    hints! {
        deserialize_any() => Hint::Any, Anything;
        deserialize_bool() => Hint::Bool, Anything;
        deserialize_i8() => Hint::I8, Anything;
        deserialize_i16() => Hint::I16, Anything;
        deserialize_i32() => Hint::I32, Anything;
        deserialize_i64() => Hint::I64, Anything;
        deserialize_u8() => Hint::U8, Anything;
        deserialize_u16() => Hint::U16, Anything;
        deserialize_u32() => Hint::U32, Anything;
        deserialize_u64() => Hint::U64, Anything;
        deserialize_f32() => Hint::F32, Anything;
        deserialize_f64() => Hint::F64, Anything;
        deserialize_char() => Hint::Char, Anything;
        deserialize_str() => Hint::Str, Anything;
        deserialize_string() => Hint::String, Anything;
        deserialize_bytes() => Hint::Bytes, Anything;
        deserialize_byte_buf() => Hint::ByteBuf, Anything;
        deserialize_option() => Hint::Option, Maybe;
        deserialize_unit() => Hint::Unit, Anything;
        deserialize_unit_struct(name: &'static str) => Hint::UnitStruct(name), Anything;
        deserialize_newtype_struct(name: &'static str) => Hint::NewtypeStruct(name), Anything;
        deserialize_seq() => Hint::Seq, List;
        deserialize_tuple(len: usize) => Hint::Tuple(len), Anything;
        deserialize_tuple_struct(name: &'static str, len: usize) => Hint::TupleStruct(name, len), Anything;
        deserialize_map() => Hint::Map, Map;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) => Hint::Struct(name, fields), StructParts;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) => Hint::Enum(name, variants), Enum;
        deserialize_identifier() => Hint::Identifier, Name;
        deserialize_ignored_any() => Hint::Ignored, Anything;
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
        visit::<V, Anything>(visitor, |slot| self.0.tuple(len, slot))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visit::<V, StructParts>(visitor, |slot| self.0.fields(fields, slot))
    }
}
