//! Certificates and keys as they lie on disk, in PEM.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};

/// Largest file that is read: bundles of all public authorities have a fifth of it.
const FILE_MAX: u64 = 1 << 20;

/// What is wrong with a key of the configuration, or with the file that it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct TlsError {
    /// As it is called where the caller configures it.
    pub key: &'static str,
    pub why: String,
}

impl TlsError {
    pub(crate) fn new(key: &'static str, why: impl fmt::Display) -> TlsError {
        TlsError { key, why: why.to_string() }
    }
}

/// The text of a file.
pub(crate) fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let wrong = |why: &dyn fmt::Display| TlsError::new(key, format!("cannot read {}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
    let mut text = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > FILE_MAX {
        return Err(wrong(&format!("it is larger than {FILE_MAX} bytes")));
    }
    Ok(text)
}

/// The certificates in a file, at least one.
pub(crate) fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: &dyn fmt::Display| TlsError::new(key, format!("{}: {why}", path.display()));
    let text = read(key, path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() { Err(wrong(&"there is no certificate in PEM in it")) } else { Ok(found) }
}

/// The certificates in a file as those that others are checked against.
pub(crate) fn roots(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = certificates(key, path)?;
    store(&found).map_err(|why| TlsError::new(key, format!("{}: {why}", path.display())))?;
    Ok(found)
}

pub(crate) fn store(certificates: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, Error> {
    let mut store = RootCertStore::empty();
    certificates.iter().try_for_each(|certificate| store.add(certificate.clone()))?;
    Ok(Arc::new(store))
}

/// A certificate with its chain, and the private key that belongs to it.
pub(crate) fn certified_key(
    (certificate_key, certificate_path): (&'static str, &Path),
    (key_key, key_path): (&'static str, &Path),
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = certificates(certificate_key, certificate_path)?;
    let key = read(key_key, key_path)?;
    let in_file = |path: &Path| format!("{}: ", path.display());
    let (of_certificate, of_key) = (in_file(certificate_path), in_file(key_path));
    pair((certificate_key, &of_certificate, chain), (key_key, &of_key, &key), provider)
}

/// The same of texts.
pub(crate) fn certified_key_of(
    (certificate_key, certificate): (&'static str, &str),
    (key_key, key): (&'static str, &str),
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| TlsError::new(certificate_key, format!("not PEM: {error:?}")))?;
    if chain.is_empty() {
        return Err(TlsError::new(certificate_key, "there is no certificate in PEM in it"));
    }
    pair((certificate_key, "", chain), (key_key, "", key.as_bytes()), provider)
}

/// Each with the key that it stands under, and with what its errors begin with.
fn pair(
    (certificate_key, of_certificate, chain): (&'static str, &str, Vec<CertificateDer<'static>>),
    (key_key, of_key, key): (&'static str, &str, &[u8]),
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let wrong = |why: &dyn fmt::Display| TlsError::new(key_key, format!("{of_key}{why}"));
    let key = match PrivateKeyDer::from_pem_slice(key) {
        Ok(key) => key,
        Err(pem::Error::NoItemsFound) => {
            return Err(wrong(&"there is no private key in PEM in it, or an encrypted one"));
        }
        // The text of the error may show what stands in the file.
        Err(_) => return Err(wrong(&"it is not a private key in PEM")),
    };
    match CertifiedKey::from_der(chain, key, provider) {
        Ok(key) => Ok(Arc::new(key)),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            let at = of_certificate.trim_end_matches(": ");
            let at = if at.is_empty() { String::new() } else { format!(" in {at}") };
            Err(wrong(&format!("it does not belong to the certificate{at}")))
        }
        Err(Error::InvalidCertificate(why)) => {
            Err(TlsError::new(certificate_key, format!("{of_certificate}{why:?}")))
        }
        Err(error) => Err(wrong(&error)),
    }
}
