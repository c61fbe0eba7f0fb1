use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::Error;
use crate::head::{
    ARRAY16, ARRAY32, F32, F64, FALSE, I8, I16, I32, I64, MAP16, MAP32, NIL, RAW16, RAW32, TRUE, U8, U16,
    U32, U64,
};
use crate::raw::RAW;

/// Writes values one after the other.
#[derive(Default)]
pub(crate) struct Encoder {
    out: Vec<u8>,
    /// The next bytes are a value already: see [`crate::Raw`].
    verbatim: bool,
}

impl Encoder {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    fn tagged<const N: usize>(&mut self, tag: u8, value: [u8; N]) {
        self.out.push(tag);
        self.out.extend_from_slice(&value);
    }

    fn unsigned(&mut self, value: u64) {
        if value < 0x80 {
            self.out.push(value as u8);
        } else if let Ok(value) = u8::try_from(value) {
            self.tagged(U8, value.to_be_bytes());
        } else if let Ok(value) = u16::try_from(value) {
            self.tagged(U16, value.to_be_bytes());
        } else if let Ok(value) = u32::try_from(value) {
            self.tagged(U32, value.to_be_bytes());
        } else {
            self.tagged(U64, value.to_be_bytes());
        }
    }

    fn signed(&mut self, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.unsigned(value);
        } else if value >= -32 {
            self.out.push(value as u8);
        } else if let Ok(value) = i8::try_from(value) {
            self.tagged(I8, value.to_be_bytes());
        } else if let Ok(value) = i16::try_from(value) {
            self.tagged(I16, value.to_be_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.tagged(I32, value.to_be_bytes());
        } else {
            self.tagged(I64, value.to_be_bytes());
        }
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match bytes.len() {
            length @ 0..32 => self.out.push(0xa0 | length as u8),
            length => self.long(length, RAW16, RAW32)?,
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn long(&mut self, length: usize, tag16: u8, tag32: u8) -> Result<(), Error> {
        if let Ok(length) = u16::try_from(length) {
            self.tagged(tag16, length.to_be_bytes());
        } else {
            let length = u32::try_from(length).map_err(|_| Error::TooLong)?;
            self.tagged(tag32, length.to_be_bytes());
        }
        Ok(())
    }

    fn block_head(&mut self, kind: Kind, length: usize) -> Result<(), Error> {
        match (kind, length) {
            (Kind::Array, 0..16) => self.out.push(0x90 | length as u8),
            (Kind::Map, 0..16) => self.out.push(0x80 | length as u8),
            (Kind::Array, _) => self.long(length, ARRAY16, ARRAY32)?,
            (Kind::Map, _) => self.long(length, MAP16, MAP32)?,
        }
        Ok(())
    }

    fn block(&mut self, kind: Kind, declared: Option<usize>) -> Result<Block<'_>, Error> {
        let start = self.out.len();
        if let Some(length) = declared {
            self.block_head(kind, length)?;
        }
        let body = self.out.len();
        Ok(Block { encoder: self, kind, declared, start, body, count: 0 })
    }

    /// A variant with content is a map of one entry.
    fn variant(&mut self, name: &str) -> Result<(), Error> {
        self.block_head(Kind::Map, 1)?;
        self.raw(name.as_bytes())
    }
}

pub(crate) fn map_head(pairs: usize) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder::default();
    encoder.block_head(Kind::Map, pairs)?;
    Ok(encoder.out)
}

#[derive(Clone, Copy)]
enum Kind {
    Array,
    Map,
}

/// An array or map being written.
pub(crate) struct Block<'a> {
    encoder: &'a mut Encoder,
    kind: Kind,
    declared: Option<usize>,
    start: usize,
    body: usize,
    count: usize,
}

impl Block<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        self.count += 1;
        item.serialize(&mut *self.encoder)
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        self.encoder.raw(key.as_bytes())?;
        self.item(value)
    }

    /// The head goes before content of unknown length only now: flattened structs do not know it earlier.
    fn close(self) -> Result<(), Error> {
        if self.declared == Some(self.count) {
            return Ok(());
        }
        let mut head = Encoder::default();
        head.block_head(self.kind, self.count)?;
        self.encoder.out.splice(self.start..self.body, head.out);
        Ok(())
    }
}

impl<'a> Serializer for &'a mut Encoder {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Block<'a>;
    type SerializeTuple = Block<'a>;
    type SerializeTupleStruct = Block<'a>;
    type SerializeTupleVariant = Block<'a>;
    type SerializeMap = Block<'a>;
    type SerializeStruct = Block<'a>;
    type SerializeStructVariant = Block<'a>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.push(if value { TRUE } else { FALSE });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.signed(value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(u64::from(value))
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(u64::from(value))
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(u64::from(value))
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.unsigned(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.tagged(F32, value.to_be_bytes());
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.tagged(F64, value.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.raw(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        if std::mem::take(&mut self.verbatim) {
            self.out.extend_from_slice(value);
            return Ok(());
        }
        self.raw(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.push(NIL);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.verbatim = name == RAW;
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant)?;
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Block<'a>, Error> {
        self.block(Kind::Array, length)
    }

    fn serialize_tuple(self, length: usize) -> Result<Block<'a>, Error> {
        self.block(Kind::Array, Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Block<'a>, Error> {
        self.block(Kind::Array, Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Block<'a>, Error> {
        self.variant(variant)?;
        self.block(Kind::Array, Some(length))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Block<'a>, Error> {
        self.block(Kind::Map, length)
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Block<'a>, Error> {
        self.block(Kind::Map, Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Block<'a>, Error> {
        self.variant(variant)?;
        self.block(Kind::Map, Some(length))
    }
}

macro_rules! items {
    ($($of:ident :: $each:ident),*) => {$(
        impl $of for Block<'_> {
            type Ok = ();
            type Error = Error;

            fn $each<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )*};
}

items!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

macro_rules! fields {
    ($($of:ident),*) => {$(
        impl $of for Block<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.entry(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Block<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(&mut *self.encoder)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
