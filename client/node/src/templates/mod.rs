//! Templates of tasks: texts that are rendered with what the servers have, and again when that changes.
//!
//! The language is that of the crate [`template`]. [`watches`] asks the servers, once for all templates of a task that
//! read the same; [`spec`] is what the job says; [`sandbox`] keeps files inside of the directories of the task;
//! [`render`] makes texts and files; [`change`] follows what changes and does what the job wants then. The task hook
//! `template` starts all of it.

pub mod change;
pub mod render;
pub mod sandbox;
pub mod spec;
pub mod watches;

use std::collections::BTreeSet;
use std::time::Duration;

/// How long a rendering waits for further changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Without changes.
    pub min: Duration,
    /// At most, while changes go on.
    pub max: Duration,
}

/// What the operator decides about templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateSettings {
    /// Functions that no template may call.
    pub function_denylist: BTreeSet<String>,
    /// Templates may read and write files anywhere.
    pub disable_file_sandbox: bool,
    /// How long a query waits for a change. Longer costs the servers less; a change is answered at once either way.
    pub block_query_wait: Duration,
    /// For templates that say nothing else.
    pub wait: Wait,
    /// Bounds for what templates say.
    pub wait_bounds: Option<Wait>,
    pub retry: Retry,
    /// The same for what is read from Vault.
    pub vault_retry: Retry,
    /// What is read of Consul.
    pub consul_retry: Retry,
    /// How long a secret without a lease is taken for fresh.
    pub vault_lease: Duration,
}

/// How often a query that servers refuse is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// 0 for no bound.
    pub attempts: u32,
    /// Before the second attempt; it doubles with each.
    pub backoff: Duration,
    pub max_backoff: Duration,
}

impl Retry {
    pub const USUAL: Retry =
        Retry { attempts: 12, backoff: Duration::from_millis(250), max_backoff: Duration::from_secs(60) };
}

impl TemplateSettings {
    /// Those of Nomad, if the operator says nothing.
    pub fn usual() -> TemplateSettings {
        let denied = ["executeTemplate", "plugin", "writeToFile"];
        TemplateSettings {
            function_denylist: denied.map(str::to_string).into(),
            disable_file_sandbox: false,
            block_query_wait: Duration::from_secs(5 * 60),
            wait: Wait { min: Duration::from_secs(5), max: Duration::from_secs(4 * 60) },
            wait_bounds: None,
            retry: Retry::USUAL,
            vault_retry: Retry::USUAL,
            consul_retry: Retry::USUAL,
            vault_lease: Duration::from_secs(5 * 60),
        }
    }
}
