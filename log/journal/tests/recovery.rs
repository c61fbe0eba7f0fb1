//! Every cut and every flipped byte of a small log is either a torn end, cut off, or damage, refused with its place.

use crate::support::*;
use journal::store::{Entry, LogId, StoreError};

const SEGMENT: u64 = 4096;
const FIRST: &str = "00000000000000000001.seg";

/// A first record, then groups: two entries; a batch; a vote; a batch; a note of what is committed, not synced; two batches.
/// The last group is the only one that no later record speaks for.
fn written() -> (Vec<Entry>, Contents) {
    let disk = Disk::new(1);
    let store = open(&disk, SEGMENT).unwrap();
    append(&store, &[membership(0), blank(1, 1)]);
    append(&store, &[batch_entry(2, 1, 1)]);
    vote(&store, b"a vote");
    append(&store, &[batch_entry(3, 1, 2)]);
    store.save_committed(LogId { index: 3, term: 1 }).unwrap();
    append(&store, &[batch_entry(4, 1, 3), batch_entry(5, 1, 4)]);
    let entries = all(&store);
    drop(store);
    (entries, disk.files())
}

/// Where each record begins, and where the last one ends.
fn records(segment: &[u8]) -> Vec<usize> {
    let mut at = vec![0];
    while let Some(record) = segment.get(*at.last().unwrap()..).filter(|rest| rest.starts_with(b"SJR1")) {
        let len = u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize;
        at.push(at.last().unwrap() + 64 + len.next_multiple_of(16));
    }
    at
}

#[test]
fn a_flipped_byte_is_damage_unless_it_may_be_a_torn_end() {
    let (entries, image) = written();
    let starts = records(&image[FIRST]);
    assert_eq!(starts.len(), 10, "nine records and their end");
    // The note of the commit and the group after it: nothing says that they were synced.
    let last_synced = starts[6];
    for at in 0..starts[9] + 64 {
        for flip in [0x01, 0xff] {
            let mut image = image.clone();
            image.get_mut(FIRST).unwrap()[at] ^= flip;
            let disk = disk_with(image);
            let record = starts.iter().rposition(|start| *start <= at).unwrap();
            match open(&disk, SEGMENT) {
                Err(StoreError::Damaged { file, offset, why }) => {
                    assert!(at < last_synced, "byte {at} may be torn: {why}");
                    assert_eq!((file.as_str(), offset), (FIRST, starts[record] as u64));
                }
                Err(other) => panic!("byte {at}: {other}"),
                Ok(store) => {
                    assert!(at >= last_synced, "byte {at} was safe");
                    // Records 1, 2, 3, 5, 7 and 8 hold the entries.
                    let kept = [1, 2, 3, 5, 7, 8].iter().filter(|entry| **entry < record).count();
                    assert_eq!(all(&store), entries[..kept], "byte {at}");
                    goes_on(store, &disk);
                }
            }
        }
    }
}

#[test]
fn a_write_that_was_cut_off_anywhere_leaves_a_prefix() {
    let (entries, image) = written();
    let starts = records(&image[FIRST]);
    for end in 0..=starts[9] {
        let mut image = image.clone();
        image.get_mut(FIRST).unwrap()[end..starts[9]].fill(0);
        let disk = disk_with(image);
        let store = open(&disk, SEGMENT).unwrap();
        let whole = [1, 2, 3, 5, 7, 8].iter().filter(|record| starts[**record + 1] <= end).count();
        let found = all(&store);
        assert!(found.len() >= whole && entries.starts_with(&found), "cut at {end}");
        goes_on(store, &disk);
    }
}

#[test]
fn sectors_of_the_last_group_may_arrive_in_any_order() {
    const SECTOR: usize = 64;
    let (entries, image) = written();
    let starts = records(&image[FIRST]);
    let sectors: Vec<usize> = (starts[7]..starts[9]).step_by(SECTOR).collect();
    for arrived in 0..1_u32 << sectors.len() {
        let mut image = image.clone();
        let segment = image.get_mut(FIRST).unwrap();
        let lost = sectors.iter().enumerate().filter(|(nth, _)| arrived >> nth & 1 == 0);
        lost.for_each(|(_, from)| segment[*from..(from + SECTOR).min(starts[9])].fill(0));
        let store = open(&disk_with(image), SEGMENT).unwrap_or_else(|error| panic!("{arrived:b}: {error}"));
        let found = all(&store);
        assert!(found.len() >= 4 && entries.starts_with(&found), "{arrived:b}");
    }
}

#[test]
fn a_file_that_was_shortened_is_refused() {
    let (_, image) = written();
    for len in 0..image[FIRST].len() {
        let mut image = image.clone();
        image.get_mut(FIRST).unwrap().truncate(len);
        let refused = open(&disk_with(image), SEGMENT).map(|_| ());
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "cut to {len}: {refused:?}");
    }
}

#[test]
fn no_byte_of_a_sealed_segment_changes_unseen() {
    let disk = Disk::new(1);
    {
        let store = open(&disk, 1024).unwrap();
        append(&store, &[membership(0), blank(1, 1)]);
        (1..=8).for_each(|nth| append(&store, &[batch_entry(nth + 1, 1, nth)]));
    }
    let image = disk.files();
    let entries = all(&open(&disk_with(image.clone()), 1024).unwrap());
    let sealed_end = *records(&image[FIRST]).last().unwrap();
    for at in 0..image[FIRST].len() {
        let mut image = image.clone();
        image.get_mut(FIRST).unwrap()[at] ^= 0x40;
        match open(&disk_with(image), 1024) {
            Err(StoreError::Damaged { file, .. }) => assert_eq!(file, FIRST),
            Err(other) => panic!("byte {at}: {other}"),
            Ok(store) => {
                assert!(at >= sealed_end, "byte {at} belongs to a record");
                assert_eq!(all(&store), entries);
            }
        }
    }
}

#[test]
fn a_missing_segment_is_refused() {
    let disk = Disk::new(1);
    {
        let store = open(&disk, 1024).unwrap();
        append(&store, &[membership(0), blank(1, 1)]);
        (1..=8).for_each(|nth| append(&store, &[batch_entry(nth + 1, 1, nth)]));
    }
    let mut image = disk.files();
    image.remove("00000000000000000002.seg").unwrap();
    let refused = open(&disk_with(image), 1024).map(|_| ()).unwrap_err();
    let why = "the log is damaged in segment 00000000000000000002.seg at byte 0: the segment is missing";
    assert_eq!(refused.to_string(), why);
}

#[test]
fn damage_found_later_is_refused_when_read() {
    let (_, image) = written();
    let disk = disk_with(image.clone());
    let store = open(&disk, SEGMENT).unwrap();
    let place = records(&image[FIRST])[3];
    use journal::store::Files;
    disk.open(FIRST).unwrap().write_at(&[0xff], place as u64 + 80).unwrap();
    let refused = store.entries(2..3, usize::MAX).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { offset, .. } if offset == place as u64), "{refused}");
}

#[test]
fn a_record_of_a_newer_release_is_named() {
    let (_, image) = written();
    let mut image = image;
    let segment = image.get_mut(FIRST).unwrap();
    segment[5] = 99;
    // The checksum covers where the record stands: in segment 1 at byte 0.
    let crc = crc32c::crc32c_append(crc32c::crc32c(&segment[..60]), &1_u64.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &0_u64.to_le_bytes());
    segment[60..64].copy_from_slice(&crc.to_le_bytes());
    let refused = open(&disk_with(image), SEGMENT).map(|_| ()).unwrap_err().to_string();
    assert!(refused.ends_with("it was written by a newer release"), "{refused}");
}

/// What was cut leaves a log that takes entries and survives another restart.
fn goes_on(store: journal::store::Store, disk: &Disk) {
    let next = store.last().map_or(0, |last| last.index + 1);
    append(&store, &[blank(next, 7)]);
    let entries = all(&store);
    drop(store);
    assert_eq!(all(&open(disk, SEGMENT).unwrap()), entries);
}
