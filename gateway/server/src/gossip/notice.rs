//! Warnings of gossip for operators: at most one line a minute about the same thing.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::seal::SealError;

/// How long the same notice about the same host is not repeated.
const QUIET: Duration = Duration::from_secs(60);

/// Notices remembered as logged. When full, nothing new is logged until some are old enough to be forgotten.
const SAID_MAX: usize = 256;

/// Packets that were not taken, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sealed with another key, or changed on their way.
    pub unauthentic: u64,
    /// In the clear where there is a key, or sealed where there is none.
    pub mixed: u64,
    /// Received before, or too old to know.
    pub repeated: u64,
    /// From a process that was not accepted yet.
    pub unknown_sessions: u64,
    /// Greetings of servers that are rejected.
    pub refused: u64,
    /// Of no known form.
    pub malformed: u64,
    /// Made, and dropped because too many were on their way.
    pub unsent: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Unopened { from: SocketAddr, why: SealError },
    Refusing { from: SocketAddr, name: String, why: String },
    RefusedBy { from: SocketAddr, why: String },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Unopened { from, why } => match why {
                SealError::NotAuthentic => {
                    write!(f, "gossip from {from} is dropped: it is sealed with another key, or was changed")
                }
                SealError::NotSealed => {
                    write!(f, "gossip from {from} is dropped: it is not encrypted, and here there is a key")
                }
                SealError::Sealed => write!(
                    f,
                    "gossip from {from} is dropped: it is encrypted, and here there is no key: server.encrypt is not set"
                ),
                SealError::Version(version) => {
                    write!(f, "gossip from {from} is dropped: it has version {version}, and here it is 1")
                }
                SealError::Foreign => write!(f, "what {from} sends is no gossip"),
            },
            Notice::Refusing { from, name, why } => {
                write!(f, "the server \"{name}\" at {from} is refused: {why}")
            }
            Notice::RefusedBy { from, why } => {
                write!(f, "the servers at {from} refuse this one: {why}")
            }
        }
    }
}

/// Collects notices, and leaves out those that were logged recently.
#[derive(Default)]
pub(super) struct Notices {
    said: BTreeMap<(IpAddr, u8), Duration>,
    fresh: Vec<Notice>,
    /// The last thing SWIM did not like; for traces only.
    detail: Option<String>,
}

impl Notices {
    pub(super) fn add(&mut self, now: Duration, notice: Notice) {
        let about = match &notice {
            Notice::Unopened { from, .. } => (from.ip(), 0),
            Notice::Refusing { from, .. } => (from.ip(), 1),
            Notice::RefusedBy { from, .. } => (from.ip(), 2),
        };
        self.said.retain(|_, said| now.saturating_sub(*said) < QUIET);
        if !self.said.contains_key(&about) && self.said.len() < SAID_MAX {
            self.said.insert(about, now);
            self.fresh.push(notice);
        }
    }

    pub(super) fn detail(&mut self, detail: String) {
        self.detail = Some(detail);
    }

    pub(super) fn take(&mut self) -> Vec<Notice> {
        if let Some(detail) = self.detail.take() {
            tracing::debug!(detail, "gossip was not taken");
        }
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_said_once_a_minute() {
        let mut notices = Notices::default();
        let notice = |host: u8, why| Notice::Unopened { from: SocketAddr::from(([10, 0, 0, host], 1)), why };
        let at = Duration::from_secs;
        notices.add(at(0), notice(1, SealError::NotAuthentic));
        notices.add(at(1), notice(1, SealError::NotAuthentic));
        notices.add(at(2), notice(2, SealError::NotSealed));
        assert_eq!(notices.take().len(), 2);
        notices.add(at(59), notice(1, SealError::NotAuthentic));
        assert_eq!(notices.take(), []);
        notices.add(at(60), notice(1, SealError::NotAuthentic));
        let texts: Vec<String> = notices.take().iter().map(Notice::to_string).collect();
        assert_eq!(
            texts,
            ["gossip from 10.0.0.1:1 is dropped: it is sealed with another key, or was changed"]
        );
    }

    #[test]
    fn a_flood_from_everywhere_fills_no_memory() {
        let mut notices = Notices::default();
        for host in 0..10_000_u32 {
            let from = SocketAddr::from((std::net::Ipv4Addr::from(host), 1));
            notices.add(Duration::ZERO, Notice::Unopened { from, why: SealError::NotAuthentic });
        }
        assert_eq!(notices.take().len(), SAID_MAX);
    }
}
