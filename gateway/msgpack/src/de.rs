use serde::Deserializer;
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use crate::head::{self, Head, NIL};
use crate::raw::RAW;
use crate::{Error, Scan};

/// Deepest nesting that is read. A job's deepest field lies about 15 levels down, a task's own configuration
/// may go on from there; a level costs well under 4 KiB of stack, so 128 stay within a quarter of a thread's.
pub const DEPTH_MAX: usize = 128;

pub(crate) struct Decoder<'de> {
    input: &'de [u8],
    at: usize,
    depth: usize,
}

/// A value, with what it holds when that is not values itself.
enum Token<'de> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Raw(&'de [u8]),
    Extension(&'de [u8]),
    Array(u32),
    Map(u32),
}

impl<'de> Decoder<'de> {
    pub(crate) fn new(input: &'de [u8]) -> Self {
        Decoder { input, at: 0, depth: 0 }
    }

    pub(crate) fn finish(&self) -> Result<(), Error> {
        match self.left() {
            0 => Ok(()),
            surplus => Err(Error::Trailing(surplus)),
        }
    }

    fn left(&self) -> usize {
        self.input.len() - self.at
    }

    fn is_nil(&self) -> bool {
        self.input.get(self.at) == Some(&NIL)
    }

    fn take(&mut self, length: usize) -> Result<&'de [u8], Error> {
        let bytes = self.input[self.at..].get(..length).ok_or(Error::Truncated)?;
        self.at += length;
        Ok(bytes)
    }

    /// Lengths are checked against what is left, so that no promise of a peer reserves memory.
    fn token(&mut self) -> Result<Token<'de>, Error> {
        let (head, size) = head::parse(&self.input[self.at..])?.ok_or(Error::Truncated)?;
        self.at += size;
        let promised = match head {
            Head::Array(items) => u64::from(items),
            Head::Map(pairs) => 2 * u64::from(pairs),
            _ => 0,
        };
        if promised > self.left() as u64 {
            return Err(Error::Truncated);
        }
        Ok(match head {
            Head::Nil => Token::Nil,
            Head::Bool(value) => Token::Bool(value),
            Head::Unsigned(value) => Token::Unsigned(value),
            Head::Signed(value) => Token::Signed(value),
            Head::Float(value) => Token::Float(value),
            Head::Raw(length) => Token::Raw(self.take(length as usize)?),
            Head::Extension(length) => Token::Extension(self.take(length as usize)?),
            Head::Array(items) => Token::Array(items),
            Head::Map(pairs) => Token::Map(pairs),
        })
    }

    fn skip(&mut self) -> Result<&'de [u8], Error> {
        let length = Scan::default().advance(&self.input[self.at..])?.ok_or(Error::Truncated)?;
        self.take(length)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array<V: Visitor<'de>>(&mut self, items: u32, visitor: V) -> Result<V::Value, Error> {
        self.nested(|decoder| {
            let mut items = Items { decoder, left: items };
            let value = visitor.visit_seq(&mut items)?;
            surplus(items.left)?;
            Ok(value)
        })
    }

    fn map<V: Visitor<'de>>(&mut self, pairs: u32, nil: Nil, visitor: V) -> Result<V::Value, Error> {
        self.nested(|decoder| {
            let mut entries = Entries { decoder, left: pairs, nil };
            let value = visitor.visit_map(&mut entries)?;
            surplus(entries.left)?;
            Ok(value)
        })
    }

    fn visit<V: Visitor<'de>>(&mut self, token: Token<'de>, visitor: V) -> Result<V::Value, Error> {
        match token {
            Token::Nil => visitor.visit_unit(),
            Token::Bool(value) => visitor.visit_bool(value),
            Token::Unsigned(value) => visitor.visit_u64(value),
            Token::Signed(value) => visitor.visit_i64(value),
            Token::Float(value) => visitor.visit_f64(value),
            Token::Raw(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => visitor.visit_borrowed_str(text),
                Err(_) => visitor.visit_borrowed_bytes(bytes),
            },
            Token::Extension(bytes) => visitor.visit_borrowed_bytes(bytes),
            Token::Array(items) => self.array(items, visitor),
            Token::Map(pairs) => self.map(pairs, Nil::Kept, visitor),
        }
    }
}

fn surplus(left: u32) -> Result<(), Error> {
    if left == 0 { Ok(()) } else { Err(Error::Surplus(u64::from(left))) }
}

/// Nil is the zero value of whatever was asked for.
macro_rules! zero_for_nil {
    ($($method:ident => $visit:ident($zero:expr),)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.token()? {
                Token::Nil => visitor.$visit($zero),
                token => self.visit(token, visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Decoder<'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let token = self.token()?;
        self.visit(token, visitor)
    }

    zero_for_nil! {
        deserialize_bool => visit_bool(false),
        deserialize_i8 => visit_u64(0),
        deserialize_i16 => visit_u64(0),
        deserialize_i32 => visit_u64(0),
        deserialize_i64 => visit_u64(0),
        deserialize_u8 => visit_u64(0),
        deserialize_u16 => visit_u64(0),
        deserialize_u32 => visit_u64(0),
        deserialize_u64 => visit_u64(0),
        deserialize_f32 => visit_f64(0.0),
        deserialize_f64 => visit_f64(0.0),
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    /// Text that is not UTF-8 is mended: Go lets any bytes be a string, and one odd driver message must not
    /// cost a whole report.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_borrowed_str(""),
            Token::Raw(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => visitor.visit_borrowed_str(text),
                Err(_) => visitor.visit_string(String::from_utf8_lossy(bytes).into_owned()),
            },
            token => self.visit(token, visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_borrowed_bytes(&[]),
            Token::Raw(bytes) => visitor.visit_borrowed_bytes(bytes),
            token => self.visit(token, visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_nil() {
            self.at += 1;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == RAW {
            return visitor.visit_borrowed_bytes(self.skip()?);
        }
        visitor.visit_newtype_struct(self)
    }

    /// Go writes a slice of any byte type as raw.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_seq(SeqDeserializer::<_, Error>::new(std::iter::empty::<u8>())),
            Token::Raw(bytes) => visitor.visit_seq(SeqDeserializer::<_, Error>::new(bytes.iter().copied())),
            token => self.visit(token, visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_map(no_entries()),
            token => self.visit(token, visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Nil => visitor.visit_map(no_entries()),
            Token::Map(pairs) => self.map(pairs, Nil::Absent, visitor),
            token => self.visit(token, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Raw(name) => {
                let name = std::str::from_utf8(name).map_err(Error::custom)?;
                let variant: StrDeserializer<'_, Error> = name.into_deserializer();
                visitor.visit_enum(variant)
            }
            Token::Map(1) => self.nested(|decoder| visitor.visit_enum(Variant(decoder))),
            _ => Err(Error::custom("expected the name of a variant, or a map with one")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }
}

fn no_entries<'de>() -> MapDeserializer<'de, std::iter::Empty<(u8, u8)>, Error> {
    MapDeserializer::new(std::iter::empty())
}

struct Items<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    left: u32,
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// What a nil entry means.
#[derive(Clone, Copy, PartialEq)]
enum Nil {
    /// In a map: an entry like any other.
    Kept,
    /// In a struct: the field was not sent, so it stays at its zero value.
    Absent,
}

struct Entries<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    left: u32,
    nil: Nil,
}

impl Entries<'_, '_> {
    fn skip_nil_fields(&mut self) -> Result<(), Error> {
        while self.left > 0 {
            let before = self.decoder.at;
            self.decoder.skip()?;
            if !self.decoder.is_nil() {
                self.decoder.at = before;
                return Ok(());
            }
            self.decoder.at += 1;
            self.left -= 1;
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for &mut Entries<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.nil == Nil::Absent {
            self.skip_nil_fields()?;
        }
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.decoder)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

struct Variant<'a, 'de>(&'a mut Decoder<'de>);

impl<'a, 'de> EnumAccess<'de> for Variant<'a, 'de> {
    type Error = Error;
    type Variant = Variant<'a, 'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), Error> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        de::Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_struct("", &[], visitor)
    }
}
