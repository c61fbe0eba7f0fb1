//! What the stream shows of access control.

use base::{Index, Uuid};
use feed::{Cursor, Feed};
use model::command::CreateAclToken;
use model::document::{
    ACLAuthMethod, ACLAuthMethodConfig, ACLBindingRule, ACLPolicy, ACLRole, ACLRolePolicyLink, ACLToken,
    AuthMethodRecord,
};
use model::{Command, IssueLoginToken, SealedData, TokenSecret};
use serde_json::{Value, json};
use test_world::World;

use crate::support::{Log, everything, read};

fn token(accessor: u128, policy: &str) -> CreateAclToken {
    let token = ACLToken {
        accessor_id: Uuid::from(accessor).to_string(),
        kind: ACLToken::CLIENT.into(),
        policies: vec![policy.to_string()].into(),
        ..ACLToken::default()
    };
    let sealed = SealedData { key: Uuid::from(9), bytes: b"sealed".to_vec() };
    CreateAclToken { token, secret: TokenSecret { digest: [accessor as u8; 32], sealed } }
}

fn method() -> AuthMethodRecord {
    let config = ACLAuthMethodConfig {
        jwt_validation_pub_keys: vec!["a key".to_string()].into(),
        ..ACLAuthMethodConfig::default()
    };
    let method = ACLAuthMethod {
        name: "ci".into(),
        kind: ACLAuthMethod::JWT.into(),
        token_locality: ACLAuthMethod::LOCAL.into(),
        max_token_ttl: base::Duration::from_secs(60).into(),
        config: Some(config),
        ..ACLAuthMethod::default()
    };
    AuthMethodRecord { method, ..AuthMethodRecord::default() }
}

#[tokio::test]
async fn who_manages_sees_what_changes_and_no_secret() {
    let mut world = World::new();
    let (role, rule) = (Uuid::from(3), Uuid::from(4));
    let policy = ACLPolicy { name: "dev".into(), rules: "node {}".into(), ..ACLPolicy::default() };
    let links = vec![ACLRolePolicyLink { name: "dev".into() }];
    let staff =
        ACLRole { id: role.to_string(), name: "staff".into(), policies: links.into(), ..ACLRole::default() };
    let binding = ACLBindingRule {
        id: rule.to_string(),
        auth_method: "ci".into(),
        bind_type: "policy".into(),
        bind_name: "dev".into(),
        ..ACLBindingRule::default()
    };
    let commands = [
        Command::UpsertAclPolicy(Box::new(policy)),
        Command::CreateAclRole(Box::new(staff)),
        Command::CreateAclToken(Box::new(token(1, "dev"))),
        Command::CreateAuthMethod(Box::new(method())),
        Command::CreateBindingRule(Box::new(binding)),
    ];
    commands.into_iter().for_each(|command| drop(world.submit(command).unwrap()));
    let mut issued = token(2, "dev");
    issued.token.expiration_ttl = base::Duration::from_secs(60).into();
    let as_of = world.state.acl.logins_changed();
    let issue = IssueLoginToken { token: issued, method: "ci".into(), rules: vec![rule], as_of };
    let both = vec![Uuid::from(1), Uuid::from(2)];
    let commands = [
        Command::IssueLoginToken(Box::new(issue)),
        Command::DeleteAclTokens { accessors: both },
        Command::DeleteBindingRule { rule },
        Command::DeleteAuthMethod { name: "ci".into() },
        Command::DeleteAclRole { role },
        Command::DeleteAclPolicy { name: "dev".into() },
    ];
    commands.into_iter().for_each(|command| drop(world.submit(command).unwrap()));
    world.check_replay();

    let log = Log::of(&world.log);
    let events = read(&Feed::new(log.clone()), Cursor::at(Index(1)), log.last(), &everything()).await;
    let events: Vec<Value> =
        events.iter().map(|event| serde_json::from_slice(&event.body).unwrap()).collect();
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            let payload = event["Payload"].as_object().unwrap();
            assert_eq!((payload.len(), &event["Namespace"]), (1, &json!("")));
            let (name, _) = payload.iter().next().unwrap();
            format!("{} {} {name}", event["Topic"], event["Type"]).replace('"', "")
        })
        .collect();
    assert_eq!(
        told,
        [
            "ACLPolicy ACLPolicyUpserted ACLPolicy",
            "ACLRole ACLRoleUpserted ACLRole",
            "ACLToken ACLTokenUpserted ACLToken",
            "ACLAuthMethod ACLAuthMethodUpserted AuthMethod",
            "ACLBindingRule ACLBindingRuleUpserted ACLBindingRule",
            "ACLToken ACLTokenUpserted ACLToken",
            "ACLToken ACLTokenDeleted ACLToken",
            "ACLToken ACLTokenDeleted ACLToken",
            "ACLBindingRule ACLBindingRuleDeleted ACLBindingRule",
            "ACLAuthMethod ACLAuthMethodDeleted AuthMethod",
            "ACLRole ACLRoleDeleted ACLRole",
            "ACLPolicy ACLPolicyDeleted ACLPolicy",
        ]
    );
    let at = |number: usize| (&events[number]["Key"], &events[number]["FilterKeys"]);
    assert_eq!(at(1), (&json!(role.to_string()), &json!(["staff"])));
    assert_eq!(at(4), (&json!(rule.to_string()), &json!(["ci"])));
    assert_eq!(at(2), (&json!(Uuid::from(1).to_string()), &Value::Null));
    assert_eq!(events[2]["Payload"]["ACLToken"]["SecretID"], "");
    assert_eq!(events[6]["Payload"]["ACLToken"]["Policies"], json!(["dev"]), "as it was before");
}
