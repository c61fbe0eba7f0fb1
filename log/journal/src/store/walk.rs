//! From record to record through one segment, by what their headers say: payloads are read only where they are asked for.

use bytes::Bytes;

use super::StoreError;
use super::contents::SegmentFile;
use super::places::{Offset, Places};
use super::record::{HEADER, Header, Kind, Spot};
use super::scan::{bad_record, damaged};

/// Read from a file at once: enough to make a scan sequential, little enough to be kept alive by one of its batches.
pub(super) const CHUNK: u64 = 1 << 20;

pub(super) struct Walk<'a> {
    segment: &'a SegmentFile,
    /// Read at once, unless a record is longer.
    chunk: u64,
    /// What was read last, and where it begins.
    bytes: Bytes,
    start: u64,
    /// Where the next record begins.
    at: u64,
}

impl<'a> Walk<'a> {
    /// Begins with the first record.
    pub fn new(segment: &'a SegmentFile, chunk: u64) -> Walk<'a> {
        Walk { segment, chunk, bytes: Bytes::new(), start: 0, at: 0 }
    }

    /// A record begins at `offset`: it comes next.
    pub fn go_to(&mut self, offset: u64) {
        self.at = offset;
    }

    /// The next record, and where it begins.
    pub fn record(&mut self) -> Result<(Header, u64), StoreError> {
        let at = self.at;
        let bytes = self.read(at, HEADER as u64)?;
        let header = Header::read(&bytes, self.spot(at));
        let header = header.map_err(|bad| bad_record(self.segment.number, at, bad, ""))?;
        self.at += header.size();
        Ok((header, at))
    }

    /// The next entry, and where its record begins.
    pub fn entry(&mut self) -> Result<(Header, u64), StoreError> {
        loop {
            let (header, at) = self.record()?;
            match header.kind {
                kind if kind.is_entry() => return Ok((header, at)),
                Kind::Truncate | Kind::Seal => return Err(self.out_of_place(at)),
                _ => {}
            }
        }
    }

    /// The next entry lies in what was read already.
    pub fn holds_entry(&self) -> bool {
        let mut at = self.at;
        while let Ok(header) = Header::read(&self.held(at), self.spot(at)) {
            at += header.size();
            if header.kind.is_entry() {
                return at <= self.start + self.bytes.len() as u64;
            }
        }
        false
    }

    /// So many bytes from `offset` on, or what the file has of them.
    pub fn read(&mut self, offset: u64, len: u64) -> Result<Bytes, StoreError> {
        if (self.held(offset).len() as u64) < len {
            self.bytes = read_chunk(self.segment, offset, len.max(self.chunk))?;
            self.start = offset;
        }
        let held = self.held(offset);
        Ok(held.slice(..held.len().min(len as usize)))
    }

    /// What was read from `offset` on.
    fn held(&self, offset: u64) -> Bytes {
        match offset.checked_sub(self.start) {
            Some(at) => self.bytes.slice((at as usize).min(self.bytes.len())..),
            None => Bytes::new(),
        }
    }

    fn spot(&self, offset: u64) -> Spot {
        Spot { segment: self.segment.number, offset }
    }

    fn out_of_place(&self, offset: u64) -> StoreError {
        damaged(self.segment.number, offset, "another record stands where an entry was written")
    }
}

/// The places of the entries of a segment that is complete.
pub(super) fn places(segment: &SegmentFile) -> Result<Places, StoreError> {
    let (mut places, mut next) = (Places::default(), None);
    let mut walk = Walk::new(segment, CHUNK);
    loop {
        let (header, at) = walk.record()?;
        let entry = header.raft_index;
        match header.kind {
            kind if kind.is_entry() => {
                if next.is_some_and(|next| next != entry) {
                    return Err(walk.out_of_place(at));
                }
                places.push(entry, Offset::new(at));
                next = Some(entry + 1);
            }
            Kind::Truncate => {
                places.truncate(entry);
                next = Some(entry);
            }
            Kind::Seal => return Ok(places),
            _ => {}
        }
    }
}

fn read_chunk(segment: &SegmentFile, start: u64, len: u64) -> Result<Bytes, StoreError> {
    let end = segment.file.size().map_err(StoreError::io("measure a segment"))?;
    let mut bytes = vec![0; len.min(end.saturating_sub(start)) as usize];
    segment.file.read_at(&mut bytes, start.min(end)).map_err(StoreError::io("read the log"))?;
    Ok(Bytes::from(bytes))
}
