//! What regions have in common, and what is of one alone: as somebody may write it now.

use base::{Rng, Uuid};
use model::command::CreateAclToken;
use model::document::{
    ACLAuthMethod, ACLBindingRule, ACLPolicy, ACLRole, ACLToken, AuthMethodRecord, Namespace, NodePool, input,
};
use model::{Command, SealedData, TokenSecret};
use serde_json::{Value, json};
use state::State;
use state::node::secret_hash;

/// A few of each, so that they come, change, go and come again.
const POLICIES: u64 = 4;
const ROLES: u64 = 3;
const TOKENS: u64 = 4;
const NAMED: u64 = 3;
/// Names of roles: roles take each other's.
const ROLE_NAMES: u64 = 4;

/// Kinds of ids.
const ROLE: u128 = 0x401;
const TOKEN: u128 = 0x402;
const LOCAL: u128 = 0x403;
const RULE: u128 = 0x404;
const STRAY: u128 = 0x405;

fn id(kind: u128, number: u64) -> Uuid {
    (kind << 112 | (u128::from(number) + 1)).into()
}

/// Something that the authoritative region decides.
pub(super) fn shared(seen: &State, rng: &mut Rng) -> Command {
    let gone = rng.below(4) == 0;
    match rng.below(12) {
        0..3 => policy(gone, rng),
        3..6 => role(seen, gone, rng),
        6..9 => token(seen, gone, rng),
        9 => {
            let name = format!("n{}", rng.below(NAMED));
            match gone {
                true => Command::DeleteNamespace { name },
                false => Command::UpsertNamespace(Box::new(of(json!({
                    "Name": name, "Description": rng.below(3).to_string(),
                })))),
            }
        }
        10 => {
            let name = format!("q{}", rng.below(NAMED));
            match gone {
                true => Command::DeleteNodePool { name },
                false => Command::UpsertNodePool(Box::new(of::<NodePool>(json!({
                    "Name": name, "Description": rng.below(3).to_string(),
                })))),
            }
        }
        _ => login(seen, gone, rng),
    }
}

fn of<T: serde::de::DeserializeOwned>(document: Value) -> T {
    input::from_value(document).expect("the document is well formed")
}

fn policy(gone: bool, rng: &mut Rng) -> Command {
    let name = format!("p{}", rng.below(POLICIES));
    if gone {
        return Command::DeleteAclPolicy { name };
    }
    let rules = format!("node {{ policy = \"{}\" }}", ["read", "write"][rng.below(2) as usize]);
    let wanted = ACLPolicy { name, rules, ..ACLPolicy::default() };
    Command::UpsertAclPolicy(Box::new(wanted))
}

fn some_policies(seen: &State, rng: &mut Rng) -> Vec<String> {
    let all = (0..POLICIES).map(|number| format!("p{number}"));
    all.filter(|name| seen.acl.policies.exists(name) && rng.below(2) == 0).collect()
}

fn role(seen: &State, gone: bool, rng: &mut Rng) -> Command {
    let role = id(ROLE, rng.below(ROLES));
    let known = seen.acl.roles.exists(&role.to_string());
    if gone && known {
        return Command::DeleteAclRole { role };
    }
    let links: Vec<Value> = some_policies(seen, rng).iter().map(|name| json!({"Name": name})).collect();
    let name = format!("r{}", rng.below(ROLE_NAMES));
    let wanted: ACLRole = of(json!({"ID": role.to_string(), "Name": name, "Policies": links}));
    if known { Command::UpdateAclRole(Box::new(wanted)) } else { Command::CreateAclRole(Box::new(wanted)) }
}

fn token(seen: &State, gone: bool, rng: &mut Rng) -> Command {
    let accessor = id(TOKEN, rng.below(TOKENS));
    let known = seen.acl.token(accessor).is_some();
    if gone && known {
        return Command::DeleteAclTokens { accessors: vec![accessor] };
    }
    let roles = (0..ROLES).map(|number| id(ROLE, number).to_string());
    let roles = roles.filter(|role| seen.acl.roles.exists(role) && rng.below(3) == 0);
    let roles: Vec<Value> = roles.map(|role| json!({"ID": role})).collect();
    let wanted: ACLToken = of(json!({
        "AccessorID": accessor.to_string(), "Name": rng.below(3).to_string(), "Type": ACLToken::CLIENT,
        "Global": true, "Policies": some_policies(seen, rng), "Roles": roles,
    }));
    if known { Command::UpdateAclToken(Box::new(wanted)) } else { created(accessor, wanted) }
}

fn created(accessor: Uuid, token: ACLToken) -> Command {
    let secret = accessor.to_string();
    let sealed = SealedData { key: accessor, bytes: secret.clone().into_bytes() };
    let secret = TokenSecret { digest: secret_hash(&secret), sealed };
    Command::CreateAclToken(Box::new(CreateAclToken { token, secret }))
}

fn login(seen: &State, gone: bool, rng: &mut Rng) -> Command {
    let (name, rule) = (format!("m{}", rng.below(2)), id(RULE, rng.below(2)));
    if rng.below(2) == 0 {
        let known = seen.acl.methods.exists(&name);
        if gone && known {
            return Command::DeleteAuthMethod { name };
        }
        let method = method(&name, ACLAuthMethod::GLOBAL, rng);
        return if known {
            Command::UpdateAuthMethod(Box::new(method))
        } else {
            Command::CreateAuthMethod(Box::new(method))
        };
    }
    let known = seen.acl.rules.get(&rule.to_string());
    if gone && known.is_some() {
        return Command::DeleteBindingRule { rule };
    }
    let auth_method = known.map_or(name, |set| set.document.auth_method.clone());
    let wanted: ACLBindingRule = of(json!({
        "ID": rule.to_string(), "AuthMethod": auth_method, "BindType": "policy",
        "BindName": format!("p{}", rng.below(POLICIES)),
    }));
    if known.is_some() {
        Command::UpdateBindingRule(Box::new(wanted))
    } else {
        Command::CreateBindingRule(Box::new(wanted))
    }
}

fn method(name: &str, locality: &str, rng: &mut Rng) -> AuthMethodRecord {
    let method = of(json!({
        "Name": name, "Type": "JWT", "TokenLocality": locality, "MaxTokenTTL": format!("{}m", 10 + rng.below(3)),
        "Config": {"JWTValidationPubKeys": ["a key"], "BoundAudiences": ["sojourn"], "ClaimMappings": {"sub": "user"}},
    }));
    AuthMethodRecord { method, ..AuthMethodRecord::default() }
}

/// Something that is of one region alone.
pub(super) fn local(region: usize, seen: &State, rng: &mut Rng) -> Command {
    if rng.below(4) == 0 {
        let name = format!("own{region}");
        let method = Box::new(method(&name, ACLAuthMethod::LOCAL, rng));
        let known = seen.acl.methods.exists(&name);
        return if known { Command::UpdateAuthMethod(method) } else { Command::CreateAuthMethod(method) };
    }
    let accessor = id(LOCAL, 10 * region as u64 + rng.below(2));
    let known = seen.acl.token(accessor).is_some();
    if known && rng.below(3) == 0 {
        return Command::DeleteAclTokens { accessors: vec![accessor] };
    }
    let wanted: ACLToken = of(json!({
        "AccessorID": accessor.to_string(), "Name": rng.below(3).to_string(), "Type": ACLToken::CLIENT,
        "Policies": [format!("p{}", rng.below(POLICIES))],
    }));
    if known { Command::UpdateAclToken(Box::new(wanted)) } else { created(accessor, wanted) }
}

/// Something that another region decides, written where it is not decided: as if nobody had followed there yet.
pub(super) fn stray(rng: &mut Rng) -> Command {
    let name = "stray".to_string();
    match rng.below(4) {
        0 => Command::UpsertAclPolicy(Box::new(ACLPolicy { name, ..ACLPolicy::default() })),
        1 => Command::UpsertNamespace(Box::new(Namespace { name, ..Namespace::default() })),
        2 => Command::UpsertNodePool(Box::new(NodePool { name, ..NodePool::default() })),
        _ => {
            let accessor = id(STRAY, rng.below(2));
            let token = of(json!({
                "AccessorID": accessor.to_string(), "Type": ACLToken::CLIENT, "Global": true, "Policies": ["p0"],
            }));
            created(accessor, token)
        }
    }
}

/// What is asked, for people.
pub(super) fn in_words(command: &Command) -> String {
    match command {
        Command::UpsertAclPolicy(policy) => format!("policy {} to be {:?}", policy.name, policy.rules),
        Command::DeleteAclPolicy { name } => format!("policy {name} to be gone"),
        Command::CreateAclRole(role) | Command::UpdateAclRole(role) => {
            let policies: Vec<&str> = role.policies.iter().map(|link| link.name.as_str()).collect();
            format!("role {} to be {} with {policies:?}", role.id, role.name)
        }
        Command::DeleteAclRole { role } => format!("role {role} to be gone"),
        Command::CreateAclToken(created) => token_in_words(&created.token),
        Command::UpdateAclToken(token) => token_in_words(token),
        Command::DeleteAclTokens { accessors } => format!("tokens {accessors:?} to be gone"),
        Command::UpsertNamespace(namespace) => {
            format!("namespace {} to be {:?}", namespace.name, namespace.description)
        }
        Command::DeleteNamespace { name } => format!("namespace {name} to be gone"),
        Command::UpsertNodePool(pool) => format!("pool {} to be {:?}", pool.name, pool.description),
        Command::DeleteNodePool { name } => format!("pool {name} to be gone"),
        Command::RegisterJob(request) => {
            let regions = request.job.multiregion.clone().unwrap_or_default();
            let names: Vec<&str> = regions.regions.iter().map(|region| region.name.as_str()).collect();
            format!("job of {names:?}, {:?}, rollout {}", regions.strategy, regions.rollout)
        }
        other => format!("command {}", other.kind()),
    }
}

fn token_in_words(token: &ACLToken) -> String {
    let roles: Vec<&str> = token.roles.iter().map(|link| link.id.as_str()).collect();
    format!("token {} with {:?} and roles {roles:?}", token.accessor_id, token.policies.0)
}
