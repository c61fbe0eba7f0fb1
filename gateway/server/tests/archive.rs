//! What leaves the log of a server can be read as before, as long as its archive has it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::Index;
use journal::store::{HISTORY_SUFFIX, StoreError};
use raft::Tail;
use serde_json::{Value, json};
use server::{
    Archive, ArchivePlace, BucketSettings, HistorySettings, Retention, Server, Settings, StartError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::identities::until;
use crate::store::{ID, REGION, SECRET, Store};

use crate::scrub::{NODE, SEGMENT_BYTES, leads, register, say, settings};

/// In about 34 segments of six each.
const MESSAGES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_the_same_once_it_is_archived() {
    let home = tempfile::tempdir().unwrap();
    let archive = home.path().join("old");
    let server = Server::start(archived(home.path(), &archive)).await.unwrap();
    fill(&server).await;
    let before = Past::of(&server).await;
    keep_images(&server).await;
    let status = status(&server).await;
    let log_begins = status["LogOldestIndex"].as_u64().unwrap();
    assert!(log_begins > 100, "{status}");
    assert_eq!(status["OldestIndex"], 1);
    assert!(status["Archive"]["Files"].as_u64() > Some(10), "{status}");
    assert!(status["Archive"]["Bytes"].as_u64() < status["Archive"]["RawBytes"].as_u64(), "{status}");
    assert_eq!(Past::of(&server).await, before);
    assert_eq!(verified(&server).await, status["NewestIndex"]);
    server.shutdown().await;

    // What a start has at hand is the image alone.
    let server = Server::start(archived(home.path(), &archive)).await.unwrap();
    leads(&server).await;
    assert_eq!(Past::of(&server).await, before);
    server.shutdown().await;

    // Without the archive it is gone, and says so. Only what the index of history keeps images of is left.
    let server = Server::start(Settings { scrub_every: None, ..settings(home.path()) }).await.unwrap();
    leads(&server).await;
    let (code, text) = get(&server, "/v1/event/stream?from=1&to=9&follow=false&namespace=*").await;
    assert_eq!(code, 410, "{text}");
    let (code, text) = get(&server, "/v1/operator/history/verify?from=1").await;
    assert_eq!((code, text), (410, format!("batch 1 is no longer kept: the oldest is {log_begins}")));
    // The log says so as well.
    until(&server, |state| !state.dropped_history.is_empty()).await;
    let dropped = &self::status(&server).await["Dropped"];
    assert_eq!(dropped[0]["OldestIndex"], log_begins, "{dropped}");
    server.shutdown().await;
}

/// The same in a bucket; while its store fails, nothing leaves the log.
#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_the_same_once_it_is_in_a_bucket() {
    let (home, store) = (tempfile::tempdir().unwrap(), Store::default());
    let credentials = home.path().join("credentials");
    let text = format!("[default]\naws_access_key_id = {ID}\naws_secret_access_key = {SECRET}\n");
    std::fs::write(&credentials, text).unwrap();
    let endpoint = format!("http://{}", store.start().await);
    let bucket = BucketSettings {
        address: "s3://history/prod".parse().unwrap(),
        endpoint: Some(endpoint.parse().unwrap()),
        region: REGION.to_string(),
        credentials: Some(credentials),
        authority: None,
    };
    let archive = Archive { place: ArchivePlace::Bucket(Box::new(bucket)), max_bytes: None };
    let settings = || {
        let mut settings = archived_in(home.path(), archive.clone());
        // So that it leaves because of its age: too long a log would lose it where the archive fails.
        settings.history.retention = Retention { bytes: 1 << 30, age: Some(Duration::ZERO) };
        settings
    };
    let server = Server::start(settings()).await.unwrap();
    fill(&server).await;
    let before = Past::of(&server).await;
    store.fail(usize::MAX);
    keep_images(&server).await;
    let failed = status(&server).await;
    assert_eq!((&failed["LogOldestIndex"], &failed["Archive"]["Files"]), (&json!(1), &json!(0)), "{failed}");
    let why = failed["Archive"]["Failed"].as_str().unwrap();
    assert!(why.contains("the store answers 503 SlowDown") && !why.contains(SECRET), "{why}");
    store.fail(0);
    keep_images(&server).await;
    let kept = status(&server).await;
    assert!(kept["LogOldestIndex"].as_u64() > Some(100), "{kept}");
    assert!(kept["Archive"]["Files"].as_u64() > Some(10), "{kept}");
    let own =
        format!("prod/{}/", std::fs::read_to_string(home.path().join("server/server-id")).unwrap().trim());
    assert!(store.keys().iter().all(|key| key.starts_with(&own)), "{:?}", store.keys());
    assert_eq!(Past::of(&server).await, before);
    assert_eq!(verified(&server).await, kept["NewestIndex"]);
    server.shutdown().await;

    let server = Server::start(settings()).await.unwrap();
    leads(&server).await;
    assert_eq!(Past::of(&server).await, before);
    server.shutdown().await;

    // What somebody changes there is found.
    let key = store.keys()[0].clone();
    let mut object = store.object(&key).unwrap();
    object[200] ^= 1;
    store.put(&key, &object);
    let server = Server::start(settings()).await.unwrap();
    leads(&server).await;
    let (code, text) = get(&server, "/v1/operator/history/verify?from=1").await;
    assert!(code != 200 && text.contains("damaged"), "{code} {text}");
    server.shutdown().await;
    assert_eq!(store.refused(), 0);

    // Its store does not answer: it starts, and what is archived is gone until it starts again.
    store.fail(usize::MAX);
    let server = Server::start(settings()).await.unwrap();
    leads(&server).await;
    assert_eq!(get(&server, "/v1/event/stream?from=1&to=9&follow=false&namespace=*").await.0, 410);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_another_process_has_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let archive = home.path().join("old");
    let _other = journal::store::Directory::open(&archive).unwrap();
    let refused = Server::start(archived(home.path(), &archive)).await.err();
    let Some(StartError::Log(raft::OpenError::Archive { path, source })) = refused else {
        panic!("{refused:?}")
    };
    assert!(path == archive && matches!(source, StoreError::InUse { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_an_archive() {
    let home = tempfile::tempdir().unwrap();
    let archive = home.path().join("old");
    let server = Server::start(archived(home.path(), &archive)).await.unwrap();
    fill(&server).await;
    keep_images(&server).await;
    let (newest, export) = (server.control.state().index, home.path().join("export"));
    std::fs::create_dir(&export).unwrap();
    let mut at = 1;
    let mut last: Option<journal::store::HistoryFile> = None;
    while at <= newest.0 {
        let (code, body) = get_bytes(&server, &format!("/v1/operator/history/export?from={at}")).await;
        assert_eq!(code, 200);
        let path = export.join(format!("{at}{HISTORY_SUFFIX}"));
        std::fs::write(&path, body).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let file = journal::store::verify_file("exported", Arc::new(file)).unwrap();
        assert_eq!(file.first, Index(at));
        assert!(last.is_none_or(|last| last.ends == file.begins));
        at = file.last.0 + 1;
        last = Some(file);
    }
    server.shutdown().await;
}

fn archived(home: &Path, archive: &Path) -> Settings {
    archived_in(home, Archive::in_folder(archive, None))
}

fn archived_in(home: &Path, archive: Archive) -> Settings {
    let history = HistorySettings {
        retention: Retention { bytes: 4 * SEGMENT_BYTES, age: None },
        archive: Some(archive),
        tail: Tail { entries: 10, bytes: 1 << 20 },
        ..HistorySettings::default()
    };
    Settings { history, scrub_every: None, ..settings(home) }
}

async fn fill(server: &Server) {
    leads(server).await;
    register(server).await;
    for _ in 0..MESSAGES {
        say(server).await;
    }
}

/// Of two different moments; then the log begins later.
async fn keep_images(server: &Server) {
    for _ in 0..3 {
        say(server).await;
        let control = server.control.clone();
        tokio::task::spawn_blocking(move || control.keep_image()).await.unwrap().unwrap();
    }
}

/// What readers see of the first hundred batches.
#[derive(Debug, PartialEq)]
struct Past {
    node: String,
    log: String,
    stream: String,
    oldest: Index,
    digests: Value,
}

impl Past {
    async fn of(server: &Server) -> Past {
        let read = async |path: String| {
            let (code, body) = get(server, &path).await;
            assert_eq!(code, 200, "{path}: {body}");
            body
        };
        let digests = read("/v1/history/verify?since=20".to_string()).await;
        let digests: Value = serde_json::from_str(&digests).unwrap();
        assert_eq!(digests["From"], 20);
        Past {
            node: read(format!("/v1/node/{NODE}?as_of=20")).await,
            log: read("/v1/history?since=2&as_of=60&per_page=30".to_string()).await,
            stream: read("/v1/event/stream?from=1&to=90&follow=false&namespace=*".to_string()).await,
            oldest: server.history.oldest().unwrap(),
            digests: digests["Events"].as_u64().map(|events| events > 100).into(),
        }
    }
}

async fn status(server: &Server) -> Value {
    serde_json::from_str(&get(server, "/v1/operator/history").await.1).unwrap()
}

/// The last index that was verified.
async fn verified(server: &Server) -> Value {
    let (mut at, mut begins) = (1, None);
    loop {
        let (code, text) = get(server, &format!("/v1/operator/history/verify?from={at}")).await;
        if code == 404 {
            return Value::from(at - 1);
        }
        assert_eq!(code, 200, "{text}");
        let file: Value = serde_json::from_str(&text).unwrap();
        assert!(begins.is_none_or(|begins| begins == file["Begins"]));
        begins = Some(file["Ends"].clone());
        at = file["LastIndex"].as_u64().unwrap() + 1;
    }
}

async fn get(server: &Server, path: &str) -> (u16, String) {
    let (code, body) = get_bytes(server, path).await;
    (code, String::from_utf8(body).unwrap())
}

/// Status and body. HTTP/1.0 has no chunks.
async fn get_bytes(server: &Server, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("an answer has a status");
    (code, answer.split_off(end + 4))
}
