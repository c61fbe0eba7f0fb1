use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use bucket::{AHEAD, Bucket, Settings};
use journal::store::{File, Files};

use crate::store::{ID, REGION, SECRET, Store};

struct Place {
    store: Store,
    settings: Settings,
    folder: tempfile::TempDir,
}

impl Place {
    async fn new() -> Place {
        let (store, folder) = (Store::default(), tempfile::tempdir().unwrap());
        let endpoint = format!("http://{}", store.start().await);
        let credentials = folder.path().join("credentials");
        write_credentials(&credentials, SECRET);
        let settings = Settings {
            address: "s3://history/prod".parse().unwrap(),
            endpoint: Some(endpoint.parse().unwrap()),
            region: REGION.to_string(),
            credentials: Some(credentials),
            authority: None,
        };
        Place { store, settings, folder }
    }

    fn bucket(&self) -> Bucket {
        Bucket::new(&self.settings, "one").unwrap()
    }
}

fn write_credentials(path: &Path, secret: &str) {
    let text = format!("[default]\naws_access_key_id = {ID}\naws_secret_access_key = {secret}\n");
    std::fs::write(path, text).unwrap();
}

/// As an archive does it.
pub fn keep(bucket: &Bucket, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let file = bucket.create_sparse("unfinished", bytes.len() as u64)?;
    for (chunk, nth) in bytes.chunks(1000).zip(0..) {
        file.write_at(chunk, nth * 1000)?;
    }
    file.sync()?;
    assert_eq!(whole(&bucket.open("unfinished")?), bytes, "what is not named yet can be read");
    bucket.rename("unfinished", name)?;
    bucket.sync_dir()
}

pub fn whole(file: &Arc<dyn File>) -> Vec<u8> {
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

pub fn bytes(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_is_an_object_and_is_read_in_parts() {
    let place = Place::new().await;
    place.store.put("prod/one/deeper/x", b"no file of this archive");
    place.store.put("prod/one-more/x", b"of another server");
    let bucket = place.bucket();
    assert_eq!(bucket.list().unwrap(), [""; 0]);
    let sizes = [0, 1, 127, 128, 129, 4096, 10_000, 300_000];
    for (number, size) in (0..).zip(sizes) {
        keep(&bucket, &format!("file-{number}"), &bytes(number, size)).unwrap();
        assert!(bucket.open("unfinished").is_err(), "it has its name");
    }
    assert_eq!(place.store.object("prod/one/file-2").unwrap(), bytes(2, 127));
    // Another process: the list comes in several parts.
    let bucket = place.bucket();
    let mut names = bucket.list().unwrap();
    names.sort();
    assert_eq!(names, (0..sizes.len()).map(|number| format!("file-{number}")).collect::<Vec<_>>());
    // Opened as listed, and once more when nothing was read ahead.
    for _ in 0..2 {
        for (number, size) in (0..).zip(sizes) {
            let (file, expected) = (bucket.open(&format!("file-{number}")).unwrap(), bytes(number, size));
            assert_eq!(whole(&file), expected, "{size}");
            for (at, len) in
                [(0, 1), (1, 5), (100, 28), (100, 29), (size / 2, 9), (size.saturating_sub(3), 3)]
            {
                if at + len <= size {
                    let mut part = vec![0; len];
                    file.read_at(&mut part, at as u64).unwrap();
                    assert_eq!(part, expected[at..at + len], "{len} bytes at {at} of {size}");
                }
            }
            assert!(file.read_at(&mut [0; 2], size as u64).is_err(), "there is nothing behind its end");
        }
    }
    bucket.remove("file-3").unwrap();
    assert_eq!(bucket.open("file-3").err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(place.store.refused(), 0, "each call was signed");
    assert!(place.store.object("prod/one-more/x").is_some());
}

/// An archive looks at each of its files when it is opened.
#[tokio::test(flavor = "multi_thread")]
async fn the_ends_of_what_is_listed_are_read_ahead() {
    let place = Place::new().await;
    let many = AHEAD * 2 + 5;
    for number in 0..many {
        place.store.put(&format!("prod/one/{number:04}"), &bytes(number as u8, 9_000));
    }
    let bucket = place.bucket();
    let names = bucket.list().unwrap();
    let listing = place.store.calls();
    for (number, name) in names.iter().enumerate() {
        let file = bucket.open(name).unwrap();
        let (mut head, mut tail) = ([0; 128], [0; 64]);
        file.read_at(&mut head, 0).unwrap();
        file.read_at(&mut tail, 9_000 - 64).unwrap();
        let expected = bytes(number as u8, 9_000);
        assert_eq!((&head[..], &tail[..]), (&expected[..128], &expected[9_000 - 64..]));
        let batches = (number / AHEAD + 1) * AHEAD;
        assert_eq!(place.store.calls() - listing, 2 * batches.min(many), "after {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_for_a_moment_is_asked_again_and_one_that_goes_on_failing_is_not() {
    let place = Place::new().await;
    let bucket = place.bucket();
    place.store.fail(3);
    keep(&bucket, "a", b"abc").unwrap();
    place.store.fail(usize::MAX);
    let before = place.store.calls();
    let why = keep(&bucket, "b", b"abc").unwrap_err().to_string();
    assert_eq!(why, "PUT /history/prod/one/b: the store answers 503 SlowDown");
    assert_eq!(place.store.calls() - before, 4, "it is tried so often and no more");
    assert!(place.store.object("prod/one/b").is_none());
    // A server starts all the same, without what is there.
    assert_eq!(place.bucket().list().unwrap(), [""; 0]);
    place.store.fail(0);
    bucket.rename("unfinished", "b").unwrap();
    assert_eq!(place.bucket().list().unwrap(), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_what_was_put_there_counts_as_not_kept() {
    let place = Place::new().await;
    let bucket = place.bucket();
    place.store.spoil(1);
    let why = keep(&bucket, "a", b"abc").unwrap_err();
    assert_eq!(
        (why.kind(), why.to_string().as_str()),
        (ErrorKind::InvalidData, "prod/one/a is not what was put there")
    );
    keep(&bucket, "a", b"abc").unwrap();
    assert_eq!(place.store.object("prod/one/a").unwrap(), b"abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_refuses_says_why_and_credentials_are_read_again() {
    let mut place = Place::new().await;
    let bucket = place.bucket();
    keep(&bucket, "a", b"abc").unwrap();
    let credentials = place.folder.path().join("credentials");
    write_credentials(&credentials, "another secret");
    let why = keep(&bucket, "b", b"abc").unwrap_err();
    assert_eq!(why.to_string(), "PUT /history/prod/one/b: the store answers 403 SignatureDoesNotMatch");
    assert_eq!(place.store.refused(), 1, "what is refused is not tried again");
    let refused = bucket.list().unwrap_err().to_string();
    assert!(refused.contains("403") && !refused.contains("another secret"), "{refused}");
    write_credentials(&credentials, SECRET);
    assert_eq!(bucket.list().unwrap(), ["a"]);
    std::fs::write(&credentials, "[default]\n").unwrap();
    let why = Bucket::new(&place.settings, "one").err().unwrap();
    assert!(why.ends_with("expected aws_access_key_id and aws_secret_access_key below [default]"), "{why}");
    place.settings.credentials = Some(place.folder.path().join("none"));
    assert!(Bucket::new(&place.settings, "one").is_err());
}
