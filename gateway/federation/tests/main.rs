//! A follower, led by hand.

use api::{ACLPolicyListStub, ACLTokenListStub};
use base::{Duration, Time, Uuid};
use bytes::Bytes;
use federation::{Answer, Failure, Follower, Need, Outcome, Submitted};
use model::command::CreateAclToken;
use model::document::{ACLPolicy, ACLRole, ACLRolePolicyLink, ACLToken, ACLTokenRoleLink, Namespace};
use model::{Command, SealedData, TokenSecret};
use serde::Serialize;
use test_world::World;

/// A region, and one of its followers.
struct Following {
    world: World,
    follower: Follower,
    need: Need,
}

impl Following {
    fn of(what: &str) -> Following {
        let mut follower = Follower::all().into_iter().find(|follower| follower.name() == what).unwrap();
        let need = follower.begin();
        Following { world: World::new(), follower, need }
    }

    fn give(&mut self, outcome: Outcome) {
        self.need = self.follower.step(outcome, &self.world.state, Time::ZERO);
    }

    fn answer(&mut self, index: u64, body: &impl Serialize) {
        let body = Bytes::from(serde_json::to_vec(body).unwrap());
        self.give(Outcome::Read(Ok(Answer { index, body })));
    }

    fn path(&self) -> &str {
        let Need::Read(path) = &self.need else { panic!("{:?}", self.need) };
        path
    }

    fn rest(&self) -> Duration {
        let Need::Rest(span) = self.need else { panic!("{:?}", self.need) };
        span
    }

    /// It has rested, and its token is found to be one of management.
    fn authorized(&mut self) {
        self.give(Outcome::Rested);
        assert_eq!(self.path(), "/v1/acl/token/self");
        self.answer(1, &ACLToken { kind: ACLToken::MANAGEMENT.to_string(), ..ACLToken::default() });
    }

    /// What it wants to be decided is.
    fn submit(&mut self) {
        let Need::Submit(command) = &self.need else { panic!("{:?}", self.need) };
        let outcome = match self.world.submit((**command).clone()) {
            Ok(_) => Submitted::Done,
            Err(why) => Submitted::Rejected(why.to_string()),
        };
        self.give(Outcome::Submitted(outcome));
    }
}

fn namespace(name: &str) -> Namespace {
    let mut elsewhere = World::new();
    let wanted = Namespace { name: name.to_string(), ..Namespace::default() };
    elsewhere.submit(Command::UpsertNamespace(Box::new(wanted))).unwrap();
    state::namespace::document(&elsewhere.state.namespaces, name).unwrap()
}

#[test]
fn what_differs_is_written_and_what_is_gone_is_deleted() {
    let mut eu = Following::of("namespaces");
    eu.authorized();
    assert_eq!(eu.path(), "/v1/namespaces?index=0&wait=60s");
    let default = state::namespace::document(&eu.world.state.namespaces, "default").unwrap();
    eu.answer(7, &vec![default.clone(), namespace("web")]);
    eu.submit();
    assert!(eu.world.state.namespaces.exists("web"));
    assert!(eu.rest() < Duration::from_secs(1));
    // What is read next is newer.
    eu.give(Outcome::Rested);
    assert_eq!(eu.path(), "/v1/namespaces?index=7&wait=60s");
    eu.answer(9, &vec![default]);
    eu.submit();
    assert!(!eu.world.state.namespaces.exists("web"));
    assert!(eu.follower.news().is_none());
    eu.world.check_replay();
}

#[test]
fn what_was_not_done_is_begun_again_later_and_later() {
    let mut eu = Following::of("policies");
    eu.authorized();
    eu.answer(7, &vec![stub("p")]);
    assert_eq!(eu.path(), "/v1/acl/policy/p");
    let mut pauses = Vec::new();
    for round in 0..7 {
        let failure = if round == 0 { Failure::Gone("gone".into()) } else { Failure::Other("cut".into()) };
        eu.give(Outcome::Read(Err(failure)));
        pauses.push(eu.rest().0 / 1_000_000_000);
        eu.give(Outcome::Rested);
        // Nothing of before is relied upon.
        assert_eq!(eu.path(), "/v1/acl/token/self");
        let news = eu.follower.news();
        assert_eq!(news.is_some(), round < 2, "each reason is said once: {news:?}");
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    eu.world.check_replay();
}

#[test]
fn a_token_without_rights_is_not_followed_with() {
    let mut eu = Following::of("tokens");
    eu.give(Outcome::Rested);
    eu.answer(1, &ACLToken { kind: ACLToken::CLIENT.to_string(), ..ACLToken::default() });
    assert_eq!(eu.rest(), Duration::from_secs(1));
    assert!(eu.follower.news().unwrap().starts_with("acl.replication_token: expected a management token"));
    eu.world.check_replay();
}

fn policy(name: &str) -> Command {
    Command::UpsertAclPolicy(Box::new(ACLPolicy { name: name.to_string(), ..ACLPolicy::default() }))
}

fn role(number: u128, name: &str, policy: &str) -> ACLRole {
    let links = vec![ACLRolePolicyLink { name: policy.to_string() }];
    let id = Uuid::from(number).to_string();
    ACLRole { id, name: name.to_string(), policies: links.into(), ..ACLRole::default() }
}

#[test]
fn roles_that_have_taken_each_others_names_do_so_here() {
    let mut us = Following::of("roles");
    us.world.submit(policy("p")).unwrap();
    for role in [role(1, "one", "p"), role(2, "two", "p"), role(3, "three", "p")] {
        us.world.submit(Command::CreateAclRole(Box::new(role))).unwrap();
    }
    us.authorized();
    us.answer(7, &vec![role(1, "two", "p"), role(2, "one", "p"), role(3, "three", "p")]);
    while let Need::Submit(_) = us.need {
        us.submit();
    }
    assert!(us.rest() < Duration::from_secs(1), "{:?}", us.follower.news());
    let name = |number: u128| {
        us.world.state.acl.roles.get(&Uuid::from(number).to_string()).unwrap().document.name.clone()
    };
    assert_eq!([name(1), name(2), name(3)], ["two", "one", "three"]);
    us.world.check_replay();
}

fn stub(name: &str) -> ACLPolicyListStub {
    ACLPolicyListStub::from(ACLPolicy { name: name.to_string(), ..ACLPolicy::default() })
}

#[test]
fn a_role_that_gives_nothing_there_gives_nothing_here() {
    for is_gone in [true, false] {
        let mut us = Following::of("roles");
        us.world.submit(policy("old")).unwrap();
        us.world.submit(Command::CreateAclRole(Box::new(role(1, "one", "old")))).unwrap();
        us.world.submit(Command::DeleteAclPolicy { name: "old".to_string() }).unwrap();
        us.authorized();
        us.answer(7, &vec![role(1, "one", "new")]);
        assert_eq!(us.path(), "/v1/acl/policies");
        let there = if is_gone { Vec::new() } else { vec![stub("new")] };
        us.answer(7, &there);
        if is_gone {
            us.submit();
            assert!(us.rest() < Duration::from_secs(1));
        } else {
            // It is only not here yet.
            assert_eq!(us.rest(), Duration::from_secs(1));
        }
        assert_eq!(us.world.state.acl.roles.names().is_empty(), is_gone);
        us.world.check_replay();
    }
}

#[test]
fn a_role_that_names_a_deleted_policy_is_read_again_once_something_changes() {
    let mut us = Following::of("roles");
    us.world.submit(policy("p")).unwrap();
    us.authorized();
    let mut both = role(1, "one", "p");
    both.policies.push(ACLRolePolicyLink { name: "deleted".to_string() });
    us.answer(7, &vec![both]);
    us.submit();
    us.answer(8, &vec![stub("p")]);
    assert!(us.rest() < Duration::from_secs(1));
    us.give(Outcome::Rested);
    assert_eq!(us.path(), "/v1/acl/roles?index=7&wait=60s");
    assert!(us.follower.news().is_none());
    us.world.check_replay();
}

/// A token of all regions that gives what the policy gives.
fn token(accessor: Uuid) -> ACLToken {
    ACLToken {
        accessor_id: accessor.to_string(),
        kind: ACLToken::CLIENT.to_string(),
        global: true,
        policies: vec!["p".to_string()].into(),
        ..ACLToken::default()
    }
}

impl Following {
    fn has_token(&mut self, token: ACLToken) {
        let sealed = SealedData { key: Uuid::from(1), bytes: Vec::new() };
        let created = CreateAclToken { token, secret: TokenSecret { digest: [1; 32], sealed } };
        self.world.submit(Command::CreateAclToken(Box::new(created))).unwrap();
    }
}

#[test]
fn a_token_stays_until_the_role_is_here_that_it_was_moved_to() {
    let accessor = Uuid::from(9);
    let link = ACLTokenRoleLink { id: Uuid::from(1).to_string(), name: "one".to_string() };
    let moved = ACLToken { policies: Vec::new().into(), roles: vec![link].into(), ..token(accessor) };
    let nothing: Vec<ACLPolicyListStub> = Vec::new();
    for (roles, policies, stays) in [
        (vec![role(1, "one", "p")], vec![stub("p")], true),
        (vec![role(1, "one", "p")], nothing.clone(), false),
        (vec![role(2, "two", "p")], vec![stub("p")], false),
    ] {
        let mut us = Following::of("tokens");
        us.has_token(token(accessor));
        us.authorized();
        us.answer(7, &vec![ACLTokenListStub::from(moved.clone())]);
        assert_eq!(us.path(), "/v1/acl/roles");
        us.answer(7, &roles);
        assert_eq!(us.path(), "/v1/acl/policies");
        us.answer(7, &policies);
        if !stays {
            us.submit();
            assert!(us.world.state.acl.token(accessor).is_none());
            us.world.check_replay();
            continue;
        }
        // It is tried again, and the role has come.
        assert_eq!(us.rest(), Duration::from_secs(1));
        us.world.submit(policy("p")).unwrap();
        us.world.submit(Command::CreateAclRole(Box::new(role(1, "one", "p")))).unwrap();
        us.authorized();
        us.answer(7, &vec![ACLTokenListStub::from(moved.clone())]);
        us.submit();
        let here = state::acl::token(&us.world.state.acl, accessor).unwrap();
        assert!(here.policies.is_empty());
        assert_eq!(here.roles.len(), 1);
        us.world.check_replay();
    }
}

#[test]
fn a_token_that_gives_nothing_there_is_not_here() {
    let mut us = Following::of("tokens");
    let accessor = Uuid::from(9);
    us.has_token(token(accessor));
    us.authorized();
    us.answer(7, &vec![ACLTokenListStub::from(ACLToken { policies: Vec::new().into(), ..token(accessor) })]);
    us.answer(7, &Vec::<ACLRole>::new());
    us.answer(7, &Vec::<ACLPolicyListStub>::new());
    us.submit();
    assert!(us.world.state.acl.token(accessor).is_none());
    us.world.check_replay();
}
