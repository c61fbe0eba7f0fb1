use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;

/// What an address of a bucket begins with.
const SCHEME: &str = "s3://";

/// A place in a bucket: `s3://BUCKET/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub bucket: String,
    /// Without a slash at either end; may be empty.
    pub prefix: String,
}

impl Address {
    /// Somebody means a bucket, maybe a wrong one.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        const EXPECTED: &str = "expected s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits and -_./";
        let (bucket, prefix) =
            text.strip_prefix(SCHEME).map_or(("", ""), |rest| match rest.split_once('/') {
                Some((bucket, prefix)) => (bucket, prefix.trim_matches('/')),
                None => (rest, ""),
            });
        let fits = |text: &str, more: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c)) && !text.contains("..")
        };
        if bucket.is_empty() || !fits(bucket, "-_.") || !fits(prefix, "-_./") || prefix.contains("//") {
            return Err(EXPECTED);
        }
        Ok(Address { bucket: bucket.to_string(), prefix: prefix.to_string() })
    }
}

/// Where a bucket is, and who asks for what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub address: Address,
    /// The address of the store; `None` for Amazon's own in the region.
    pub endpoint: Option<Url>,
    pub region: String,
    /// In the form of AWS's own programs, read for each call; without it what the environment says at the start.
    pub credentials: Option<PathBuf>,
    /// An authority that the store's certificate may be of; without it those that the host trusts.
    pub authority: Option<PathBuf>,
}

impl Settings {
    /// Where the store is.
    ///
    /// # Errors
    /// The region makes no address.
    pub(crate) fn store(&self) -> Result<Url, String> {
        match &self.endpoint {
            Some(endpoint) => Ok(endpoint.clone()),
            None => Url::parse(&format!("https://s3.{}.amazonaws.com", self.region))
                .map_err(|error| format!("region {:?}: {error}", self.region)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_bucket_and_what_its_keys_begin_with() {
        let read = |text: &str| text.parse::<Address>().ok().map(|place| (place.bucket, place.prefix));
        let is = |bucket: &str, prefix: &str| Some((bucket.to_string(), prefix.to_string()));
        assert_eq!(read("s3://history"), is("history", ""));
        assert_eq!(read("s3://history/"), is("history", ""));
        assert_eq!(read("s3://history/prod/eu/"), is("history", "prod/eu"));
        for wrong in
            ["", "history", "s3://", "s3:///a", "s3://b/a//c", "s3://b/../c", "s3://b/a b", "s3://a:b/c"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
