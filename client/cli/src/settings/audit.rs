//! The `audit` block, as Nomad Enterprise has it.

use std::path::{Path, PathBuf};

use ::audit::{AuditSettings, Filter, Sink};
use base::Duration;
use jobspec::config::Section;
use monitor::LogFileSettings;

use super::unsupported::Refused;

/// Where the system's logger listens.
const SYSLOG: &str = "/dev/log";

/// Who asked for what is recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AuditConfig {
    pub enabled: bool,
    pub sink: SinkConfig,
    pub filters: Vec<Filter>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SinkConfig {
    /// Else a file.
    pub is_syslog: bool,
    /// A request whose entry cannot be written is refused.
    pub is_enforced: bool,
    /// `None` for the default.
    pub path: Option<PathBuf>,
    pub rotate_bytes: u64,
    pub rotate_duration: Duration,
    pub rotate_max_files: i64,
    /// The permissions of a new file.
    pub mode: u32,
}

impl Default for SinkConfig {
    fn default() -> SinkConfig {
        SinkConfig {
            is_syslog: false,
            is_enforced: true,
            path: None,
            rotate_bytes: 0,
            rotate_duration: Duration::from_secs(24 * 60 * 60),
            rotate_max_files: 0,
            mode: 0o600,
        }
    }
}

impl AuditConfig {
    /// `home` is the directory in which the agent keeps its data.
    pub(crate) fn settings(&self, home: &Path) -> Option<AuditSettings> {
        let SinkConfig { is_syslog, is_enforced, path, .. } = &self.sink;
        let sink = match is_syslog {
            true => Sink::Syslog(path.clone().unwrap_or_else(|| PathBuf::from(SYSLOG))),
            false => Sink::File(LogFileSettings {
                path: path.clone().unwrap_or_else(|| home.join("audit").join("audit.log")),
                rotate_bytes: self.sink.rotate_bytes,
                rotate_after: self.sink.rotate_duration.to_std(),
                keep: self.sink.rotate_max_files,
                mode: self.sink.mode,
            }),
        };
        let settings = AuditSettings { sink, is_enforced: *is_enforced, filters: self.filters.clone() };
        self.enabled.then_some(settings)
    }
}

pub(super) fn read(config: &mut AuditConfig, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "enabled", &mut config.enabled);
    let sinks = refused.sections(&mut section, "sink");
    if let [_, second, ..] = sinks.as_slice() {
        refused.also(Err(second.wrong("\"sink\": expected one: entries go to one place".to_string())));
    }
    for each in named(sinks, refused) {
        config.sink = sink(each, refused);
    }
    let filters = refused.sections(&mut section, "filter");
    for each in named(filters, refused) {
        config.filters.push(filter(each, refused));
    }
    refused.done(section);
}

/// The blocks of a kind, one by one: each has its name as a label, or in JSON as a key.
fn named(blocks: Vec<Section>, refused: &mut Refused) -> Vec<Section> {
    let mut all = Vec::new();
    for mut block in blocks {
        if !block.labels.is_empty() {
            all.push(block);
            continue;
        }
        for name in block.names() {
            all.extend(refused.sections(&mut block, &name));
        }
        refused.done(block);
    }
    all
}

fn sink(mut section: Section, refused: &mut Refused) -> SinkConfig {
    let mut sink = SinkConfig::default();
    let (mut kind, mut format, mut guarantee) =
        ("file".to_string(), "json".to_string(), "enforced".to_string());
    let mut mode = String::new();
    refused.set(&mut section, "type", &mut kind);
    refused.set(&mut section, "format", &mut format);
    refused.set(&mut section, "delivery_guarantee", &mut guarantee);
    refused.set_option(&mut section, "path", &mut sink.path);
    refused.set(&mut section, "rotate_bytes", &mut sink.rotate_bytes);
    refused.set(&mut section, "rotate_duration", &mut sink.rotate_duration);
    refused.set(&mut section, "rotate_max_files", &mut sink.rotate_max_files);
    refused.set(&mut section, "mode", &mut mode);
    let mut wrong = |text: String| refused.also(Err(section.wrong(text)));
    match kind.as_str() {
        "file" => {}
        "syslog" => sink.is_syslog = true,
        other => wrong(format!("\"type\": expected \"file\" or \"syslog\", not {other:?}")),
    }
    if format != "json" {
        wrong(format!("\"format\": expected \"json\", not {format:?}"));
    }
    match guarantee.as_str() {
        "enforced" => {}
        "best-effort" => sink.is_enforced = false,
        other => {
            wrong(format!("\"delivery_guarantee\": expected \"enforced\" or \"best-effort\", not {other:?}"));
        }
    }
    if sink.path.as_ref().is_some_and(|path| !path.is_absolute()) {
        wrong("\"path\": expected a path that begins with /".to_string());
    }
    if sink.rotate_duration <= Duration::ZERO {
        wrong("\"rotate_duration\": expected more than 0".to_string());
    }
    if !mode.is_empty() {
        match u32::from_str_radix(&mode, 8).ok().filter(|mode| *mode <= 0o777) {
            Some(given) => sink.mode = given,
            None => wrong(format!("\"mode\": expected permissions like \"0600\", not {mode:?}")),
        }
    }
    refused.done(section);
    sink
}

fn filter(mut section: Section, refused: &mut Refused) -> Filter {
    let mut filter = Filter::default();
    let mut kind = "HTTPEvent".to_string();
    refused.set(&mut section, "type", &mut kind);
    refused.list(&mut section, "endpoints", &mut filter.endpoints);
    refused.list(&mut section, "stages", &mut filter.stages);
    refused.list(&mut section, "operations", &mut filter.operations);
    if kind != "HTTPEvent" {
        refused.also(Err(section.wrong(format!("\"type\": expected \"HTTPEvent\", not {kind:?}"))));
    }
    if let Err(error) = filter.check() {
        refused.also(Err(section.wrong(error.to_string())));
    }
    refused.done(section);
    filter
}
