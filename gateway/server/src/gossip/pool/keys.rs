//! The keys of this server, and what operators ask of those of all servers.

use std::net::SocketAddr;

use super::super::key_query::{KeyAnswer, KeyReport, KeyRequest, Next};
use super::super::keyring::{KeyOperation, Keyring};
use super::{KEY_ANSWER, KEY_REQUEST, Pool};

impl Pool {
    /// Has every live server do something with its keys. What becomes of it comes from [`Pool::key_reports`] under the
    /// same number, which is drawn at random.
    pub fn change_keys(&mut self, number: u64, operation: KeyOperation) {
        let begun = self.key_queries.begin(number, operation);
        if let Err(why) = begun.and_then(|()| self.key_round(number, &KeyOperation::List)) {
            self.end_key_query(number, Err(why));
        }
    }

    /// Operations on keys that have ended. An error means that no server changed anything.
    pub fn key_reports(&mut self) -> Vec<(u64, Result<KeyReport, String>)> {
        std::mem::take(&mut self.key_reports)
    }

    /// One round: this server first, then the others. Nobody is asked for what this server cannot do itself.
    fn key_round(&mut self, number: u64, operation: &KeyOperation) -> Result<(), String> {
        let keys = self.apply_to_keys(operation)?;
        let own = self.own().clone();
        let others = self.sightings.values().filter(|seen| seen.standing.is_live());
        let others = others.filter(|seen| seen.member.id != own.id).map(|seen| seen.member.clone());
        self.key_queries.ask(number, (&own, keys.keys()), others.collect(), self.now);
        self.send_key_requests(Some(number));
        self.end_key_rounds();
        Ok(())
    }

    /// Packets get lost: who has not answered is asked again.
    pub(super) fn ask_for_keys_again(&mut self) {
        self.send_key_requests(None);
        self.end_key_rounds();
    }

    fn send_key_requests(&mut self, number: Option<u64>) {
        for (member, request) in self.key_queries.requests(number) {
            self.send(member.serf, KEY_REQUEST, &request.encode());
        }
    }

    /// Goes on with what waits no longer.
    fn end_key_rounds(&mut self) {
        for (number, next) in self.key_queries.due(self.now) {
            match next {
                Next::End(report) => self.end_key_query(number, report),
                Next::Change(operation) => {
                    if let Err(why) = self.key_round(number, &operation) {
                        self.end_key_query(number, Err(why));
                    }
                }
            }
        }
    }

    fn end_key_query(&mut self, number: u64, report: Result<KeyReport, String>) {
        self.key_queries.end(number);
        self.key_reports.push((number, report));
    }

    pub(super) fn key_request(&mut self, from: SocketAddr, request: KeyRequest) {
        let reply = self.apply_to_keys(&request.operation).map(|keys| keys.keys().to_vec());
        let answer = KeyAnswer { number: request.number, from: self.own().id, reply };
        self.send(from, KEY_ANSWER, &answer.encode());
    }

    pub(super) fn key_answer(&mut self, answer: KeyAnswer) {
        self.key_queries.answered(answer);
        self.end_key_rounds();
    }

    /// The keys after an operation. They count once they are stored: a server that starts again must have them.
    fn apply_to_keys(&mut self, operation: &KeyOperation) -> Result<Keyring, String> {
        let keys = self.sealer.keyring().after(operation).map_err(|error| error.to_string())?;
        if keys != *self.sealer.keyring() {
            (self.save_keys)(&keys)?;
            self.sealer.replace_keys(keys.clone());
        }
        Ok(keys)
    }
}
