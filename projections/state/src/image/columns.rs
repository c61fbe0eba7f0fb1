//! What a chunk is made of: columns one after the other, little-endian, each value of a fixed width. Texts are a
//! column of lengths and then their bytes; what varies in number is a column of counts and then its parts.

use std::collections::HashMap;

use base::{Index, Time, Uuid};

/// What is wrong with a chunk.
pub(super) type Fault = &'static str;

pub(super) const SHORT: Fault = "it ends within a column";
const NUMBER: Fault = "a state has a number that this server does not know";
pub(super) const REFERENCE: Fault = "a reference leads nowhere";

#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8s(&mut self, values: impl Iterator<Item = u8>) {
        self.0.extend(values);
    }

    pub fn flags(&mut self, values: impl Iterator<Item = bool>) {
        self.0.extend(values.map(u8::from));
    }

    pub fn u16s(&mut self, values: impl Iterator<Item = u16>) {
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    pub fn u32s(&mut self, values: impl Iterator<Item = u32>) {
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    pub fn counts(&mut self, values: impl Iterator<Item = usize>) {
        self.u32s(values.map(|count| u32::try_from(count).expect("nothing in a row has 4 billion parts")));
    }

    pub fn u64s(&mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    pub fn indexes(&mut self, values: impl Iterator<Item = Index>) {
        self.u64s(values.map(|index| index.0));
    }

    pub fn times(&mut self, values: impl Iterator<Item = Time>) {
        self.u64s(values.map(|time| time.0 as u64));
    }

    pub fn ids<I: Into<Uuid>>(&mut self, values: impl Iterator<Item = I>) {
        values.for_each(|id| self.0.extend_from_slice(&id.into().0));
    }

    pub fn optional_ids<I: Into<Uuid>>(&mut self, values: impl Iterator<Item = Option<I>> + Clone) {
        self.flags(values.clone().map(|id| id.is_some()));
        self.ids(values.flatten());
    }

    pub fn texts<'a>(&mut self, values: impl Iterator<Item = &'a [u8]> + Clone) {
        self.counts(values.clone().map(<[u8]>::len));
        values.for_each(|text| self.0.extend_from_slice(text));
    }
}

/// What several rows share, written once: the rows hold the place.
pub(super) struct Dictionary<'a, T: ?Sized> {
    entries: Vec<&'a T>,
    by_hash: HashMap<u64, u32>,
    last: u32,
}

impl<'a, T: PartialEq + ?Sized> Dictionary<'a, T> {
    pub fn new() -> Self {
        Dictionary { entries: Vec::new(), by_hash: HashMap::new(), last: 0 }
    }

    /// The place of `entry`. Neighbours mostly share: the last one is tried first.
    pub fn place(&mut self, entry: &'a T, hash: impl FnOnce(&T) -> u64) -> u32 {
        if self.entries.get(self.last as usize).is_some_and(|last| *last == entry) {
            return self.last;
        }
        let next = self.entries.len() as u32;
        let known = *self.by_hash.entry(hash(entry)).or_insert(next);
        self.last = if known == next || self.entries[known as usize] != entry { next } else { known };
        if self.last == next {
            self.entries.push(entry);
        }
        self.last
    }

    pub fn entries(&self) -> &[&'a T] {
        &self.entries
    }
}

impl Dictionary<'_, str> {
    pub fn write(&self, to: &mut Writer) {
        to.counts(std::iter::once(self.entries.len()));
        to.texts(self.entries.iter().map(|text| text.as_bytes()));
    }
}

pub(super) fn text_hash(text: &str) -> u64 {
    let mut hash = base::StableHash::new(0);
    hash.text(text);
    hash.finish()
}

/// Takes a chunk apart again. Nothing it returns reaches beyond the chunk, whatever the bytes are.
pub(super) struct Reader<'a>(pub &'a [u8]);

/// Fixed-width values.
#[derive(Clone, Copy)]
pub(super) struct Column<'a, const N: usize>(pub &'a [[u8; N]]);

impl<'a> Reader<'a> {
    pub fn column<const N: usize>(&mut self, len: usize) -> Result<Column<'a, N>, Fault> {
        let bytes = len.checked_mul(N).and_then(|bytes| self.0.split_at_checked(bytes));
        let (own, rest) = bytes.ok_or(SHORT)?;
        self.0 = rest;
        Ok(Column(own.as_chunks().0))
    }

    pub fn u8s(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        self.column::<1>(len).map(|column| column.0.as_flattened())
    }

    pub fn count(&mut self) -> Result<usize, Fault> {
        self.column::<4>(1).map(|column| column.u32(0) as usize)
    }

    pub fn texts(&mut self, len: usize) -> Result<Vec<&'a [u8]>, Fault> {
        let lengths: Column<'a, 4> = self.column(len)?;
        let mut take = |length: u32| self.u8s(length as usize);
        (0..len).map(|at| take(lengths.u32(at))).collect()
    }

    pub fn strings(&mut self, len: usize) -> Result<Vec<&'a str>, Fault> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8");
        self.texts(len)?.into_iter().map(text).collect()
    }

    pub fn optional_ids<I>(
        &mut self,
        len: usize,
        id: impl Fn(Uuid) -> I + Copy,
    ) -> Result<Vec<Option<I>>, Fault> {
        let there = self.u8s(len)?;
        let mut ids = self.column::<16>(there.iter().filter(|there| **there != 0).count())?.ids();
        Ok(there.iter().map(|there| if *there == 0 { None } else { ids.next().map(id) }).collect())
    }

    /// A column of counts and how many there are in all.
    pub fn counts(&mut self, len: usize) -> Result<(Column<'a, 4>, usize), Fault> {
        let counts: Column<'a, 4> = self.column(len)?;
        Ok((counts, (0..len).map(|at| counts.u32(at) as usize).sum()))
    }

    pub fn end(self) -> Result<(), Fault> {
        if self.0.is_empty() { Ok(()) } else { Err("there is more after its last column") }
    }
}

impl<'a> Column<'a, 16> {
    pub fn ids(self) -> impl Iterator<Item = Uuid> + 'a {
        self.0.iter().map(|bytes| Uuid(*bytes))
    }

    pub fn id(self, at: usize) -> Uuid {
        Uuid(self.0[at])
    }
}

impl Column<'_, 2> {
    pub fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at])
    }
}

impl Column<'_, 4> {
    pub fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at])
    }

    pub fn count(self, at: usize) -> usize {
        self.u32(at) as usize
    }
}

impl Column<'_, 8> {
    pub fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at])
    }

    pub fn index(self, at: usize) -> Index {
        Index(self.u64(at))
    }

    pub fn time(self, at: usize) -> Time {
        Time(self.u64(at) as i64)
    }
}

/// One of a closed set of states.
pub(super) fn state<T>(read: impl FnOnce(u8) -> Option<T>, number: u8) -> Result<T, Fault> {
    read(number).ok_or(NUMBER)
}

/// What a row refers to.
pub(super) fn at<T>(things: &[T], place: impl TryInto<usize>) -> Result<&T, Fault> {
    place.try_into().ok().and_then(|place| things.get(place)).ok_or(REFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_share_a_place_even_if_hashes_clash() {
        let mut words: Dictionary<'_, str> = Dictionary::new();
        let places: Vec<u32> =
            ["a", "b", "a", "b", "c", "a"].map(|word| words.place(word, text_hash)).to_vec();
        assert_eq!(places, [0, 1, 0, 1, 2, 0]);
        let mut words: Dictionary<'_, str> = Dictionary::new();
        let places: Vec<u32> = ["a", "b", "a"].map(|word| words.place(word, |_| 7)).to_vec();
        assert_eq!(places, [0, 1, 0]);
        assert_eq!(words.entries(), ["a", "b"]);
    }

    #[test]
    fn columns_survive_their_bytes() {
        let mut writer = Writer::default();
        writer.u16s([1, 2].into_iter());
        writer.texts([&b"x"[..], b"", b"yz"].into_iter());
        writer.optional_ids([Some(Uuid::from(1)), None].into_iter());
        let mut reader = Reader(&writer.0);
        assert_eq!(reader.column::<2>(2).unwrap().u16(1), 2);
        assert_eq!(reader.strings(3).unwrap(), ["x", "", "yz"]);
        assert_eq!(reader.optional_ids(2, |id| id).unwrap(), [Some(Uuid::from(1)), None]);
        reader.end().unwrap();
        for len in 0..writer.0.len() {
            let mut reader = Reader(&writer.0[..len]);
            let all = reader.column::<2>(2).and_then(|_| reader.strings(3));
            assert!(all.and_then(|_| reader.optional_ids(2, |id| id)).is_err(), "{len} bytes");
        }
    }
}
