//! Putting a saved state in place of what is there.

use base::{Duration, Uuid};
use model::command::RegisterJob;
use model::{Command, Image, Rejection};
use state::Imager;
use state::operator::{PIECE_BYTES_MAX, pieces_of};
use test_world::{World, job_document, key};

fn register(world: &mut World, name: &str, bytes: usize) -> Result<(), Rejection> {
    let mut job = job_document(name, "service", Duration::ZERO);
    job.meta = [("blob".to_string(), "x".repeat(bytes))].into_iter().collect();
    let request = RegisterJob::new(job);
    world.submit(Command::RegisterJob(Box::new(request))).map(|_| ())
}

/// Sends all pieces of an image, and gives their number.
fn give(world: &mut World, restore: Uuid, image: &Image) -> u32 {
    let mut number = 0;
    for chunk in &image.chunks {
        for piece in pieces_of(chunk.bytes.as_ref().unwrap()) {
            let bytes = piece.to_vec();
            world.submit(Command::GiveStateChunk { restore, number, bytes }).unwrap();
            number += 1;
        }
    }
    number
}

#[test]
fn a_state_with_a_job_larger_than_a_piece_is_restored() {
    let mut world = World::new();
    register(&mut world, "large", 11 << 20).unwrap();
    let image = Imager::default().image(&world.state);
    let largest = image.chunks.iter().map(|chunk| chunk.bytes.as_ref().unwrap().len()).max().unwrap();
    assert!(largest > PIECE_BYTES_MAX, "{largest} bytes are one piece");
    register(&mut world, "later", 1).unwrap();
    let restore = Uuid::from(7);
    let chunks = give(&mut world, restore, &image);
    world.submit(Command::RestoreState { restore, chunks, image: image.index }).unwrap();
    assert!(world.state.jobs.lookup(&key("large")).is_some());
    assert!(world.state.jobs.lookup(&key("later")).is_none());
    assert!(world.state.restoring.is_empty());
    world.check_replay();
}

#[test]
fn chunks_of_any_length_end_with_a_shorter_piece() {
    for length in [0, 1, PIECE_BYTES_MAX - 1, PIECE_BYTES_MAX, PIECE_BYTES_MAX + 1, 2 * PIECE_BYTES_MAX] {
        let chunk = vec![7; length];
        let pieces: Vec<&[u8]> = pieces_of(&chunk).collect();
        assert_eq!(pieces.concat(), chunk);
        let (last, before) = pieces.split_last().unwrap();
        assert!(last.len() < PIECE_BYTES_MAX, "{length}");
        assert!(before.iter().all(|piece| piece.len() == PIECE_BYTES_MAX), "{length}");
    }
}

#[test]
fn an_empty_piece_ends_a_chunk_and_is_nothing_else() {
    let mut world = World::new();
    let restore = Uuid::from(7);
    let mut piece = |number, bytes: Vec<u8>| world.submit(Command::GiveStateChunk { restore, number, bytes });
    piece(0, Vec::new()).unwrap_err();
    piece(0, vec![0; PIECE_BYTES_MAX + 1]).unwrap_err();
    piece(0, vec![0; PIECE_BYTES_MAX]).unwrap();
    piece(1, Vec::new()).unwrap();
    piece(2, Vec::new()).unwrap_err();
    assert_eq!(world.state.restoring.image(world.state.index).chunks.len(), 1);
    world.check_replay();
}

#[test]
fn pieces_of_an_abandoned_restore_are_forgotten_after_minutes() {
    let mut world = World::new();
    world.submit(Command::GiveStateChunk { restore: Uuid::from(7), number: 0, bytes: vec![1] }).unwrap();
    world.now = world.now.plus(Duration::from_secs(120));
    register(&mut world, "one", 1).unwrap();
    assert!(!world.state.restoring.is_empty());
    world.now = world.now.plus(Duration::from_secs(1));
    register(&mut world, "two", 1).unwrap();
    assert!(world.state.restoring.is_empty(), "no image would ever be kept again");
    world.check_replay();
}

#[test]
fn a_job_larger_than_the_log_takes_is_refused_with_its_size() {
    let mut world = World::new();
    let refused = register(&mut world, "huge", 15 << 20).unwrap_err();
    assert!(refused.to_string().contains("expected at most 14680064"), "{refused}");
    world.check_replay();
}
