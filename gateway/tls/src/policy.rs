//! Which versions and cipher suites of TLS are used, and for how long a proof counts.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::NoServerSessionStorage;
use rustls::{CipherSuite, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};

/// The oldest version that is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    #[default]
    Tls12,
    Tls13,
}

impl MinVersion {
    /// What may be written.
    pub const EXPECTED: &'static str = "tls12 or tls13";

    pub fn parse(text: &str) -> Option<MinVersion> {
        match text {
            "tls12" => Some(MinVersion::Tls12),
            "tls13" => Some(MinVersion::Tls13),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            MinVersion::Tls12 => "tls12",
            MinVersion::Tls13 => "tls13",
        }
    }

    pub(crate) fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static NEW: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        static BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            MinVersion::Tls12 => &BOTH,
            MinVersion::Tls13 => &NEW,
        }
    }
}

/// Reads names of cipher suites with commas between them. Nomad leaves the hash out of some names.
///
/// # Errors
/// The first name that is not one of a suite that can be used.
pub fn cipher_suites(text: &str) -> Result<Vec<CipherSuite>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(cipher_suite).collect()
}

fn cipher_suite(name: &str) -> Result<CipherSuite, String> {
    let named = |suite: &&SupportedCipherSuite| {
        let own = suite_name(suite.suite());
        own == name
            || own.strip_suffix("_SHA256").is_some_and(|short| short == name && short.ends_with("POLY1305"))
    };
    let found = old_suites().find(named).map(SupportedCipherSuite::suite);
    found.ok_or_else(|| {
        let known: Vec<String> = old_suites().map(|suite| suite_name(suite.suite())).collect();
        format!("the cipher suite \"{name}\" is not supported: expected some of {}", known.join(", "))
    })
}

/// The suites of TLS 1.2. Those of 1.3 are all in use and not configured, as in Nomad.
fn old_suites() -> impl Iterator<Item = &'static SupportedCipherSuite> {
    aws_lc_rs::ALL_CIPHER_SUITES.iter().filter(|suite| suite.version() == &version::TLS12)
}

pub(crate) fn suite_name(suite: CipherSuite) -> String {
    format!("{suite:?}")
}

/// The cryptography, with these suites of TLS 1.2 in this order; none means all.
pub(crate) fn provider(suites: &[CipherSuite]) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    if !suites.is_empty() {
        let new = provider.cipher_suites.iter().filter(|suite| suite.version() == &version::TLS13);
        let wanted = suites.iter().filter_map(|wanted| old_suites().find(|suite| suite.suite() == *wanted));
        provider.cipher_suites = new.chain(wanted).copied().collect();
    }
    Arc::new(provider)
}

/// Every connection has a handshake of its own: a session that is taken up again proves nothing anew.
pub(crate) fn never_resume(config: &mut ServerConfig) {
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cipher_suites_have_nomads_names() {
        let read =
            cipher_suites("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305");
        let expected = [
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ];
        assert_eq!(read.unwrap(), expected);
        assert_eq!(cipher_suites("").unwrap(), []);
        for wrong in ["TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM", "x"] {
            let error = cipher_suites(wrong).unwrap_err();
            assert!(error.contains(&format!("\"{wrong}\"")) && error.contains("TLS_ECDHE_RSA_"), "{error}");
        }
    }

    #[test]
    fn the_suites_of_the_newest_version_are_always_there() {
        let wanted = [CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];
        let suites: Vec<String> =
            provider(&wanted).cipher_suites.iter().map(|suite| suite_name(suite.suite())).collect();
        assert_eq!(suites.iter().filter(|name| name.starts_with("TLS13_")).count(), 3);
        assert_eq!(suites.iter().filter(|name| !name.starts_with("TLS13_")).count(), 1);
    }
}
