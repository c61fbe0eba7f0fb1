//! The payload of a dispatched job: compressed on its way to a node, in Snappy's block format, as it is everywhere else.

/// Most bytes that a payload is decompressed to. Servers accept 16 KiB; more is an attack or an accident.
pub const DECOMPRESSED_MAX: usize = 1024 * 1024;

/// The bytes are not a Snappy block, or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload is not a valid snappy block")]
pub struct InvalidPayload;

/// Nothing stays nothing: a job without a payload has no block of length zero.
pub fn compress(payload: &[u8]) -> Vec<u8> {
    if payload.is_empty() {
        return Vec::new();
    }
    let block = snap::raw::Encoder::new().compress_vec(payload);
    block.expect("a payload is far smaller than the 4 GiB that a block may have")
}

pub fn decompress(block: &[u8]) -> Result<Vec<u8>, InvalidPayload> {
    let length = snap::raw::decompress_len(block).map_err(|_| InvalidPayload)?;
    if length > DECOMPRESSED_MAX {
        return Err(InvalidPayload);
    }
    snap::raw::Decoder::new().decompress_vec(block).map_err(|_| InvalidPayload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_survives_its_way() {
        for payload in [vec![], b"x".to_vec(), vec![b'a'; 16 * 1024], (0..=255).collect()] {
            assert_eq!(decompress(&compress(&payload)).unwrap_or_default(), payload);
        }
        // As another implementation wrote it: "ab" once, then a copy of 6 bytes from 2 back.
        assert_eq!(decompress(b"\x08\x04ab\x16\x02\x00").unwrap(), b"abababab");
    }

    #[test]
    fn damaged_and_huge_blocks_are_rejected() {
        for block in [&b"\x05\x10hell"[..], b"\x01\x04ab", b"\x08\x09\x02", b"\xff\xff\xff\x7f\x00"] {
            assert_eq!(decompress(block), Err(InvalidPayload), "{block:?}");
        }
    }
}
