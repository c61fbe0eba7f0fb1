//! The `tls` block.

use std::collections::BTreeMap;

use jobspec::Diagnostic;
use jobspec::config::Section;
use tls::{AgentTls, MinVersion};

use super::AgentSettings;
use super::unsupported::Refused;
use super::value::ConfigValue;

/// Where keys of the block stand that a mistake in a file may be about.
pub(super) type Places = BTreeMap<&'static str, Diagnostic>;

const PLACES: [&str; 6] = ["ca_file", "cert_file", "key_file", "http", "rpc", "verify_https_client"];

/// Keys at which a file that is missing was asked for.
const SWITCHES: [&str; 3] = ["rpc", "http", "verify_https_client"];

pub(super) fn read(
    settings: &mut AgentSettings,
    places: &mut Places,
    mut section: Section,
    refused: &mut Refused,
) {
    for key in PLACES {
        places.extend(section.problem(key, "").map(|place| (key, place)));
    }
    let tls = &mut settings.tls;
    refused.set(&mut section, "http", &mut tls.http);
    refused.set(&mut section, "rpc", &mut tls.rpc);
    for (key, field) in
        [("ca_file", &mut tls.ca_file), ("cert_file", &mut tls.cert_file), ("key_file", &mut tls.key_file)]
    {
        refused.set_option(&mut section, key, field);
        *field = field.take().filter(|path| !path.as_os_str().is_empty());
    }
    refused.set(&mut section, "verify_server_hostname", &mut tls.verify_server_hostname);
    refused.set(&mut section, "verify_https_client", &mut tls.verify_https_client);
    refused.set(&mut section, "rpc_upgrade_mode", &mut tls.rpc_upgrade_mode);
    refused.set(&mut section, "tls_min_version", &mut tls.min_version);
    let place = section.problem("tls_cipher_suites", "");
    let mut suites: Option<String> = None;
    refused.set_option(&mut section, "tls_cipher_suites", &mut suites);
    match suites.as_deref().map(tls::cipher_suites) {
        Some(Ok(suites)) => tls.cipher_suites = suites,
        Some(Err(message)) => {
            let message = format!("\"tls_cipher_suites\": {message}");
            refused.problems(place.map(|place| Diagnostic { message, ..place }));
        }
        None => {}
    }
    let mut prefers: Option<bool> = None;
    refused.set_option(&mut section, "tls_prefer_server_cipher_suites", &mut prefers);
    if prefers == Some(true) {
        let note = "tls.tls_prefer_server_cipher_suites has no effect: servers always choose";
        settings.notes.push(note.to_string());
    }
    refused.done(section);
}

/// Reads the files of the block once, so that what is wrong with them is said where they are named.
///
/// # Errors
/// The first file that cannot be used.
pub(super) fn check(settings: &AgentSettings, places: &Places) -> anyhow::Result<()> {
    if !settings.tls.is_on() {
        return Ok(());
    }
    let Err(wrong) = AgentTls::load(&settings.tls, &settings.region, settings.server.enabled) else {
        return Ok(());
    };
    let at_switch = || SWITCHES.iter().find_map(|key| places.get(key));
    let message = format!("tls.{wrong}");
    match places.get(wrong.key).or_else(at_switch) {
        Some(place) => {
            let problem = Diagnostic { message, ..place.clone() };
            anyhow::bail!("Error loading configuration: {problem}")
        }
        None => anyhow::bail!("{message}"),
    }
}

impl ConfigValue for MinVersion {
    const EXPECTED: &'static str = MinVersion::EXPECTED;

    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(MinVersion::default()) } else { MinVersion::parse(text) }
    }
}
