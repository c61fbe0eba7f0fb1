//! Follows one list of the authoritative region, or what depends on several: reads, compares, has written here what differs.

use std::collections::VecDeque;

use api::{ACLPolicyListStub, ACLTokenListStub};
use base::{Duration, Time, Uuid};
use bytes::Bytes;
use model::command::CreateAclToken;
use model::document::{ACLPolicy, ACLRole, ACLToken};
use model::{Command, TokenSecret};
use serde::de::DeserializeOwned;
use state::State;

use crate::compare::{Change, Changes, List, Missing, resolve};
use crate::logins::Logins;

/// How long a list waits for its next change. Then it is compared again, which changes nothing as a rule.
const WAIT: &str = "60s";

/// Between two readings of a list: at most ten a second, as Nomad has it.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait after a reading that failed: twice as long each time, up to what Nomad waits.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// The caller's own token, whatever it may do.
const OWN: &str = "/v1/acl/token/self";

/// What a follower needs before it can go on.
#[derive(Clone, Debug)]
pub enum Need {
    /// To be called again after so long, and not before this server leads.
    Rest(Duration),
    /// What the authoritative region answers to a GET of this, with the token that was configured.
    Read(String),
    /// A secret, sealed with a key of this region.
    Seal { accessor: Uuid, secret: String },
    /// This to be decided, and to be seen in the state that comes with the outcome.
    Submit(Box<Command>),
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Outcome {
    Rested,
    Read(Result<Answer, Failure>),
    Sealed(Result<TokenSecret, String>),
    Submitted(Submitted),
}

#[derive(Clone, Debug)]
pub struct Answer {
    /// How new it is.
    pub index: u64,
    pub body: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is nothing at that path.
    Gone(String),
    /// It was refused, or nobody answers.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    Done,
    /// The rules refuse it now: the rest goes on without it.
    Rejected(String),
    /// It may or may not take effect.
    Unknown(String),
}

/// What is followed by itself.
#[derive(Debug)]
enum Followed {
    List(List),
    Logins(Logins),
}

/// What it waits for.
#[derive(Debug)]
enum Stage {
    Rest,
    OwnToken,
    List,
    Logins,
    Policy,
    /// All policies there, or all roles, to tell what is on its way from what is gone.
    MissingPolicies(Vec<Missing>),
    MissingRoles(Vec<Missing>),
    /// A token whose secret is not in the list, and the links that it is to have.
    Token(Box<ACLTokenListStub>),
    Seal(Box<ACLToken>),
    Submit,
}

#[derive(Debug)]
pub struct Follower {
    followed: Followed,
    stage: Stage,
    /// How new what was read last is; zero, if nothing is relied upon.
    index: u64,
    /// The same of what is being dealt with.
    newer: u64,
    changes: VecDeque<Change>,
    waits: Option<String>,
    /// How long it rests after the next failure.
    again: Duration,
    said: Option<String>,
    news: Option<String>,
}

impl Follower {
    /// One for each thing that is followed by itself.
    pub fn all() -> Vec<Follower> {
        let lists = List::ALL.into_iter().map(Followed::List);
        lists.chain([Followed::Logins(Logins::default())]).map(Follower::of).collect()
    }

    fn of(followed: Followed) -> Follower {
        Follower {
            followed,
            stage: Stage::Rest,
            index: 0,
            newer: 0,
            changes: VecDeque::new(),
            waits: None,
            again: AGAIN,
            said: None,
            news: None,
        }
    }

    /// What is followed, for people.
    pub fn name(&self) -> &'static str {
        match &self.followed {
            Followed::List(list) => list.name(),
            Followed::Logins(_) => "auth methods and binding rules",
        }
    }

    /// Why not everything is here yet, once for each reason.
    pub fn news(&mut self) -> Option<String> {
        self.news.take()
    }

    /// What it needs first.
    pub fn begin(&mut self) -> Need {
        self.stage = Stage::Rest;
        Need::Rest(Duration::ZERO)
    }

    /// What it needs after that. `state` is this region's, `now` the time of day.
    pub fn step(&mut self, outcome: Outcome, state: &State, now: Time) -> Need {
        let stage = std::mem::replace(&mut self.stage, Stage::Rest);
        self.went(stage, outcome, state, now).unwrap_or_else(|why| self.failed(why))
    }

    fn went(&mut self, stage: Stage, outcome: Outcome, state: &State, now: Time) -> Result<Need, String> {
        match (stage, outcome) {
            // To another token lists would seem to be shorter than they are.
            (Stage::Rest, Outcome::Rested) if self.index == 0 => {
                Ok(self.enter(Stage::OwnToken, Need::Read(OWN.to_string())))
            }
            (Stage::Rest, Outcome::Rested) => Ok(self.read_list()),
            (Stage::OwnToken, Outcome::Read(answer)) => {
                let own: ACLToken = parsed(OWN, &answer.map_err(why)?)?;
                if !own.is_management() {
                    let wanted =
                        "acl.replication_token: expected a management token of the authoritative region";
                    return Err(wanted.to_string());
                }
                Ok(self.read_list())
            }
            (Stage::List, Outcome::Read(answer)) => {
                let Followed::List(list) = self.followed else { unreachable!("lists are followed as lists") };
                let Answer { index, body } = answer.map_err(why)?;
                let compared = list.compare(state, &body, now);
                self.newer = index;
                self.deal_with(compared.map_err(|error| unread(list.path(), &error))?)
            }
            (Stage::Logins, Outcome::Read(answer)) => {
                let Followed::Logins(logins) = &mut self.followed else {
                    unreachable!("logins are followed as logins")
                };
                logins.take(answer)?;
                self.go_on_with_logins(state)
            }
            (Stage::Policy, Outcome::Read(answer)) => {
                let policy: ACLPolicy = parsed("a policy", &answer.map_err(why)?)?;
                Ok(self.submit(Command::UpsertAclPolicy(Box::new(policy))))
            }
            (Stage::MissingRoles(missing), Outcome::Read(answer)) => {
                let roles: Vec<ACLRole> = parsed(List::Roles.path(), &answer.map_err(why)?)?;
                let missing = missing.into_iter().map(|one| one.of_roles(&roles)).collect();
                self.changes.push_front(Change::MissingPolicies(missing));
                self.next_change()
            }
            (Stage::MissingPolicies(missing), Outcome::Read(answer)) => {
                let policies: Vec<ACLPolicyListStub> = parsed(List::Policies.path(), &answer.map_err(why)?)?;
                let Changes { changes, waits } = resolve(missing, &policies);
                self.changes.extend(changes);
                self.waits = self.waits.take().or(waits);
                self.next_change()
            }
            (Stage::Token(stub), Outcome::Read(answer)) => {
                let token: ACLToken = parsed("a token", &answer.map_err(why)?)?;
                self.seal(ACLToken { policies: stub.policies, roles: stub.roles, ..token })
            }
            (Stage::Seal(token), Outcome::Sealed(secret)) => {
                let secret = secret.map_err(|error| format!("a secret cannot be sealed: {error}"))?;
                let created = CreateAclToken { token: *token, secret };
                Ok(self.submit(Command::CreateAclToken(Box::new(created))))
            }
            (Stage::Submit, Outcome::Submitted(Submitted::Unknown(error))) => Err(error),
            (Stage::Submit, Outcome::Submitted(submitted)) => {
                if let Submitted::Rejected(error) = submitted {
                    self.waits = Some(error);
                }
                self.next_change()
            }
            (stage, outcome) => unreachable!("{outcome:?} is no outcome of {stage:?}"),
        }
    }

    fn enter(&mut self, stage: Stage, need: Need) -> Need {
        self.stage = stage;
        need
    }

    fn read_list(&mut self) -> Need {
        match &mut self.followed {
            Followed::List(list) => {
                let path = waiting(list.path(), self.index);
                self.enter(Stage::List, Need::Read(path))
            }
            Followed::Logins(logins) => {
                let path = logins.begin(self.index);
                self.enter(Stage::Logins, Need::Read(path))
            }
        }
    }

    fn go_on_with_logins(&mut self, state: &State) -> Result<Need, String> {
        let Followed::Logins(logins) = &mut self.followed else {
            unreachable!("only logins are read in parts")
        };
        if let Some(path) = logins.next() {
            return Ok(self.enter(Stage::Logins, Need::Read(path)));
        }
        let (newer, changes) = (logins.index(), logins.compare(state));
        self.newer = newer;
        self.deal_with(changes)
    }

    fn deal_with(&mut self, found: Changes) -> Result<Need, String> {
        (self.changes, self.waits) = (found.changes.into(), found.waits);
        self.next_change()
    }

    fn next_change(&mut self) -> Result<Need, String> {
        match self.changes.pop_front() {
            Some(Change::Command(command)) => Ok(self.submit(*command)),
            Some(Change::Policy(name)) => {
                Ok(self.enter(Stage::Policy, Need::Read(format!("/v1/acl/policy/{name}"))))
            }
            Some(Change::Token(stub)) => {
                let path = format!("/v1/acl/token/{}", stub.accessor_id);
                Ok(self.enter(Stage::Token(stub), Need::Read(path)))
            }
            Some(Change::MissingPolicies(missing)) => {
                let path = List::Policies.path().to_string();
                Ok(self.enter(Stage::MissingPolicies(missing), Need::Read(path)))
            }
            Some(Change::MissingRoles(missing)) => {
                let path = List::Roles.path().to_string();
                Ok(self.enter(Stage::MissingRoles(missing), Need::Read(path)))
            }
            None => match self.waits.take() {
                Some(why) => Err(why),
                None => {
                    (self.index, self.again, self.said) = (self.newer, AGAIN, None);
                    Ok(Need::Rest(PAUSE))
                }
            },
        }
    }

    fn submit(&mut self, command: Command) -> Need {
        self.enter(Stage::Submit, Need::Submit(Box::new(command)))
    }

    /// The same token with the same secret, which is sealed with a key of this region.
    fn seal(&mut self, token: ACLToken) -> Result<Need, String> {
        let wrong = |why: &str| format!("token {}: {why}", token.accessor_id);
        let accessor: Uuid = token.accessor_id.parse().map_err(|_| wrong("expected a UUID"))?;
        if token.secret_id.is_empty() {
            return Err(wrong("its region cannot open its secret"));
        }
        let secret = token.secret_id.clone();
        let token = ACLToken { secret_id: String::new(), ..token };
        Ok(self.enter(Stage::Seal(Box::new(token)), Need::Seal { accessor, secret }))
    }

    /// All is read again, later.
    fn failed(&mut self, why: String) -> Need {
        if self.said.as_ref() != Some(&why) {
            self.news = Some(why.clone());
            self.said = Some(why);
        }
        self.index = 0;
        self.changes.clear();
        let again = self.again;
        self.again = Duration(again.0 * 2).min(AGAIN_MAX);
        self.enter(Stage::Rest, Need::Rest(again))
    }
}

/// Is answered once what the path shows is newer than this.
pub(crate) fn waiting(path: &str, index: u64) -> String {
    format!("{path}?index={index}&wait={WAIT}")
}

pub(crate) fn parsed<T: DeserializeOwned>(path: &str, answer: &Answer) -> Result<T, String> {
    serde_json::from_slice(&answer.body).map_err(|error| unread(path, &error))
}

pub(crate) fn why(failure: Failure) -> String {
    let (Failure::Gone(why) | Failure::Other(why)) = failure;
    why
}

fn unread(path: &str, error: &serde_json::Error) -> String {
    format!("the answer to {path} cannot be read: {error}")
}
