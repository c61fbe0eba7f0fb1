//! The same files in a store of other people: one that is named in the environment.
//!
//! `SOJOURN_S3_ENDPOINT=http://127.0.0.1:7070 SOJOURN_S3_CREDENTIALS=FILE cargo test -p bucket foreign`, with a bucket of the
//! name `history` there that nothing else is in.

use std::io::ErrorKind;
use std::path::PathBuf;

use bucket::{Bucket, Settings};
use journal::store::Files;

use crate::files::{bytes, keep, whole};

/// A list has at most a thousand names in one part.
const MANY: usize = 1001;

fn settings() -> Option<Settings> {
    let named = |name: &str| std::env::var(name).ok();
    let (Some(endpoint), Some(credentials)) = (named("SOJOURN_S3_ENDPOINT"), named("SOJOURN_S3_CREDENTIALS"))
    else {
        eprintln!(
            "SKIPPED a store of other people: SOJOURN_S3_ENDPOINT and SOJOURN_S3_CREDENTIALS name none"
        );
        return None;
    };
    Some(Settings {
        address: "s3://history/of-tests".parse().unwrap(),
        endpoint: Some(endpoint.parse().unwrap()),
        region: named("SOJOURN_S3_REGION").unwrap_or_else(|| "us-east-1".to_string()),
        credentials: Some(PathBuf::from(credentials)),
        authority: None,
    })
}

fn emptied(bucket: &Bucket) {
    for name in bucket.list().unwrap() {
        bucket.remove(&name).unwrap();
    }
    assert_eq!(bucket.list().unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_is_read_in_parts_listed_and_removed() {
    let Some(settings) = settings() else { return };
    let bucket = Bucket::new(&settings, "one").unwrap();
    emptied(&bucket);
    let sizes = [0, 1, 127, 128, 129, 4096, 10_000, 3_000_000];
    for (number, size) in (0..).zip(sizes) {
        keep(&bucket, &format!("file-{number}"), &bytes(number, size)).unwrap();
    }
    keep(&Bucket::new(&settings, "one-more").unwrap(), "x", b"of another server").unwrap();
    let bucket = Bucket::new(&settings, "one").unwrap();
    let mut names = bucket.list().unwrap();
    names.sort();
    assert_eq!(names, (0..sizes.len()).map(|number| format!("file-{number}")).collect::<Vec<_>>());
    for (number, size) in (0..).zip(sizes) {
        let (file, expected) = (bucket.open(&format!("file-{number}")).unwrap(), bytes(number, size));
        assert_eq!(whole(&file), expected, "{size}");
        if size > 9 {
            let mut part = [0; 9];
            file.read_at(&mut part, size as u64 / 2).unwrap();
            assert_eq!(part, expected[size / 2..size / 2 + 9], "in the middle of {size}");
        }
        assert!(file.read_at(&mut [0; 2], size as u64).is_err(), "there is nothing behind its end");
    }
    keep(&bucket, "file-0", b"another one").unwrap();
    assert_eq!(whole(&Bucket::new(&settings, "one").unwrap().open("file-0").unwrap()), b"another one");
    bucket.remove("file-3").unwrap();
    assert_eq!(bucket.open("file-3").err().unwrap().kind(), ErrorKind::NotFound);
    emptied(&bucket);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_come_whole() {
    let Some(settings) = settings() else { return };
    let bucket = Bucket::new(&settings, "many").unwrap();
    emptied(&bucket);
    for number in 0..MANY {
        keep(&bucket, &format!("{number:04}"), b"x").unwrap();
    }
    assert_eq!(Bucket::new(&settings, "many").unwrap().list().unwrap().len(), MANY);
    emptied(&bucket);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_with_another_secret_is_refused() {
    let Some(settings) = settings() else { return };
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    let own = std::fs::read_to_string(settings.credentials.as_ref().unwrap()).unwrap();
    let wrong = own.lines().map(|line| match line.split_once('=') {
        Some((name, secret)) if name.trim() == "aws_secret_access_key" => format!("{name}={secret}x\n"),
        _ => format!("{line}\n"),
    });
    std::fs::write(&credentials, wrong.collect::<String>()).unwrap();
    let bucket = Bucket::new(&Settings { credentials: Some(credentials), ..settings }, "one").unwrap();
    let why = bucket.list().unwrap_err().to_string();
    assert!(why.contains("403"), "{why}");
}
