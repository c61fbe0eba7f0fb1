//! Calls of an S3 store, one after the other and tried again.

use std::io;
use std::time::Duration;

use aws_signature::{Call, EMPTY, Headers, digest_of, sign};
use base::reasons;
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use reqwest::redirect::Policy;
use reqwest::{Client as Http, Method, StatusCode, Url};

use crate::Settings;
use crate::credentials::{Credentials, Origin};

/// How often a call is tried, and the pause after the first time; each further one is four times as long.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection, and a whole call, may take. A call moves an archived segment at most, about 25 MB.
const CONNECT_MAX: Duration = Duration::from_secs(5);
const CALL_MAX: Duration = Duration::from_secs(120);
/// Longest answer that is no object: a list of a thousand names.
const TEXT_MAX: usize = 4 << 20;
/// What is shown of an answer that says what is wrong.
const SHOWN: usize = 200;

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store says no, and would again.
    Refused(StatusCode, String),
    /// It does not answer, or says that it cannot.
    Unavailable(String),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        match failure {
            Failure::Refused(StatusCode::NOT_FOUND, text) => io::Error::new(io::ErrorKind::NotFound, text),
            Failure::Refused(_, text) => io::Error::new(io::ErrorKind::PermissionDenied, text),
            Failure::Unavailable(text) => io::Error::other(text),
        }
    }
}

pub(crate) struct Client {
    http: Http,
    /// With the bucket.
    base: Url,
    region: String,
    by: Origin,
}

/// An object as a list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub key: String,
    pub bytes: u64,
}

/// A part of a list, and how to ask for the next one.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    objects: Vec<Listed>,
    next: Option<String>,
}

impl Client {
    /// # Errors
    /// There are no credentials, or an authority cannot be read.
    pub(crate) fn new(settings: &Settings) -> Result<Client, String> {
        let mut base = settings.store()?;
        let segments = base.path_segments_mut();
        segments
            .map_err(|()| "endpoint: expected a URL of http or https")?
            .pop_if_empty()
            .push(&settings.address.bucket);
        let options = tls::client::ClientOptions {
            ca_cert: settings.authority.clone().unwrap_or_default(),
            ..tls::client::ClientOptions::default()
        };
        let trust = tls::client::config_for(base.as_str(), &options).map_err(|error| error.to_string())?;
        let http = Http::builder().no_proxy().redirect(Policy::none()).user_agent("Sojourn");
        let http =
            http.connect_timeout(CONNECT_MAX).timeout(CALL_MAX).tls_backend_preconfigured(trust).build();
        let http = http.map_err(|error| error.to_string())?;
        let by = Origin::of(settings.credentials.as_deref())?;
        Ok(Client { http, base, region: settings.region.clone(), by })
    }

    /// `len` bytes of an object.
    pub(crate) async fn read(&self, key: &str, at: u64, len: usize) -> Result<Bytes, Failure> {
        if len == 0 {
            return Ok(Bytes::new());
        }
        let range = format!("bytes={at}-{}", at + len as u64 - 1);
        let read = self.call(Method::GET, self.object(key), Bytes::new(), Some(&range), len).await?;
        match read.len() == len {
            true => Ok(read),
            false => Err(Failure::Unavailable(format!("{key}: {} bytes came of {len}", read.len()))),
        }
    }

    pub(crate) async fn put(&self, key: &str, body: Bytes) -> Result<(), Failure> {
        self.call(Method::PUT, self.object(key), body, None, TEXT_MAX).await.map(drop)
    }

    pub(crate) async fn remove(&self, key: &str) -> Result<(), Failure> {
        self.call(Method::DELETE, self.object(key), Bytes::new(), None, TEXT_MAX).await.map(drop)
    }

    /// All whose keys begin with that.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Listed>, Failure> {
        let mut all = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let url = self.part_of(prefix, next.as_deref());
            let answer = self.call(Method::GET, url, Bytes::new(), None, TEXT_MAX).await?;
            let part = part(&String::from_utf8_lossy(&answer));
            let part = part.ok_or_else(|| Failure::Unavailable("its list cannot be read".to_string()))?;
            all.extend(part.objects);
            next = part.next;
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    fn part_of(&self, prefix: &str, next: Option<&str>) -> Url {
        let mut url = self.base.clone();
        let fixed = [("list-type", "2"), ("encoding-type", "url"), ("prefix", prefix)];
        let pairs = fixed.into_iter().chain(next.map(|token| ("continuation-token", token)));
        url.query_pairs_mut().extend_pairs(pairs);
        url
    }

    fn object(&self, key: &str) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(key.split('/'));
        }
        url
    }

    /// The body of the answer. Each of these calls may be made twice.
    async fn call(
        &self,
        method: Method,
        url: Url,
        body: Bytes,
        range: Option<&str>,
        max: usize,
    ) -> Result<Bytes, Failure> {
        let digest = if body.is_empty() { EMPTY.to_string() } else { digest_of(&body) };
        let mut pause = PAUSE;
        for attempt in 1.. {
            let by = self.by.read().map_err(Failure::Unavailable)?;
            let headers = self.headers(&method, &url, &digest, range, &by);
            let mut request = self.http.request(method.clone(), url.clone()).body(body.clone());
            for (name, value) in headers {
                request = request.header(name, value);
            }
            match answer(request, max).await {
                Err(Failure::Unavailable(why)) if attempt < ATTEMPTS => {
                    tracing::debug!(%method, path = url.path(), attempt, why, "a call of the archive's store failed");
                    tokio::time::sleep(pause).await;
                    pause *= 4;
                }
                Ok(answer) => return Ok(answer),
                Err(Failure::Unavailable(why)) => {
                    return Err(Failure::Unavailable(format!("{method} {}: {why}", url.path())));
                }
                Err(Failure::Refused(code, why)) => {
                    return Err(Failure::Refused(code, format!("{method} {}: {why}", url.path())));
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    fn headers(
        &self,
        method: &Method,
        url: &Url,
        digest: &str,
        range: Option<&str>,
        by: &Credentials,
    ) -> Headers {
        let mut headers = Headers::new();
        if let Some(range) = range {
            headers.insert("range".into(), range.into());
        }
        if let Some(token) = &by.token {
            headers.insert("x-amz-security-token".into(), token.clone());
        }
        let date = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let call = Call { method: method.as_str(), url, body: digest, date: &date };
        let by = aws_signature::Credentials { id: &by.id, secret: &by.secret, region: &self.region };
        sign(call, &mut headers, by);
        headers
    }
}

async fn answer(request: reqwest::RequestBuilder, max: usize) -> Result<Bytes, Failure> {
    let failed = |error: reqwest::Error| Failure::Unavailable(reasons(&error.without_url()));
    let mut answer = request.send().await.map_err(failed)?;
    let code = answer.status();
    let max = if code.is_success() { max } else { TEXT_MAX };
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > max {
            return Err(Failure::Unavailable(format!("its answer is longer than {max} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    if code.is_success() {
        return Ok(body.freeze());
    }
    let text = String::from_utf8_lossy(&body);
    let said = texts(&text, "Code").next().map(|code| format!(" {code}")).unwrap_or_default();
    let said: String = said.chars().take(SHOWN).collect();
    let why = format!("the store answers {}{said}", code.as_u16());
    if code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS || code == StatusCode::REQUEST_TIMEOUT
    {
        Err(Failure::Unavailable(why))
    } else {
        Err(Failure::Refused(code, why))
    }
}

/// What stands between the tags of a name. Keys are asked for percent-encoded and the rest is of the store's own making, so that
/// there is nothing in it that would have to be decoded as XML but the mark of what comes next.
fn texts<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(open.as_str())?;
        let (text, after) = after.split_once(close.as_str())?;
        rest = after;
        Some(text)
    })
}

/// `None` when it is no list.
fn part(xml: &str) -> Option<Part> {
    let is_cut = texts(xml, "IsTruncated").next()? == "true";
    let object = |entry: &str| {
        let key = percent_decode_str(texts(entry, "Key").next()?).decode_utf8().ok()?.into_owned();
        Some(Listed { key, bytes: texts(entry, "Size").next()?.parse().ok()? })
    };
    let objects = texts(xml, "Contents").map(object).collect::<Option<Vec<_>>>()?;
    let next = texts(xml, "NextContinuationToken").next();
    let next = next.map(|token| {
        token.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    });
    if is_cut && next.is_none() {
        return None;
    }
    Some(Part { objects, next: next.filter(|_| is_cut) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_part_by_part() {
        let text = "<?xml version=\"1.0\"?>\n<ListBucketResult><Name>b</Name><IsTruncated>true</IsTruncated>\
            <Contents><Key>a%2Fb.sjz</Key><ETag>&quot;x&quot;</ETag><Size>7</Size></Contents>\
            <Contents><Key>c</Key><Size>0</Size></Contents><NextContinuationToken>a&amp;b=</NextContinuationToken>\
            </ListBucketResult>";
        let listed = |key: &str, bytes| Listed { key: key.to_string(), bytes };
        let objects = vec![listed("a/b.sjz", 7), listed("c", 0)];
        assert_eq!(part(text), Some(Part { objects, next: Some("a&b=".to_string()) }));
        let last = text.replace("true", "false");
        assert_eq!(part(&last).unwrap().next, None);
        for wrong in [
            "",
            "<html>",
            &text.replace("NextContinuationToken", "Else"),
            &text.replace("<Size>7", "<Size>x"),
        ] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }
}
