//! What a region answers to those that follow it: the lists that `http-gateway` makes, of the same views, and waited for by the
//! same indexes.

use api::{ACLAuthMethodListStub, ACLBindingRuleListStub, ACLPolicyListStub, ACLTokenListStub};
use base::{Duration, Index, Uuid};
use bytes::Bytes;
use federation::{Answer, Failure, List};
use model::document::ACLToken;
use serde::Serialize;
use state::State;

use super::link::Letter;
use super::tasks::{AUTHORITATIVE, TaskId};
use super::world::{Event, Federation, Region};
use crate::model::world::World;

/// How long a reading waits for news, and by how much that is lengthened at most.
const WAIT: Duration = Duration::from_secs(60);
const JITTER: Duration = Duration(WAIT.0 / 16);

/// A reading that waits for something newer, at one server.
pub(super) struct PendingRead {
    number: u64,
    server: usize,
    life: u64,
    by: TaskId,
    turn: u64,
    path: String,
    /// What the caller has seen.
    known: u64,
    /// What the log had when it arrived: the answer is not older.
    fresh: Index,
}

impl Federation {
    /// A reading arrives at some server of the region.
    pub fn is_read(&mut self, by: TaskId, turn: u64, path: &str) {
        let Some(server) = self.any_server(AUTHORITATIVE) else {
            return self.answer(by, turn, Err(Failure::Other("nobody answers".to_string())));
        };
        let world = &self.regions[AUTHORITATIVE].world;
        if world.log.leader().is_none() {
            return self.answer(by, turn, Err(Failure::Other("No cluster leader".to_string())));
        }
        let (fresh, life) = (Index(world.log.len() as u64), world.servers[server].life);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let known = query.split('&').find_map(|pair| pair.strip_prefix("index=")?.parse().ok());
        let (number, known) = (self.next_turn(), known.unwrap_or(0));
        let read = PendingRead { number, server, life, by, turn, path: path.to_string(), known, fresh };
        self.regions[AUTHORITATIVE].reads.push(read);
        let jitter = World::up_to(&mut self.wires, JITTER);
        self.after(Duration(WAIT.0 + jitter.0), Event::ReadOver(number));
        self.answer_reads(AUTHORITATIVE);
    }

    /// Answers what can be answered now. Of a server that has crashed nothing is heard any more.
    pub fn answer_reads(&mut self, region: usize) {
        let Region { world, reads, .. } = &mut self.regions[region];
        let is_there = |read: &PendingRead| {
            let server = &world.servers[read.server];
            server.up && server.life == read.life
        };
        let is_due = |read: &PendingRead| {
            let server = &world.servers[read.server];
            let is_newer = || read.known == 0 || changed(&server.published, &read.path).0 > read.known;
            !server.paused && server.published.index >= read.fresh && is_newer()
        };
        let (mut left, mut due) = (Vec::new(), Vec::new());
        for read in std::mem::take(reads) {
            match (is_there(&read), is_there(&read) && is_due(&read)) {
                (false, _) => {}
                (true, true) => due.push(read),
                (true, false) => left.push(read),
            }
        }
        *reads = left;
        due.into_iter().for_each(|read| self.show(&read));
    }

    /// Its wait is over: it is answered with what there is.
    pub fn read_is_over(&mut self, number: u64) {
        let reads = &mut self.regions[AUTHORITATIVE].reads;
        let Some(at) = reads.iter().position(|read| read.number == number) else { return };
        let read = reads.swap_remove(at);
        let server = &self.regions[AUTHORITATIVE].world.servers[read.server];
        if server.up && server.life == read.life {
            self.show(&read);
        }
    }

    fn show(&mut self, read: &PendingRead) {
        let state = self.regions[AUTHORITATIVE].world.servers[read.server].published.clone();
        let answer = shown(&state, &read.path).map(|body| {
            let body = Bytes::from(body);
            Answer { index: changed(&state, &read.path).0, body }
        });
        let gone = || Failure::Gone(format!("{} is not there", read.path));
        self.answer(read.by, read.turn, answer.ok_or_else(gone));
    }

    fn answer(&mut self, by: TaskId, turn: u64, answer: Result<Answer, Failure>) {
        self.post(AUTHORITATIVE, by.region, Letter::HasRead { by, turn, answer });
    }
}

/// How new what the path shows is.
fn changed(state: &State, path: &str) -> Index {
    match List::ALL.into_iter().find(|list| list.path() == path) {
        Some(list) => list.changed(state),
        None => federation::logins_changed(state),
    }
}

/// What is at the path, for who manages.
fn shown(state: &State, path: &str) -> Option<Vec<u8>> {
    let acl = &state.acl;
    if let Some(list) = List::ALL.into_iter().find(|list| list.path() == path) {
        return Some(listed(state, list));
    }
    match path.rsplit_once('/')? {
        ("/v1/acl/token", "self") => {
            Some(written(&ACLToken { kind: ACLToken::MANAGEMENT.to_string(), ..ACLToken::default() }))
        }
        ("/v1/acl/policy", name) => state::acl::policy(acl, name).map(|policy| written(&policy)),
        ("/v1/acl/token", accessor) => {
            let accessor: Uuid = accessor.parse().ok()?;
            let secret = acl.token(accessor)?.secret.sealed.bytes.clone();
            let secret_id = String::from_utf8(secret).ok()?;
            state::acl::token(acl, accessor).map(|token| written(&ACLToken { secret_id, ..token }))
        }
        ("/v1/acl/auth-method", name) => state::acl::auth_method(acl, name).map(|method| written(&method)),
        ("/v1/acl/binding-rule", id) => state::acl::binding_rule(acl, id).map(|rule| written(&rule)),
        ("/v1/acl", "auth-methods") => {
            let names = acl.methods.names().into_iter();
            let methods = names.filter_map(|name| state::acl::auth_method(acl, name));
            Some(written(&methods.map(ACLAuthMethodListStub::from).collect::<Vec<_>>()))
        }
        ("/v1/acl", "binding-rules") => {
            let ids = acl.rules.names().into_iter();
            let rules = ids.filter_map(|id| state::acl::binding_rule(acl, id));
            Some(written(&rules.map(ACLBindingRuleListStub::from).collect::<Vec<_>>()))
        }
        _ => None,
    }
}

fn listed(state: &State, list: List) -> Vec<u8> {
    let acl = &state.acl;
    match list {
        List::Policies => {
            let names = acl.policies.names().into_iter();
            let policies = names.filter_map(|name| state::acl::policy(acl, name));
            written(&policies.map(ACLPolicyListStub::from).collect::<Vec<_>>())
        }
        List::Roles => {
            let ids = acl.roles.names().into_iter().filter_map(|id| id.parse().ok());
            written(&ids.filter_map(|id| state::acl::role(acl, id)).collect::<Vec<_>>())
        }
        List::Tokens => {
            let tokens = acl.tokens().filter_map(|(accessor, _)| state::acl::token(acl, accessor));
            written(&tokens.map(ACLTokenListStub::from).collect::<Vec<_>>())
        }
        List::Namespaces => {
            let names = state.namespaces.names().into_iter();
            let all = names.filter_map(|name| state::namespace::document(&state.namespaces, name));
            written(&all.collect::<Vec<_>>())
        }
        List::Pools => {
            let names = state.pools.names().into_iter();
            let all = names.filter_map(|name| state::pool::document(&state.pools, name));
            written(&all.collect::<Vec<_>>())
        }
    }
}

fn written(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("documents can be written as JSON")
}
