use std::fmt;

use serde::de::{self, Expected, Unexpected};
use serde::ser;

/// An error on its way through the type-erased layer.
///
/// It is turned back into the error of the format by the same constructor it was made with, so that formats word and
/// locate errors as they do without the layer.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
pub struct Error(Box<Kind>);

#[derive(Debug)]
enum Kind {
    /// The format's own error. The adapter that got it keeps it and puts it back in place.
    Kept,
    Custom(String),
    InvalidType(Found, String),
    InvalidValue(Found, String),
    InvalidLength(usize, String),
    UnknownVariant(String, &'static [&'static str]),
    UnknownField(String, &'static [&'static str]),
    MissingField(&'static str),
    DuplicateField(&'static str),
}

impl Error {
    pub fn kept() -> Error {
        Error(Box::new(Kind::Kept))
    }

    /// The error of the format, which is `kept` if it came from there.
    pub fn restore<E: de::Error>(self, kept: Option<E>) -> E {
        match *self.0 {
            Kind::Kept => kept.expect("the adapter that returned the error has kept it"),
            Kind::Custom(message) => E::custom(message),
            Kind::InvalidType(found, expected) => E::invalid_type(found.get(), &expected.as_str()),
            Kind::InvalidValue(found, expected) => E::invalid_value(found.get(), &expected.as_str()),
            Kind::InvalidLength(length, expected) => E::invalid_length(length, &expected.as_str()),
            Kind::UnknownVariant(variant, known) => E::unknown_variant(&variant, known),
            Kind::UnknownField(field, known) => E::unknown_field(&field, known),
            Kind::MissingField(field) => E::missing_field(field),
            Kind::DuplicateField(field) => E::duplicate_field(field),
        }
    }
}

impl Error {
    /// [`Error::restore`] for errors of serializers, which have one constructor.
    pub fn restore_written<E: ser::Error>(self, kept: Option<E>) -> E {
        match *self.0 {
            Kind::Kept => kept.expect("the adapter that returned the error has kept it"),
            Kind::Custom(message) => E::custom(message),
            other => E::custom(format_args!("{other:?}")),
        }
    }
}

impl ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Error {
        Error(Box::new(Kind::Custom(message.to_string())))
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Error {
        Error(Box::new(Kind::Custom(message.to_string())))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error(Box::new(Kind::InvalidType(Found::of(found), expected.to_string())))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error(Box::new(Kind::InvalidValue(Found::of(found), expected.to_string())))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Error {
        Error(Box::new(Kind::InvalidLength(length, expected.to_string())))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Error {
        Error(Box::new(Kind::UnknownVariant(variant.to_string(), known)))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Error {
        Error(Box::new(Kind::UnknownField(field.to_string(), known)))
    }

    fn missing_field(field: &'static str) -> Error {
        Error(Box::new(Kind::MissingField(field)))
    }

    fn duplicate_field(field: &'static str) -> Error {
        Error(Box::new(Kind::DuplicateField(field)))
    }
}

/// [`Unexpected`] that owns its data.
#[derive(Debug)]
enum Found {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Char(char),
    Str(String),
    Bytes(Vec<u8>),
    Unit,
    Option,
    NewtypeStruct,
    Seq,
    Map,
    Enum,
    UnitVariant,
    NewtypeVariant,
    TupleVariant,
    StructVariant,
    Other(String),
}

impl Found {
    fn of(found: Unexpected<'_>) -> Found {
        match found {
            Unexpected::Bool(value) => Found::Bool(value),
            Unexpected::Unsigned(value) => Found::Unsigned(value),
            Unexpected::Signed(value) => Found::Signed(value),
            Unexpected::Float(value) => Found::Float(value),
            Unexpected::Char(value) => Found::Char(value),
            Unexpected::Str(value) => Found::Str(value.to_string()),
            Unexpected::Bytes(value) => Found::Bytes(value.to_vec()),
            Unexpected::Unit => Found::Unit,
            Unexpected::Option => Found::Option,
            Unexpected::NewtypeStruct => Found::NewtypeStruct,
            Unexpected::Seq => Found::Seq,
            Unexpected::Map => Found::Map,
            Unexpected::Enum => Found::Enum,
            Unexpected::UnitVariant => Found::UnitVariant,
            Unexpected::NewtypeVariant => Found::NewtypeVariant,
            Unexpected::TupleVariant => Found::TupleVariant,
            Unexpected::StructVariant => Found::StructVariant,
            Unexpected::Other(value) => Found::Other(value.to_string()),
        }
    }

    fn get(&self) -> Unexpected<'_> {
        match self {
            Found::Bool(value) => Unexpected::Bool(*value),
            Found::Unsigned(value) => Unexpected::Unsigned(*value),
            Found::Signed(value) => Unexpected::Signed(*value),
            Found::Float(value) => Unexpected::Float(*value),
            Found::Char(value) => Unexpected::Char(*value),
            Found::Str(value) => Unexpected::Str(value),
            Found::Bytes(value) => Unexpected::Bytes(value),
            Found::Unit => Unexpected::Unit,
            Found::Option => Unexpected::Option,
            Found::NewtypeStruct => Unexpected::NewtypeStruct,
            Found::Seq => Unexpected::Seq,
            Found::Map => Unexpected::Map,
            Found::Enum => Unexpected::Enum,
            Found::UnitVariant => Unexpected::UnitVariant,
            Found::NewtypeVariant => Unexpected::NewtypeVariant,
            Found::TupleVariant => Unexpected::TupleVariant,
            Found::StructVariant => Unexpected::StructVariant,
            Found::Other(value) => Unexpected::Other(value),
        }
    }
}
