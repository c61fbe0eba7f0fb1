//! Decoding Snappy's block format, in which payloads of dispatched jobs travel.
//!
//! A length, then elements: literal bytes, or copies of what was decoded before. Twenty lines are cheaper than
//! a dependency.

/// Most bytes a payload decodes to. Servers accept 16 KiB; more is an attack or an accident.
pub const DECODED_MAX: usize = 1024 * 1024;

/// The bytes are not a Snappy block, or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload is not a valid snappy block")]
pub struct Corrupt;

pub fn decode(mut input: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let length = length(&mut input)?;
    let mut out = Vec::with_capacity(length);
    while !input.is_empty() {
        let tag = take(&mut input, 1)?[0];
        match tag & 3 {
            0 => literal(tag, &mut input, &mut out)?,
            kind => copy(tag, kind, &mut input, &mut out)?,
        }
        if out.len() > length {
            return Err(Corrupt);
        }
    }
    if out.len() == length { Ok(out) } else { Err(Corrupt) }
}

/// Seven bits a byte, lowest first.
fn length(input: &mut &[u8]) -> Result<usize, Corrupt> {
    let mut length = 0;
    for shift in (0..35).step_by(7) {
        let byte = take(input, 1)?[0];
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return if length <= DECODED_MAX { Ok(length) } else { Err(Corrupt) };
        }
    }
    Err(Corrupt)
}

fn literal(tag: u8, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Corrupt> {
    let short = usize::from(tag >> 2);
    let length = if short < 60 { short } else { number(take(input, short - 59)?) };
    out.extend_from_slice(take(input, length + 1)?);
    Ok(())
}

fn copy(tag: u8, kind: u8, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Corrupt> {
    let (length, offset) = match kind {
        1 => {
            let low = usize::from(take(input, 1)?[0]);
            (4 + usize::from(tag >> 2 & 7), usize::from(tag >> 5) << 8 | low)
        }
        2 => (1 + usize::from(tag >> 2), number(take(input, 2)?)),
        _ => (1 + usize::from(tag >> 2), number(take(input, 4)?)),
    };
    let start = out.len().checked_sub(offset).filter(|_| offset > 0).ok_or(Corrupt)?;
    // Byte by byte: a copy may reach into what it is just writing.
    for at in start..start + length {
        out.push(out[at]);
    }
    Ok(())
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
}

fn take<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8], Corrupt> {
    let (head, tail) = input.split_at_checked(count).ok_or(Corrupt)?;
    *input = tail;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_decoded() {
        assert_eq!(decode(b"\x00").unwrap(), b"");
        assert_eq!(decode(b"\x05\x10hello").unwrap(), b"hello");
        // "ab" once, then a copy of 6 bytes from 2 back.
        assert_eq!(decode(b"\x08\x04ab\x09\x02").unwrap(), b"abababab");
        // The same copy with a two-byte offset; and a literal with its length in an extra byte.
        assert_eq!(decode(b"\x08\x04ab\x16\x02\x00").unwrap(), b"abababab");
        assert_eq!(decode(b"\x03\xf0\x02abc").unwrap(), b"abc");
    }

    #[test]
    fn damaged_blocks_are_rejected() {
        let cases: [&[u8]; 7] = [
            b"",
            b"\x05\x10hell",
            b"\x02\x00a",
            b"\x01\x04ab",
            b"\x08\x09\x02",
            b"\x04\x09\x00",
            b"\xff\xff\xff\xff\x7f",
        ];
        for input in cases {
            assert_eq!(decode(input), Err(Corrupt), "{input:?}");
        }
    }
}
