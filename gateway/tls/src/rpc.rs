use std::sync::Arc;

use crate::{AgentTls, SharedKeys};

/// How the ends of a connection of the node RPC prove who they are: by certificates, else by keys, else not at all. A clone
/// is a handle of the same.
#[derive(Clone, Debug, Default)]
pub struct RpcSecurity {
    /// Set where `tls.rpc` is.
    certificates: Option<Arc<AgentTls>>,
    keys: Arc<SharedKeys>,
    /// The region of the servers that are dialed, where it is another one.
    away: Option<Arc<str>>,
}

/// One way to make a connection.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// Whoever dials a server of another region names that.
    Certificates(&'a AgentTls, Option<&'a str>),
    Keys(&'a SharedKeys, Option<&'a str>),
    /// Without TLS.
    Plain,
}

impl RpcSecurity {
    /// Of an agent of this region with this TLS, if it has one. Its keys, if it gets some, come later.
    pub fn new(tls: Option<Arc<AgentTls>>, region: &str) -> RpcSecurity {
        let certificates = tls.filter(|tls| tls.serves_rpc());
        RpcSecurity { certificates, keys: Arc::new(SharedKeys::of(region)), away: None }
    }

    /// The same, for dialing servers of another region.
    pub fn towards(&self, region: &str) -> RpcSecurity {
        RpcSecurity { away: Some(region.into()), ..self.clone() }
    }

    pub fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// How this end dials, and what it tries next if the other end does not have that: only during an upgrade to TLS.
    pub fn dialing(&self) -> (Way<'_>, Option<Way<'_>>) {
        let away = self.away.as_deref();
        let without_certificates = if self.keys.are_set() { Way::Keys(&self.keys, away) } else { Way::Plain };
        match self.certificates.as_deref() {
            Some(tls) if tls.upgrade_mode() => (Way::Certificates(tls, away), Some(without_certificates)),
            Some(tls) => (Way::Certificates(tls, away), None),
            None => (without_certificates, None),
        }
    }

    /// What checks a connection by certificates.
    ///
    /// # Errors
    /// Why this end serves none.
    pub fn accept_certificates(&self) -> Result<Way<'_>, &'static str> {
        let tls = self.certificates.as_deref();
        let way = |tls| Way::Certificates(tls, None);
        tls.map(way).ok_or("it wants TLS, which is not configured here: set tls.rpc")
    }

    /// As [`RpcSecurity::accept_certificates`], by keys.
    ///
    /// # Errors
    /// As there.
    pub fn accept_keys(&self) -> Result<Way<'_>, &'static str> {
        match (self.needs_certificates(), self.keys.are_set()) {
            (true, _) => Err("it has no certificate, and tls.rpc asks for one"),
            (false, true) => Ok(Way::Keys(&self.keys, None)),
            (false, false) => Err("it shows a key of gossip, and this agent has none: set server.encrypt"),
        }
    }

    /// Whether connections that prove nothing are served.
    ///
    /// # Errors
    /// As there.
    pub fn accept_plain(&self) -> Result<Way<'_>, &'static str> {
        match self.needs_certificates() {
            true => Err("it does not use TLS, and tls.rpc asks for it"),
            false => Ok(Way::Plain),
        }
    }

    fn needs_certificates(&self) -> bool {
        self.certificates.as_ref().is_some_and(|tls| !tls.upgrade_mode())
    }

    /// All servers have a way to prove themselves to this one: during an upgrade to TLS those that have no key may not. If
    /// not, only their address can speak for them.
    pub fn servers_can_prove_themselves(&self) -> bool {
        self.keys.are_set() || self.needs_certificates()
    }
}
