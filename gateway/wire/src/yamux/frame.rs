//! The twelve bytes before everything.

use super::MuxError;

pub(super) const HEADER_LEN: usize = 12;

pub(super) const SYN: u16 = 1;
pub(super) const ACK: u16 = 2;
pub(super) const FIN: u16 = 4;
pub(super) const RST: u16 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Data,
    WindowUpdate,
    Ping,
    GoAway,
}

/// `length` is the body's size for data, credit for a window update, an opaque number for a ping and a reason
/// for a go-away. Only data has a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: FrameKind,
    pub flags: u16,
    pub stream: u32,
    pub length: u32,
}

impl Header {
    pub(super) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn body_len(&self) -> u32 {
        if self.kind == FrameKind::Data { self.length } else { 0 }
    }

    pub(super) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[1] = match self.kind {
            FrameKind::Data => 0,
            FrameKind::WindowUpdate => 1,
            FrameKind::Ping => 2,
            FrameKind::GoAway => 3,
        };
        bytes[2..4].copy_from_slice(&self.flags.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.stream.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// # Errors
    /// [`MuxError::Protocol`] for another version or an unknown type.
    pub(super) fn decode(bytes: [u8; HEADER_LEN]) -> Result<Header, MuxError> {
        let [version, kind, f0, f1, s0, s1, s2, s3, l0, l1, l2, l3] = bytes;
        if version != 0 {
            return Err(MuxError::Protocol("unknown version"));
        }
        let kind = match kind {
            0 => FrameKind::Data,
            1 => FrameKind::WindowUpdate,
            2 => FrameKind::Ping,
            3 => FrameKind::GoAway,
            _ => return Err(MuxError::Protocol("unknown frame type")),
        };
        Ok(Header {
            kind,
            flags: u16::from_be_bytes([f0, f1]),
            stream: u32::from_be_bytes([s0, s1, s2, s3]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_twelve_bytes_big_endian() {
        let header =
            Header { kind: FrameKind::WindowUpdate, flags: SYN | FIN, stream: 3, length: 0x0004_0000 };
        let bytes = [0, 1, 0, 5, 0, 0, 0, 3, 0, 4, 0, 0];
        assert_eq!(header.encode(), bytes);
        assert_eq!(Header::decode(bytes), Ok(header));
    }

    #[test]
    fn other_versions_and_types_are_refused() {
        assert!(Header::decode([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Header::decode([0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
