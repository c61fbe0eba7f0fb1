//! The format itself: what the first bytes of a value say. Shared by the decoder and the scanner.

use crate::Error;

pub(crate) const NIL: u8 = 0xc0;
pub(crate) const FALSE: u8 = 0xc2;
pub(crate) const TRUE: u8 = 0xc3;
pub(crate) const F32: u8 = 0xca;
pub(crate) const F64: u8 = 0xcb;
pub(crate) const U8: u8 = 0xcc;
pub(crate) const U16: u8 = 0xcd;
pub(crate) const U32: u8 = 0xce;
pub(crate) const U64: u8 = 0xcf;
pub(crate) const I8: u8 = 0xd0;
pub(crate) const I16: u8 = 0xd1;
pub(crate) const I32: u8 = 0xd2;
pub(crate) const I64: u8 = 0xd3;
pub(crate) const RAW16: u8 = 0xda;
pub(crate) const RAW32: u8 = 0xdb;
pub(crate) const ARRAY16: u8 = 0xdc;
pub(crate) const ARRAY32: u8 = 0xdd;
pub(crate) const MAP16: u8 = 0xde;
pub(crate) const MAP32: u8 = 0xdf;

/// The start of a value: scalars whole, the rest as the length of what follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Head {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// Text or bytes: the family does not say which.
    Raw(u32),
    /// The type byte counts as part of the head.
    Extension(u32),
    Array(u32),
    /// In pairs.
    Map(u32),
}

/// Reads a head and its size in bytes. `None` when `input` does not hold all of it yet.
///
/// # Errors
/// [`Error::Reserved`] for the one byte that begins nothing.
pub(crate) fn parse(input: &[u8]) -> Result<Option<(Head, usize)>, Error> {
    let Some((&first, rest)) = input.split_first() else { return Ok(None) };
    let small = match first {
        0x00..=0x7f => Head::Unsigned(u64::from(first)),
        0x80..=0x8f => Head::Map(u32::from(first & 0x0f)),
        0x90..=0x9f => Head::Array(u32::from(first & 0x0f)),
        0xa0..=0xbf => Head::Raw(u32::from(first & 0x1f)),
        0xc0 => Head::Nil,
        0xc1 => return Err(Error::Reserved),
        0xc2 => Head::Bool(false),
        0xc3 => Head::Bool(true),
        0xe0..=0xff => Head::Signed(i64::from(first as i8)),
        _ => return Ok(wide(first, rest)),
    };
    Ok(Some((small, 1)))
}

fn wide(first: u8, rest: &[u8]) -> Option<(Head, usize)> {
    let short =
        |head: fn(u32) -> Head, width: usize| Some((head(big_endian(rest, width)? as u32), 1 + width));
    let extension = |width: usize| {
        let length = big_endian(rest, width)? as u32;
        rest.get(width)?;
        Some((Head::Extension(length), 2 + width))
    };
    match first {
        0xc4 | 0xd9 => short(Head::Raw, 1),
        0xc5 | RAW16 => short(Head::Raw, 2),
        0xc6 | RAW32 => short(Head::Raw, 4),
        0xc7 => extension(1),
        0xc8 => extension(2),
        0xc9 => extension(4),
        F32 => Some((Head::Float(f64::from(f32::from_bits(big_endian(rest, 4)? as u32))), 5)),
        F64 => Some((Head::Float(f64::from_bits(big_endian(rest, 8)?)), 9)),
        U8..=U64 => {
            let width = 1 << (first - U8);
            Some((Head::Unsigned(big_endian(rest, width)?), 1 + width))
        }
        I8..=I64 => {
            let width = 1 << (first - I8);
            let unused = 64 - 8 * width as u32;
            let value = (big_endian(rest, width)? << unused) as i64 >> unused;
            Some((Head::Signed(value), 1 + width))
        }
        0xd4..=0xd8 => {
            rest.first()?;
            Some((Head::Extension(1 << (first - 0xd4)), 2))
        }
        ARRAY16 => short(Head::Array, 2),
        ARRAY32 => short(Head::Array, 4),
        MAP16 => short(Head::Map, 2),
        MAP32 => short(Head::Map, 4),
        _ => unreachable!("every other first byte is a small head"),
    }
}

fn big_endian(bytes: &[u8], width: usize) -> Option<u64> {
    let bytes = bytes.get(..width)?;
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
