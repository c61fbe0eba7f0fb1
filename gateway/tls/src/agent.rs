use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, CipherSuite, ClientConfig, Error, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, TlsStream};

use crate::accept::accept;
use crate::files::{self, TlsError};
use crate::policy::{self, MinVersion};
use crate::roles::{PeerIdentity, Role, RoleNames};
use crate::verifier::{ExpectedName, Verifier};

/// The `tls` block of an agent's configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TlsSettings {
    /// The HTTP API is served over TLS only.
    pub http: bool,
    /// The node RPC is.
    pub rpc: bool,
    /// The authorities whose certificates are trusted.
    pub ca_file: Option<PathBuf>,
    /// What this agent proves itself with.
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// Agents are known by the names of their roles, at both ends.
    pub verify_server_hostname: bool,
    /// Who calls the HTTP API needs a certificate of the authority.
    pub verify_https_client: bool,
    /// Connections without TLS are still accepted on the node RPC, and made where the other end has no TLS yet.
    pub rpc_upgrade_mode: bool,
    /// Of TLS 1.2, in the order of preference; empty means all that are safe.
    pub cipher_suites: Vec<CipherSuite>,
    pub min_version: MinVersion,
}

/// The keys of [`TlsSettings`] that errors name.
const CA_FILE: &str = "ca_file";
const CERT_FILE: &str = "cert_file";
const KEY_FILE: &str = "key_file";

/// The TLS of one agent. New handshakes use what was loaded last; connections that are open stay as they are.
#[derive(Debug)]
pub struct AgentTls {
    /// Whether the agent is a server: it then needs a server's certificate.
    is_server: bool,
    roles: RoleNames,
    current: ArcSwap<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    https: Arc<ServerConfig>,
    /// Set with an authority.
    dialing_https: Option<ClientConfig>,
    /// Set with `rpc`.
    rpc: Option<RpcConfigs>,
    settings: TlsSettings,
    /// What was read, to see whether a reload changes anything.
    chain: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
}

#[derive(Debug)]
struct RpcConfigs {
    accepting: Arc<ServerConfig>,
    dialing: Arc<ClientConfig>,
    /// For servers of other regions: their name is known when they are dialed.
    dialing_away: Arc<ClientConfig>,
}

impl TlsSettings {
    /// The files are read and used.
    pub fn is_on(&self) -> bool {
        self.http || self.rpc
    }
}

impl AgentTls {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// A key whose file is missing, cannot be read, or does not fit the others.
    pub fn load(settings: &TlsSettings, region: &str, is_server: bool) -> Result<AgentTls, TlsError> {
        let roles = RoleNames::of(region).map_err(|why| TlsError::new("region", why))?;
        let loaded = Loaded::read(settings, &roles, is_server)?;
        Ok(AgentTls { is_server, roles, current: ArcSwap::from_pointee(loaded) })
    }

    /// Reads the files again, by other settings. Whether HTTP and RPC use TLS stays as it is. Returns whether anything
    /// changed.
    ///
    /// # Errors
    /// As for [`AgentTls::load`]; nothing changes then.
    pub fn reload(&self, settings: &TlsSettings) -> Result<bool, TlsError> {
        let before = self.current.load();
        let TlsSettings { http, rpc, .. } = before.settings;
        let settings = TlsSettings { http, rpc, ..settings.clone() };
        let loaded = Loaded::read(&settings, &self.roles, self.is_server)?;
        let is_other = loaded.chain != before.chain
            || loaded.authorities != before.authorities
            || loaded.settings != before.settings;
        if is_other {
            self.current.store(Arc::new(loaded));
        }
        Ok(is_other)
    }

    /// The HTTP API is served over TLS.
    pub fn serves_http(&self) -> bool {
        self.current.load().settings.http
    }

    /// The node RPC uses TLS.
    pub fn serves_rpc(&self) -> bool {
        self.current.load().settings.rpc
    }

    /// The node RPC goes without TLS as well.
    pub fn upgrade_mode(&self) -> bool {
        self.current.load().settings.rpc_upgrade_mode
    }

    /// The handshake of a connection to the HTTP API.
    ///
    /// # Errors
    /// The other end gave up, or has not proved what it must.
    pub async fn accept_https<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current.load().https.clone();
        accept(config, stream).await
    }

    /// The handshake of a connection of the node RPC, and who is at its other end.
    ///
    /// # Errors
    /// The other end gave up, or has not proved what it must.
    pub async fn accept_rpc<S>(&self, stream: S) -> io::Result<(TlsStream<S>, PeerIdentity)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let loaded = self.current.load_full();
        let config = loaded.rpc()?.accepting.clone();
        let stream = accept(config, stream).await?;
        let identity = self.identity(&stream);
        if loaded.settings.verify_server_hostname && identity == PeerIdentity::Unproven {
            return Err(io::Error::other("its certificate is neither that of a server nor that of a client"));
        }
        Ok((stream, identity))
    }

    /// The other side of [`AgentTls::accept_rpc`].
    ///
    /// # Errors
    /// As there.
    pub async fn connect_rpc<S>(&self, stream: S) -> io::Result<(TlsStream<S>, PeerIdentity)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current.load().rpc()?.dialing.clone();
        let stream = TlsConnector::from(config).connect(self.roles.server.clone(), stream).await?;
        let stream = TlsStream::Client(stream);
        let identity = self.identity(&stream);
        Ok((stream, identity))
    }

    /// As [`AgentTls::connect_rpc`], to a server of another region, which has to prove that it is one.
    ///
    /// # Errors
    /// As there, and for a region that cannot stand in a certificate.
    pub async fn connect_rpc_of<S>(&self, region: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current.load().rpc()?.dialing_away.clone();
        let name = Role::Server.name(region).map_err(io::Error::other)?;
        Ok(TlsStream::Client(TlsConnector::from(config).connect(name, stream).await?))
    }

    /// For calls to the HTTP API of other agents of the cluster: any certificate of its authority is good, since agents are
    /// called by their addresses, which certificates seldom name. Without an authority it is one that the host trusts,
    /// for that address.
    ///
    /// # Errors
    /// What the host trusts cannot be read.
    pub fn dial_https(&self) -> Result<ClientConfig, TlsError> {
        let loaded = self.current.load();
        match &loaded.dialing_https {
            Some(config) => Ok(ClientConfig::clone(config)),
            None => crate::client::config_trusting(&[]),
        }
    }

    fn identity<S>(&self, stream: &TlsStream<S>) -> PeerIdentity {
        let certificates = stream.get_ref().1.peer_certificates();
        self.roles.identity(certificates.and_then(|chain| chain.first()))
    }
}

impl Loaded {
    fn read(settings: &TlsSettings, roles: &RoleNames, is_server: bool) -> Result<Loaded, TlsError> {
        let given = |key, path: &Option<PathBuf>, what: &str| -> Result<PathBuf, TlsError> {
            path.clone().ok_or_else(|| TlsError::new(key, format!("{what} is required for this")))
        };
        let (cert_file, key_file) = (
            given(CERT_FILE, &settings.cert_file, "the certificate of this agent")?,
            given(KEY_FILE, &settings.key_file, "the key of its certificate")?,
        );
        let provider = policy::provider(&settings.cipher_suites);
        let own = files::certified_key((CERT_FILE, &cert_file), (KEY_FILE, &key_file), &provider)?;
        let needs_authority = settings.rpc || settings.verify_https_client;
        let authorities = match &settings.ca_file {
            Some(path) => files::roots(CA_FILE, path)?,
            None if needs_authority => {
                return Err(TlsError::new(CA_FILE, "the certificate of the authority is required for this"));
            }
            None => Vec::new(),
        };
        let roots = files::store(&authorities).map_err(|error| TlsError::new(CA_FILE, error))?;
        if settings.rpc {
            check_own(&own, &roots, &provider, (&cert_file, is_server))?;
            if is_server && roles.identity(own.cert.first()) != PeerIdentity::Server {
                let name = roles.server.to_str();
                let why = format!(
                    "{}: the certificate is not good for the name {name}, by which servers know each other: \
                     `sojourn tls cert create -server` makes one that is",
                    cert_file.display()
                );
                return Err(TlsError::new(CERT_FILE, why));
            }
        }
        let build = Build { settings, provider, own: own.clone(), roots };
        let broken = |error: Error| TlsError::new(CERT_FILE, error);
        let rpc = match settings.rpc {
            true => {
                let named = is_server || settings.verify_server_hostname;
                let name = if named { ExpectedName::This(roles.server.clone()) } else { ExpectedName::Any };
                let accepting = build.accepting(true).map_err(broken)?;
                let dialing = build.dialing(name).map_err(broken)?;
                let away = build.dialing(ExpectedName::Dialed).map_err(broken)?;
                let (accepting, dialing) = (Arc::new(accepting), Arc::new(dialing));
                Some(RpcConfigs { accepting, dialing, dialing_away: Arc::new(away) })
            }
            false => None,
        };
        let mut https = build.accepting(settings.verify_https_client).map_err(broken)?;
        https.alpn_protocols = vec![b"http/1.1".to_vec()];
        let trusts_authority = !authorities.is_empty();
        let dialing = trusts_authority.then(|| build.dialing(ExpectedName::Any)).transpose();
        Ok(Loaded {
            https: Arc::new(https),
            dialing_https: dialing.map_err(broken)?,
            rpc,
            settings: settings.clone(),
            chain: own.cert.clone(),
            authorities,
        })
    }

    fn rpc(&self) -> io::Result<&RpcConfigs> {
        self.rpc.as_ref().ok_or_else(|| io::Error::other("the node RPC of this agent has no TLS"))
    }
}

/// What both ends' configurations are made from.
struct Build<'a> {
    settings: &'a TlsSettings,
    provider: Arc<rustls::crypto::CryptoProvider>,
    own: Arc<CertifiedKey>,
    roots: Arc<RootCertStore>,
}

impl Build<'_> {
    fn accepting(&self, peers_need_certificates: bool) -> Result<ServerConfig, Error> {
        let builder = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(self.settings.min_version.versions())?;
        let builder = if peers_need_certificates {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(self.roots.clone(), self.provider.clone());
            builder.with_client_cert_verifier(
                verifier.build().map_err(|error| Error::General(error.to_string()))?,
            )
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(self.own.clone())));
        if peers_need_certificates {
            policy::never_resume(&mut config);
        }
        Ok(config)
    }

    fn dialing(&self, name: ExpectedName) -> Result<ClientConfig, Error> {
        let verifier = Verifier { roots: Some(self.roots.clone()), name, provider: self.provider.clone() };
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(self.settings.min_version.versions())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(self.own.clone())));
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

/// The agent's own certificate must be one that the others accept. One that is out of date is no mistake in the
/// configuration: the agent starts, and its tasks go on.
fn check_own(
    own: &CertifiedKey,
    roots: &RootCertStore,
    provider: &rustls::crypto::CryptoProvider,
    (path, is_server): (&Path, bool),
) -> Result<(), TlsError> {
    let wrong = |why: String| TlsError::new(CERT_FILE, format!("{}: {why}", path.display()));
    let (first, others) = own.cert.split_first().expect("a certified key has a certificate");
    let parsed = ParsedCertificate::try_from(first).map_err(|error| wrong(error.to_string()))?;
    let algorithms = provider.signature_verification_algorithms.all;
    match verify_server_cert_signed_by_trust_anchor(&parsed, roots, others, UnixTime::now(), algorithms) {
        Ok(()) => Ok(()),
        Err(Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => Ok(()),
        // A node only dials, unless it serves HTTP.
        Err(Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        )) if !is_server => Ok(()),
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            Err(wrong("it is not signed by an authority of tls.ca_file".to_string()))
        }
        Err(error) => Err(wrong(error.to_string())),
    }
}
