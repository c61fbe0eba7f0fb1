use base::{Duration, Time};
use model::document::{
    ACLAuthMethod, ACLAuthMethodConfig, AuthMethodRecord, Bytes, OIDCClientAssertion, OIDCClientAssertionKey,
    Timestamp,
};
use model::event::{AclAuthMethodDeleted, AclAuthMethodUpserted};
use model::{Doc, Rejection, SigningAlgorithm};
use state::acl::Acl;

use super::{Decision, check_name, invalid};

/// Auth methods at the same time.
const METHODS_MAX: usize = 1_024;
/// Longest document of one, in bytes, and the most entries of one of its lists.
const DOCUMENT_MAX: usize = 256 * 1024;
const ENTRIES_MAX: usize = 1_024;
/// How far clocks may be apart at most.
const LEEWAY_MAX: Duration = Duration::from_secs(3_600);

/// Algorithms of client assertions, by what signs them.
/// Those of root keys.
const CLUSTER_ALGORITHMS: [&str; 2] = [SigningAlgorithm::Rs256.name(), SigningAlgorithm::EdDsa.name()];
const RSA_ALGORITHMS: [&str; 3] = ["RS256", "RS384", "RS512"];
const SECRET_ALGORITHMS: [&str; 3] = ["HS256", "HS384", "HS512"];

pub(crate) fn create(acl: &Acl, now: Time, wanted: &AuthMethodRecord) -> Result<Decision, Rejection> {
    if acl.methods.get(&wanted.method.name).is_some() {
        return invalid(format!("auth method with name {} already exists", wanted.method.name));
    }
    check_room(acl)?;
    upsert(acl, now, wanted.clone())
}

/// What is empty stays as it is: nobody can read secrets back, to send them again.
pub(crate) fn update(acl: &Acl, now: Time, wanted: &AuthMethodRecord) -> Result<Decision, Rejection> {
    let name = &wanted.method.name;
    let Some(set) = acl.methods.get(name) else {
        return Err(Rejection::AuthMethodUnknown(name.clone()));
    };
    let (mut record, known) = (wanted.clone(), set.document.clone());
    let or = |wanted: &mut String, known: String| {
        if wanted.is_empty() {
            *wanted = known;
        }
    };
    let AuthMethodRecord { method, client_secret, private_key } = &mut record;
    or(&mut method.kind, known.method.kind);
    or(&mut method.token_locality, known.method.token_locality);
    or(&mut method.token_name_format, known.method.token_name_format);
    if method.max_token_ttl.0 == Duration::ZERO {
        method.max_token_ttl = known.method.max_token_ttl;
    }
    method.config = method.config.take().or(known.method.config);
    *client_secret = client_secret.take().or(known.client_secret);
    *private_key = private_key.take().or(known.private_key);
    upsert(acl, now, record)
}

/// Takes over an auth method of the authoritative region, its times too: what is equal to it is not looked at again.
///
/// That it makes sense was decided there. Its secrets stay there, because who logs in is answered there.
pub(crate) fn copy(acl: &Acl, wanted: &ACLAuthMethod) -> Result<Decision, Rejection> {
    let name = &wanted.name;
    if wanted.token_locality != ACLAuthMethod::GLOBAL {
        return invalid(format!("auth method {name}: expected the token locality global"));
    }
    let known = acl.methods.get(name).map(|set| &set.document);
    if known.is_some_and(|known| known.method.token_locality != ACLAuthMethod::GLOBAL) {
        return invalid(format!("auth method {name}: this region has one of its own with this name"));
    }
    if known.is_none() {
        check_room(acl)?;
    }
    check_name("auth method", name, "")?;
    check_default(acl, wanted)?;
    let mut record = known.cloned().unwrap_or_default();
    record.method =
        ACLAuthMethod { create_index: 0, modify_index: 0, hash: Bytes::default(), ..wanted.clone() };
    if known == Some(&record) {
        return Ok(Decision::nothing());
    }
    upserted(record)
}

/// Its binding rules stay, and hold for nobody.
pub(crate) fn delete(acl: &Acl, name: &str) -> Result<Decision, Rejection> {
    if acl.methods.get(name).is_none() {
        return Err(Rejection::AuthMethodUnknown(name.to_string()));
    }
    Ok(AclAuthMethodDeleted { name: name.to_string() }.into())
}

fn upsert(acl: &Acl, now: Time, mut record: AuthMethodRecord) -> Result<Decision, Rejection> {
    let method = &mut record.method;
    if method.token_name_format.is_empty() {
        method.token_name_format = ACLAuthMethod::NAME_FORMAT.to_string();
    }
    (method.create_index, method.modify_index, method.hash) = (0, 0, Bytes::default());
    let set = acl.methods.get(&method.name);
    // Its times are as they were, so that only what was asked for is compared.
    let times = |known: &ACLAuthMethod| (known.create_time, known.modify_time);
    (method.create_time, method.modify_time) =
        set.map_or((Timestamp(Some(now)), Timestamp(Some(now))), |set| times(&set.document.method));
    if let Some(config) = &method.config {
        // A secret goes with what it is for.
        let signs_itself = config.oidc_client_assertion.as_ref().is_some_and(|own| own.private_key.is_some());
        record.private_key = record.private_key.take().filter(|_| signs_itself);
        record.client_secret = record.client_secret.take().filter(|_| !config.oidc_client_id.is_empty());
    }
    check(acl, &record)?;
    if set.is_some_and(|set| set.document == record) {
        return Ok(Decision::nothing());
    }
    record.method.modify_time = Timestamp(Some(now));
    upserted(record)
}

fn upserted(record: AuthMethodRecord) -> Result<Decision, Rejection> {
    let document = Doc::of(&record);
    if document.0.len() > DOCUMENT_MAX {
        return invalid(format!("invalid auth method: expected at most {DOCUMENT_MAX} bytes"));
    }
    Ok(AclAuthMethodUpserted { name: record.method.name, document }.into())
}

fn check_room(acl: &Acl) -> Result<(), Rejection> {
    if acl.methods.names().len() >= METHODS_MAX {
        return invalid(format!("there are {METHODS_MAX} auth methods already: delete one that is not used"));
    }
    Ok(())
}

fn check_default(acl: &Acl, method: &ACLAuthMethod) -> Result<(), Rejection> {
    if !method.default {
        return Ok(());
    }
    let is_default = |name: &&str| acl.methods.get(name).is_some_and(|set| set.document.method.default);
    let other = acl.methods.names().into_iter().find(|name| *name != method.name && is_default(name));
    match other {
        Some(other) => invalid(format!("default method already exists: {other}")),
        None => Ok(()),
    }
}

fn check(acl: &Acl, record: &AuthMethodRecord) -> Result<(), Rejection> {
    let method = &record.method;
    check_name("auth method", &method.name, "")?;
    if ![ACLAuthMethod::LOCAL, ACLAuthMethod::GLOBAL].contains(&method.token_locality.as_str()) {
        return invalid(format!(
            "invalid token locality {:?}: expected local or global",
            method.token_locality
        ));
    }
    if method.max_token_ttl.0 <= Duration::ZERO {
        return invalid("invalid MaxTokenTTL: expected more than zero");
    }
    check_default(acl, method)?;
    let Some(config) = &method.config else { return invalid("invalid auth method: expected a Config") };
    check_common(config)?;
    match method.kind.as_str() {
        ACLAuthMethod::JWT => check_jwt(config),
        ACLAuthMethod::OIDC => check_oidc(config, record),
        other => invalid(format!("invalid auth method type {other:?}: expected JWT or OIDC")),
    }
}

fn check_common(config: &ACLAuthMethodConfig) -> Result<(), Rejection> {
    let known = ACLAuthMethodConfig::SIGNING_ALGS;
    if let Some(other) = config.signing_algs.iter().find(|name| !known.contains(&name.as_str())) {
        return invalid(format!("invalid SigningAlgs: {other:?}: expected {}", known.join(", ")));
    }
    let lists = [
        ("JWTValidationPubKeys", config.jwt_validation_pub_keys.len()),
        ("OIDCScopes", config.oidc_scopes.len()),
        ("BoundAudiences", config.bound_audiences.len()),
        ("BoundIssuer", config.bound_issuer.len()),
        ("AllowedRedirectURIs", config.allowed_redirect_uris.len()),
        ("DiscoveryCaPem", config.discovery_ca_pem.len()),
        ("ClaimMappings", config.claim_mappings.len()),
        ("ListClaimMappings", config.list_claim_mappings.len()),
    ];
    if let Some((field, _)) = lists.iter().find(|(_, entries)| *entries > ENTRIES_MAX) {
        return invalid(format!("invalid {field}: expected at most {ENTRIES_MAX} entries"));
    }
    let leeways = [
        ("ExpirationLeeway", config.expiration_leeway.0),
        ("NotBeforeLeeway", config.not_before_leeway.0),
        ("ClockSkewLeeway", config.clock_skew_leeway.0),
    ];
    for (field, leeway) in leeways {
        // Below zero means none at all.
        if leeway > LEEWAY_MAX {
            return invalid(format!("invalid {field}: expected at most {LEEWAY_MAX}"));
        }
    }
    for (field, url) in [("JWKSURL", &config.jwks_url), ("OIDCDiscoveryURL", &config.oidc_discovery_url)] {
        if !url.is_empty() && !url.starts_with("https://") && !url.starts_with("http://") {
            return invalid(format!("invalid {field} {url:?}: expected a URL of http or https"));
        }
    }
    let names = |mappings: &model::document::Map<String, String>| {
        mappings.iter().all(|(source, name)| !source.is_empty() && !name.is_empty())
    };
    if !names(&config.claim_mappings) || !names(&config.list_claim_mappings) {
        return invalid("invalid ClaimMappings: expected a claim and a name for it in each of them");
    }
    Ok(())
}

fn check_jwt(config: &ACLAuthMethodConfig) -> Result<(), Rejection> {
    let sources = [
        !config.jwks_url.is_empty(),
        !config.jwt_validation_pub_keys.is_empty(),
        !config.oidc_discovery_url.is_empty(),
    ];
    if sources.iter().filter(|given| **given).count() != 1 {
        return invalid(
            "exactly one of JWKSURL, JWTValidationPubKeys and OIDCDiscoveryURL must be set for JWT",
        );
    }
    let of_oidc = !config.oidc_client_id.is_empty() || config.oidc_client_assertion.is_some();
    if of_oidc || config.oidc_enable_pkce || !config.allowed_redirect_uris.is_empty() {
        return invalid(
            "OIDCClientID, OIDCClientAssertion, OIDCEnablePKCE and AllowedRedirectURIs are for OIDC",
        );
    }
    Ok(())
}

fn check_oidc(config: &ACLAuthMethodConfig, record: &AuthMethodRecord) -> Result<(), Rejection> {
    if config.oidc_discovery_url.is_empty() || config.oidc_client_id.is_empty() {
        return invalid("OIDCDiscoveryURL and OIDCClientID must be set for OIDC");
    }
    if !config.jwks_url.is_empty() || !config.jwt_validation_pub_keys.is_empty() {
        return invalid("JWKSURL and JWTValidationPubKeys are for JWT: OIDC has OIDCDiscoveryURL");
    }
    match &config.oidc_client_assertion {
        Some(assertion) => check_assertion(assertion, record),
        None => Ok(()),
    }
}

fn check_assertion(assertion: &OIDCClientAssertion, record: &AuthMethodRecord) -> Result<(), Rejection> {
    let field = |name: &str, expected: String| {
        invalid(format!("invalid OIDCClientAssertion: {name}: expected {expected}"))
    };
    if assertion.audience.iter().any(String::is_empty) {
        return field("Audience", "names that are not empty".to_string());
    }
    let algorithms = match assertion.key_source.as_str() {
        OIDCClientAssertion::NOMAD => &CLUSTER_ALGORITHMS[..],
        OIDCClientAssertion::PRIVATE_KEY => &RSA_ALGORITHMS,
        OIDCClientAssertion::CLIENT_SECRET => &SECRET_ALGORITHMS,
        _ => return field("KeySource", "nomad, private_key or client_secret".to_string()),
    };
    if !assertion.key_algorithm.is_empty() && !algorithms.contains(&assertion.key_algorithm.as_str()) {
        return field("KeyAlgorithm", algorithms.join(", "));
    }
    let of_key = assertion.key_source == OIDCClientAssertion::PRIVATE_KEY;
    match (&assertion.private_key, of_key) {
        (Some(key), true) => check_key(key)?,
        (None, true) => return field("PrivateKey", "one with KeySource private_key".to_string()),
        (Some(_), false) => return field("PrivateKey", "none but with KeySource private_key".to_string()),
        (None, false) => {}
    }
    if of_key && record.private_key.is_none() {
        return field("PrivateKey.PemKey", "a key".to_string());
    }
    if assertion.key_source == OIDCClientAssertion::CLIENT_SECRET && record.client_secret.is_none() {
        return field("KeySource", "OIDCClientSecret with client_secret".to_string());
    }
    let reserved = ["alg", "typ", "kid", "x5t", "x5t#S256"];
    if assertion.extra_headers.keys().any(|name| reserved.contains(&name.as_str())) {
        return field("ExtraHeaders", format!("none of {}", reserved.join(", ")));
    }
    Ok(())
}

fn check_key(key: &OIDCClientAssertionKey) -> Result<(), Rejection> {
    let field = |name: &str, expected: &str| {
        invalid(format!("invalid OIDCClientAssertion: PrivateKey.{name}: expected {expected}"))
    };
    if !key.pem_key_file.is_empty() || !key.pem_cert_file.is_empty() {
        return field("PemKeyFile", "no files: give PemKey and PemCert themselves");
    }
    match key.key_id_header.as_str() {
        "" | "kid" if key.key_id.is_empty() => field("KeyID", "the id of the key, for the header kid"),
        "x5t" | "x5t#S256" if key.pem_cert.is_empty() => {
            field("PemCert", "a certificate, for the header x5t")
        }
        "" | "kid" | "x5t" | "x5t#S256" => Ok(()),
        _ => field("KeyIDHeader", "kid, x5t or x5t#S256"),
    }
}
