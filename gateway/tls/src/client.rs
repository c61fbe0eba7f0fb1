//! TLS for those who call the HTTP API.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use crate::files::{self, TlsError};
use crate::policy::{self, MinVersion};
use crate::verifier::{ExpectedName, Verifier};

/// Most files of a directory of certificates.
const FILES_MAX: usize = 1000;

/// What a caller trusts, and proves itself with. Empty paths and texts mean "unset".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOptions {
    /// The authorities to trust. If neither this nor `ca_path` is set, those that the host trusts.
    pub ca_cert: PathBuf,
    /// The same, in files of a directory. Counts where `ca_cert` is not set.
    pub ca_path: PathBuf,
    pub client_cert: PathBuf,
    pub client_key: PathBuf,
    /// The name that the certificate of the agent must have, instead of the host in its address.
    pub server_name: String,
    /// Trusts every certificate.
    pub skip_verify: bool,
}

const CA_CERT: &str = "ca-cert";
const CA_PATH: &str = "ca-path";
const CLIENT_CERT: &str = "client-cert";
const CLIENT_KEY: &str = "client-key";
const SERVER_NAME: &str = "tls-server-name";

/// For calls to this address. Files, and whom the host trusts, are read only if it begins with `https:`.
///
/// # Errors
/// As for [`config`].
pub fn config_for(address: &str, options: &ClientOptions) -> Result<ClientConfig, TlsError> {
    if address.starts_with("https:") { config(options) } else { Ok(unused()) }
}

/// # Errors
/// An option, by the name of its flag, whose file is missing, cannot be read, or does not fit the others.
pub fn config(options: &ClientOptions) -> Result<ClientConfig, TlsError> {
    let provider = policy::provider(&[]);
    let roots = if options.skip_verify { None } else { Some(roots(options)?) };
    let name = match options.server_name.as_str() {
        "" => ExpectedName::Dialed,
        name => {
            let parsed = ServerName::try_from(name.to_string());
            ExpectedName::This(
                parsed.map_err(|_| TlsError::new(SERVER_NAME, format!("\"{name}\" is not a name")))?,
            )
        }
    };
    let verifier = Verifier { roots, name, provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(MinVersion::default().versions())
        .expect("the provider has suites of all versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    match (is_set(&options.client_cert), is_set(&options.client_key)) {
        (false, false) => Ok(builder.with_no_client_auth()),
        (true, true) => {
            let certificate = (CLIENT_CERT, options.client_cert.as_path());
            let own = files::certified_key(certificate, (CLIENT_KEY, &options.client_key), &provider)?;
            Ok(builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))))
        }
        (true, false) => Err(TlsError::new(CLIENT_KEY, "the key of the certificate is required too")),
        (false, true) => Err(TlsError::new(CLIENT_CERT, "the certificate of the key is required too")),
    }
}

/// Trusts these authorities, each in PEM, or those that the host trusts if there are none.
///
/// # Errors
/// One of them cannot be read.
pub fn config_trusting(authorities: &[String]) -> Result<ClientConfig, TlsError> {
    config_of_pem(authorities, None)
}

/// The same, with a certificate of its own and the key of that, both in PEM.
///
/// # Errors
/// One of them cannot be read, or they do not belong together.
pub fn config_of_pem(authorities: &[String], own: Option<(&str, &str)>) -> Result<ClientConfig, TlsError> {
    let mut certificates = Vec::new();
    for pem in authorities {
        let found = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| TlsError::new(CA_CERT, format!("not PEM: {error:?}")))?;
        if found.is_empty() {
            return Err(TlsError::new(CA_CERT, "there is no certificate in it"));
        }
        certificates.extend(found);
    }
    let roots = match certificates.is_empty() {
        true => roots_of_host(),
        false => files::store(&certificates).map_err(|error| TlsError::new(CA_CERT, error))?,
    };
    let provider = policy::provider(&[]);
    let verifier = Verifier { roots: Some(roots), name: ExpectedName::Dialed, provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(MinVersion::default().versions())
        .expect("the provider has suites of all versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let Some((certificate, key)) = own else { return Ok(builder.with_no_client_auth()) };
    let own = files::certified_key_of((CLIENT_CERT, certificate), (CLIENT_KEY, key), &provider)?;
    Ok(builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))))
}

/// For an address without TLS: it trusts nobody, and has read no file.
fn unused() -> ClientConfig {
    ClientConfig::builder_with_provider(policy::provider(&[]))
        .with_protocol_versions(MinVersion::default().versions())
        .expect("the provider has suites of all versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

fn is_set(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

fn roots(options: &ClientOptions) -> Result<Arc<RootCertStore>, TlsError> {
    let (key, certificates) = if is_set(&options.ca_cert) {
        (CA_CERT, files::roots(CA_CERT, &options.ca_cert)?)
    } else if is_set(&options.ca_path) {
        (CA_PATH, directory(&options.ca_path)?)
    } else {
        return Ok(roots_of_host());
    };
    files::store(&certificates).map_err(|error| TlsError::new(key, error))
}

/// What the host trusts. One that cannot be read is as good as one that is not there.
fn roots_of_host() -> Arc<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(store)
}

fn directory(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: &dyn std::fmt::Display| TlsError::new(CA_PATH, format!("{}: {why}", path.display()));
    let mut found = Vec::new();
    for (nth, entry) in path.read_dir().map_err(|error| wrong(&error))?.enumerate() {
        let file = entry.map_err(|error| wrong(&error))?.path();
        if nth >= FILES_MAX {
            return Err(wrong(&format!("it holds more than {FILES_MAX} files")));
        }
        if file.is_file() {
            found.extend(files::roots(CA_PATH, &file)?);
        }
    }
    if found.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(found) }
}
