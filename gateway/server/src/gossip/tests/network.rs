//! Pools on a network in memory, in time that only passes when nothing else happens.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::super::pool::{Greeted, Pool, Standing, Timings};
use super::super::{Key, KeyOperation, KeyReport, Keyring, Member, Notice, SaveKeys};

pub(super) fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 4648))
}

/// As in earnest, but for a shorter memory: virtual days take minutes.
fn timings() -> Timings {
    Timings { forget: FORGET, ..Timings::default() }
}

pub(super) const FORGET: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Network {
    pub pools: BTreeMap<SocketAddr, Pool>,
    pub now: Duration,
    /// Every packet that was sent, with its recipient.
    pub sent: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    pub notices: Vec<(SocketAddr, Notice)>,
    pub greeted: Vec<(SocketAddr, Greeted)>,
    pub started: u64,
    /// What each server stored of its keys, or why it cannot store any.
    pub saved: Arc<Mutex<BTreeMap<SocketAddr, Result<Keyring, String>>>>,
    /// Nothing passes between these.
    pub cut: Vec<(SocketAddr, SocketAddr)>,
}

impl Network {
    /// Starts a server, or starts it again.
    pub(super) fn start(&mut self, own: Member, key: Option<Key>) {
        // Two processes never have the same one: chance is drawn anew at each start.
        self.started += 1;
        let seed = self.started;
        let (at, saved) = (own.serf, self.saved.clone());
        let save: SaveKeys = Box::new(move |keys| {
            match saved.lock().entry(at).or_insert_with(|| Ok(Keyring::default())) {
                Ok(stored) => *stored = keys.clone(),
                Err(why) => return Err(why.clone()),
            }
            Ok(())
        });
        self.pools.insert(at, Pool::new(own, key.into(), save, timings(), seed));
    }

    pub(super) fn kill(&mut self, n: u8) -> Pool {
        self.pools.remove(&address(n)).unwrap()
    }

    pub(super) fn pool(&mut self, n: u8) -> &mut Pool {
        self.pools.get_mut(&address(n)).unwrap()
    }

    pub(super) fn greet(&mut self, from: u8, to: u8) {
        self.pool(from).greet(address(to), 1);
        self.deliver();
    }

    /// Delivers a packet to the server that listens there.
    pub(super) fn inject(&mut self, from: SocketAddr, to: SocketAddr, packet: &[u8]) {
        let now = self.now;
        if let Some(pool) = self.pools.get_mut(&to) {
            pool.receive(now, from, packet);
        }
        self.deliver();
    }

    /// Delivers until nothing is under way.
    pub(super) fn deliver(&mut self) {
        loop {
            let now = self.now;
            let mut under_way = Vec::new();
            for (from, pool) in &mut self.pools {
                while let Some((to, packet)) = pool.outgoing() {
                    under_way.push((*from, to, packet));
                }
                self.notices.extend(pool.notices().into_iter().map(|notice| (*from, notice)));
                self.greeted.extend(pool.greeted().into_iter().map(|(_, greeted)| (*from, greeted)));
            }
            if under_way.is_empty() {
                return;
            }
            for (from, to, packet) in under_way {
                let cut = self.cut.contains(&(from, to)) || self.cut.contains(&(to, from));
                if let Some(pool) = self.pools.get_mut(&to).filter(|_| !cut) {
                    pool.receive(now, from, &packet);
                }
                self.sent.push((from, to, packet));
            }
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        self.deliver();
        while let Some(next) = self.pools.values().map(Pool::next).min().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            for pool in self.pools.values_mut() {
                pool.pass(self.now);
            }
            self.deliver();
        }
        self.now = until;
    }

    /// Has all servers do something with their keys, and waits for what becomes of it.
    pub(super) fn change_keys(&mut self, n: u8, operation: KeyOperation) -> Result<KeyReport, String> {
        self.pool(n).change_keys(5, operation);
        for _ in 0..15 {
            self.deliver();
            if let Some((number, report)) = self.pool(n).key_reports().pop() {
                assert_eq!(number, 5);
                return report;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("an operation on keys ends in time");
    }

    /// The servers as `n` sees them: `s1 alive, s2 failed`.
    pub(super) fn seen_by(&mut self, n: u8) -> String {
        let seen = self.pool(n).sightings().map(|seen| {
            let word: Standing = seen.standing;
            format!("{} {}", seen.member.name, word.word())
        });
        seen.collect::<Vec<_>>().join(", ")
    }

    #[track_caller]
    pub(super) fn all_see(&mut self, expected: &str) {
        let numbers: Vec<u8> = self.pools.keys().map(|address| ip(*address)).collect();
        for n in numbers {
            assert_eq!(self.seen_by(n), expected, "as s{n} sees it");
        }
    }

    pub(super) fn said(&self, by: u8) -> Vec<String> {
        let by = self.notices.iter().filter(|(who, _)| *who == address(by));
        by.map(|(_, notice)| notice.to_string()).collect()
    }
}

fn ip(address: SocketAddr) -> u8 {
    match address.ip() {
        std::net::IpAddr::V4(ip) => ip.octets()[3],
        std::net::IpAddr::V6(_) => unreachable!("the network has version 4"),
    }
}
