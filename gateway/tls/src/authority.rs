//! Makes an authority and certificates that it signs, and shows what stands in them.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, SanType, SerialNumber, date_time_ymd,
};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How long before now a certificate begins to be good: clocks differ.
const SLACK: Duration = Duration::from_secs(60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A certificate and its private key, both in PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// What an authority is called. Empty texts are left out.
#[derive(Clone, Debug, Default)]
pub struct AuthorityRequest {
    /// Empty for a name that nothing else has.
    pub common_name: String,
    pub country: String,
    pub postal_code: String,
    pub province: String,
    pub locality: String,
    pub street_address: String,
    pub organization: String,
    pub organizational_unit: String,
    pub days: u32,
    /// It may sign names below these only; none means any.
    pub permitted_domains: Vec<String>,
}

/// What a certificate is for.
#[derive(Clone, Debug, Default)]
pub struct CertificateRequest {
    /// The common name, and the first of its names.
    pub name: String,
    pub dns_names: Vec<String>,
    pub addresses: Vec<IpAddr>,
    pub days: u32,
    /// Whoever has it may only call, and not serve.
    pub only_calls: bool,
}

/// What stands in a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateInfo {
    /// In decimal.
    pub serial: String,
    pub issuer: String,
    pub common_name: String,
    /// Seconds since 1970.
    pub expires: i64,
    pub dns_names: Vec<String>,
    pub addresses: Vec<String>,
    pub permitted_domains: Vec<String>,
    pub is_authority: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("a certificate must be good for a day at least, and for 100 years at most")]
    Days,
    #[error("\"{0}\" cannot stand in a certificate")]
    Name(String),
    #[error("the certificate of the authority cannot be used: {0}")]
    Authority(String),
    #[error("the key of the authority cannot be used: {0}")]
    Key(String),
    #[error("there is no certificate in it")]
    NoCertificate,
    #[error("cannot make the certificate: {0}")]
    Making(#[from] rcgen::Error),
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// # Errors
/// A name that cannot stand in a certificate, or a time that is no time.
pub fn create_authority(request: &AuthorityRequest) -> Result<Pair, AuthorityError> {
    let (serial, number) = serial()?;
    let mut params = params(request.days, serial)?;
    let common_name = match request.common_name.as_str() {
        "" => format!("Nomad Agent CA {number}"),
        given => given.to_string(),
    };
    let mut name = DistinguishedName::new();
    // The last two have no name of their own in the library: postal code and street address of X.520.
    let parts = [
        (DnType::CountryName, &request.country),
        (DnType::CustomDnType(vec![2, 5, 4, 17]), &request.postal_code),
        (DnType::StateOrProvinceName, &request.province),
        (DnType::LocalityName, &request.locality),
        (DnType::CustomDnType(vec![2, 5, 4, 9]), &request.street_address),
        (DnType::OrganizationName, &request.organization),
        (DnType::OrganizationalUnitName, &request.organizational_unit),
        (DnType::CommonName, &common_name),
    ];
    for (kind, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        name.push(kind, text.as_str());
    }
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if !request.permitted_domains.is_empty() {
        let permitted = request.permitted_domains.iter().cloned().map(GeneralSubtree::DnsName).collect();
        params.name_constraints =
            Some(NameConstraints { permitted_subtrees: permitted, excluded_subtrees: Vec::new() });
    }
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A certificate that an authority signs.
///
/// # Errors
/// The authority cannot be used, or what is asked for cannot stand in a certificate.
pub fn create_certificate(authority: &Pair, request: &CertificateRequest) -> Result<Pair, AuthorityError> {
    let of_authority = describe(authority.certificate.as_bytes())?;
    if !of_authority.is_authority {
        return Err(AuthorityError::Authority("it may not sign others".to_string()));
    }
    let ca_key = KeyPair::from_pem(&authority.key).map_err(|error| AuthorityError::Key(error.to_string()))?;
    if !belongs_to(&ca_key, &authority.certificate) {
        return Err(AuthorityError::Key("it does not belong to the certificate".to_string()));
    }
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, ca_key)
        .map_err(|error| AuthorityError::Authority(error.to_string()))?;
    let mut params = params(request.days, serial()?.0)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, request.name.as_str());
    for name in std::iter::once(&request.name).chain(&request.dns_names) {
        let text = name.as_str().try_into().map_err(|_| AuthorityError::Name(name.clone()))?;
        params.subject_alt_names.push(SanType::DnsName(text));
    }
    params.subject_alt_names.extend(request.addresses.iter().copied().map(SanType::IpAddress));
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    // A server calls other servers, and a node agent serves HTTP: each is both.
    params.extended_key_usages = match request.only_calls {
        true => vec![ExtendedKeyUsagePurpose::ClientAuth],
        false => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
    };
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Reads the first certificate of a file.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn describe(pem: &[u8]) -> Result<CertificateInfo, AuthorityError> {
    let der = first(pem)?;
    let (_, read) = X509Certificate::from_der(&der).map_err(|_| AuthorityError::NoCertificate)?;
    let common = |name: &x509_parser::x509::X509Name<'_>| {
        let mut names = name.iter_common_name();
        names.next().and_then(|name| name.as_str().ok()).unwrap_or_default().to_string()
    };
    let mut info = CertificateInfo {
        serial: read.tbs_certificate.serial.to_string(),
        issuer: common(read.issuer()),
        common_name: common(read.subject()),
        expires: read.validity().not_after.timestamp(),
        is_authority: read.is_ca(),
        ..CertificateInfo::default()
    };
    if let Ok(Some(names)) = read.subject_alternative_name() {
        for name in &names.value.general_names {
            match name {
                GeneralName::DNSName(name) => info.dns_names.push(name.to_string()),
                GeneralName::IPAddress(bytes) => info.addresses.extend(address(bytes)),
                _ => {}
            }
        }
    }
    if let Ok(Some(constraints)) = read.name_constraints() {
        for subtree in constraints.value.permitted_subtrees.iter().flatten() {
            if let GeneralName::DNSName(name) = &subtree.base {
                info.permitted_domains.push(name.to_string());
            }
        }
    }
    Ok(info)
}

fn address(bytes: &[u8]) -> Option<String> {
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(ip.to_string())
}

fn first(pem: &[u8]) -> Result<Vec<u8>, AuthorityError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let der = CertificateDer::from_pem_slice(pem).map_err(|_| AuthorityError::NoCertificate)?;
    Ok(der.to_vec())
}

fn belongs_to(key: &KeyPair, certificate: &str) -> bool {
    let Ok(der) = first(certificate.as_bytes()) else { return false };
    let Ok((_, read)) = X509Certificate::from_der(&der) else { return false };
    read.public_key().subject_public_key.data.as_ref() == key.public_key_raw()
}

/// A random number that is positive, in bytes and in decimal.
fn serial() -> Result<(SerialNumber, u128), AuthorityError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    Ok((SerialNumber::from_slice(&bytes), u128::from_be_bytes(bytes)))
}

fn params(days: u32, serial: SerialNumber) -> Result<CertificateParams, AuthorityError> {
    if !(1..=36_525).contains(&days) {
        return Err(AuthorityError::Days);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = |since_1970: Duration| date_time_ymd(1970, 1, 1) + Duration::from_secs(since_1970.as_secs());
    let mut params = CertificateParams::default();
    params.not_before = at(now.saturating_sub(SLACK));
    params.not_after = at(now + DAY * days);
    params.serial_number = Some(serial);
    Ok(params)
}
