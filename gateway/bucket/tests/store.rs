//! An S3 store that holds everything in memory. It checks each signature, and may be told to fail.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_signature::{Call, Credentials, Headers, digest_of, sign};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use std::sync::Mutex;
use url::Url;

pub const ID: &str = "AKIDEXAMPLE";
pub const SECRET: &str = "a/secret+of=the/store";
pub const REGION: &str = "eu-west-1";
/// Names in one list.
const PAGE: usize = 3;

/// What it holds; a clone is the same store.
#[derive(Clone, Default)]
pub struct Store(Arc<Inner>);

#[derive(Default)]
struct Inner {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Calls that fail before it works again.
    failing: AtomicUsize,
    calls: AtomicUsize,
    refused: AtomicUsize,
    /// What is put there is changed.
    spoils: AtomicUsize,
}

impl Store {
    /// It serves for as long as the runtime lives.
    pub async fn start(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(serve).with_state((self.clone(), address));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        address
    }

    pub fn keys(&self) -> Vec<String> {
        self.0.objects.lock().unwrap().keys().cloned().collect()
    }

    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.0.objects.lock().unwrap().get(key).cloned()
    }

    pub fn put(&self, key: &str, bytes: &[u8]) {
        self.0.objects.lock().unwrap().insert(key.to_string(), bytes.to_vec());
    }

    /// So many calls are answered 503.
    pub fn fail(&self, calls: usize) {
        self.0.failing.store(calls, Ordering::SeqCst);
    }

    /// So many objects are not what was put there.
    pub fn spoil(&self, objects: usize) {
        self.0.spoils.store(objects, Ordering::SeqCst);
    }

    pub fn calls(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }

    /// Calls without the right signature.
    pub fn refused(&self) -> usize {
        self.0.refused.load(Ordering::SeqCst)
    }
}

fn less(counter: &AtomicUsize) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

type Answer = (StatusCode, Vec<u8>);

async fn serve(
    State((store, address)): State<(Store, SocketAddr)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    store.0.calls.fetch_add(1, Ordering::SeqCst);
    if less(&store.0.failing) {
        return error(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    }
    let url = Url::parse(&format!("http://{address}{uri}")).unwrap();
    if !is_signed(&method, &url, &headers, &body) {
        store.0.refused.fetch_add(1, Ordering::SeqCst);
        return error(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
    }
    let Some(path) = url.path().strip_prefix("/history") else {
        return error(StatusCode::NOT_FOUND, "NoSuchBucket");
    };
    let key = path.trim_start_matches('/').to_string();
    match method.as_str() {
        "GET" if key.is_empty() => (StatusCode::OK, list(&store, &url).into_bytes()),
        "GET" => read(&store, &key, &headers),
        "PUT" => {
            let mut bytes = body.to_vec();
            if less(&store.0.spoils) {
                bytes[0] ^= 1;
            }
            store.put(&key, &bytes);
            (StatusCode::OK, Vec::new())
        }
        "DELETE" => {
            store.0.objects.lock().unwrap().remove(&key);
            (StatusCode::NO_CONTENT, Vec::new())
        }
        _ => error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

fn error(code: StatusCode, said: &str) -> Answer {
    (code, format!("<?xml version=\"1.0\"?><Error><Code>{said}</Code></Error>").into_bytes())
}

/// Signs what came again, and compares.
fn is_signed(method: &Method, url: &Url, headers: &HeaderMap, body: &[u8]) -> bool {
    let text =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_string();
    let proof = text("authorization");
    let Some((_, names)) = proof.split_once("SignedHeaders=") else { return false };
    let names = names.split(',').next().unwrap_or_default();
    let own = ["host", "x-amz-content-sha256", "x-amz-date"];
    let mut signed: Headers = names
        .split(';')
        .filter(|name| !own.contains(name))
        .map(|name| (name.to_string(), text(name)))
        .collect();
    if headers.contains_key("range") && !signed.contains_key("range") {
        return false;
    }
    let (digest, date) = (digest_of(body), text("x-amz-date"));
    let call = Call { method: method.as_str(), url, body: &digest, date: &date };
    sign(call, &mut signed, Credentials { id: ID, secret: SECRET, region: REGION });
    signed["authorization"] == proof
}

fn read(store: &Store, key: &str, headers: &HeaderMap) -> Answer {
    let Some(object) = store.object(key) else { return error(StatusCode::NOT_FOUND, "NoSuchKey") };
    let range = headers.get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return (StatusCode::OK, object);
    };
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    if first >= object.len() {
        return error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
    }
    (StatusCode::PARTIAL_CONTENT, object[first..object.len().min(last + 1)].to_vec())
}

fn list(store: &Store, url: &Url) -> String {
    let asked: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let after = asked.get("continuation-token").cloned().unwrap_or_default();
    let objects = store.0.objects.lock().unwrap();
    let mut fitting = objects.iter().filter(|(key, _)| key.starts_with(&asked["prefix"]) && **key > after);
    let page: Vec<_> = fitting.by_ref().take(PAGE).collect();
    let is_cut = fitting.next().is_some();
    let mut text = format!("<ListBucketResult><IsTruncated>{is_cut}</IsTruncated>");
    for (key, object) in &page {
        let key = key.replace('/', "%2F");
        text.push_str(&format!("<Contents><Key>{key}</Key><Size>{}</Size></Contents>", object.len()));
    }
    if is_cut {
        let last = page.last().unwrap().0;
        text.push_str(&format!("<NextContinuationToken>{last}</NextContinuationToken>"));
    }
    text.push_str("</ListBucketResult>");
    text
}
