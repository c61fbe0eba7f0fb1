use bytes::Bytes;
use futures_util::StreamExt;
use model::Chunk;
use parking_lot::Mutex;

use super::*;

fn meta() -> Meta {
    Meta {
        created: Time(1_767_323_045_123_000_000),
        cluster: Uuid::from(7),
        index: Index(42),
        term: Term(3),
        release: "0.1.0".to_string(),
        contents: vec![Content { kind: "Job".to_string(), count: 2, bytes: 11 }],
    }
}

fn image() -> Image {
    let chunks = [&b"first"[..], b"", b"third chunk"].map(|bytes| Chunk::new(Bytes::from_static(bytes)));
    Image { index: Index(42), chunks: chunks.to_vec() }
}

fn bytes_of(meta: &Meta, image: &Image) -> Vec<u8> {
    let file = encode(meta, image).unwrap();
    let bytes = file.parts.concat();
    assert_eq!(bytes.len() as u64, file.len());
    assert_eq!(file.sha256, <[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest(&bytes)));
    assert!(file.digest().starts_with("sha-256="));
    bytes
}

fn read(bytes: &[u8], piece: usize, kept: Kept) -> Result<Read, FileError> {
    let mut decoder = Decoder::new(kept);
    bytes.chunks(piece).try_for_each(|piece| decoder.push(piece))?;
    decoder.finish()
}

#[test]
fn what_is_written_is_read_in_pieces_of_any_size() {
    let bytes = bytes_of(&meta(), &image());
    for piece in [1, 7, 64, bytes.len()] {
        let found = read(&bytes, piece, Kept::Everything).unwrap();
        assert_eq!((found.meta.clone(), found.chunks), (meta(), image().chunks), "pieces of {piece}");
        let described = read(&bytes, piece, Kept::Description).unwrap();
        assert_eq!((described.meta, described.bytes), (found.meta, bytes.len() as u64));
        assert!(described.chunks.is_empty());
    }
    let empty = Image { index: Index(0), chunks: Vec::new() };
    let bytes = bytes_of(&meta(), &empty);
    assert_eq!(read(&bytes, 3, Kept::Everything).unwrap().chunks, []);
    assert_eq!(meta().id(), "3-42-1767323045123");
}

#[test]
fn every_flipped_byte_is_noticed() {
    let bytes = bytes_of(&meta(), &image());
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            for kept in [Kept::Everything, Kept::Description] {
                assert!(read(&damaged, 16, kept).is_err(), "byte {at} with {flip:02x}");
            }
        }
    }
}

#[test]
fn every_cut_and_every_tail_is_noticed() {
    let bytes = bytes_of(&meta(), &image());
    for length in 0..bytes.len() {
        let cut = read(&bytes[..length], 16, Kept::Everything);
        assert_eq!(cut, Err(FileError::CutOff(length as u64)));
    }
    // Lengths in the table are not followed before they are known to be right.
    let mut lies = bytes.clone();
    let chunk_length = bytes.len() - CHECKSUM - b"firstthird chunk".len() - 4 - 4;
    lies[chunk_length + 3] = 0x3f;
    let table = FileError::Damaged("its table does not match its checksum".to_string());
    assert_eq!(read(&lies, 16, Kept::Everything), Err(table));
    let longer = [&bytes[..], b"x"].concat();
    assert_eq!(read(&longer, longer.len(), Kept::Everything), Err(FileError::Longer));
    assert_eq!(read(&longer, 1, Kept::Everything), Err(FileError::Longer));
}

#[test]
fn other_files_and_versions_are_named() {
    let bytes = bytes_of(&meta(), &image());
    assert_eq!(read(b"PK\x03\x04 some other archive", 5, Kept::Everything), Err(FileError::Foreign));
    let mut newer = bytes;
    newer[8] = 2;
    let error = read(&newer, 5, Kept::Everything).unwrap_err();
    assert_eq!(error.to_string(), "the file has version 2, and this release reads version 1");
    // A table that claims to be huge is not waited for.
    newer[8] = 1;
    newer[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&newer, 5, Kept::Everything), Err(FileError::Damaged(_))));
}

#[test]
fn an_image_without_all_its_bytes_is_not_written() {
    let mut part = image();
    let id = part.chunks[1].id;
    part.chunks[1].bytes = None;
    assert_eq!(encode(&meta(), &part).err(), Some(EncodeError::Incomplete(id)));
    let endless = Meta { release: "x".repeat(256), ..meta() };
    assert_eq!(encode(&endless, &image()).err(), Some(EncodeError::TooLarge("release")));
}

/// Keeps what was installed.
#[derive(Default)]
struct MemoryImages(Mutex<Vec<(Meta, Image)>>);

impl StateImages for MemoryImages {
    fn image(&self) -> BoxFuture<'_, Result<(Meta, Image), ClusterError>> {
        async { Ok((meta(), image())) }.boxed()
    }

    fn install(&self, meta: Meta, image: Image) -> BoxFuture<'_, Result<(), ClusterError>> {
        self.0.lock().push((meta, image));
        async { Ok(()) }.boxed()
    }
}

#[tokio::test]
async fn a_saved_state_is_restored_and_a_broken_file_changes_nothing() {
    let shelf = Arc::new(MemoryImages::default());
    let files = SnapshotFiles(shelf.clone());
    let saved = files.save().await.unwrap();
    assert_eq!(saved.index, 42);
    let parts: Vec<Bytes> = saved.stream.map(Result::unwrap).collect().await;
    let send = |parts: Vec<Bytes>| futures_util::stream::iter(parts.into_iter().map(Ok)).boxed();
    let cut = files.restore(send(parts[..2].to_vec())).await.unwrap_err();
    assert!(cut.to_string().contains("the snapshot is not taken: the file is cut off"), "{cut}");
    let broken =
        futures_util::stream::iter([Ok(parts[0].clone()), Err(std::io::Error::other("gone"))]).boxed();
    assert!(files.restore(broken).await.unwrap_err().to_string().contains("the snapshot broke off: gone"));
    assert!(shelf.0.lock().is_empty());
    files.restore(send(parts)).await.unwrap();
    assert_eq!(*shelf.0.lock(), [(meta(), image())]);
}
