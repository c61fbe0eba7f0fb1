//! Images of the state: read back equal, made of what changed, and never taken for another state.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::{History, missing};
use bytes::Bytes;
use model::{Chunk, ChunkId, EPOCH, Image};
use state::image::{ImageError, Imager, restore};
use state::{REQUESTS_KEPT, State};

#[test]
fn a_state_is_read_back_as_it_was_at_every_step() {
    let (mut old_versions, mut log) = (0, Vec::new());
    for seed in 0..4 {
        let (mut history, mut imager, mut kept) = (History::new(seed), Imager::default(), Kept::default());
        for step in 0..1_200 {
            let image = kept.keep(imager.image(&history.state));
            let ids = |image: &Image| image.chunks.iter().map(|chunk| chunk.id).collect::<Vec<_>>();
            let whole = Imager::default().image(&history.state);
            assert_eq!(ids(&image), ids(&whole), "what changed and the whole differ at step {step}");
            check(&history.state, &image, &format!("seed {seed}, step {step}"));
            history.step();
        }
        old_versions += with_old_version(&history.state);
        log.append(&mut history.log);
    }
    assert_eq!(missing(&log), [""; 0], "the histories have every kind of event");
    assert!(old_versions > 10, "allocations run versions that their jobs dropped: {old_versions}");
}

#[test]
fn an_image_of_a_newer_release_is_refused_by_name() {
    let mut state = History::of(3, 60).state;
    state.raised = Some(EPOCH + 1);
    let why = restore(&Imager::default().image(&state)).unwrap_err();
    assert_eq!(why, ImageError::UnknownEpoch(EPOCH + 1));
    assert!(why.to_string().ends_with("it was written by a newer release"), "{why}");
}

#[test]
fn a_large_state_is_read_back_as_it_was() {
    let history = History::of(9, 2_000);
    assert!(history.state.allocs.len() > 600, "{} allocations fill pages", history.state.allocs.len());
    check(&history.state, &Imager::default().image(&history.state), "large");
}

/// I8.
#[test]
fn an_image_and_the_rest_of_the_log_are_the_whole_log() {
    let history = History::of(21, 300);
    for at in [0, 1, 50, 150, 299, 300] {
        let mut state = State::default();
        history.log[..at].iter().for_each(|batch| drop(state.apply(batch).unwrap()));
        let mut restored = restore(&Imager::default().image(&state)).unwrap();
        for batch in &history.log[at..] {
            restored.apply(batch).unwrap();
            assert_eq!(restored.digest(), restored.recomputed_digest());
        }
        assert!(restored == history.state, "from {at}");
    }
}

#[test]
fn requests_are_forgotten_after_a_restart_as_before() {
    let mut state = State::default();
    let mut restored = restore(&Imager::default().image(&state)).unwrap();
    let record = |n: u64| model::CommandRecord {
        request: model::RequestId(u128::from(n + 1).into()),
        kind: 1,
        actor: model::Actor::ANONYMOUS,
    };
    let each = REQUESTS_KEPT as u64 / 16;
    for batch in 0..20_u64 {
        let mut next = state.next_batch(base::Time(1), base::Uuid::NIL);
        next.commands = (0..each).map(|n| record(batch * each + n)).collect();
        state.apply(&next).unwrap();
        restored.apply(&next).unwrap();
        let image = Imager::default().image(&restored);
        restored = restore(&image).unwrap();
        assert!(restored == state, "batch {batch}");
    }
    assert_eq!(state.remembered(record(0).request), None);
    assert!(restored.remembered(record(20 * each - 1).request).is_some());
}

#[test]
fn only_what_changed_comes_with_bytes() {
    let mut history = History::of(9, 2_000);
    let mut imager = Imager::default();
    let whole = imager.image(&history.state);
    assert!(whole.chunks.iter().all(|chunk| chunk.bytes.is_some()));
    assert_eq!(with_bytes(&imager.image(&history.state)), 0, "nothing changed");
    history.step();
    let changed = with_bytes(&imager.image(&history.state));
    assert!((1..=15).contains(&changed), "{changed} of {} chunks", whole.chunks.len());
    imager.reset();
    let whole = imager.image(&history.state);
    assert_eq!(with_bytes(&whole), whole.chunks.len());
}

#[test]
fn what_was_shared_is_shared_again() {
    let history = History::of(9, 2_000);
    let state = restore(&Imager::default().image(&history.state)).unwrap();
    let mut pairs = 0;
    let allocs: Vec<_> = history.state.allocs.iter().zip(state.allocs.iter()).collect();
    for ((_, one), (_, read_one)) in &allocs {
        let kept = |state: &State| {
            let versions = &state.jobs.get(one.job).versions;
            versions.iter().position(|kept| Arc::ptr_eq(kept, &state.allocs.lookup(one.id).unwrap().version))
        };
        assert_eq!(kept(&history.state), kept(&state));
        let others = allocs.iter().filter(|((_, other), _)| other.created == one.created);
        for ((_, other), (_, read_other)) in others {
            assert!(
                !one.template.is_shared(&other.template) || read_one.template.is_shared(&read_other.template)
            );
            assert!(
                !one.metrics.is_shared(&other.metrics) || read_one.metrics.is_shared(&read_other.metrics)
            );
            assert!(
                !Arc::ptr_eq(&one.group, &other.group) || Arc::ptr_eq(&read_one.group, &read_other.group)
            );
            pairs += 1;
        }
    }
    assert!(pairs > allocs.len(), "some were placed together");
}

#[test]
fn a_damaged_image_is_refused_whatever_is_damaged() {
    let history = History::of(3, 60);
    let image = Imager::default().image(&history.state);
    let damaged = |number: usize, bytes: Vec<u8>| {
        let mut damaged = image.clone();
        damaged.chunks[number] = Chunk::new(bytes.into());
        restore(&damaged)
    };
    let mut tables = BTreeMap::new();
    for (number, chunk) in image.chunks.iter().enumerate() {
        let bytes = chunk.bytes.as_ref().unwrap().to_vec();
        for at in (0..bytes.len()).step_by(if number == 0 { 1 } else { 19 }) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            match damaged(number, flipped) {
                Ok(state) => assert!(state == history.state, "chunk {number}, byte {at} is not seen"),
                Err(ImageError::Damaged { table, .. }) => *tables.entry(table).or_insert(0) += 1,
                Err(_) => {}
            }
        }
        for len in [0, 1, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            assert!(len == bytes.len() || damaged(number, bytes[..len].to_vec()).is_err(), "chunk {number}");
        }
        assert!(damaged(number, [&bytes[..], &[0]].concat()).is_err(), "chunk {number} with a byte more");
    }
    assert!(tables.len() >= 5, "{tables:?}");
}

#[test]
fn what_is_wrong_is_said() {
    let history = History::of(3, 120);
    let image = Imager::default().image(&history.state);
    let said = |change: &dyn Fn(&mut Image)| {
        let mut image = image.clone();
        change(&mut image);
        restore(&image).unwrap_err().to_string()
    };
    let bytes = |number: usize| image.chunks[number].bytes.as_ref().unwrap().to_vec();
    let newer = said(&|image| {
        let mut contents = bytes(0);
        contents[8] = 9;
        image.chunks[0] = Chunk::new(contents.into());
    });
    assert_eq!(
        newer,
        "format 9 of the state's image is not known to this server: it was written by a newer release"
    );
    let cut = said(&|image| image.chunks[1] = Chunk::new(bytes(1)[..9].to_vec().into()));
    assert_eq!(cut, "the image of the state is damaged in table nodes, chunk 0: it ends within a column");
    let without = said(&|image| image.chunks[1].bytes = None);
    assert_eq!(without, "the image of the state is damaged in table nodes, chunk 0: its bytes are missing");
    let fewer = said(&|image| drop(image.chunks.pop()));
    let (has, tells) = (image.chunks.len() - 2, image.chunks.len() - 1);
    assert_eq!(fewer, format!("the image of the state has {has} chunks, but its contents list {tells}"));
    let other = said(&|image| image.index = image.index.next());
    assert_eq!(other, "the image of the state is of index 120, where that of 121 was expected");
    assert_eq!(said(&|image| image.chunks.clear()), "the image of the state has no table of contents");
}

fn check(state: &State, image: &Image, what: &str) {
    let restored = restore(image).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(restored == *state, "{what}: another state is read back");
    assert_eq!(restored.digest(), restored.recomputed_digest(), "{what}");
}

fn with_bytes(image: &Image) -> usize {
    image.chunks.iter().filter(|chunk| chunk.bytes.is_some()).count()
}

fn with_old_version(state: &State) -> usize {
    let runs_old = |alloc: &&state::alloc::Alloc| {
        !state.jobs.get(alloc.job).versions.iter().any(|kept| Arc::ptr_eq(kept, &alloc.version))
    };
    state.allocs.iter().map(|(_, alloc)| alloc).filter(runs_old).count()
}

/// What the log does with images: it has the bytes of the last one.
#[derive(Default)]
struct Kept(BTreeMap<ChunkId, Bytes>);

impl Kept {
    fn keep(&mut self, image: Image) -> Image {
        let before = std::mem::take(&mut self.0);
        let whole = |chunk: Chunk| {
            let bytes = chunk.bytes.unwrap_or_else(|| before[&chunk.id].clone());
            assert_eq!(ChunkId::of(&bytes), chunk.id);
            self.0.insert(chunk.id, bytes.clone());
            Chunk { id: chunk.id, bytes: Some(bytes) }
        };
        Image { index: image.index, chunks: image.chunks.into_iter().map(whole).collect() }
    }
}
