//! Auth methods and binding rules.

use api::{ACLAuthMethodListStub, ACLBindingRuleListStub};
use model::document::{ACLAuthMethod, ACLAuthMethodConfig, ACLBindingRule, List, Map, Timestamp};

use super::cell;
use crate::output::{OutputStyle, Table, fields};

/// The list of auth methods.
pub(crate) fn auth_methods(methods: &[ACLAuthMethodListStub]) -> String {
    let mut table = Table::new(["Name", "Type", "Default"]);
    for method in methods {
        table.row([method.name.clone(), method.kind.clone(), cell(method.default)]);
    }
    table.render()
}

/// One auth method.
pub(crate) fn auth_method(style: &OutputStyle, method: &ACLAuthMethod) -> String {
    let text = fields(&[
        ("Name", method.name.clone()),
        ("Type", method.kind.clone()),
        ("Locality", method.token_locality.clone()),
        ("Max Token TTL", cell(method.max_token_ttl.0)),
        ("Token Name Format", method.token_name_format.clone()),
        ("Default", cell(method.default)),
        ("Create Time", time(style, method.create_time)),
        ("Create Index", cell(method.create_index)),
        ("Modify Index", cell(method.modify_index)),
    ]);
    let config = method.config.clone().unwrap_or_default();
    text + &style.section("Auth Method Config", &fields(&settings(&config)))
}

fn settings(config: &ACLAuthMethodConfig) -> Vec<(&'static str, String)> {
    let list = |values: &List<String>| values.join(",");
    let map = |values: &Map<String, String>| {
        let pairs: Vec<String> = values.iter().map(|(from, to)| format!("{{{from}: {to}}}")).collect();
        pairs.join("; ")
    };
    let assertion = config.oidc_client_assertion.as_ref();
    vec![
        ("JWT Validation Public Keys", config.jwt_validation_pub_keys.join("\n")),
        ("JWKS URL", config.jwks_url.clone()),
        ("JWKS CA cert", config.jwks_ca_cert.clone()),
        ("OIDC Discovery URL", config.oidc_discovery_url.clone()),
        ("OIDC Client ID", config.oidc_client_id.clone()),
        // It never leaves the servers.
        ("OIDC Client Secret", String::new()),
        ("OIDC Client Assertion", assertion.map(|own| own.key_source.clone()).unwrap_or_default()),
        ("OIDC Enable PKCE", cell(config.oidc_enable_pkce)),
        ("OIDC Disable UserInfo", cell(config.oidc_disable_user_info)),
        ("OIDC Scopes", list(&config.oidc_scopes)),
        ("Bound audiences", list(&config.bound_audiences)),
        ("Bound issuer", list(&config.bound_issuer)),
        ("Allowed redirects URIs", list(&config.allowed_redirect_uris)),
        ("Discovery CA pem", config.discovery_ca_pem.join("\n")),
        ("Signing algorithms", list(&config.signing_algs)),
        ("Expiration Leeway", cell(config.expiration_leeway.0)),
        ("NotBefore Leeway", cell(config.not_before_leeway.0)),
        ("ClockSkew Leeway", cell(config.clock_skew_leeway.0)),
        ("Claim mappings", map(&config.claim_mappings)),
        ("List claim mappings", map(&config.list_claim_mappings)),
        ("Verbose logging", cell(config.verbose_logging)),
    ]
}

/// The list of binding rules.
pub(crate) fn binding_rules(rules: &[ACLBindingRuleListStub]) -> String {
    let mut table = Table::new(["ID", "Description", "Auth Method"]);
    for rule in rules {
        table.row([rule.id.clone(), rule.description.clone(), rule.auth_method.clone()]);
    }
    table.render()
}

/// One binding rule.
pub(crate) fn binding_rule(style: &OutputStyle, rule: &ACLBindingRule) -> String {
    fields(&[
        ("ID", rule.id.clone()),
        ("Description", rule.description.clone()),
        ("Auth Method", rule.auth_method.clone()),
        ("Selector", rule.selector.clone()),
        ("Bind Type", rule.bind_type.clone()),
        ("Bind Name", rule.bind_name.clone()),
        ("Create Time", time(style, rule.create_time)),
        ("Modify Time", time(style, rule.modify_time)),
        ("Create Index", cell(rule.create_index)),
        ("Modify Index", cell(rule.modify_index)),
    ])
}

fn time(style: &OutputStyle, at: Timestamp) -> String {
    at.0.map(|at| style.time(at.0)).unwrap_or_default()
}
