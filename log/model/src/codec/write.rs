//! Serializers behind `dyn`: [`Sink`] is a serializer of a format, [`Value`] a part that is written.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::Error;

/// A value without parts.
#[derive(Clone, Copy)]
pub enum Scalar<'a> {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    Char(char),
    Str(&'a str),
    Bytes(&'a [u8]),
    None,
    Unit,
    UnitStruct(&'static str),
    UnitVariant(&'static str, u32, &'static str),
}

/// A value that holds one other.
#[derive(Clone, Copy)]
pub enum Wrapper {
    Some,
    Newtype(&'static str),
    NewtypeVariant(&'static str, u32, &'static str),
}

/// A value with parts, with their number.
#[derive(Clone, Copy)]
pub enum Compound {
    Seq(Option<usize>),
    Tuple(usize),
    TupleStruct(&'static str, usize),
    TupleVariant(&'static str, u32, &'static str, usize),
    Map(Option<usize>),
    Struct(&'static str, usize),
    StructVariant(&'static str, u32, &'static str, usize),
}

/// One part of a compound.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    Item(&'a dyn Value),
    Key(&'a dyn Value),
    Value(&'a dyn Value),
    Field(&'static str, &'a dyn Value),
    /// A field that is left out.
    Skipped(&'static str),
}

/// A serializer. Either `scalar` or `wrapper` is called, or `begin`, `part` for each part and `end`.
pub trait Sink {
    fn is_human_readable(&self) -> bool;
    fn scalar(&mut self, value: Scalar<'_>) -> Result<(), Error>;
    fn wrapper(&mut self, wrapper: Wrapper, value: &dyn Value) -> Result<(), Error>;
    fn begin(&mut self, compound: Compound) -> Result<(), Error>;
    fn part(&mut self, part: Part<'_>) -> Result<(), Error>;
    fn end(&mut self) -> Result<(), Error>;
}

/// A value of any type.
pub trait Value {
    fn write(&self, to: &mut dyn Sink) -> Result<(), Error>;
}

const ORDER: &str = "serde begins a compound, writes its parts and ends it";

/// Writes one value of `T` with a function that is compiled once, to a serializer of any format.
pub fn write<S: Serializer, T>(
    value: &T,
    to: S,
    write: fn(&T, &mut dyn Sink) -> Result<(), Error>,
) -> Result<S::Ok, S::Error> {
    let mut erased = Erased { stage: Stage::Ready(to), kept: None };
    match write(value, &mut erased) {
        Ok(()) => Ok(erased.done()),
        Err(error) => Err(error.restore_written(erased.kept)),
    }
}

// What belongs to the format: its serializers behind `dyn`.

struct Erased<S: Serializer> {
    stage: Stage<S>,
    kept: Option<S::Error>,
}

enum Stage<S: Serializer> {
    Ready(S),
    Seq(S::SerializeSeq),
    Tuple(S::SerializeTuple),
    TupleStruct(S::SerializeTupleStruct),
    TupleVariant(S::SerializeTupleVariant),
    Map(S::SerializeMap),
    Struct(S::SerializeStruct),
    StructVariant(S::SerializeStructVariant),
    Done(S::Ok),
    /// While a step is under way, and after an error.
    Empty,
}

impl<S: Serializer> Erased<S> {
    fn done(self) -> S::Ok {
        let Stage::Done(written) = self.stage else { unreachable!("{ORDER}") };
        written
    }

    fn take(&mut self) -> Stage<S> {
        std::mem::replace(&mut self.stage, Stage::Empty)
    }

    fn ready(&mut self) -> S {
        let Stage::Ready(to) = self.take() else { unreachable!("{ORDER}") };
        to
    }

    fn keep<T>(&mut self, result: Result<T, S::Error>) -> Result<T, Error> {
        result.map_err(|error| {
            self.kept = Some(error);
            Error::kept()
        })
    }

    fn finish(&mut self, result: Result<S::Ok, S::Error>) -> Result<(), Error> {
        self.stage = Stage::Done(self.keep(result)?);
        Ok(())
    }
}

impl<S: Serializer> Sink for Erased<S> {
    fn is_human_readable(&self) -> bool {
        matches!(&self.stage, Stage::Ready(to) if to.is_human_readable())
    }

    fn scalar(&mut self, value: Scalar<'_>) -> Result<(), Error> {
        let to = self.ready();
        let written = match value {
            Scalar::Bool(value) => to.serialize_bool(value),
            Scalar::I8(value) => to.serialize_i8(value),
            Scalar::I16(value) => to.serialize_i16(value),
            Scalar::I32(value) => to.serialize_i32(value),
            Scalar::I64(value) => to.serialize_i64(value),
            Scalar::U8(value) => to.serialize_u8(value),
            Scalar::U16(value) => to.serialize_u16(value),
            Scalar::U32(value) => to.serialize_u32(value),
            Scalar::U64(value) => to.serialize_u64(value),
            Scalar::F32(value) => to.serialize_f32(value),
            Scalar::F64(value) => to.serialize_f64(value),
            Scalar::Char(value) => to.serialize_char(value),
            Scalar::Str(value) => to.serialize_str(value),
            Scalar::Bytes(value) => to.serialize_bytes(value),
            Scalar::None => to.serialize_none(),
            Scalar::Unit => to.serialize_unit(),
            Scalar::UnitStruct(name) => to.serialize_unit_struct(name),
            Scalar::UnitVariant(name, index, variant) => to.serialize_unit_variant(name, index, variant),
        };
        self.finish(written)
    }

    fn wrapper(&mut self, wrapper: Wrapper, value: &dyn Value) -> Result<(), Error> {
        let to = self.ready();
        let written = match wrapper {
            Wrapper::Some => to.serialize_some(&Shim(value)),
            Wrapper::Newtype(name) => to.serialize_newtype_struct(name, &Shim(value)),
            Wrapper::NewtypeVariant(name, index, variant) => {
                to.serialize_newtype_variant(name, index, variant, &Shim(value))
            }
        };
        self.finish(written)
    }

    fn begin(&mut self, compound: Compound) -> Result<(), Error> {
        let to = self.ready();
        let begun = match compound {
            Compound::Seq(len) => to.serialize_seq(len).map(Stage::Seq),
            Compound::Tuple(len) => to.serialize_tuple(len).map(Stage::Tuple),
            Compound::TupleStruct(name, len) => to.serialize_tuple_struct(name, len).map(Stage::TupleStruct),
            Compound::TupleVariant(name, index, variant, len) => {
                to.serialize_tuple_variant(name, index, variant, len).map(Stage::TupleVariant)
            }
            Compound::Map(len) => to.serialize_map(len).map(Stage::Map),
            Compound::Struct(name, len) => to.serialize_struct(name, len).map(Stage::Struct),
            Compound::StructVariant(name, index, variant, len) => {
                to.serialize_struct_variant(name, index, variant, len).map(Stage::StructVariant)
            }
        };
        self.stage = self.keep(begun)?;
        Ok(())
    }

    fn part(&mut self, part: Part<'_>) -> Result<(), Error> {
        let written = match (&mut self.stage, part) {
            (Stage::Seq(to), Part::Item(value)) => to.serialize_element(&Shim(value)),
            (Stage::Tuple(to), Part::Item(value)) => to.serialize_element(&Shim(value)),
            (Stage::TupleStruct(to), Part::Item(value)) => to.serialize_field(&Shim(value)),
            (Stage::TupleVariant(to), Part::Item(value)) => to.serialize_field(&Shim(value)),
            (Stage::Map(to), Part::Key(key)) => to.serialize_key(&Shim(key)),
            (Stage::Map(to), Part::Value(value)) => to.serialize_value(&Shim(value)),
            (Stage::Struct(to), Part::Field(name, value)) => to.serialize_field(name, &Shim(value)),
            (Stage::Struct(to), Part::Skipped(name)) => to.skip_field(name),
            (Stage::StructVariant(to), Part::Field(name, value)) => to.serialize_field(name, &Shim(value)),
            (Stage::StructVariant(to), Part::Skipped(name)) => to.skip_field(name),
            _ => unreachable!("{ORDER}"),
        };
        self.keep(written)
    }

    fn end(&mut self) -> Result<(), Error> {
        let ended = match self.take() {
            Stage::Seq(to) => to.end(),
            Stage::Tuple(to) => to.end(),
            Stage::TupleStruct(to) => to.end(),
            Stage::TupleVariant(to) => to.end(),
            Stage::Map(to) => to.end(),
            Stage::Struct(to) => to.end(),
            Stage::StructVariant(to) => to.end(),
            Stage::Ready(_) | Stage::Done(_) | Stage::Empty => unreachable!("{ORDER}"),
        };
        self.finish(ended)
    }
}

/// A part that the format writes for the type.
struct Shim<'a>(&'a dyn Value);

impl Serialize for Shim<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        write(&self.0, to, |value, to| value.write(to))
    }
}

// What belongs to the type: its parts behind `dyn`, and the serializer that it sees.

struct Whole<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Value for Whole<'_, T> {
    fn write(&self, to: &mut dyn Sink) -> Result<(), Error> {
        self.0.serialize(Writer(to))
    }
}

/// The serializer that every document is written to, whatever the format.
pub struct Writer<'a>(pub &'a mut dyn Sink);

impl<'a> Writer<'a> {
    fn begin(self, compound: Compound) -> Result<Parts<'a>, Error> {
        self.0.begin(compound)?;
        Ok(Parts(self.0))
    }
}

macro_rules! scalars {
    ($($method:ident($($name:ident: $type:ty),*) => $scalar:expr;)+) => {
        $(fn $method(self, $($name: $type),*) -> Result<(), Error> {
            self.0.scalar($scalar)
        })+
    };
}

macro_rules! compounds {
    ($($method:ident($($name:ident: $type:ty),*) => $compound:expr;)+) => {
        $(fn $method(self, $($name: $type),*) -> Result<Parts<'a>, Error> {
            self.begin($compound)
        })+
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }

    scalars! {
        serialize_bool(value: bool) => Scalar::Bool(value);
        serialize_i8(value: i8) => Scalar::I8(value);
        serialize_i16(value: i16) => Scalar::I16(value);
        serialize_i32(value: i32) => Scalar::I32(value);
        serialize_i64(value: i64) => Scalar::I64(value);
        serialize_u8(value: u8) => Scalar::U8(value);
        serialize_u16(value: u16) => Scalar::U16(value);
        serialize_u32(value: u32) => Scalar::U32(value);
        serialize_u64(value: u64) => Scalar::U64(value);
        serialize_f32(value: f32) => Scalar::F32(value);
        serialize_f64(value: f64) => Scalar::F64(value);
        serialize_char(value: char) => Scalar::Char(value);
        serialize_str(value: &str) => Scalar::Str(value);
        serialize_bytes(value: &[u8]) => Scalar::Bytes(value);
        serialize_none() => Scalar::None;
        serialize_unit() => Scalar::Unit;
        serialize_unit_struct(name: &'static str) => Scalar::UnitStruct(name);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str) =>
            Scalar::UnitVariant(name, index, variant);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.0.wrapper(Wrapper::Some, &Whole(value))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.0.wrapper(Wrapper::Newtype(name), &Whole(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.0.wrapper(Wrapper::NewtypeVariant(name, index, variant), &Whole(value))
    }

    compounds! {
        serialize_seq(len: Option<usize>) => Compound::Seq(len);
        serialize_tuple(len: usize) => Compound::Tuple(len);
        serialize_tuple_struct(name: &'static str, len: usize) => Compound::TupleStruct(name, len);
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, len: usize) =>
            Compound::TupleVariant(name, index, variant, len);
        serialize_map(len: Option<usize>) => Compound::Map(len);
        serialize_struct(name: &'static str, len: usize) => Compound::Struct(name, len);
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, len: usize) =>
            Compound::StructVariant(name, index, variant, len);
    }
}

/// The parts of a compound.
pub struct Parts<'a>(&'a mut dyn Sink);

macro_rules! parts {
    ($($trait:ident: $($method:ident => $part:ident)+;)+) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            $(fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.0.part(Part::$part(&Whole(value)))
            })+

            fn end(self) -> Result<(), Error> {
                self.0.end()
            }
        })+
    };
}

parts! {
    SerializeSeq: serialize_element => Item;
    SerializeTuple: serialize_element => Item;
    SerializeTupleStruct: serialize_field => Item;
    SerializeTupleVariant: serialize_field => Item;
    SerializeMap: serialize_key => Key serialize_value => Value;
}

macro_rules! fields {
    ($($trait:ident)+) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.0.part(Part::Field(name, &Whole(value)))
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), Error> {
                self.0.part(Part::Skipped(name))
            }

            fn end(self) -> Result<(), Error> {
                self.0.end()
            }
        })+
    };
}

fields! { SerializeStruct SerializeStructVariant }
