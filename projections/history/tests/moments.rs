//! States of the past, from a log, from images and from what is held.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base::{Index, Time};
use history::{History, HistoryError, States};
use journal::{EncodedBatch, MemoryJournal, encode};
use model::AllocId;
use parking_lot::Mutex;
use state::State;
use test_world::World;

use crate::life::Deaf;

const PATIENCE: Duration = Duration::from_secs(120);
/// Images are far apart: a log that has some is long.
const BATCHES: usize = 5_000;

/// A log, and the state that each batch led to.
struct Past {
    batches: Vec<EncodedBatch>,
    states: Vec<State>,
}

static PAST: LazyLock<Past> = LazyLock::new(|| {
    let mut world = World::new();
    for number in 0..BATCHES as u128 {
        world.now.0 += (number % 3) as i64;
        // Some nodes, which come again and again, each time in another rack.
        world.register_node(number % 50, &format!("rack-{number}-{}", "x".repeat(1_500))).unwrap();
    }
    let mut state = State::default();
    let states = world.log.iter().map(|batch| {
        state.apply(batch).unwrap();
        state.clone()
    });
    let states = states.collect();
    Past { batches: world.log.iter().map(encode).collect(), states }
});

/// What a server has published.
#[derive(Clone, Default)]
struct Published(Arc<Mutex<(Arc<State>, Arc<State>)>>);

impl States for Published {
    fn published(&self) -> Arc<State> {
        self.0.lock().0.clone()
    }

    fn origin(&self) -> Arc<State> {
        self.0.lock().1.clone()
    }
}

impl Published {
    fn all() -> Published {
        let published = Published::default();
        published.0.lock().0 = Arc::new(PAST.states.last().unwrap().clone());
        published
    }
}

fn journal() -> Arc<MemoryJournal> {
    Arc::new(MemoryJournal::with(PAST.batches.clone(), Deaf))
}

/// A history that has read the whole log.
fn settled(
    dir: Option<PathBuf>,
    journal: Arc<MemoryJournal>,
    states: Published,
    memory: usize,
) -> Arc<History> {
    let history = History::open(dir, journal, states, memory).unwrap();
    history.transitions(AllocId::default(), last(), PATIENCE).unwrap();
    history
}

fn last() -> Index {
    Index(PAST.states.len() as u64)
}

fn then(index: u64) -> &'static State {
    &PAST.states[index as usize - 1]
}

/// Indexes all over the log, in no order.
fn some() -> impl Iterator<Item = u64> {
    [1, 2, 511, 512, 513]
        .into_iter()
        .chain((1..=40).map(|n| n * 2_654_435_761 % last().0 + 1))
        .chain([last().0])
}

#[test]
fn a_state_is_what_was_published_then() {
    let history = settled(None, journal(), Published::all(), history::MEMORY);
    for index in some() {
        let state = history.state_at(Index(index)).unwrap();
        assert_eq!(*state, *then(index), "{index}");
        assert_eq!(state.digest(), state.recomputed_digest());
    }
}

#[test]
fn the_log_is_verified_part_by_part_until_the_newest() {
    let history = settled(None, journal(), Published::all(), history::MEMORY);
    let (mut at, mut batches) = (Index::ZERO, 0);
    while at < last() {
        let part = history.verify(at).unwrap();
        assert!(part.to > at && part.newest == last(), "{part:?}");
        assert_eq!(part.digest, then(part.to.0).digest());
        (at, batches) = (part.to, batches + part.batches);
    }
    assert_eq!(batches, BATCHES as u64);
}

#[test]
fn a_log_that_leads_elsewhere_is_found_out() {
    // The newest state is not the one that the last batch led to.
    let published = Published::all();
    let mut other = State::clone(&published.published());
    other.time.0 += 1;
    published.0.lock().0 = Arc::new(other);
    let history = settled(None, journal(), published, history::MEMORY);
    let failed = history.verify(Index(BATCHES as u64 - 10)).unwrap_err();
    assert!(matches!(failed, HistoryError::Differs { index } if index == last()), "{failed}");

    // A batch in the middle was not decided on the state before it.
    let mut batches = PAST.batches.clone();
    let mut wrong = batches[4_000].decode().unwrap();
    wrong.digest.nodes ^= 1;
    batches[4_000] = encode(&wrong);
    let journal = Arc::new(MemoryJournal::with(batches, Deaf));
    let history = History::open(None, journal, Published::all(), history::MEMORY).unwrap();
    let failed = history.verify(Index(3_990)).unwrap_err();
    assert!(matches!(failed, HistoryError::Fold(_)), "{failed}");
}

#[test]
fn the_log_is_read_in_pages_that_end_with_a_batch() {
    let history = settled(None, journal(), Published::all(), history::MEMORY);
    let (mut from, mut read) = (Index(10), 0);
    loop {
        let page = history.log(from, Index(1_000), 100).unwrap();
        assert!(page.lines.iter().all(|line| line.index >= from && line.index <= Index(1_000)));
        assert!(page.lines[0].object.starts_with("node/") && !page.cut_short);
        read += page.lines.len();
        let Some(next) = page.next else { break };
        from = next;
    }
    let expected: usize = PAST.batches[9..1_000].iter().map(|batch| batch.rows().len()).sum();
    assert_eq!(read, expected);
}

#[test]
fn a_log_that_was_there_before_is_folded_along_so_that_images_are_near() {
    let history = settled(None, journal(), Published::all(), history::MEMORY);
    let images = history.images().unwrap();
    assert!(images.len() > 2, "{images:?}");
    let gaps = images.windows(2).map(|two| two[1].0 - two[0].0);
    assert!(gaps.max().unwrap() < 3_000, "{images:?}");
}

#[test]
fn nothing_is_held_where_no_memory_is_given() {
    let history = settled(None, journal(), Published::all(), 0);
    for index in some().take(8) {
        assert_eq!(*history.state_at(Index(index)).unwrap(), *then(index));
    }
    assert_eq!(history.held(), (0, 0));
}

#[test]
fn what_is_held_stays_within_its_bound() {
    let bound = 64 << 20;
    let history = settled(None, journal(), Published::all(), bound);
    for index in some() {
        history.state_at(Index(index)).unwrap();
    }
    let (states, bytes) = history.held();
    assert!(states > 0 && bytes <= bound, "{states} states of {bytes} bytes");
}

#[test]
fn images_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = Some(dir.path().join("history"));
    let images = settled(path.clone(), journal(), Published::all(), 0).images().unwrap();
    assert_eq!(settled(path, journal(), Published::all(), 0).images().unwrap(), images);
}

#[test]
fn what_the_log_no_longer_leads_on_from_is_gone_and_the_oldest_is_named() {
    let journal = journal();
    let history = settled(None, journal.clone(), Published::all(), 0);
    let images = history.images().unwrap();
    journal.forget_before(Index(images[0].0 + 10));
    let oldest = history.oldest().unwrap();
    assert_eq!(oldest, images[1]);
    assert!(
        matches!(history.state_at(Index(oldest.0 - 1)), Err(HistoryError::Gone { oldest: named }) if named == oldest)
    );
    assert_eq!(*history.state_at(oldest).unwrap(), *then(oldest.0));
    assert_eq!(*history.state_at(oldest.next()).unwrap(), *then(oldest.0 + 1));
    let ahead = history.state_at(last().next());
    assert!(matches!(ahead, Err(HistoryError::Ahead { newest }) if newest == last()));
}

#[test]
fn a_time_is_the_newest_index_of_then() {
    let history = settled(None, journal(), Published::all(), 0);
    for index in some() {
        let time = then(index).time;
        let found = history.index_at(time).unwrap();
        assert!(found >= Index(index) && then(found.0).time == time, "{index}: {found}");
        assert!(found == last() || then(found.0 + 1).time > time);
    }
    assert_eq!(history.index_at(Time(i64::MAX)).unwrap(), last());
    assert_eq!(history.index_at(Time(i64::MIN)).unwrap(), Index(0), "nothing was there then");
}

#[test]
fn what_was_folded_of_another_origin_is_forgotten() {
    let published = Published::all();
    let history = settled(None, journal(), published.clone(), history::MEMORY);
    history.state_at(Index(700)).unwrap();
    assert!(history.held().0 > 0);
    published.0.lock().1 = Arc::new(then(300).clone());
    history.state_at(last()).unwrap();
    history.state_at(Index(301)).unwrap();
    assert_eq!(history.held().0, 1);
}
