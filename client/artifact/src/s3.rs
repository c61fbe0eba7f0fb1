//! Objects of S3 and of Google Cloud Storage, as what HTTP downloads: an address, and the headers that prove who asks.

use std::collections::BTreeMap;

use aws_lc_rs::{digest, hmac};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;

use crate::FetchError;
use crate::checksum::hex;
use crate::source::Source;

/// What S3 leaves as it is in a path or a parameter.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The digest of no body.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

type Headers = BTreeMap<String, String>;

/// The address of an object of S3, and the headers of the request.
///
/// # Errors
/// When the job names credentials that cannot be used.
pub fn object(source: &Source, now: Timestamp) -> Result<(Url, Headers), FetchError> {
    if source.option("aws_profile").is_some() {
        return Err(FetchError::invalid(
            "aws_profile is not supported by this node: give aws_access_key_id and aws_access_key_secret",
        ));
    }
    let mut url = source.url.clone();
    if let Some(version) = source.option("version") {
        url.query_pairs_mut().append_pair("versionId", version);
    }
    let given = |option: &str, variable: &str| {
        source.option(option).map(str::to_string).or_else(|| std::env::var(variable).ok())
    };
    let id = given("aws_access_key_id", "AWS_ACCESS_KEY_ID");
    let secret = given("aws_access_key_secret", "AWS_SECRET_ACCESS_KEY");
    let (id, secret) = match (id, secret) {
        (Some(id), Some(secret)) => (id, secret),
        // Objects that all may read.
        (None, None) => return Ok((url, Headers::new())),
        _ => {
            return Err(FetchError::invalid("aws_access_key_id and aws_access_key_secret need each other"));
        }
    };
    let region = source.option("region").map(str::to_string).unwrap_or_else(|| region_of(&url));
    let mut headers = Headers::new();
    if let Some(token) = given("aws_access_token", "AWS_SESSION_TOKEN") {
        headers.insert("x-amz-security-token".into(), token);
    }
    let date = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    sign(&url, &mut headers, &Credentials { id: &id, secret: &secret, region: &region }, &date);
    Ok((url, headers))
}

/// The address of an object of Google Cloud Storage, and the headers of the request.
///
/// # Errors
/// When the address is not one, or the operator has given credentials of a kind that this node cannot use.
pub fn gcs_object(source: &Source) -> Result<(Url, Headers), FetchError> {
    let path = source.url.path().trim_start_matches('/');
    let mut parts = path.strip_prefix("storage/").unwrap_or_default().splitn(3, '/');
    let (Some(_version), Some(bucket), Some(object)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(FetchError::invalid(
            "source: expected gcs::https://www.googleapis.com/storage/v1/BUCKET/OBJECT",
        ));
    };
    let mut url = Url::parse(&format!("https://storage.googleapis.com/{bucket}/{object}"))
        .map_err(|error| FetchError::invalid(format!("source: {error}")))?;
    if let Some(version) = source.option("version") {
        url.query_pairs_mut().append_pair("generation", version);
    }
    let mut headers = Headers::new();
    if let Ok(token) = std::env::var("GOOGLE_OAUTH_ACCESS_TOKEN") {
        headers.insert("authorization".into(), format!("Bearer {token}"));
    } else if std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").is_some() {
        return Err(FetchError::invalid(
            "GOOGLE_APPLICATION_CREDENTIALS is not supported by this node: give GOOGLE_OAUTH_ACCESS_TOKEN",
        ));
    }
    Ok((url, headers))
}

/// `s3-eu-west-1.amazonaws.com`, `bucket.s3.eu-west-1.amazonaws.com`.
fn region_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let mut labels = host
        .strip_suffix(".amazonaws.com")
        .unwrap_or_default()
        .split('.')
        .skip_while(|label| *label != "s3" && !label.starts_with("s3-"));
    let region = match labels.next() {
        Some("s3") => labels.next(),
        Some(label) => label.strip_prefix("s3-"),
        None => None,
    };
    region.unwrap_or("us-east-1").to_string()
}

struct Credentials<'a> {
    id: &'a str,
    secret: &'a str,
    region: &'a str,
}

/// Adds the headers of AWS's signature, version 4, over all that are there.
fn sign(url: &Url, headers: &mut Headers, by: &Credentials<'_>, date: &str) {
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or(host.to_string(), |port| format!("{host}:{port}"));
    headers.insert("x-amz-content-sha256".into(), EMPTY.into());
    headers.insert("x-amz-date".into(), date.into());
    let mut signed = headers.clone();
    signed.insert("host".into(), host);
    let names = signed.keys().cloned().collect::<Vec<_>>().join(";");
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let call = format!("GET\n{}\n{}\n{lines}\n{names}\n{EMPTY}", canonical_path(url), canonical_query(url));

    let day = date.get(..8).unwrap_or_default();
    let scope = format!("{day}/{}/s3/aws4_request", by.region);
    let digest = hex(digest::digest(&digest::SHA256, call.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let mut key = format!("AWS4{}", by.secret).into_bytes();
    for part in [day, by.region, "s3", "aws4_request", &text] {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    let (id, signature) = (by.id, hex(&key));
    let proof =
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    headers.insert("authorization".into(), proof);
}

fn canonical_path(url: &Url) -> String {
    let encode = |part: &str| {
        let decoded = percent_decode_str(part).decode_utf8_lossy();
        utf8_percent_encode(&decoded, &RESERVED).to_string()
    };
    url.path().split('/').map(encode).collect::<Vec<_>>().join("/")
}

fn canonical_query(url: &Url) -> String {
    let encode = |text: &str| utf8_percent_encode(text, &RESERVED).to_string();
    let mut pairs: Vec<String> =
        url.query_pairs().map(|(name, value)| format!("{}={}", encode(&name), encode(&value))).collect();
    pairs.sort();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: Credentials<'_> = Credentials {
        id: "AKIAIOSFODNN7EXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        region: "us-east-1",
    };

    fn signature(url: &str, headers: &[(&str, &str)]) -> String {
        let mut headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        sign(&Url::parse(url).unwrap(), &mut headers, &BY, "20130524T000000Z");
        headers["authorization"].rsplit('=').next().unwrap().to_string()
    }

    /// The examples of Amazon's own description.
    #[test]
    fn signatures_are_those_of_amazon() {
        assert_eq!(
            signature("https://examplebucket.s3.amazonaws.com/test.txt", &[("range", "bytes=0-9")]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature("https://examplebucket.s3.amazonaws.com/?lifecycle", &[]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn regions_stand_in_names_of_hosts() {
        for (host, region) in [
            ("s3.amazonaws.com", "us-east-1"),
            ("b.s3.amazonaws.com", "us-east-1"),
            ("s3-eu-west-1.amazonaws.com", "eu-west-1"),
            ("b.s3-eu-west-1.amazonaws.com", "eu-west-1"),
            ("s3.eu-west-1.amazonaws.com", "eu-west-1"),
            ("my.b.s3.eu-west-1.amazonaws.com", "eu-west-1"),
            ("minio.example.org", "us-east-1"),
        ] {
            assert_eq!(region_of(&Url::parse(&format!("https://{host}/k")).unwrap()), region, "{host}");
        }
    }

    #[test]
    fn objects_of_gcs_are_read_over_https() {
        let source = |text: &str| Source::parse(text, &BTreeMap::new()).unwrap();
        let (url, headers) =
            gcs_object(&source("gcs::https://www.googleapis.com/storage/v1/b/dir/k.tgz")).unwrap();
        assert_eq!((url.as_str(), headers.len()), ("https://storage.googleapis.com/b/dir/k.tgz", 0));
        assert!(gcs_object(&source("gcs::https://www.googleapis.com/storage/v1/b")).is_err());
    }

    #[test]
    fn half_of_the_credentials_and_profiles_are_rejected_by_name() {
        for (query, why) in
            [("aws_access_key_id=x", "need each other"), ("aws_profile=x", "aws_profile is not")]
        {
            let text = format!("s3::https://s3.amazonaws.com/b/k?{query}");
            let source = Source::parse(&text, &BTreeMap::new()).unwrap();
            let error = object(&source, Timestamp::UNIX_EPOCH).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
