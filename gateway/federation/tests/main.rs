//! A follower, led by hand.

use api::ACLPolicyListStub;
use base::{Duration, Time};
use bytes::Bytes;
use federation::{Answer, Failure, Follower, Need, Outcome, Submitted};
use model::Command;
use model::document::{ACLPolicy, ACLToken, Namespace};
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
    let stub = ACLPolicyListStub::from(ACLPolicy { name: "p".to_string(), ..ACLPolicy::default() });
    eu.answer(7, &vec![stub]);
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
