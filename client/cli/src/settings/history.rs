//! The `history` block: how much of the past a server keeps, and where.

use std::path::PathBuf;

use anyhow::bail;
use base::Duration;
use jobspec::config::Section;

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
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ArchiveConfig {
    /// Absolute.
    pub path: PathBuf,
    /// Of its files; `None` for as many as its disk takes.
    pub max_bytes: Option<u64>,
}

impl Default for HistoryConfig {
    fn default() -> HistoryConfig {
        let kept = server::RETENTION;
        HistoryConfig {
            memory: history::MEMORY as u64,
            min_age: kept.age.map_or(Duration::ZERO, Duration::from),
            max_bytes: kept.bytes,
            archive: None,
        }
    }
}

impl HistoryConfig {
    pub(crate) fn settings(&self) -> server::HistorySettings {
        server::HistorySettings {
            memory: usize::try_from(self.memory).unwrap_or(usize::MAX),
            retention: server::Retention { bytes: self.max_bytes, age: Some(self.min_age.to_std()) },
            archive: self
                .archive
                .as_ref()
                .map(|archive| server::Archive { dir: archive.path.clone(), max_bytes: archive.max_bytes }),
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
    config.max_bytes = max_bytes.map(|bytes| bytes.0);
    refused.done(section);
}

/// What only shows when all files are read.
///
/// # Errors
/// Names the field.
pub(super) fn check(config: &HistoryConfig) -> anyhow::Result<()> {
    match &config.archive {
        Some(archive) if !archive.path.is_absolute() => {
            bail!("history.archive.path: expected a path that begins with /")
        }
        Some(ArchiveConfig { max_bytes: Some(0), .. }) => {
            bail!("history.archive.max_bytes: expected more than 0")
        }
        Some(_) | None => Ok(()),
    }
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
    fn ages_are_days_or_durations() {
        let nanos = |text| Age::from_text(text).map(|age| age.0.0);
        assert_eq!(nanos("90d"), Some(90 * DAY));
        assert_eq!((nanos("48h"), nanos("0s"), nanos("0d")), (Some(2 * DAY), Some(0), Some(0)));
        assert_eq!(["-1d", "1.5d", "d", "90", "-1h", "4000000000d"].map(nanos), [None; 6]);
    }
}
