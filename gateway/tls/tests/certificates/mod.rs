//! Certificates in a directory, for tests of whoever uses them.

use std::path::PathBuf;

use tls::TlsSettings;
use tls::authority::{AuthorityRequest, CertificateRequest, Pair, create_authority, create_certificate};

/// An authority, and what it has signed.
pub(crate) struct Certificates {
    directory: tempfile::TempDir,
    authority: Pair,
}

impl Certificates {
    /// An authority that has signed nothing but its own certificate, which is in `ca.pem`.
    pub(crate) fn make() -> Certificates {
        let authority = create_authority(&AuthorityRequest { days: 1, ..Default::default() }).unwrap();
        let made = Certificates { directory: tempfile::tempdir().unwrap(), authority };
        made.write("ca.pem", &made.authority.certificate);
        made
    }

    /// A certificate for `ROLE.global.nomad`, in `ROLE.pem` and `ROLE-key.pem`. A role in another region is `ROLE.REGION`.
    pub(crate) fn sign(&self, role: &str) {
        let region = if role.contains('.') { "" } else { ".global" };
        let request = CertificateRequest {
            name: format!("{role}{region}.nomad"),
            dns_names: vec!["localhost".to_string()],
            days: 1,
            ..CertificateRequest::default()
        };
        let pair = create_certificate(&self.authority, &request).unwrap();
        self.write(&format!("{role}.pem"), &pair.certificate);
        self.write(&format!("{role}-key.pem"), &pair.key);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The settings of an agent with the certificate of a role, which is signed now. TLS is off in them.
    pub(crate) fn of(&self, role: &str) -> TlsSettings {
        self.sign(role);
        TlsSettings {
            ca_file: Some(self.path("ca.pem")),
            cert_file: Some(self.path(&format!("{role}.pem"))),
            key_file: Some(self.path(&format!("{role}-key.pem"))),
            ..TlsSettings::default()
        }
    }
}
