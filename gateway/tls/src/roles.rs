use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

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
    /// A server of another region, which may pass requests on and nothing else.
    ForeignServer,
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
        let Some(certificate) = certificate else { return PeerIdentity::Unproven };
        let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return PeerIdentity::Unproven };
        if verify_server_name(&parsed, &self.server).is_ok() {
            PeerIdentity::Server
        } else if verify_server_name(&parsed, &self.client).is_ok() {
            PeerIdentity::Client
        } else if is_of_some_server(certificate) {
            PeerIdentity::ForeignServer
        } else {
            PeerIdentity::Unproven
        }
    }
}

/// Whether a certificate has the name of a server, of whatever region.
fn is_of_some_server(certificate: &CertificateDer<'_>) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
    let Ok(Some(names)) = parsed.subject_alternative_name() else { return false };
    let is_server = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => {
            let region = name.strip_prefix("server.").and_then(|rest| rest.strip_suffix(".nomad"));
            region.is_some_and(|region| !region.is_empty())
        }
        _ => false,
    };
    names.value.general_names.iter().any(is_server)
}
