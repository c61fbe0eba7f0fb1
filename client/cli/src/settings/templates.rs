//! `client.template`: how nodes render templates.

use base::Duration;
use jobspec::config::Section;
use node::templates::{Retry, TemplateSettings, Wait};

use super::unsupported::{Refusal, Refused};

/// Keys that ask for what is not there, and the values that change nothing.
const ELSEWHERE: [Refusal; 2] = [
    ("max_stale", "87600h", "what templates read is as new as the server that answers"),
    (
        "use_client_consul_token",
        "false",
        "tasks read Consul with their own token, and never with the agent's",
    ),
];

pub(super) fn templates(settings: &mut TemplateSettings, mut section: Section, refused: &mut Refused) {
    // The older spelling first: the newer one wins.
    for key in ["function_blacklist", "function_denylist"] {
        let mut denied: Vec<String> = settings.function_denylist.iter().cloned().collect();
        refused.list(&mut section, key, &mut denied);
        settings.function_denylist = denied.into_iter().collect();
    }
    refused.set(&mut section, "disable_file_sandbox", &mut settings.disable_file_sandbox);
    settings.block_query_wait = {
        let mut wait = Duration::from(settings.block_query_wait);
        refused.set(&mut section, "block_query_wait", &mut wait);
        wait.to_std()
    };
    for block in refused.sections(&mut section, "wait") {
        settings.wait = wait(settings.wait, block, refused);
    }
    for block in refused.sections(&mut section, "wait_bounds") {
        settings.wait_bounds = Some(wait(settings.wait_bounds.unwrap_or(settings.wait), block, refused));
    }
    for block in refused.sections(&mut section, "nomad_retry") {
        retry(&mut settings.retry, block, refused);
    }
    for block in refused.sections(&mut section, "consul_retry") {
        retry(&mut settings.consul_retry, block, refused);
    }
    for block in refused.sections(&mut section, "vault_retry") {
        retry(&mut settings.vault_retry, block, refused);
    }
    settings.vault_lease = {
        let mut lease = Duration::from(settings.vault_lease);
        refused.set(&mut section, "vault_default_lease_duration", &mut lease);
        if lease <= Duration::ZERO {
            let text = format!("vault_default_lease_duration = {lease}: expected more than 0s");
            refused.also(Err(section.wrong(text)));
        }
        lease.to_std()
    };
    refused.keys(&mut section, &ELSEWHERE);
    refused.done(section);
}

fn wait(before: Wait, mut section: Section, refused: &mut Refused) -> Wait {
    let (mut min, mut max) = (Duration::from(before.min), Duration::from(before.max));
    refused.set(&mut section, "min", &mut min);
    refused.set(&mut section, "max", &mut max);
    if min > max {
        refused.also(Err(section.wrong(format!("min = {min}: expected at most max, which is {max}"))));
    }
    refused.done(section);
    Wait { min: min.to_std(), max: max.to_std() }
}

fn retry(settings: &mut Retry, mut section: Section, refused: &mut Refused) {
    let (mut backoff, mut longest) = (Duration::from(settings.backoff), Duration::from(settings.max_backoff));
    refused.set(&mut section, "attempts", &mut settings.attempts);
    refused.set(&mut section, "backoff", &mut backoff);
    refused.set(&mut section, "max_backoff", &mut longest);
    (settings.backoff, settings.max_backoff) = (backoff.to_std(), longest.to_std());
    refused.done(section);
}
