//! Objects of S3 and of Google Cloud Storage, as what HTTP downloads: an address, and the headers that prove who asks.

use aws_signature::{Call, Credentials, EMPTY, Headers, sign};
use jiff::Timestamp;
use reqwest::Url;

use crate::FetchError;
use crate::source::Source;

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
    let call = Call { method: "GET", url: &url, body: EMPTY, date: &date };
    sign(call, &mut headers, Credentials { id: &id, secret: &secret, region: &region });
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

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
