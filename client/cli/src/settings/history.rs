//! The `history` block: how much of the past a server keeps, and where.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base::Duration;
use jobspec::config::Section;
use model::event::ObjectKind;

use super::artifacts::Bytes;
use super::unsupported::Refused;
use super::value::ConfigValue;

const DAY: i64 = 24 * 60 * 60 * 1_000_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HistoryConfig {
    /// Bytes that states of the past may take in the memory of a server, about.
    pub memory: u64,
    /// How long history stays in the log, unless that takes more than `max_bytes`.
    pub min_age: Duration,
    /// Of the segments of the log.
    pub max_bytes: u64,
    /// Where it goes then; `None` for nowhere.
    pub archive: Option<ArchiveConfig>,
    /// Kinds of facts that stay when it is gone.
    pub keep: Vec<String>,
    /// Of what stays.
    pub keep_max_bytes: u64,
}

/// The least that kept facts may take: what is kept of one segment, and as much again that is being written.
const KEEP_MAX_BYTES_MIN: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ArchiveConfig {
    /// An absolute path, or the address of a bucket.
    pub path: String,
    /// Of its files; `None` for as many as its place takes.
    pub max_bytes: Option<u64>,
    /// Of a bucket: its store, empty for Amazon's own.
    pub endpoint: String,
    pub region: String,
    pub credentials_file: String,
    pub ca_file: String,
}

/// Where stores are that know of no regions.
const REGION: &str = "us-east-1";

impl ArchiveConfig {
    fn settings(&self) -> server::Archive {
        let bucket =
            self.bucket().ok().flatten().map(|bucket| server::ArchivePlace::Bucket(Box::new(bucket)));
        let place = bucket.unwrap_or_else(|| server::ArchivePlace::Folder(self.path.clone().into()));
        server::Archive { place, max_bytes: self.max_bytes }
    }

    /// `None` for a folder.
    ///
    /// # Errors
    /// Names the key below `history.archive`.
    fn bucket(&self) -> anyhow::Result<Option<server::BucketSettings>> {
        let of_bucket = [
            ("endpoint", &self.endpoint),
            ("region", &self.region),
            ("credentials_file", &self.credentials_file),
            ("ca_file", &self.ca_file),
        ];
        if !server::BucketAddress::is_meant_by(&self.path) {
            if let Some((key, _)) = of_bucket.iter().find(|(_, value)| !value.is_empty()) {
                bail!("{key}: expected only where path begins with s3://");
            }
            return Ok(None);
        }
        let address = self.path.parse().map_err(|why| anyhow::anyhow!("path: {why}"))?;
        let endpoint = match self.endpoint.as_str() {
            "" => None,
            text => {
                Some(text.parse().ok().filter(is_http).context("endpoint: expected a URL of http or https")?)
            }
        };
        if self.region.chars().any(|c| !c.is_ascii_alphanumeric() && c != '-') {
            bail!("region: expected a name like eu-west-1");
        }
        let region = if self.region.is_empty() { REGION } else { &self.region }.to_string();
        let file = |path: &str| (!path.is_empty()).then(|| PathBuf::from(path));
        let (credentials, authority) = (file(&self.credentials_file), file(&self.ca_file));
        for (key, path) in [("credentials_file", &credentials), ("ca_file", &authority)] {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                bail!("{key}: expected a path that begins with /");
            }
        }
        Ok(Some(server::BucketSettings { address, endpoint, region, credentials, authority }))
    }
}

fn is_http(url: &server::Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

impl Default for HistoryConfig {
    fn default() -> HistoryConfig {
        let kept = server::RETENTION;
        HistoryConfig {
            memory: history::MEMORY as u64,
            min_age: kept.age.map_or(Duration::ZERO, Duration::from),
            max_bytes: kept.bytes,
            archive: None,
            keep: Vec::new(),
            keep_max_bytes: server::KEEP_MAX_BYTES,
        }
    }
}

impl HistoryConfig {
    pub(crate) fn settings(&self) -> server::HistorySettings {
        server::HistorySettings {
            memory: usize::try_from(self.memory).unwrap_or(usize::MAX),
            retention: server::Retention { bytes: self.max_bytes, age: Some(self.min_age.to_std()) },
            archive: self.archive.as_ref().map(ArchiveConfig::settings),
            keep: self.keep.iter().filter_map(|word| ObjectKind::from_word(word)).collect(),
            keep_max_bytes: self.keep_max_bytes,
            ..server::HistorySettings::default()
        }
    }
}

pub(super) fn read(config: &mut HistoryConfig, mut section: Section, refused: &mut Refused) {
    let (mut memory, mut max_bytes) = (Bytes(config.memory), Bytes(config.max_bytes));
    let mut min_age = Age(config.min_age);
    refused.set(&mut section, "memory", &mut memory);
    refused.set(&mut section, "min_age", &mut min_age);
    refused.set(&mut section, "max_bytes", &mut max_bytes);
    let mut keep_max_bytes = Bytes(config.keep_max_bytes);
    refused.list(&mut section, "keep", &mut config.keep);
    refused.set(&mut section, "keep_max_bytes", &mut keep_max_bytes);
    config.keep_max_bytes = keep_max_bytes.0;
    (config.memory, config.min_age, config.max_bytes) = (memory.0, min_age.0, max_bytes.0);
    for each in refused.sections(&mut section, "archive") {
        archive(config.archive.get_or_insert_default(), each, refused);
    }
    refused.done(section);
}

fn archive(config: &mut ArchiveConfig, mut section: Section, refused: &mut Refused) {
    let mut max_bytes = config.max_bytes.map(Bytes);
    refused.set(&mut section, "path", &mut config.path);
    refused.set_option(&mut section, "max_bytes", &mut max_bytes);
    refused.set(&mut section, "endpoint", &mut config.endpoint);
    refused.set(&mut section, "region", &mut config.region);
    refused.set(&mut section, "credentials_file", &mut config.credentials_file);
    refused.set(&mut section, "ca_file", &mut config.ca_file);
    config.max_bytes = max_bytes.map(|bytes| bytes.0);
    refused.done(section);
}

/// What only shows when all files are read.
///
/// # Errors
/// Names the field.
pub(super) fn check(config: &HistoryConfig) -> anyhow::Result<()> {
    if let Some(word) = config.keep.iter().find(|word| ObjectKind::from_word(word).is_none()) {
        bail!("history.keep: {word:?}: expected kinds of facts among {}", ObjectKind::words().join(", "));
    }
    if config.keep_max_bytes < KEEP_MAX_BYTES_MIN {
        bail!("history.keep_max_bytes: expected at least 64MiB");
    }
    let Some(archive) = &config.archive else { return Ok(()) };
    let bucket = archive.bucket().map_err(|error| anyhow::anyhow!("history.archive.{error}"))?;
    if bucket.is_none() && !Path::new(&archive.path).is_absolute() {
        bail!("history.archive.path: expected a path that begins with /, or s3://BUCKET/PREFIX");
    }
    if archive.max_bytes == Some(0) {
        bail!("history.archive.max_bytes: expected more than 0");
    }
    Ok(())
}

/// A duration that may also be written in days.
struct Age(Duration);

impl ConfigValue for Age {
    const EXPECTED: &'static str = "a duration, like \"90d\" or \"720h\", not below zero";

    fn from_text(text: &str) -> Option<Age> {
        let age = match text.strip_suffix('d') {
            Some(days) => Duration(days.parse::<u32>().map(i64::from).ok()?.checked_mul(DAY)?),
            None => text.parse().ok()?,
        };
        (age >= Duration::ZERO).then_some(Age(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_a_folder_or_a_bucket() {
        let text = |text: &str| text.to_string();
        let bucket = ArchiveConfig {
            path: text("s3://history/prod"),
            endpoint: text("https://minio.example.org:9000"),
            credentials_file: text("/etc/sojourn/s3"),
            ..ArchiveConfig::default()
        };
        let server::ArchivePlace::Bucket(read) = bucket.settings().place else { panic!("it is a bucket") };
        assert_eq!((read.address.bucket.as_str(), read.address.prefix.as_str()), ("history", "prod"));
        assert_eq!((read.region.as_str(), read.credentials), (REGION, Some("/etc/sojourn/s3".into())));
        let folder = ArchiveConfig { path: text("/old"), ..ArchiveConfig::default() };
        assert_eq!(folder.settings(), server::Archive::in_folder("/old", None));
        let refused = |archive: ArchiveConfig| {
            check(&HistoryConfig { archive: Some(archive), ..HistoryConfig::default() })
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(ArchiveConfig { path: text("s3://"), ..bucket.clone() }),
            "history.archive.path: expected s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits and -_./"
        );
        for endpoint in ["minio:9000", "ftp://minio", "minio"] {
            assert_eq!(
                refused(ArchiveConfig { endpoint: text(endpoint), ..bucket.clone() }),
                "history.archive.endpoint: expected a URL of http or https",
                "{endpoint}"
            );
        }
        assert_eq!(
            refused(ArchiveConfig { region: text("eu/west"), ..bucket.clone() }),
            "history.archive.region: expected a name like eu-west-1"
        );
        assert_eq!(
            refused(ArchiveConfig { ca_file: text("ca.pem"), ..bucket }),
            "history.archive.ca_file: expected a path that begins with /"
        );
        assert_eq!(
            refused(ArchiveConfig { region: text("eu-west-1"), ..folder }),
            "history.archive.region: expected only where path begins with s3://"
        );
    }

    #[test]
    fn kinds_that_are_kept_are_checked() {
        let keep = |words: &[&str]| HistoryConfig {
            keep: words.iter().map(|word| word.to_string()).collect(),
            ..HistoryConfig::default()
        };
        check(&keep(&[])).unwrap();
        let kept = keep(&["job", "variable", "acl"]);
        check(&kept).unwrap();
        let settings = kept.settings();
        assert_eq!(
            (settings.keep.to_string(), settings.keep_max_bytes),
            ("job, variable and acl".into(), 1 << 30)
        );
        let refused = |config: &HistoryConfig| check(config).unwrap_err().to_string();
        assert_eq!(
            refused(&keep(&["job", "jobs"])),
            "history.keep: \"jobs\": expected kinds of facts among job, variable, acl, node, deployment, eval, alloc, \
             service, volume, cluster, keyring, stream"
        );
        let little = HistoryConfig { keep_max_bytes: 1 << 20, ..keep(&["job"]) };
        assert_eq!(refused(&little), "history.keep_max_bytes: expected at least 64MiB");
    }

    #[test]
    fn ages_are_days_or_durations() {
        let nanos = |text| Age::from_text(text).map(|age| age.0.0);
        assert_eq!(nanos("90d"), Some(90 * DAY));
        assert_eq!((nanos("48h"), nanos("0s"), nanos("0d")), (Some(2 * DAY), Some(0), Some(0)));
        assert_eq!(["-1d", "1.5d", "d", "90", "-1h", "4000000000d"].map(nanos), [None; 6]);
    }
}
