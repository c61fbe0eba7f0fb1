use std::path::PathBuf;

use sdk::TlsOptions;
use serde_json::{Value, json};

use super::system::System;
use super::{ALGORITHMS, DESTROY, SETUP_FLAGS, YES, keys};
use crate::call::{Call, Command, Failure, Outcome, Run};
use crate::environment::Environment;
use crate::output::write_out;
use crate::settings::ConsulConfig;

/// What agents log in by, unless they are configured otherwise.
const METHOD: &str = "nomad-workloads";
const AUDIENCE: &str = "consul.io";
const POLICY: &str = "nomad-tasks";
/// For tasks of each namespace their own; that of the namespace `default` is made.
const ROLES: &str = "nomad-tasks-${value.nomad_namespace}";
const ROLE: &str = "nomad-tasks-default";
/// What is removed again has this text.
const MADE: &str = "Made by setup consul, for identities of workloads";
/// What tasks may do: read.
const RULES: &str = "key_prefix \"\" {\n  policy = \"read\"\n}\n\nservice_prefix \"\" {\n  policy = \"read\"\n}\n\n\
                     node_prefix \"\" {\n  policy = \"read\"\n}\n";
const AGENT: &str = "consul {\n  service_identity {\n    aud = [\"consul.io\"]\n    ttl = \"1h\"\n  }\n\n  \
                     task_identity {\n    aud = [\"consul.io\"]\n    ttl = \"1h\"\n  }\n}\n";

pub(super) static COMMAND: Command = Command {
    name: "setup consul",
    aliases: &[],
    arguments: "",
    summary: "Set Consul up for logins with the identities of tasks and services.",
    details: "Makes an auth method, its binding rules, and a role with its policy, each after a question; what is there already\n\
              stays as it is. Consul is found, and proven to, as its own program does it: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN,\n\
              CONSUL_CACERT and so on; the token needs acl:write. Consul has to reach -jwks-url.",
    flags: &[SETUP_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let consul = connect(&call.environment, call.args.switch(&YES))?;
    match call.args.switch(&DESTROY) {
        true => destroy(&consul).await?,
        false => make(&consul, &call).await?,
    }
    Ok(0)
}

fn connect(environment: &Environment, yes: bool) -> Result<System, Failure> {
    let consul = ConsulConfig::of(environment);
    let (address, token) = (consul.url(), consul.own_token()?);
    let tls = TlsOptions {
        ca_cert: consul.ca_file,
        ca_path: PathBuf::from(environment.of_systems("CONSUL_CAPATH")),
        client_cert: consul.cert_file,
        client_key: consul.key_file,
        server_name: environment.of_systems("CONSUL_TLS_SERVER_NAME").to_string(),
        skip_verify: !consul.verify_ssl,
    };
    let headers = [("X-Consul-Token", token.as_str()), ("X-Consul-Namespace", consul.namespace.as_str())];
    System::new("Consul", (address, consul.auth), tls, headers, yes)
}

async fn make(consul: &System, call: &Call) -> Result<(), Failure> {
    let (keys, authority) = keys(call)?;
    let mut config = json!({
        "JWKSURL": keys,
        "JWTSupportedAlgs": ALGORITHMS,
        "BoundAudiences": [AUDIENCE],
        "ClaimMappings": {
            "nomad_namespace": "nomad_namespace",
            "nomad_job_id": "nomad_job_id",
            "nomad_task": "nomad_task",
            "nomad_service": "nomad_service",
        },
    });
    if let Some(authority) = authority {
        config["JWKSCACert"] = authority.into();
    }
    let method = json!({"Name": METHOD, "Type": "jwt", "Description": MADE, "Config": config});
    let is_there = consul.find(&format!("acl/auth-method/{METHOD}")).await?.is_some();
    let what = format!("the auth method {METHOD:?}");
    consul.make(&what, is_there, ("PUT", "acl/auth-method", &method)).await?;

    let policy = json!({"Name": POLICY, "Description": MADE, "Rules": RULES});
    let is_there = consul.find(&format!("acl/policy/name/{POLICY}")).await?.is_some();
    consul.make(&format!("the policy {POLICY:?}"), is_there, ("PUT", "acl/policy", &policy)).await?;
    let role = json!({"Name": ROLE, "Description": MADE, "Policies": [{"Name": POLICY}]});
    let is_there = consul.find(&format!("acl/role/name/{ROLE}")).await?.is_some();
    consul.make(&format!("the role {ROLE:?}"), is_there, ("PUT", "acl/role", &role)).await?;

    let rules = consul.find(&format!("acl/binding-rules?authmethod={METHOD}")).await?.unwrap_or_default();
    for (whose, kind, name, selector) in [
        ("services", "service", "${value.nomad_service}", "\"nomad_service\" in value"),
        ("tasks", "role", ROLES, "\"nomad_service\" not in value"),
    ] {
        let rule = json!({
            "Description": MADE, "AuthMethod": METHOD, "BindType": kind, "BindName": name, "Selector": selector,
        });
        let fields = ["BindType", "BindName", "Selector"];
        let is_this = |known: &Value| fields.iter().all(|field| known[field] == rule[field]);
        let is_there = rules.as_array().is_some_and(|rules| rules.iter().any(is_this));
        let what = format!("the binding rule for {whose}");
        consul.make(&what, is_there, ("PUT", "acl/binding-rule", &rule)).await?;
    }
    write_out(format!(
        "\nConsul is set up. Agents that are servers need this, and tasks of other namespaces than default a role of their own,\n\
         {ROLES} with that namespace:\n\n{AGENT}"
    ));
    Ok(())
}

async fn destroy(consul: &System) -> Result<(), Failure> {
    // Its rules, and the tokens of who has logged in by it, go with it.
    let method = format!("acl/auth-method/{METHOD}");
    remove(consul, &format!("the auth method {METHOD:?}"), &method, |_| Some(method.clone())).await?;
    for (kind, name) in [("role", ROLE), ("policy", POLICY)] {
        let place = |found: &Value| Some(format!("acl/{kind}/{}", found["ID"].as_str()?));
        remove(consul, &format!("the {kind} {name:?}"), &format!("acl/{kind}/name/{name}"), place).await?;
    }
    Ok(())
}

/// Removes one thing, if this command has made it.
async fn remove(
    consul: &System,
    what: &str,
    path: &str,
    place: impl Fn(&Value) -> Option<String>,
) -> Result<(), Failure> {
    let found = consul.find(path).await?;
    let place = found.as_ref().filter(|found| found["Description"] == MADE).and_then(place);
    consul.remove(what, found.is_some(), place.as_deref()).await
}
