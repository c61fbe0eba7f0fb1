//! Access control: what policies, roles and tokens may be, and when they end.

use base::{Duration, Index, Uuid};
use model::command::CreateAclToken;
use model::document::{ACLPolicy, ACLRole, ACLRolePolicyLink, ACLToken, ACLTokenRoleLink, JobACL};
use model::{Command, Event, Rejection, SealedData, TokenSecret};
use rules::Decision;
use rules::acl::{ONE_TIME_LIFETIME, has_expired};
use test_world::World;

fn id(number: u128) -> Uuid {
    Uuid::from(number)
}

/// A client token with a policy, which need not be there.
fn client(accessor: u128) -> ACLToken {
    ACLToken {
        accessor_id: id(accessor).to_string(),
        kind: ACLToken::CLIENT.to_string(),
        policies: vec!["dev".to_string()].into(),
        ..ACLToken::default()
    }
}

fn management(accessor: u128) -> ACLToken {
    ACLToken { kind: ACLToken::MANAGEMENT.to_string(), policies: Vec::new().into(), ..client(accessor) }
}

/// Tokens with the same number have the same secret.
fn with_secret(token: ACLToken, secret: u8) -> Box<CreateAclToken> {
    let secret = TokenSecret { digest: [secret; 32], sealed: SealedData { key: id(9), bytes: vec![secret] } };
    Box::new(CreateAclToken { token, secret })
}

fn create(world: &mut World, token: ACLToken, secret: u8) -> Result<Decision, Rejection> {
    world.submit(Command::CreateAclToken(with_secret(token, secret)))
}

fn bootstrap(world: &mut World, accessor: u128, reset: Option<Index>) -> Result<Decision, Rejection> {
    let token = with_secret(management(accessor), accessor as u8);
    world.submit(Command::BootstrapAcl { token, reset })
}

fn upsert_policy(world: &mut World, policy: &ACLPolicy) -> Result<Decision, Rejection> {
    world.submit(Command::UpsertAclPolicy(Box::new(policy.clone())))
}

fn policy(name: &str) -> ACLPolicy {
    ACLPolicy { name: name.into(), rules: "node { policy = \"read\" }".into(), ..ACLPolicy::default() }
}

fn role(number: u128, name: &str, policies: &[&str]) -> ACLRole {
    let policies = policies.iter().map(|name| ACLRolePolicyLink { name: name.to_string() });
    ACLRole {
        id: id(number).to_string(),
        name: name.into(),
        policies: policies.collect(),
        ..ACLRole::default()
    }
}

fn create_role(world: &mut World, role: ACLRole) -> Result<Decision, Rejection> {
    world.submit(Command::CreateAclRole(Box::new(role)))
}

fn why(refused: Result<Decision, Rejection>) -> String {
    refused.expect_err("it is refused").to_string()
}

#[test]
fn the_first_token_is_made_once_for_each_reset_index() {
    let mut world = World::new();
    assert_eq!(
        why(world.submit(Command::BootstrapAcl { token: with_secret(client(1), 1), reset: None })),
        "the first token is a management token"
    );
    bootstrap(&mut world, 1, None).unwrap();
    let first = world.state.acl.bootstrapped();
    assert_eq!(first, world.state.index);
    let done = format!("ACL bootstrap already done (reset index: {first})");
    // Also when the token is gone.
    world.submit(Command::DeleteAclTokens { accessors: vec![id(1)] }).unwrap();
    for reset in [None, Some(first.next()), Some(Index::ZERO)] {
        assert_eq!(why(bootstrap(&mut world, 2, reset)), done);
    }
    bootstrap(&mut world, 2, Some(first)).unwrap();
    let second = world.state.acl.bootstrapped();
    assert!(second > first);
    assert_eq!(
        why(bootstrap(&mut world, 3, Some(first))),
        format!("ACL bootstrap already done (reset index: {second})"),
        "an index resets once"
    );
    world.check_replay();
}

#[test]
fn an_accessor_and_a_secret_are_of_one_token() {
    let mut world = World::new();
    create(&mut world, client(1), 1).unwrap();
    let taken = "a token with this accessor or this secret exists already";
    assert_eq!(why(create(&mut world, client(1), 2)), taken);
    assert_eq!(why(create(&mut world, client(2), 1)), taken);
    create(&mut world, client(2), 2).unwrap();
    // A secret that is free again recognizes the token that has it now.
    world.submit(Command::DeleteAclTokens { accessors: vec![id(1)] }).unwrap();
    assert!(world.state.acl.by_secret(&[1; 32]).is_none());
    create(&mut world, client(3), 1).unwrap();
    assert_eq!(world.state.acl.by_secret(&[1; 32]).map(|(accessor, _)| accessor), Some(id(3)));
    world.check_replay();
}

#[test]
fn a_token_has_links_or_may_do_everything() {
    let mut world = World::new();
    let bare = ACLToken { policies: Vec::new().into(), ..client(1) };
    assert_eq!(why(create(&mut world, bare, 1)), "client token missing policies or roles");
    let both = ACLToken { kind: ACLToken::MANAGEMENT.into(), ..client(1) };
    let refused = "management token cannot be associated with policies or roles";
    assert_eq!(why(create(&mut world, both, 1)), refused);
    let other = ACLToken { kind: "root".into(), ..client(1) };
    let refused = "invalid token type \"root\": expected client or management";
    assert_eq!(why(create(&mut world, other, 1)), refused);
    let long = ACLToken { name: "x".repeat(257), ..client(1) };
    assert_eq!(why(create(&mut world, long, 1)), "invalid token name: expected at most 256 bytes");
    let unfit = ACLToken { accessor_id: "a1".into(), ..client(1) };
    assert_eq!(why(create(&mut world, unfit, 1)), "invalid accessor \"a1\": expected a UUID");
    assert!(world.log.is_empty());
}

#[test]
fn the_roles_of_a_token_are_found_by_name_and_kept_by_id() {
    let mut world = World::new();
    upsert_policy(&mut world, &policy("dev")).unwrap();
    create_role(&mut world, role(1, "staff", &["dev"])).unwrap();
    let with = |link: ACLTokenRoleLink| ACLToken { roles: vec![link.clone(), link].into(), ..client(1) };
    let named = |name: &str| ACLTokenRoleLink { name: name.into(), ..ACLTokenRoleLink::default() };
    assert_eq!(why(create(&mut world, with(named("crew")), 1)), "cannot find role crew");
    create(&mut world, with(named("staff")), 1).unwrap();
    let stored = &world.state.acl.token(id(1)).unwrap().document;
    let link = ACLTokenRoleLink { id: id(1).to_string(), name: String::new() };
    assert_eq!(stored.roles.0, [link], "once");
    // It is shown with the name that the role has now.
    world.submit(Command::UpdateAclRole(Box::new(role(1, "crew", &["dev"])))).unwrap();
    assert_eq!(state::acl::token(&world.state.acl, id(1)).unwrap().roles[0].name, "crew");
    world.submit(Command::DeleteAclRole { role: id(1) }).unwrap();
    assert!(state::acl::token(&world.state.acl, id(1)).unwrap().roles.is_empty());
    world.check_replay();
}

#[test]
fn what_a_token_is_does_not_change() {
    let mut world = World::new();
    let hour = Duration::from_secs(3_600);
    create(&mut world, ACLToken { expiration_ttl: hour.into(), ..client(1) }, 1).unwrap();
    let before = world.state.acl.token(id(1)).unwrap().clone();
    assert_eq!(before.document.expires(), Some(world.now.plus(hour)));
    let mut update = |token: ACLToken| world.submit(Command::UpdateAclToken(Box::new(token)));
    let unknown = format!("cannot find token {}", id(2));
    for (wanted, refused) in [
        (client(2), unknown.as_str()),
        (management(1), "cannot change the type of a token"),
        (
            ACLToken { expiration_ttl: Duration::from_secs(7_200).into(), ..client(1) },
            "cannot update expiration time or TTL of a token",
        ),
        (ACLToken { policies: Vec::new().into(), ..client(1) }, "client token missing policies or roles"),
    ] {
        assert_eq!(why(update(wanted)), refused);
    }
    let global = why(update(ACLToken { global: true, ..client(1) }));
    assert!(global.starts_with("cannot toggle global mode of "), "{global}");
    assert!(update(client(1)).unwrap().events.is_empty(), "nothing changed");
    update(ACLToken { name: "ci".into(), ..client(1) }).unwrap();
    let after = world.state.acl.token(id(1)).unwrap();
    assert_eq!((after.document.name.as_str(), after.document.expires()), ("ci", before.document.expires()));
    assert_eq!((&after.secret, after.created), (&before.secret, before.created));
    assert!(after.modified > before.modified);
    world.check_replay();
}

#[test]
fn tokens_are_deleted_all_or_none() {
    let mut world = World::new();
    for number in [1, 2] {
        create(&mut world, client(number), number as u8).unwrap();
    }
    let delete = |accessors: &[u128]| {
        let accessors = accessors.iter().map(|number| id(*number)).collect();
        Command::DeleteAclTokens { accessors }
    };
    let refused = why(world.submit(delete(&[1, 3])));
    assert_eq!(refused, format!("Cannot delete nonexistent tokens: {}", id(3)));
    assert_eq!(world.state.acl.tokens().count(), 2);
    world.submit(delete(&[2, 1, 2])).unwrap();
    assert_eq!(world.state.acl.tokens().count(), 0);
    world.check_replay();
}

#[test]
fn expired_tokens_are_forgotten_with_their_one_time_tokens() {
    let mut world = World::new();
    let minute = Duration::from_secs(60);
    create(&mut world, ACLToken { expiration_ttl: minute.into(), ..client(1) }, 1).unwrap();
    create(&mut world, client(2), 2).unwrap();
    for accessor in [1, 2] {
        let digest = [accessor as u8 + 10; 32];
        world.submit(Command::CreateOneTimeToken { accessor: id(accessor), digest }).unwrap();
    }
    assert!(!has_expired(&world.state.acl, world.now));
    assert!(world.submit(Command::CollectExpiredTokens).unwrap().events.is_empty());
    world.now = world.now.plus(minute);
    assert!(has_expired(&world.state.acl, world.now));
    let collected = world.submit(Command::CollectExpiredTokens).unwrap().events;
    assert!(matches!(&collected[..], [Event::AclTokensDeleted(e)] if e.expired && e.accessors == [id(1)]));
    assert!(world.state.acl.one_time().keys().eq([&id(2)]));
    world.now = world.now.plus(ONE_TIME_LIFETIME);
    let collected = world.submit(Command::CollectExpiredTokens).unwrap().events;
    assert!(matches!(&collected[..], [Event::OneTimeTokensExpired(e)] if e.accessors == [id(2)]));
    assert!(!has_expired(&world.state.acl, world.now));
    world.check_replay();
}

#[test]
fn a_one_time_token_is_exchanged_once_and_in_time() {
    let mut world = World::new();
    create(&mut world, client(1), 1).unwrap();
    let make = |digest: u8| Command::CreateOneTimeToken { accessor: id(1), digest: [digest; 32] };
    let exchange = |digest: u8| Command::ExchangeOneTimeToken { digest: [digest; 32] };
    let unknown = world.submit(Command::CreateOneTimeToken { accessor: id(2), digest: [7; 32] });
    assert!(matches!(unknown, Err(Rejection::AclTokenUnknown(_))));
    world.submit(make(7)).unwrap();
    // A token has one: the one before it is worth nothing.
    world.submit(make(8)).unwrap();
    assert!(matches!(world.submit(exchange(7)), Err(Rejection::OneTimeTokenRefused)));
    world.submit(exchange(8)).unwrap();
    assert!(matches!(world.submit(exchange(8)), Err(Rejection::OneTimeTokenRefused)));
    world.submit(make(9)).unwrap();
    world.now = world.now.plus(ONE_TIME_LIFETIME);
    assert!(matches!(world.submit(exchange(9)), Err(Rejection::OneTimeTokenRefused)));
    world.check_replay();
}

#[test]
fn an_expired_token_gives_nothing_on() {
    let mut world = World::new();
    let minute = Duration::from_secs(60);
    create(&mut world, ACLToken { expiration_ttl: minute.into(), ..client(1) }, 1).unwrap();
    let make = || Command::CreateOneTimeToken { accessor: id(1), digest: [7; 32] };
    world.submit(make()).unwrap();
    world.now = world.now.plus(minute);
    let exchanged = world.submit(Command::ExchangeOneTimeToken { digest: [7; 32] });
    assert!(matches!(exchanged, Err(Rejection::OneTimeTokenRefused)));
    assert!(matches!(world.submit(make()), Err(Rejection::AclTokenUnknown(_))));
    world.check_replay();
}

#[test]
fn a_role_has_a_name_of_its_own_and_policies_that_are_there() {
    let mut world = World::new();
    assert_eq!(why(create_role(&mut world, role(1, "staff", &["dev"]))), "cannot find policy dev");
    upsert_policy(&mut world, &policy("dev")).unwrap();
    assert_eq!(
        why(create_role(&mut world, role(1, "staff", &[]))),
        "invalid role: expected at least one policy"
    );
    create_role(&mut world, role(1, "staff", &["dev", "dev"])).unwrap();
    let stored = &world.state.acl.roles.get(&id(1).to_string()).unwrap().document;
    assert_eq!(stored.policies.len(), 1, "once");
    assert_eq!(
        why(create_role(&mut world, role(2, "staff", &["dev"]))),
        "role with name staff already exists"
    );
    let there = format!("role {} exists already", id(1));
    assert_eq!(why(create_role(&mut world, role(1, "crew", &["dev"]))), there);
    let update = |role: ACLRole| Command::UpdateAclRole(Box::new(role));
    let unknown = why(world.submit(update(role(2, "crew", &["dev"]))));
    assert_eq!(unknown, format!("cannot find role {}", id(2)));
    let same = world.submit(update(role(1, "staff", &["dev"]))).unwrap();
    assert!(same.events.is_empty(), "nothing changed, and its own name is no conflict");
    let unfit = ACLRole { id: id(0xabc).to_string().to_uppercase(), ..role(3, "crew", &["dev"]) };
    let refused = why(create_role(&mut world, unfit));
    assert!(refused.starts_with("invalid role ID ") && refused.ends_with(": expected a UUID"), "{refused}");
    // The role goes on without it.
    world.submit(Command::DeleteAclPolicy { name: "dev".into() }).unwrap();
    world.submit(Command::DeleteAclRole { role: id(1) }).unwrap();
    assert!(matches!(
        world.submit(Command::DeleteAclRole { role: id(1) }),
        Err(Rejection::AclRoleUnknown(_))
    ));
    world.check_replay();
}

#[test]
fn a_policy_is_refused_by_the_field_that_is_wrong() {
    let mut world = World::new();
    for name in ["", "a b", "a_b", &"a".repeat(129)] {
        let refused = why(upsert_policy(&mut world, &policy(name)));
        let expected = format!("invalid policy name {name:?}: expected 1 to 128 letters, digits and dashes");
        assert_eq!(refused, expected);
    }
    let long = ACLPolicy { description: "x".repeat(257), ..policy("p") };
    let refused = "invalid policy description: expected at most 256 bytes";
    assert_eq!(why(upsert_policy(&mut world, &long)), refused);
    let large = ACLPolicy { rules: "#".repeat(256 * 1024 + 1), ..policy("p") };
    assert_eq!(why(upsert_policy(&mut world, &large)), "invalid policy rules: expected at most 262144 bytes");
    let tasks = |namespace: &str, job: &str, group: &str, task: &str| ACLPolicy {
        job_acl: Some(JobACL {
            namespace: namespace.into(),
            job_id: job.into(),
            group: group.into(),
            task: task.into(),
        }),
        ..policy("p")
    };
    for (wanted, refused) in [
        (tasks("", "web", "", ""), "invalid JobACL: JobID without Namespace"),
        (tasks("default", "", "api", ""), "invalid JobACL: Group without JobID"),
        (tasks("default", "web", "", "main"), "invalid JobACL: Task without Group"),
        (tasks("", "", "", ""), "invalid JobACL: expected a Namespace"),
    ] {
        assert_eq!(why(upsert_policy(&mut world, &wanted)), refused);
    }
    assert!(world.log.is_empty());
    upsert_policy(&mut world, &tasks("default", "web", "api", "")).unwrap();
    let same = upsert_policy(&mut world, &tasks("default", "web", "api", "")).unwrap();
    assert!(same.events.is_empty(), "nothing changed");
    world.submit(Command::DeleteAclPolicy { name: "p".into() }).unwrap();
    let gone = world.submit(Command::DeleteAclPolicy { name: "p".into() });
    assert!(matches!(gone, Err(Rejection::AclPolicyUnknown(_))));
    world.check_replay();
}
