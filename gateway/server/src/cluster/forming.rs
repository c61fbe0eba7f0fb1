//! When a cluster is founded, and by which server.
//!
//! The servers of a region that wait for the same number of servers have one founder: the one with the smallest
//! number in raft. It founds when all of them agree that it is the one. A server that agreed keeps its promise for a while, so two
//! servers that see different parts of the region cannot both be agreed on by a majority.

use std::time::Duration;

use base::Uuid;

/// How long a server keeps its promise to a founder. Longer than any founder takes from asking to founding.
pub(super) const PROMISE: Duration = Duration::from_secs(30);

/// A server of this region, as far as founding goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// In raft.
    pub number: u64,
    pub id: Uuid,
    pub name: String,
    /// Of its RPC.
    pub address: String,
    pub expect: u32,
    pub has_log: bool,
}

/// What a server without a log does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Forming {
    /// It never founds one: it waits until it is added.
    Joins,
    /// There is a cluster, and it will add this server. Known from the server of this name.
    Founded(String),
    /// Servers wait for different numbers of servers: no cluster is founded before that is corrected.
    Unequal(Vec<(String, u32)>),
    /// Not all are there.
    Waits { here: usize, expect: u32 },
    /// They are all there, and another one is the founder.
    Follows(u64),
    /// They are all there: this one founds with these, once they agree.
    Founds(Vec<Candidate>),
}

/// Looks at this server and at those of its region that live.
pub(super) fn forming(own: &Candidate, others: &[Candidate]) -> Forming {
    if let Some(founded) = others.iter().find(|other| other.has_log) {
        return Forming::Founded(founded.name.clone());
    }
    if own.expect == 0 {
        return Forming::Joins;
    }
    let mut all: Vec<Candidate> = others.iter().filter(|other| other.expect > 0).cloned().collect();
    all.retain(|other| other.id != own.id);
    all.push(own.clone());
    all.sort();
    if all.iter().any(|server| server.expect != own.expect) {
        return Forming::Unequal(all.into_iter().map(|server| (server.name, server.expect)).collect());
    }
    if all.len() < own.expect as usize {
        return Forming::Waits { here: all.len(), expect: own.expect };
    }
    match all[0].number {
        founder if founder == own.number => Forming::Founds(all),
        founder => Forming::Follows(founder),
    }
}

/// Which founder a server has agreed to, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FounderPromise(Option<(u64, Duration)>);

impl FounderPromise {
    /// Agrees to a founder, unless another one was agreed to lately. `founder` is who it should be, by what is seen
    /// here. True if it is agreed.
    pub(super) fn agree(&mut self, asked: u64, founder: Option<u64>, now: Duration) -> bool {
        let bound = self.0.filter(|(_, until)| now < *until);
        if founder != Some(asked) || bound.is_some_and(|(other, _)| other != asked) {
            return false;
        }
        self.0 = Some((asked, now + PROMISE));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u64, expect: u32) -> Candidate {
        let name = format!("s{number}");
        let address = format!("10.0.0.{number}:4647");
        Candidate { number, id: Uuid::from(u128::from(number)), name, address, expect, has_log: false }
    }

    /// `own/expect others/expect…`; a `+` after a number has a log.
    fn verdict(line: &str) -> String {
        let mut servers = line.split(' ').map(|word| {
            let (number, expect) = word.split_once('/').unwrap();
            let has_log = number.ends_with('+');
            let number = number.trim_end_matches('+').parse().unwrap();
            Candidate { has_log, ..server(number, expect.parse().unwrap()) }
        });
        let own = servers.next().unwrap();
        match forming(&own, &servers.collect::<Vec<_>>()) {
            Forming::Joins => "joins".to_string(),
            Forming::Founded(by) => format!("founded by {by}"),
            Forming::Unequal(servers) => format!("unequal {servers:?}"),
            Forming::Waits { here, expect } => format!("waits {here}/{expect}"),
            Forming::Follows(founder) => format!("follows {founder}"),
            Forming::Founds(all) => {
                format!("founds {:?}", all.iter().map(|server| server.number).collect::<Vec<_>>())
            }
        }
    }

    #[test]
    fn the_smallest_number_founds_when_all_are_there() {
        let cases = [
            ("1/1", "founds [1]"),
            ("1/3", "waits 1/3"),
            ("1/3 2/3", "waits 2/3"),
            ("1/3 2/3 3/3", "founds [1, 2, 3]"),
            ("2/3 1/3 3/3", "follows 1"),
            ("3/3 2/3 1/3", "follows 1"),
            ("1/3 2/3 3/3 4/3 5/3", "founds [1, 2, 3, 4, 5]"),
            ("1/3 2/3 3+/3", "founded by s3"),
            ("1/3 2/3 3+/0", "founded by s3"),
            ("1/1 2+/3", "founded by s2"),
            ("1/0 2/3 3/3 4/3", "joins"),
            ("2/3 1/0 3/3", "waits 2/3"),
            ("2/3 1/0 3/3 4/3", "founds [2, 3, 4]"),
            ("1/3 2/3 3/5", "unequal [(\"s1\", 3), (\"s2\", 3), (\"s3\", 5)]"),
            ("1/1 2/3", "unequal [(\"s1\", 1), (\"s2\", 3)]"),
            ("1/2 1/2", "waits 1/2"),
        ];
        for (line, expected) in cases {
            assert_eq!(verdict(line), expected, "{line}");
        }
    }

    #[test]
    fn a_promise_is_kept() {
        let (mut promise, at) = (FounderPromise::default(), Duration::from_secs);
        assert!(!promise.agree(2, Some(1), at(0)), "it sees a smaller one");
        assert!(!promise.agree(2, None, at(0)), "it is not all there");
        assert!(promise.agree(2, Some(2), at(0)));
        assert!(promise.agree(2, Some(2), at(10)), "again is no other");
        assert!(!promise.agree(1, Some(1), at(39)), "the second promise began at 10");
        assert!(promise.agree(1, Some(1), at(40)));
    }

    #[test]
    fn two_founders_that_see_different_parts_are_not_both_agreed_on() {
        // Four servers that wait for three, and every way in which each may miss others: a founder has the promise
        // of all it founds with, so two founders would have to share no server.
        let all: Vec<Candidate> = (1..=4).map(|n| server(n, 3)).collect();
        let mut founded_sometimes = false;
        for pattern in 0..(1_u32 << 12) {
            let sees = |who: usize, whom: usize| {
                let bit = who * 3 + if whom > who { whom - 1 } else { whom };
                who == whom || pattern & (1 << bit) != 0
            };
            let view = |who: usize| {
                let seen = (0..4).filter(|whom| *whom != who && sees(who, *whom));
                forming(&all[who], &seen.map(|whom| all[whom].clone()).collect::<Vec<_>>())
            };
            let mut words = [FounderPromise::default(); 4];
            let mut founders: Vec<Vec<u64>> = Vec::new();
            for who in [3, 2, 1, 0] {
                let Forming::Founds(members) = view(who) else { continue };
                let agrees = |member: &Candidate| {
                    let at = member.number as usize - 1;
                    let founder = match view(at) {
                        Forming::Founds(_) => Some(member.number),
                        Forming::Follows(founder) => Some(founder),
                        _ => None,
                    };
                    words[at].agree(who as u64 + 1, founder, Duration::ZERO)
                };
                if members.iter().map(agrees).collect::<Vec<_>>().iter().all(|agreed| *agreed) {
                    founders.push(members.iter().map(|member| member.number).collect());
                }
            }
            founded_sometimes |= founders.len() == 1;
            assert!(founders.len() <= 1, "pattern {pattern:b}: {founders:?}");
        }
        assert!(founded_sometimes);
    }
}
