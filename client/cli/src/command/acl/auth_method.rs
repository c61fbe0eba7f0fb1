use std::io::Read;

use anyhow::Context;
use base::Duration;
use model::document::{ACLAuthMethod, ACLAuthMethodConfig, input};
use sdk::Query;
use serde_json::Value;

use super::{FORGET, forgotten};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::write_out;

const NAME: Flag<String> = Flag::value("name", "NAME", "The name of the auth method.");
const KIND: Flag<String> = Flag::value("type", "TYPE", "JWT or OIDC.");
const LOCALITY: Flag<String> =
    Flag::value("token-locality", "WHERE", "local or global: what tokens are that are made by logging in.");
const NAME_FORMAT: Flag<String> = Flag::value(
    "token-name-format",
    "TEXT",
    "How such tokens are named, with ${auth_method_type}, ${auth_method_name} and ${value.NAME}.",
);
const TTL: Flag<String> =
    Flag::value("max-token-ttl", "DURATION", "How long such tokens are good for, like 1h.");
const DEFAULT: Flag<bool> =
    Flag::switch("default", "The method of those who name none. There is one at most.");
const CONFIG: Flag<String> = Flag::value(
    "config",
    "JSON",
    "The configuration, as JSON, in a file with @FILE, or in standard input with -.",
);

pub(super) static CREATE: Command = Command {
    name: "acl auth-method create",
    aliases: &[],
    arguments: "",
    summary: "Create an auth method: a way to log in.",
    details: "Who logs in gets what binding rules give: see acl binding-rule create.",
    flags: &[&[&NAME, &KIND, &LOCALITY, &NAME_FORMAT, &TTL, &DEFAULT, &CONFIG], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static DELETE: Command = Command {
    name: "acl auth-method delete",
    aliases: &[],
    arguments: "<acl_method_name>",
    summary: "Delete an auth method.",
    details: "Tokens that were made by it stay. Its binding rules stay too, and hold for nobody.",
    flags: &[&[&FORGET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static INFO: Command = Command {
    name: "acl auth-method info",
    aliases: &[],
    arguments: "<acl_method_name>",
    summary: "Show an auth method, without its secrets.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub(super) static LIST: Command = Command {
    name: "acl auth-method list",
    aliases: &[],
    arguments: "",
    summary: "List auth methods.",
    details: "Needs no token: who wants to log in chooses here.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static UPDATE: Command = Command {
    name: "acl auth-method update",
    aliases: &[],
    arguments: "<acl_auth_method_name>",
    summary: "Change an auth method.",
    details: "What no flag names stays. A configuration that is given replaces the whole one, but for its secrets.",
    flags: &[&[&KIND, &LOCALITY, &NAME_FORMAT, &TTL, &DEFAULT, &CONFIG], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(update(call))),
};

async fn create(call: Call) -> Outcome {
    call.no_arguments()?;
    let method = given(&call, call.args.value(&NAME).unwrap_or_default())?;
    for (flag, missing) in [
        ("-name", method.name.is_empty()),
        ("-type", method.kind.is_empty()),
        ("-token-locality", method.token_locality.is_empty()),
        ("-max-token-ttl", method.max_token_ttl.0 == Duration::ZERO),
        ("-config", method.config.is_none()),
    ] {
        if missing {
            return Err(call.usage(&format!("{flag} is required")));
        }
    }
    let method = call.client()?.create_auth_method(&method).await.doing("creating ACL auth method")?;
    print(&call, &method)
}

async fn update(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let client = call.client()?;
    let known = client.auth_method(name).await.doing("reading ACL auth method")?;
    let wanted = given(&call, name)?;
    // Being the default is the only thing that is not empty when it is left out.
    let wanted = ACLAuthMethod { default: wanted.default || known.default, ..wanted };
    let method = client.update_auth_method(&wanted).await.doing("updating ACL auth method")?;
    print(&call, &method)
}

/// The method that the flags describe.
fn given(call: &Call, name: &str) -> Result<ACLAuthMethod, Failure> {
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let config = call.args.value(&CONFIG).filter(|given| !given.is_empty()).map(config).transpose()?;
    Ok(ACLAuthMethod {
        name: name.to_string(),
        kind: text(&KIND).to_uppercase(),
        token_locality: text(&LOCALITY),
        token_name_format: text(&NAME_FORMAT),
        max_token_ttl: lifetime(call)?.into(),
        default: call.args.switch(&DEFAULT),
        config,
        ..ACLAuthMethod::default()
    })
}

fn lifetime(call: &Call) -> Result<Duration, Failure> {
    let Some(text) = call.args.value(&TTL).filter(|text| !text.is_empty()) else { return Ok(Duration::ZERO) };
    let parsed = text.parse().ok().filter(|ttl| *ttl > Duration::ZERO);
    parsed.ok_or_else(|| call.usage(&format!("-max-token-ttl \"{text}\": expected a duration like 1h")))
}

fn config(given: &str) -> anyhow::Result<ACLAuthMethodConfig> {
    let text = match given.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?,
        None if given == "-" => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
            text
        }
        None => given.to_string(),
    };
    let value: Value = serde_json::from_str(&text).context("-config: not JSON")?;
    // Servers take what they do not know for something that a newer client knows: here it is a mistake.
    let known = serde_json::to_value(ACLAuthMethodConfig::default())?;
    let known = || known.as_object().into_iter().flat_map(serde_json::Map::keys);
    let is_known = |given: &String| known().any(|field| field.eq_ignore_ascii_case(given));
    if let Some(given) = value.as_object().and_then(|given| given.keys().find(|name| !is_known(name))) {
        let names: Vec<&str> = known().map(String::as_str).collect();
        anyhow::bail!("-config: {given:?} is not known: expected {}", names.join(", "));
    }
    input::from_value(value).map_err(|error| anyhow::anyhow!("-config: {error}"))
}

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    if call.args.switch(&FORGET) {
        let client = call.client()?;
        let what = format!("ACL auth method {name}");
        let erasure = client.forget_auth_method(name).await.doing("forgetting ACL auth method")?;
        let ask = || async {
            client.auth_method_erasures(name).await.doing("retrieving erasures of ACL auth method")
        };
        return forgotten(&what, erasure, ask).await;
    }
    call.client()?.delete_auth_method(name).await.doing("deleting ACL auth method")?;
    write_out(format!("ACL auth method {name} successfully deleted\n"));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let method = call.client()?.auth_method(name).await.doing("reading ACL auth method")?;
    print(&call, &method)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let methods = call.client()?.auth_methods(Query::new()).await.doing("listing ACL auth methods")?.value;
    if let Some(format) = format {
        return format.print(&methods);
    }
    write_out(match methods.as_slice() {
        [] => "No ACL auth methods found\n".to_string(),
        methods => layout::login::auth_methods(methods),
    });
    Ok(0)
}

fn print(call: &Call, method: &ACLAuthMethod) -> Outcome {
    if let Some(format) = call.object_format()? {
        return format.print(method);
    }
    write_out(layout::login::auth_method(&call.style(), method));
    Ok(0)
}
