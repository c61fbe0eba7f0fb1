//! Documents without what is zero: most fields of most documents are, and a missing one is read as zero.
//!
//! Only fields of structs are left out; never entries of maps or lists, and never what an `Option` holds. So structs of
//! documents derive `Default` and are read with `#[serde(default)]`; `tests/documents.rs` holds them to it.

use serde::ser::{
    Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple,
    SerializeTupleStruct, Serializer,
};

use rmp_serde::encode::Error;

/// Self-describing msgpack, structs as maps.
pub(crate) fn to_vec<T: Serialize + ?Sized>(document: &T) -> Result<Vec<u8>, Error> {
    let mut sparse = Sparse { out: rmp_serde::Serializer::new(Vec::new()), zero: false };
    document.serialize(&mut sparse)?;
    Ok(sparse.out.into_inner())
}

/// Writes everything once, and takes a field back that turned out to be zero.
struct Sparse {
    out: rmp_serde::Serializer<Vec<u8>>,
    /// What was written last is what a missing field is read as.
    zero: bool,
}

impl Sparse {
    /// Writes how many entries a list has; they are written to `self` then.
    fn list(&mut self, len: Option<usize>) -> Result<Entries<'_>, Error> {
        drop(self.out.serialize_seq(Some(counted(len)?))?);
        Ok(Entries { zero: len == Some(0), to: self })
    }

    /// Writes how many entries a map has; they are written to `self` then.
    fn map(&mut self, len: Option<usize>) -> Result<Entries<'_>, Error> {
        drop(self.out.serialize_map(Some(counted(len)?))?);
        Ok(Entries { zero: len == Some(0), to: self })
    }
}

fn counted(len: Option<usize>) -> Result<usize, Error> {
    len.ok_or_else(|| Error::custom("lists and maps of documents know their length"))
}

macro_rules! scalars {
    ($($method:ident($value:ident: $type:ty) is zero if $zero:expr;)+) => {
        $(fn $method(self, $value: $type) -> Result<(), Error> {
            self.zero = $zero;
            self.out.$method($value)
        })+
    };
}

impl<'a> Serializer for &'a mut Sparse {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Entries<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeTuple = Entries<'a>;
    type SerializeTupleStruct = Entries<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    scalars! {
        serialize_bool(value: bool) is zero if !value;
        serialize_i8(value: i8) is zero if value == 0;
        serialize_i16(value: i16) is zero if value == 0;
        serialize_i32(value: i32) is zero if value == 0;
        serialize_i64(value: i64) is zero if value == 0;
        serialize_u8(value: u8) is zero if value == 0;
        serialize_u16(value: u16) is zero if value == 0;
        serialize_u32(value: u32) is zero if value == 0;
        serialize_u64(value: u64) is zero if value == 0;
        // Not the negative one, which is equal to it.
        serialize_f32(value: f32) is zero if value.to_bits() == 0;
        serialize_f64(value: f64) is zero if value.to_bits() == 0;
        serialize_char(value: char) is zero if value == '\0';
        serialize_str(value: &str) is zero if value.is_empty();
        serialize_bytes(value: &[u8]) is zero if value.is_empty();
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self)?;
        self.zero = false;
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.zero = true;
        self.out.serialize_unit()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Entries<'a>, Error> {
        self.list(len)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Entries<'a>, Error> {
        self.map(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Entries<'a>, Error> {
        Ok(Entries { zero: false, ..self.list(Some(len))? })
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Entries<'a>, Error> {
        self.serialize_tuple(len)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'a>, Error> {
        let start = self.out.get_ref().len();
        self.out.get_mut().push(0);
        Ok(Fields { to: self, start, count: 0 })
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.zero = false;
        self.out.serialize_str(variant)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        number: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        self.serialize_tuple_variant(name, number, variant, 1).map(|_| ())
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(Error::custom(format!("{name}::{variant}: documents have no variants that hold something")))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        number: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        self.serialize_tuple_variant(name, number, variant, len)
    }
}

/// All of a list, a map or a tuple.
struct Entries<'a> {
    to: &'a mut Sparse,
    zero: bool,
}

impl Entries<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.to)
    }

    fn done(self) {
        self.to.zero = self.zero;
    }
}

macro_rules! entries {
    ($($trait:ident: $($add:ident)+;)+) => {
        $(impl $trait for Entries<'_> {
            type Ok = ();
            type Error = Error;

            $(fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.add(value)
            })+

            fn end(self) -> Result<(), Error> {
                self.done();
                Ok(())
            }
        })+
    };
}

entries! {
    SerializeSeq: serialize_element;
    SerializeMap: serialize_key serialize_value;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
}

/// What is not zero of a struct. How much that is, is known at the end.
struct Fields<'a> {
    to: &'a mut Sparse,
    start: usize,
    count: usize,
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        let before = self.to.out.get_ref().len();
        self.to.out.serialize_str(key)?;
        value.serialize(&mut *self.to)?;
        match self.to.zero {
            true => self.to.out.get_mut().truncate(before),
            false => self.count += 1,
        }
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        self.to.zero = self.count == 0;
        let mut head = rmp_serde::Serializer::new(Vec::new());
        drop(head.serialize_map(Some(self.count))?);
        let place = self.start..=self.start;
        self.to.out.get_mut().splice(place, head.into_inner());
        Ok(())
    }
}
