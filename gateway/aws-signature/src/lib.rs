//! Who asks an S3 store: AWS's signature, version 4, in the header of a request.

use std::collections::BTreeMap;
use std::fmt::Write;

use aws_lc_rs::{digest, hmac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

/// What S3 leaves as it is in a path or a parameter.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The digest of no body.
pub const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// By names in small letters.
pub type Headers = BTreeMap<String, String>;

/// Who asks, and in which region.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    pub id: &'a str,
    pub secret: &'a str,
    pub region: &'a str,
}

/// What is signed besides headers.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub method: &'a str,
    pub url: &'a Url,
    /// [`digest_of`] its body.
    pub body: &'a str,
    /// As in `20130524T000000Z`.
    pub date: &'a str,
}

/// SHA-256 in hexadecimal.
pub fn digest_of(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Adds the headers of the signature, over all that are there.
pub fn sign(call: Call<'_>, headers: &mut Headers, by: Credentials<'_>) {
    let Call { method, url, body, date } = call;
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or(host.to_string(), |port| format!("{host}:{port}"));
    headers.insert("x-amz-content-sha256".into(), body.into());
    headers.insert("x-amz-date".into(), date.into());
    let mut signed = headers.clone();
    signed.insert("host".into(), host);
    let names = signed.keys().cloned().collect::<Vec<_>>().join(";");
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let call =
        format!("{method}\n{}\n{}\n{lines}\n{names}\n{body}", canonical_path(url), canonical_query(url));

    let day = date.get(..8).unwrap_or_default();
    let scope = format!("{day}/{}/s3/aws4_request", by.region);
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", digest_of(call.as_bytes()));
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: Credentials<'_> = Credentials {
        id: "AKIAIOSFODNN7EXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        region: "us-east-1",
    };

    fn signature(method: &str, url: &str, body: &[u8], headers: &[(&str, &str)]) -> String {
        let mut headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let (url, body) = (Url::parse(url).unwrap(), digest_of(body));
        sign(Call { method, url: &url, body: &body, date: "20130524T000000Z" }, &mut headers, BY);
        headers["authorization"].rsplit('=').next().unwrap().to_string()
    }

    /// The examples of Amazon's own description.
    #[test]
    fn signatures_are_those_of_amazon() {
        let get = |url, headers| signature("GET", url, b"", headers);
        assert_eq!(
            get("https://examplebucket.s3.amazonaws.com/test.txt", &[("range", "bytes=0-9")][..]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            get("https://examplebucket.s3.amazonaws.com/?lifecycle", &[]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            get("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        let headers =
            [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        assert_eq!(
            signature(
                "PUT",
                "https://examplebucket.s3.amazonaws.com/test$file.text",
                b"Welcome to Amazon S3.",
                &headers
            ),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
    }

    #[test]
    fn the_digest_of_no_body_is_known() {
        assert_eq!(digest_of(b""), EMPTY);
    }
}
