//! Auth methods, binding rules, and tokens that are issued by login.

use base::{Duration, Index, Time, Uuid};
use model::command::CreateAclToken;
use model::document::{
    ACLAuthMethod, ACLAuthMethodConfig, ACLBindingRule, ACLToken, AuthMethodRecord, OIDCClientAssertion,
    OIDCClientAssertionKey, Timestamp,
};
use model::{Command, Event, IssueLoginToken, Rejection, SealedData, TokenSecret};
use rules::Decision;
use test_world::World;

const TTL: Duration = Duration::from_secs(600);

fn jwt(name: &str) -> AuthMethodRecord {
    let config = ACLAuthMethodConfig {
        jwt_validation_pub_keys: vec!["a key".to_string()].into(),
        ..ACLAuthMethodConfig::default()
    };
    let method = ACLAuthMethod {
        name: name.into(),
        kind: ACLAuthMethod::JWT.into(),
        token_locality: ACLAuthMethod::LOCAL.into(),
        max_token_ttl: TTL.into(),
        config: Some(config),
        ..ACLAuthMethod::default()
    };
    AuthMethodRecord { method, ..AuthMethodRecord::default() }
}

fn oidc(name: &str) -> AuthMethodRecord {
    let config = ACLAuthMethodConfig {
        oidc_discovery_url: "https://id.example".into(),
        oidc_client_id: "sojourn".into(),
        allowed_redirect_uris: vec!["http://localhost:4649/oidc/callback".to_string()].into(),
        ..ACLAuthMethodConfig::default()
    };
    let method = ACLAuthMethod { kind: ACLAuthMethod::OIDC.into(), config: Some(config), ..jwt(name).method };
    let client_secret = Some(SealedData { key: Uuid::from(9), bytes: vec![1] });
    AuthMethodRecord { method, client_secret, private_key: None }
}

fn with_config(record: AuthMethodRecord, change: impl FnOnce(&mut ACLAuthMethodConfig)) -> AuthMethodRecord {
    let mut record = record;
    change(record.method.config.as_mut().unwrap());
    record
}

fn create(world: &mut World, record: &AuthMethodRecord) -> Result<Decision, Rejection> {
    world.submit(Command::CreateAuthMethod(Box::new(record.clone())))
}

fn update(world: &mut World, record: &AuthMethodRecord) -> Result<Decision, Rejection> {
    world.submit(Command::UpdateAuthMethod(Box::new(record.clone())))
}

fn rule(number: u128, method: &str, kind: &str, name: &str) -> ACLBindingRule {
    ACLBindingRule {
        id: Uuid::from(number).to_string(),
        auth_method: method.into(),
        bind_type: kind.into(),
        bind_name: name.into(),
        ..ACLBindingRule::default()
    }
}

fn create_rule(world: &mut World, rule: ACLBindingRule) -> Result<Decision, Rejection> {
    world.submit(Command::CreateBindingRule(Box::new(rule)))
}

fn why(refused: Result<Decision, Rejection>) -> String {
    refused.expect_err("it is refused").to_string()
}

fn stored(world: &World, name: &str) -> AuthMethodRecord {
    world.state.acl.methods.get(name).expect("it is there").document.clone()
}

#[test]
fn an_auth_method_says_what_is_wrong_with_it() {
    let mut world = World::new();
    let method = |change: fn(&mut ACLAuthMethod)| {
        let mut record = jwt("corp");
        change(&mut record.method);
        record
    };
    let assertion = |source: &str| {
        let own = OIDCClientAssertion { key_source: source.into(), ..OIDCClientAssertion::default() };
        with_config(oidc("corp"), |config| config.oidc_client_assertion = Some(own))
    };
    let one_of = "exactly one of JWKSURL, JWTValidationPubKeys and OIDCDiscoveryURL must be set for JWT";
    let cases = [
        (method(|m| m.name = "no_underscore".into()), "invalid auth method name"),
        (method(|m| m.kind = "SAML".into()), "invalid auth method type \"SAML\": expected JWT or OIDC"),
        (method(|m| m.token_locality = "here".into()), "invalid token locality \"here\""),
        (method(|m| m.max_token_ttl = Duration::ZERO.into()), "invalid MaxTokenTTL"),
        (method(|m| m.config = None), "expected a Config"),
        (with_config(jwt("corp"), |c| c.jwt_validation_pub_keys.clear()), one_of),
        (with_config(jwt("corp"), |c| c.jwks_url = "https://id.example/keys".into()), one_of),
        (with_config(jwt("corp"), |c| c.oidc_client_id = "x".into()), "are for OIDC"),
        (
            with_config(jwt("corp"), |c| c.signing_algs = vec!["HS256".to_string()].into()),
            "invalid SigningAlgs",
        ),
        (
            with_config(jwt("corp"), |c| c.clock_skew_leeway = Duration::from_secs(3_601).into()),
            "ClockSkewLeeway",
        ),
        (
            with_config(oidc("corp"), |c| c.oidc_discovery_url = "id.example".into()),
            "invalid OIDCDiscoveryURL",
        ),
        (
            with_config(oidc("corp"), |c| c.oidc_client_id.clear()),
            "OIDCDiscoveryURL and OIDCClientID must be set",
        ),
        (assertion("vault"), "KeySource: expected nomad, private_key or client_secret"),
        (assertion("private_key"), "PrivateKey: expected one"),
    ];
    for (record, refused) in cases {
        let text = why(create(&mut world, &record));
        assert!(text.contains(refused), "{text:?} instead of {refused:?}");
    }
    create(&mut world, &assertion("nomad")).unwrap();
    assert_eq!(why(create(&mut world, &jwt("corp"))), "auth method with name corp already exists");
    world.check_replay();
}

#[test]
fn one_method_is_the_default() {
    let mut world = World::new();
    let default = |name: &str| {
        let mut record = jwt(name);
        record.method.default = true;
        record
    };
    create(&mut world, &default("one")).unwrap();
    create(&mut world, &jwt("two")).unwrap();
    assert_eq!(why(create(&mut world, &default("three"))), "default method already exists: one");
    assert_eq!(why(update(&mut world, &default("two"))), "default method already exists: one");
    update(&mut world, &jwt("one")).unwrap();
    update(&mut world, &default("two")).unwrap();
    world.check_replay();
}

#[test]
fn an_update_keeps_what_it_does_not_name_and_secrets_go_with_what_they_are_for() {
    let mut world = World::new();
    create(&mut world, &oidc("corp")).unwrap();
    let before = stored(&world, "corp");
    assert_eq!(before.method.token_name_format, ACLAuthMethod::NAME_FORMAT);
    let only_name = ACLAuthMethod { name: "corp".into(), ..ACLAuthMethod::default() };
    let nothing = AuthMethodRecord { method: only_name, ..AuthMethodRecord::default() };
    assert!(update(&mut world, &nothing).unwrap().events.is_empty(), "nothing is another");
    assert_eq!(stored(&world, "corp"), before);

    let key = OIDCClientAssertionKey {
        key_id: "k1".into(),
        key_id_header: "kid".into(),
        ..OIDCClientAssertionKey::default()
    };
    let own = OIDCClientAssertion {
        key_source: "private_key".into(),
        private_key: Some(key),
        ..OIDCClientAssertion::default()
    };
    let signed = with_config(oidc("corp"), |config| config.oidc_client_assertion = Some(own));
    assert!(why(update(&mut world, &signed)).contains("PrivateKey.PemKey: expected a key"));
    let sealed = SealedData { key: Uuid::from(9), bytes: vec![7] };
    update(&mut world, &AuthMethodRecord { private_key: Some(sealed.clone()), ..signed }).unwrap();
    let after = stored(&world, "corp");
    assert_eq!((after.client_secret, after.private_key), (before.client_secret.clone(), Some(sealed)));
    assert_eq!(after.method.create_time, before.method.create_time);

    update(&mut world, &AuthMethodRecord { client_secret: None, ..oidc("corp") }).unwrap();
    let after = stored(&world, "corp");
    assert_eq!((after.client_secret, after.private_key), (before.client_secret, None));
    update(&mut world, &jwt("corp")).unwrap();
    assert_eq!(stored(&world, "corp").client_secret, None, "a JWT has no client");

    let unknown = update(&mut world, &jwt("other")).expect_err("it is not there");
    assert_eq!(unknown, Rejection::AuthMethodUnknown("other".into()));
    let delete = |name: &str| Command::DeleteAuthMethod { name: name.into() };
    world.submit(delete("corp")).unwrap();
    assert_eq!(world.submit(delete("corp")), Err(Rejection::AuthMethodUnknown("corp".into())));
    world.check_replay();
}

#[test]
fn a_binding_rule_names_a_method_and_what_it_binds() {
    let mut world = World::new();
    let refused = create_rule(&mut world, rule(1, "corp", "policy", "dev"));
    assert_eq!(why(refused), "ACL auth method corp not found");
    create(&mut world, &jwt("corp")).unwrap();
    create(&mut world, &jwt("other")).unwrap();
    let cases = [
        (rule(1, "", "policy", "dev"), "expected an auth method"),
        (rule(1, "corp", "role", ""), "bind name is missing"),
        (rule(1, "corp", "management", "x"), "bind name should be empty"),
        (rule(1, "corp", "group", "x"), "invalid bind type \"group\""),
        (ACLBindingRule { id: "1".into(), ..rule(1, "corp", "policy", "dev") }, "expected a UUID"),
    ];
    for (wanted, refused) in cases {
        let text = why(create_rule(&mut world, wanted));
        assert!(text.contains(refused), "{text:?} instead of {refused:?}");
    }
    create_rule(&mut world, rule(1, "corp", "policy", "dev")).unwrap();
    let update = |rule: ACLBindingRule| Command::UpdateBindingRule(Box::new(rule));
    let moved = world.submit(update(rule(1, "other", "policy", "dev")));
    assert_eq!(why(moved), "cannot update auth method for binding rule, create a new rule instead");
    assert_eq!(
        why(world.submit(update(rule(2, "corp", "policy", "dev")))),
        format!("cannot find binding rule {}", Uuid::from(2))
    );
    world.submit(update(ACLBindingRule { selector: "value.a == b".into(), ..rule(1, "", "", "") })).unwrap();
    let stored = world.state.acl.rules.get(&Uuid::from(1).to_string()).unwrap().document.clone();
    assert_eq!((stored.bind_name.as_str(), stored.selector.as_str()), ("dev", "value.a == b"));
    world.submit(update(rule(1, "", "management", ""))).unwrap();
    world.submit(Command::DeleteBindingRule { rule: Uuid::from(1) }).unwrap();
    let again = world.submit(Command::DeleteBindingRule { rule: Uuid::from(1) });
    assert_eq!(again, Err(Rejection::BindingRuleUnknown(Uuid::from(1))));
    world.check_replay();
}

fn issue(world: &World, number: u8) -> IssueLoginToken {
    let token = ACLToken {
        accessor_id: Uuid::from(u128::from(number)).to_string(),
        kind: ACLToken::CLIENT.into(),
        policies: vec!["dev".to_string()].into(),
        expiration_ttl: TTL.into(),
        ..ACLToken::default()
    };
    let sealed = SealedData { key: Uuid::from(9), bytes: vec![number] };
    IssueLoginToken {
        token: CreateAclToken { token, secret: TokenSecret { digest: [number; 32], sealed } },
        method: "corp".into(),
        rules: vec![Uuid::from(1)],
        as_of: world.state.acl.logins_changed(),
    }
}

#[test]
fn a_login_gives_a_token_that_lives_as_its_method_says() {
    let mut world = World::new();
    create(&mut world, &jwt("corp")).unwrap();
    create_rule(&mut world, rule(1, "corp", "policy", "dev")).unwrap();
    create_rule(&mut world, rule(2, "corp", "policy", "ops")).unwrap();
    let submit = |world: &mut World, request: IssueLoginToken| {
        world.submit(Command::IssueLoginToken(Box::new(request)))
    };
    let decision = {
        let request = issue(&world, 1);
        submit(&mut world, request).unwrap()
    };
    let [Event::AclTokenIssuedByLogin(issued)] = &decision.events[..] else { panic!("{decision:?}") };
    assert_eq!((issued.method.as_str(), &issued.rules[..]), ("corp", &[Uuid::from(1)][..]));
    let token = &world.state.acl.token(Uuid::from(1)).unwrap().document;
    let created = token.create_time.0.unwrap();
    assert_eq!(token.expires(), Some(created.plus(TTL)));
    assert!(world.state.acl.by_secret(&[1; 32]).is_some());

    let mut request = issue(&world, 2);
    request.token.token.expiration_ttl = Duration::from_secs(601).into();
    assert!(why(submit(&mut world, request)).contains("expected the TTL of its auth method"));
    let mut request = issue(&world, 2);
    request.token.token.global = true;
    assert!(why(submit(&mut world, request)).contains("expected the locality of its auth method"));
    for rules in [vec![], vec![Uuid::from(3)]] {
        let request = IssueLoginToken { rules, ..issue(&world, 2) };
        assert_eq!(why(submit(&mut world, request)), "no role or policy bindings matched");
    }
    let request = issue(&world, 1);
    assert!(why(submit(&mut world, request)).contains("accessor or this secret exists already"));
    // What was looked at is not what holds any more.
    let request = issue(&world, 2);
    world.submit(Command::DeleteBindingRule { rule: Uuid::from(2) }).unwrap();
    assert!(why(submit(&mut world, request)).contains("have changed meanwhile"));
    let request = IssueLoginToken { as_of: Index(u64::MAX), ..issue(&world, 2) };
    submit(&mut world, request).unwrap();
    world.submit(Command::DeleteAuthMethod { name: "corp".into() }).unwrap();
    let request = issue(&world, 3);
    assert_eq!(why(submit(&mut world, request)), "ACL auth method corp not found");
    world.check_replay();
}

#[test]
fn what_the_authoritative_region_has_is_taken_over_as_it_is_there() {
    let mut world = World::new();
    let there = |name: &str| ACLAuthMethod {
        token_locality: ACLAuthMethod::GLOBAL.into(),
        create_time: Timestamp(Some(Time(7))),
        modify_time: Timestamp(Some(Time(9))),
        create_index: 3,
        modify_index: 5,
        ..oidc(name).method
    };
    let copy =
        |world: &mut World, method: ACLAuthMethod| world.submit(Command::CopyAuthMethod(Box::new(method)));
    let copy_rule =
        |world: &mut World, rule: ACLBindingRule| world.submit(Command::CopyBindingRule(Box::new(rule)));
    // A secret that its configuration asks for stays where who logs in is answered.
    let own = OIDCClientAssertion { key_source: "client_secret".into(), ..OIDCClientAssertion::default() };
    let mut signed = there("corp");
    signed.config.as_mut().unwrap().oidc_client_assertion = Some(own);
    copy(&mut world, signed.clone()).unwrap();
    let kept = stored(&world, "corp");
    assert_eq!((kept.client_secret, kept.private_key), (None, None));
    assert_eq!(kept.method, ACLAuthMethod { create_index: 0, modify_index: 0, ..signed.clone() });
    assert!(copy(&mut world, ACLAuthMethod { modify_index: 6, ..signed }).unwrap().events.is_empty());

    let local = ACLAuthMethod { token_locality: ACLAuthMethod::LOCAL.into(), ..there("corp") };
    assert!(why(copy(&mut world, local)).contains("expected the token locality global"));
    create(&mut world, &jwt("own")).unwrap();
    assert!(why(copy(&mut world, there("own"))).contains("this region has one of its own with this name"));
    copy(&mut world, ACLAuthMethod { default: true, ..there("first") }).unwrap();
    let second = ACLAuthMethod { default: true, ..there("second") };
    assert_eq!(why(copy(&mut world, second)), "default method already exists: first");

    let of_corp = ACLBindingRule {
        description: "d".into(),
        create_time: Timestamp(Some(Time(7))),
        modify_index: 5,
        ..rule(1, "corp", "policy", "dev")
    };
    copy_rule(&mut world, of_corp.clone()).unwrap();
    assert!(copy_rule(&mut world, of_corp.clone()).unwrap().events.is_empty());
    copy_rule(&mut world, ACLBindingRule { description: String::new(), ..of_corp }).unwrap();
    let kept = &world.state.acl.rules.get(&Uuid::from(1).to_string()).unwrap().document;
    assert_eq!((kept.description.as_str(), kept.create_time), ("", Timestamp(Some(Time(7)))));
    let refused = "expected an auth method with the token locality global";
    assert!(why(copy_rule(&mut world, rule(2, "own", "policy", "dev"))).contains(refused));
    assert_eq!(
        why(copy_rule(&mut world, rule(2, "none", "policy", "dev"))),
        "ACL auth method none not found"
    );
    world.check_replay();
}
