use base::Duration;
use model::document::{ACLToken, ACLTokenRoleLink, List};
use sdk::Query;

use super::{FORGET, forgotten};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::job_file;
use crate::layout;
use crate::output::write_out;

const NAME: Flag<String> = Flag::value("name", "NAME", "A name, for people.");
const KIND: Flag<String> = Flag::value("type", "TYPE", "client or management. Default for new ones: client.");
const GLOBAL: Flag<bool> = Flag::switch("global", "For all regions. There is one, so this is only kept.");
const TTL: Flag<String> =
    Flag::value("ttl", "DURATION", "How long the token is good for, like 8h. Default: for ever.");
const ACCESSOR: Flag<String> =
    Flag::value("accessor", "UUID", "The accessor that the token is to have, with the secret in the file.");
const POLICY: Flag<Vec<String>> =
    Flag::values("policy", "NAME", "A policy that the token has. May be given several times.");
const ROLE_NAME: Flag<Vec<String>> =
    Flag::values("role-name", "NAME", "A role that the token has, by its name. May be given several times.");
const ROLE_ID: Flag<Vec<String>> =
    Flag::values("role-id", "ID", "A role that the token has, by its id. May be given several times.");

pub(super) static CREATE: Command = Command {
    name: "acl token create",
    aliases: &[],
    arguments: "[<path>]",
    summary: "Create a token and print its secret.",
    details: "A client token may do what its policies and roles say, a management token everything. The argument is\n\
              a file with the secret that a client token is to have, a UUID, or - for standard input; it needs\n\
              -accessor. Without it the cluster draws both.",
    flags: &[
        &[&NAME, &KIND, &GLOBAL, &TTL, &ACCESSOR, &POLICY, &ROLE_NAME, &ROLE_ID],
        OBJECT_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static DELETE: Command = Command {
    name: "acl token delete",
    aliases: &[],
    arguments: "<token_accessor_id>",
    summary: "Delete a token.",
    details: "Who presents its secret from then on is refused.",
    flags: &[&[&FORGET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static INFO: Command = Command {
    name: "acl token info",
    aliases: &[],
    arguments: "<token_accessor_id>",
    summary: "Show a token and its secret.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub(super) static LIST: Command = Command {
    name: "acl token list",
    aliases: &[],
    arguments: "",
    summary: "List tokens, without their secrets.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static OWN: Command = Command {
    name: "acl token self",
    aliases: &[],
    arguments: "",
    summary: "Show the token that the command presents.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(own(call))),
};

pub(super) static UPDATE: Command = Command {
    name: "acl token update",
    aliases: &[],
    arguments: "<token_accessor_id>",
    summary: "Change what a token is called, or which policies and roles it has.",
    details: "What no flag names stays. Policies that are given replace all that it has, and so do roles.",
    flags: &[&[&NAME, &KIND, &POLICY, &ROLE_NAME, &ROLE_ID], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(update(call))),
};

async fn create(call: Call) -> Outcome {
    let (file, format) = (call.optional_argument()?, call.object_format()?);
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let secret = file.map(job_file::read_source).transpose()?.map(|source| source.text);
    let (secret_id, accessor_id) = (secret.as_deref().unwrap_or_default().trim(), text(&ACCESSOR));
    // An accessor alone would mean a token that is there already.
    if secret_id.is_empty() != accessor_id.is_empty() {
        return Err(call.usage("-accessor and a file with the secret are given together, or neither"));
    }
    let token = ACLToken {
        accessor_id,
        secret_id: secret_id.to_string(),
        name: text(&NAME),
        kind: call.args.value(&KIND).unwrap_or(ACLToken::CLIENT).to_string(),
        policies: policies(&call),
        roles: roles(&call),
        global: call.args.switch(&GLOBAL),
        expiration_ttl: lifetime(&call)?.into(),
        ..ACLToken::default()
    };
    let token = call.client()?.apply_acl_token(&token).await.doing("creating token")?;
    if let Some(format) = format {
        return format.print(&token);
    }
    write_out(layout::acl::token(&call.style(), &token));
    Ok(0)
}

async fn update(call: Call) -> Outcome {
    let (accessor, client) = (call.one_argument()?, call.client()?);
    let mut token = client.acl_token(accessor).await.doing("fetching token")?;
    if let Some(name) = call.args.value(&NAME) {
        token.name = name.to_string();
    }
    if let Some(kind) = call.args.value(&KIND) {
        token.kind = kind.to_string();
    }
    let (policies, roles) = (policies(&call), roles(&call));
    if !policies.is_empty() {
        token.policies = policies;
    }
    if !roles.is_empty() {
        token.roles = roles;
    }
    let token = client.apply_acl_token(&token).await.doing("updating token")?;
    write_out(layout::acl::token(&call.style(), &token));
    Ok(0)
}

fn policies(call: &Call) -> List<String> {
    call.args.values(&POLICY).iter().cloned().collect()
}

fn roles(call: &Call) -> List<ACLTokenRoleLink> {
    let named = |name: &String| ACLTokenRoleLink { name: name.clone(), ..ACLTokenRoleLink::default() };
    let by_name = call.args.values(&ROLE_NAME).iter().map(named);
    let with_id = |id: &String| ACLTokenRoleLink { id: id.clone(), ..ACLTokenRoleLink::default() };
    by_name.chain(call.args.values(&ROLE_ID).iter().map(with_id)).collect()
}

/// Zero for ever.
fn lifetime(call: &Call) -> Result<Duration, Failure> {
    let Some(text) = call.args.value(&TTL).filter(|text| !text.is_empty()) else { return Ok(Duration::ZERO) };
    let parsed = text.parse().ok().filter(|ttl| *ttl > Duration::ZERO);
    parsed.ok_or_else(|| call.usage(&format!("-ttl \"{text}\": expected a duration like 8h")))
}

async fn delete(call: Call) -> Outcome {
    let accessor = call.one_argument()?;
    if call.args.switch(&FORGET) {
        let client = call.client()?;
        let what = format!("Token {accessor}");
        let erasure = client.forget_acl_token(accessor).await.doing("forgetting token")?;
        let ask =
            || async { client.acl_token_erasures(accessor).await.doing("retrieving erasures of token") };
        return forgotten(&what, erasure, ask).await;
    }
    call.client()?.delete_acl_token(accessor).await.doing("deleting token")?;
    write_out(format!("Token {accessor} successfully deleted\n"));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let accessor = call.one_argument()?;
    let token = call.client()?.acl_token(accessor).await.doing("fetching token")?;
    write_out(layout::acl::token(&call.style(), &token));
    Ok(0)
}

async fn own(call: Call) -> Outcome {
    call.no_arguments()?;
    let token = call.client()?.own_acl_token().await.doing("fetching own token")?;
    write_out(layout::acl::token(&call.style(), &token));
    Ok(0)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let tokens = call.client()?.acl_tokens(Query::new()).await.doing("listing tokens")?.value;
    if let Some(format) = format {
        return format.print(&tokens);
    }
    write_out(match tokens.as_slice() {
        [] => "No tokens found\n".to_string(),
        tokens => layout::acl::tokens(&call.style(), tokens),
    });
    Ok(0)
}
