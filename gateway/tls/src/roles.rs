use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// What an agent does in its cluster, as its certificate says by a name: `server.global.nomad` is a server of the
/// region `global`. They are Nomad's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// What the other end of a connection has proved to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerIdentity {
    /// Nothing. Whoever reaches the port may be this.
    #[default]
    Unproven,
    /// A node agent of this region.
    Client,
    /// A server of this region.
    Server,
}

impl Role {
    /// The name that stands in certificates of this role.
    ///
    /// # Errors
    /// The region cannot stand in a name.
    pub fn name(self, region: &str) -> Result<ServerName<'static>, String> {
        let role = match self {
            Role::Server => "server",
            Role::Client => "client",
        };
        let name = format!("{role}.{region}.nomad");
        ServerName::try_from(name)
            .map_err(|_| format!("the region \"{region}\" cannot stand in a certificate"))
    }
}

/// The names of both roles in a region.
#[derive(Clone, Debug)]
pub(crate) struct RoleNames {
    pub server: ServerName<'static>,
    pub client: ServerName<'static>,
}

impl RoleNames {
    pub(crate) fn of(region: &str) -> Result<RoleNames, String> {
        Ok(RoleNames { server: Role::Server.name(region)?, client: Role::Client.name(region)? })
    }

    /// What a certificate says. That somebody trusted signed it has to be known already.
    pub(crate) fn identity(&self, certificate: Option<&CertificateDer<'_>>) -> PeerIdentity {
        let parsed = certificate.and_then(|certificate| ParsedCertificate::try_from(certificate).ok());
        let Some(parsed) = parsed else { return PeerIdentity::Unproven };
        if verify_server_name(&parsed, &self.server).is_ok() {
            PeerIdentity::Server
        } else if verify_server_name(&parsed, &self.client).is_ok() {
            PeerIdentity::Client
        } else {
            PeerIdentity::Unproven
        }
    }
}
