//! Keys of Nomad's agent configuration that this release does not support.

use std::collections::BTreeMap;

use base::Duration;
use jobspec::config::Section;
use jobspec::{Diagnostic, Diagnostics};
use serde_json::Value;

use super::value::{self, ConfigValue};

/// A key, the value that asks for nothing, because this release does what Nomad does then (an empty one never asks for
/// anything), and why others are refused.
pub(super) type Refusal = (&'static str, &'static str, &'static str);

const ENTERPRISE_ONLY: &str = "of Nomad Enterprise";
const OWN_LOG: &str = "the log of the cluster is another one than Nomad's, and cares for itself";
const OF_WINDOWS: &str = "of Windows";

const TOP: [Refusal; 4] = [
    ("enable_syslog", "false", "the log goes to standard output, which systemd keeps, and to log_file"),
    ("eventlog", "", OF_WINDOWS),
    ("rpc", "", "connections of agents wait and hold back by rules of their own"),
    ("syslog_facility", "LOCAL0", "the log goes to standard output, which systemd keeps, and to log_file"),
];

const SERVER: [Refusal; 28] = [
    ("data_dir", "", "a server keeps its log in the data_dir of the agent"),
    ("deploy_query_rate_limit", "", "deployments follow from the log: nothing is queried for them"),
    ("enable_event_broker", "true", "events are the log itself"),
    ("enabled_schedulers", "", "each scheduler works on jobs of all types"),
    ("event_buffer_size", "", "the stream goes back as far as the history block says"),
    ("job_default_priority", "50", "priorities are 1 to 100, and 50 without one"),
    ("job_max_priority", "100", "priorities are 1 to 100, and 50 without one"),
    ("job_max_source_size", "", "a megabyte of a job's file is kept with it"),
    ("job_tracked_versions", "", "six versions of a job stay beside those that have a tag; history has all"),
    ("license_path", "", ENTERPRISE_ONLY),
    ("log_file", "", "the agent has one log: log_file stands outside of the block"),
    ("max_heartbeats_per_second", "", "heartbeats are not in the log, and cost no more than a call"),
    ("non_production", "false", ENTERPRISE_ONLY),
    ("non_voting_server", "false", ENTERPRISE_ONLY),
    ("plan_apply_pipeline", "", OWN_LOG),
    ("plan_rejection_tracker", "", "no node is put aside for plans that were rejected"),
    ("raft_boltdb", "", OWN_LOG),
    ("raft_logstore", "", OWN_LOG),
    ("raft_multiplier", "", OWN_LOG),
    ("raft_protocol", "3", OWN_LOG),
    ("raft_snapshot_interval", "", OWN_LOG),
    ("raft_snapshot_threshold", "", OWN_LOG),
    ("raft_trailing_logs", "", OWN_LOG),
    ("redundancy_zone", "", ENTERPRISE_ONLY),
    ("rejoin_after_leave", "false", "a server joins those that server_join names, whatever it did before"),
    ("search", "", "how much a search finds is fixed"),
    ("start_timeout", "", "no step of a server's start has a limit of time"),
    ("upgrade_version", "", ENTERPRISE_ONLY),
];

const CLIENT: [Refusal; 2] = [
    (
        "disk_free_mb",
        "0",
        "placement counts with the whole disk: say how large it is with disk_total_mb, and what of it is not for jobs with reserved.disk",
    ),
    ("log_file", "", "the agent has one log: log_file stands outside of the block"),
];

/// Keys of Nomad Enterprise: the community edition accepts and ignores them.
const ENTERPRISE: [&str; 2] = ["reporting", "sentinel"];

/// Keys of `telemetry` that are accepted and have no effect.
const TELEMETRY: [&str; 5] = [
    "filter_default",
    "in_memory_collection_interval",
    "in_memory_retention_period",
    "prefix_filter",
    "use_node_name",
];

/// Thresholds of `server` that are accepted, and why they have no effect.
const NOTHING_TO_COLLECT: [(&str, &str); 4] = [
    ("acl_token_gc_threshold", "tokens are forgotten when they have expired"),
    ("csi_plugin_gc_threshold", "CSI plugins follow from the nodes that have them"),
    ("csi_volume_claim_gc_interval", CLAIMS),
    ("csi_volume_claim_gc_threshold", CLAIMS),
];

const CLAIMS: &str = "claims on CSI volumes follow from allocations and end with them";

const ASKED_FOR_EVER: &str = "a node asks its servers one after the other until one answers, for ever";

const SERVER_JOIN: [Refusal; 3] = [
    ("start_join", "", ASKED_FOR_EVER),
    ("retry_interval", "30s", ASKED_FOR_EVER),
    ("retry_max", "0", ASKED_FOR_EVER),
];

/// Keys of `client` that are accepted, and why they have no effect.
const NOTHING_TO_DO: [(&str, &str); 4] = [
    ("alloc_mounts_dir", NO_MOUNTS),
    ("client_max_port", PLUGIN_PORTS),
    ("client_min_port", PLUGIN_PORTS),
    ("cpu_disable_dmidecode", "dmidecode is never run"),
];

/// Also of the flag.
pub(super) const NO_MOUNTS: &str =
    "nothing is mounted there: tasks of drivers that unveil see their directories in alloc_dir";

const PLUGIN_PORTS: &str = "plugins listen on sockets of the file system, and need no ports";

/// The keys of a file that ask for what this release does not support. They are collected, so that the operator reads
/// of all of them at once.
#[derive(Debug, Default)]
pub(super) struct Refused(Vec<Diagnostic>);

impl Refused {
    /// Takes keys, and refuses those that are neither empty, nor switched off, nor set to their default.
    pub(super) fn keys(&mut self, section: &mut Section, keys: &[Refusal]) {
        for (key, default, why) in keys {
            self.key(section, key, default, why);
        }
    }

    /// One of them.
    pub(super) fn key(&mut self, section: &mut Section, key: &str, default: &str, why: &str) {
        let message = || format!("\"{key}\": not supported: {why}");
        self.0.extend(section.refuse(key, |value| is_default(value, default), message));
    }

    /// Sets a field from a key, if the key is present. A value of a wrong type is refused, and the field stays.
    pub(super) fn set<T: ConfigValue>(&mut self, section: &mut Section, key: &str, field: &mut T) {
        self.also(value::set(section, key, field));
    }

    pub(super) fn set_option<T: ConfigValue>(
        &mut self,
        section: &mut Section,
        key: &str,
        field: &mut Option<T>,
    ) {
        self.also(value::set_option(section, key, field));
    }

    pub(super) fn set_map(&mut self, section: &mut Section, field: &mut BTreeMap<String, String>) {
        self.also(value::set_map(section, field));
    }

    /// A list of texts.
    pub(super) fn list(&mut self, section: &mut Section, key: &str, field: &mut Vec<String>) {
        match section.take(key) {
            Ok(Some(items)) => *field = items,
            Ok(None) => {}
            Err(wrong) => self.also(Err(wrong)),
        }
    }

    /// The blocks of that name; none if something else stands under it.
    pub(super) fn sections(&mut self, section: &mut Section, name: &str) -> Vec<Section> {
        section.sections(name).unwrap_or_else(|wrong| {
            self.also(Err(wrong));
            Vec::new()
        })
    }

    /// Refuses what is left in a block that was read.
    pub(super) fn done(&mut self, section: Section) {
        self.also(section.finish());
    }

    /// Adds problems that were found elsewhere.
    pub(super) fn problems(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(found);
    }

    /// Adds what is wrong with a part of a file, so that the other parts are read too.
    pub(super) fn also(&mut self, read: Result<(), Diagnostics>) {
        if let Err(Diagnostics(wrong)) = read {
            self.0.extend(wrong);
        }
    }

    /// What was refused, file by file, in the order of each.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        let mut files: Vec<String> = Vec::new();
        for problem in &self.0 {
            if !files.contains(&problem.file) {
                files.push(problem.file.clone());
            }
        }
        let place = |problem: &Diagnostic| files.iter().position(|file| *file == problem.file);
        self.0.sort_by_key(|problem| (place(problem), problem.line, problem.column));
        self.0
    }
}

/// Whether a value asks for nothing: it is empty, a block that is switched off, or `default`, quoted or not.
fn is_default(value: &Value, default: &str) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || same(text, default),
        Value::Bool(_) | Value::Number(_) => same(&value.to_string(), default),
        Value::Array(items) => items.is_empty(),
        Value::Object(block) => {
            block.is_empty() || block.get("enabled").is_some_and(|switch| is_default(switch, "false"))
        }
    }
}

fn same(text: &str, default: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    match default {
        "true" | "false" => api::go_bool(text) == api::go_bool(default),
        _ => text == default || number(text).is_some_and(|given| number(default) == Some(given)),
    }
}

pub(super) fn top(top: &mut Section, notes: &mut Vec<String>, refused: &mut Refused) {
    // Always in effect: nothing is ever sent to the vendor.
    has(top, "disable_update_check");
    has(top, "disable_anonymous_signature");
    for key in ENTERPRISE {
        if has(top, key) {
            notes.push(format!("{key} belongs to enterprise releases and has no effect"));
        }
    }
    for mut keyring in refused.sections(top, "keyring") {
        // This is what every cluster without the block has.
        if keyring.labels.iter().any(|label| label != "aead") {
            refused.also(Err(keyring
                .wrong("\"keyring\": not supported: keys are the cluster's own, without a key service")));
        }
        has(&mut keyring, "active");
    }
    refused.keys(top, &TOP);
}

/// What Nomad's page takes, and ours has no place for.
pub(super) fn ui(section: &mut Section) -> Vec<String> {
    let keys = ["content_security_policy", "consul", "vault", "label"];
    let given = keys.into_iter().filter(|key| has(section, key));
    given.map(|key| format!("ui.{key} has no effect: the web page has nothing like it")).collect()
}

/// Removes a key unread; true when it was present.
fn has(section: &mut Section, key: &str) -> bool {
    let given = section.names().iter().any(|name| name == key);
    section.refuse(key, |_| true, String::new);
    given
}

/// Returns a note about the keys without effect. Everything else is a sink.
pub(super) fn telemetry(mut section: Section, refused: &mut Refused) -> Option<String> {
    let said: Vec<&str> = TELEMETRY.into_iter().filter(|key| has(&mut section, key)).collect();
    for sink in section.names() {
        refused.key(&mut section, &sink, "false", "metrics are fetched, and sent nowhere");
    }
    (!said.is_empty()).then(|| format!("of telemetry, {} have no effect yet", said.join(", ")))
}

/// Thresholds for what this release never has, or never has to collect.
pub(super) fn nothing_to_collect(section: &mut Section, notes: &mut Vec<String>, refused: &mut Refused) {
    for (key, why) in NOTHING_TO_COLLECT {
        let mut given: Option<Duration> = None;
        refused.set_option(section, key, &mut given);
        if given.is_some() {
            notes.push(format!("server.{key} has no effect: {why}"));
        }
    }
}

pub(super) fn server(section: &mut Section, refused: &mut Refused) {
    refused.keys(section, &SERVER);
}

pub(super) fn client(section: &mut Section, notes: &mut Vec<String>, refused: &mut Refused) {
    for (key, why) in NOTHING_TO_DO {
        let mut given: Option<String> = None;
        refused.set_option(section, key, &mut given);
        if given.is_some() {
            notes.push(format!("client.{key} has no effect: {why}"));
        }
    }
    refused.keys(section, &CLIENT);
}

pub(super) fn server_join(section: &mut Section, refused: &mut Refused) {
    refused.keys(section, &SERVER_JOIN);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever is refused a key finds the reason on the page of the keys, too.
    #[test]
    fn the_page_says_why_keys_are_refused() {
        let page = include_str!("../../../../docs/reference/agent.md");
        for (block, refused) in [
            ("", &TOP[..]),
            ("server.", &SERVER),
            ("client.", &CLIENT),
            ("client.server_join.", &SERVER_JOIN),
        ] {
            for (key, _, why) in refused {
                let row = format!("| `{block}{key}` | {why} |");
                assert!(page.contains(&row), "missing: {row}");
            }
        }
    }
}
