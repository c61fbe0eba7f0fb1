use std::path::PathBuf;

use sdk::TlsOptions;
use serde_json::{Value, json};

use super::system::System;
use super::{ALGORITHMS, DESTROY, SETUP_FLAGS, YES, keys, readiness};
use crate::call::{CLIENT_FLAGS, Call, Command, Failure, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::environment::Environment;
use crate::flags::Flag;
use crate::output::write_out;

const KV_PATH: Flag<String> =
    Flag::value("kv-path", "PATH", "The key-value store (version 2) that tasks may read. Default: secret.");
const CHECK: Flag<bool> =
    Flag::switch("check", "Only look whether every task with a vault block has an identity to log in with.");

/// Where agents log in, unless they are configured otherwise.
const MOUNT: &str = "jwt-nomad";
const AUDIENCE: &str = "vault.io";
/// The policy, and the role of tasks that name none.
const NAME: &str = "nomad-workloads";
/// What is removed again has this text.
const MADE: &str = "Made by setup vault, for identities of workloads";
const AGENT: &str =
    "vault {\n  enabled = true\n\n  default_identity {\n    aud = [\"vault.io\"]\n    ttl = \"1h\"\n  }\n}\n";

pub(super) static COMMAND: Command = Command {
    name: "setup vault",
    aliases: &[],
    arguments: "",
    summary: "Set Vault up for logins with the identities of tasks.",
    details: "Makes an auth method, a policy and a role, each after a question; what is there already stays as it is. Tasks may read\n\
              what lies below their namespace and job in -kv-path. Vault is found, and proven to, as its own program does it:\n\
              VAULT_ADDR, VAULT_TOKEN, VAULT_NAMESPACE, VAULT_CACERT and so on. Vault has to reach -jwks-url. -check asks the cluster\n\
              and no Vault; its exit code is 1 if tasks lack an identity.",
    flags: &[SETUP_FLAGS, &[&KV_PATH, &CHECK, &VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    if call.args.switch(&CHECK) {
        let format = call.object_format()?;
        return readiness::check(&call.client()?, format).await;
    }
    let vault = connect(&call.environment, call.args.switch(&YES))?;
    match call.args.switch(&DESTROY) {
        true => destroy(&vault).await?,
        false => make(&vault, &call).await?,
    }
    Ok(0)
}

fn connect(environment: &Environment, yes: bool) -> Result<System, Failure> {
    let given = |name: &str| environment.of_systems(name);
    let address = match given("VAULT_ADDR") {
        "" => "https://127.0.0.1:8200",
        address => address,
    };
    let path = |name| PathBuf::from(given(name));
    let tls = TlsOptions {
        ca_cert: path("VAULT_CACERT"),
        ca_path: path("VAULT_CAPATH"),
        client_cert: path("VAULT_CLIENT_CERT"),
        client_key: path("VAULT_CLIENT_KEY"),
        server_name: given("VAULT_TLS_SERVER_NAME").to_string(),
        skip_verify: api::go_bool(given("VAULT_SKIP_VERIFY")) == Some(true),
    };
    let headers = [("X-Vault-Token", given("VAULT_TOKEN")), ("X-Vault-Namespace", given("VAULT_NAMESPACE"))];
    System::new("Vault", (address.to_string(), String::new()), tls, headers, yes)
}

/// What Vault says of the auth method; `None` when it is not there.
async fn mount(vault: &System) -> Result<Option<Value>, Failure> {
    let all = vault.find("sys/auth").await?.unwrap_or_default();
    let found = &all["data"][format!("{MOUNT}/")];
    Ok(Some(found.clone()).filter(|found| !found.is_null()))
}

async fn make(vault: &System, call: &Call) -> Result<(), Failure> {
    let (keys, authority) = keys(call)?;
    let is_there = mount(vault).await?.is_some();
    let method = json!({"type": "jwt", "description": MADE});
    let what = format!("the auth method at auth/{MOUNT}");
    vault.make(&what, is_there, ("POST", &format!("sys/auth/{MOUNT}"), &method)).await?;
    let mut config = json!({"jwks_url": keys, "jwt_supported_algs": ALGORITHMS, "default_role": NAME});
    if let Some(authority) = authority {
        config["jwks_ca_pem"] = authority.into();
    }
    let known = vault.find(&format!("auth/{MOUNT}/config")).await?;
    let is_there =
        known.is_some_and(|known| known["data"]["jwks_url"].as_str().is_some_and(|url| !url.is_empty()));
    let path = format!("auth/{MOUNT}/config");
    vault.make("the configuration of the auth method", is_there, ("POST", &path, &config)).await?;

    let found = mount(vault).await?.unwrap_or_default();
    let accessor = found["accessor"].as_str().unwrap_or_default();
    let text = policy(accessor, call.args.value(&KV_PATH).unwrap_or("secret"));
    let path = format!("sys/policies/acl/{NAME}");
    let is_there = vault.find(&path).await?.is_some();
    let body = json!({"policy": text});
    vault.make(&format!("the policy {NAME:?}"), is_there, ("PUT", &path, &body)).await?;

    let role = json!({
        "role_type": "jwt",
        "bound_audiences": [AUDIENCE],
        "user_claim": "/nomad_job_id",
        "user_claim_json_pointer": true,
        "claim_mappings": {
            "nomad_namespace": "nomad_namespace",
            "nomad_job_id": "nomad_job_id",
            "nomad_task": "nomad_task",
        },
        "token_type": "service",
        "token_policies": [NAME],
        "token_period": "30m",
        "token_explicit_max_ttl": 0,
    });
    let path = format!("auth/{MOUNT}/role/{NAME}");
    let is_there = vault.find(&path).await?.is_some();
    vault.make(&format!("the role {NAME:?}"), is_there, ("POST", &path, &role)).await?;
    write_out(format!("\nVault is set up. Agents need this, with the address of Vault:\n\n{AGENT}"));
    Ok(())
}

/// Each job reads what lies below its namespace and its id.
fn policy(accessor: &str, store: &str) -> String {
    let of = |what: &str| format!("{{{{identity.entity.aliases.{accessor}.metadata.{what}}}}}");
    let own = format!("{}/{}", of("nomad_namespace"), of("nomad_job_id"));
    let rule = |path: String, what: &str| format!("path \"{path}\" {{\n  capabilities = [\"{what}\"]\n}}\n");
    [
        format!("# {MADE}\n"),
        rule(format!("{store}/data/{own}/*"), "read"),
        rule(format!("{store}/data/{own}"), "read"),
        rule(format!("{store}/metadata/{}/*", of("nomad_namespace")), "list"),
        rule(format!("{store}/metadata/*"), "list"),
    ]
    .concat()
}

async fn destroy(vault: &System) -> Result<(), Failure> {
    let found = mount(vault).await?;
    let is_ours = found.as_ref().is_some_and(|found| found["description"] == MADE);
    // Its role and its configuration go with it.
    let what = format!("the auth method at auth/{MOUNT}");
    let place = format!("sys/auth/{MOUNT}");
    vault.remove(&what, found.is_some(), Some(&*place).filter(|_| is_ours)).await?;
    let path = format!("sys/policies/acl/{NAME}");
    let found = vault.find(&path).await?;
    let text = found.as_ref().and_then(|found| found["data"]["policy"].as_str());
    let is_ours = text.is_some_and(|text| text.starts_with(&format!("# {MADE}\n")));
    vault.remove(&format!("the policy {NAME:?}"), found.is_some(), Some(&*path).filter(|_| is_ours)).await
}
