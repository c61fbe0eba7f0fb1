//! `client.fingerprint`: how a node looks for the cloud that it is in.

use base::Duration;
use jobspec::config::Section;
use node::cloud::{CLOUDS, Probe, Probes};

use super::unsupported::Refused;

/// One cloud by its label, or in JSON some by their keys.
pub(super) fn fingerprint(probes: &mut Probes, mut section: Section, refused: &mut Refused) {
    if let Some(name) = section.labels.first().cloned() {
        return cloud(probes, name, section, refused);
    }
    for name in section.names() {
        for inner in refused.sections(&mut section, &name) {
            cloud(probes, name.clone(), inner, refused);
        }
    }
    refused.done(section);
}

fn cloud(probes: &mut Probes, name: String, mut section: Section, refused: &mut Refused) {
    if CLOUDS.iter().all(|known| known.name != name) {
        let known = CLOUDS.map(|known| known.name).join(", ");
        refused.also(Err(section.wrong(format!("fingerprint \"{name}\": expected one of {known}"))));
        return;
    }
    let probe: &mut Probe = probes.entry(name).or_default();
    let mut interval = Duration::from(probe.retry_interval);
    refused.set(&mut section, "retry_interval", &mut interval);
    if interval <= Duration::ZERO {
        refused.also(Err(section.wrong(format!("retry_interval = {interval}: expected more than 0s"))));
    }
    probe.retry_interval = interval.to_std();
    refused.set(&mut section, "retry_attempts", &mut probe.retry_attempts);
    refused.set(&mut section, "exit_on_failure", &mut probe.exit_on_failure);
    refused.done(section);
}

/// With the addresses of services that variables of the agent name.
pub(crate) fn with_addresses(probes: &Probes, value: impl Fn(&str) -> Option<String>) -> Probes {
    let mut probes = probes.clone();
    for cloud in &CLOUDS {
        if let Some(address) = value(cloud.variable).filter(|address| !address.is_empty()) {
            probes.entry(cloud.name.to_string()).or_default().address = Some(address);
        }
    }
    probes
}
