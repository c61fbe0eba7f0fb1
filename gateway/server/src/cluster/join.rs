//! Looking for servers: by the addresses that were configured, until one is found, and again whenever this server
//! is alone.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::lookup_host;

use super::{Inner, PeerQuery};
use crate::gossip::{Gossip, JoinError, Sightings, Standing};

/// Addresses tried for one name: a name may stand for every server.
const ADDRESSES_MAX: usize = 16;

/// How long a server that was joined may take to appear in the list of servers.
const LISTED_PATIENCE: Duration = Duration::from_secs(2);

/// Longest time one server on the static list may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Where to look for servers. Each is `HOST` or `HOST:PORT` of their gossip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joins {
    /// Tried once; the server does not start if none of them can be joined.
    pub start: Vec<String>,
    /// Tried until one is joined.
    pub retry: Vec<String>,
    pub retry_interval: Duration,
    /// Rounds before it is given up; 0 means never.
    pub retry_max: u32,
    /// Taken where an address names none.
    pub port: u16,
}

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("\"{0}\" is no HOST or HOST:PORT")]
    Form(String),
    #[error("\"{name}\" cannot be resolved")]
    Unknown { name: String, source: std::io::Error },
}

/// The addresses behind `HOST`, `HOST:PORT`, an IPv6 address, or `[IPv6]:PORT`, as they are now.
///
/// # Errors
/// [`AddressError`].
pub async fn resolve(address: &str, port: u16) -> Result<Vec<SocketAddr>, AddressError> {
    if let Ok(ip) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let form = || AddressError::Form(address.to_string());
    let (host, port) = match address.rsplit_once(':') {
        None => (address, port),
        Some((host, port)) => (host, port.parse().map_err(|_| form())?),
    };
    if host.is_empty() || host.contains([' ', '/', '=']) {
        return Err(form());
    }
    let unknown = |source| AddressError::Unknown { name: address.to_string(), source };
    let found = lookup_host((host.trim_matches(['[', ']']), port)).await.map_err(unknown)?;
    Ok(found.take(ADDRESSES_MAX).collect())
}

/// Joins every address that can be reached: how many servers, and why not the others.
pub(super) async fn join_all(gossip: &Gossip, addresses: &[String], port: u16) -> (u64, Vec<String>) {
    let (mut joined, mut failures) = (0, Vec::new());
    for address in addresses {
        let found = match resolve(address, port).await {
            Ok(found) => found,
            Err(error) => {
                failures.push(error.to_string());
                continue;
            }
        };
        for at in found {
            match gossip.join(at).await {
                Ok(member) => {
                    joined += 1;
                    // Who asks for the servers next finds it among them.
                    let is_listed = |seen: &Sightings| seen.iter().any(|seen| seen.member.id == member.id);
                    let mut news = gossip.watch();
                    if tokio::time::timeout(LISTED_PATIENCE, news.wait_for(is_listed)).await.is_err() {
                        tracing::debug!(server = %member.id, "a server that was joined is not listed yet");
                    }
                }
                // A list of all servers also names this one.
                Err(JoinError::Ourselves(_)) => {}
                Err(error) => failures.push(error.to_string()),
            }
        }
    }
    (joined, failures)
}

/// Follows `start_join` and `retry_join`.
pub(super) async fn look_for_servers(inner: Arc<Inner>) {
    let Some(gossip) = inner.gossip.clone() else { return };
    let joins = &inner.settings.joins;
    if !joins.start.is_empty() {
        let (joined, failures) = join_all(&gossip, &joins.start, joins.port).await;
        if joined == 0 {
            let why = format!("start_join: no server could be joined: {}", failures.join("; "));
            inner.given_up.send_replace(Some(why));
            return;
        }
        tracing::info!(joined, "servers joined");
    }
    if joins.retry.is_empty() {
        return;
    }
    let (mut rounds, mut found_once) = (0, false);
    loop {
        // With one live server known, all others become known through it.
        if is_alone(&inner, &gossip) {
            let (joined, failures) = join_all(&gossip, &joins.retry, joins.port).await;
            rounds += 1;
            if joined > 0 {
                (rounds, found_once) = (0, true);
                tracing::info!(joined, "servers joined");
            } else if !found_once && joins.retry_max > 0 && rounds >= joins.retry_max {
                let why = format!("retry_join: no server could be joined in {rounds} rounds");
                inner.given_up.send_replace(Some(format!("{why}: {}", failures.join("; "))));
                return;
            } else if !failures.is_empty() {
                tracing::warn!(why = failures.join("; "), "no server joined yet: trying again");
            }
        }
        tokio::time::sleep(joins.retry_interval).await;
    }
}

fn is_alone(inner: &Inner, gossip: &Gossip) -> bool {
    let own = inner.settings.own.id;
    let others = gossip.sightings();
    !others.iter().any(|seen| seen.member.id != own && seen.standing == Standing::Alive)
}

/// Asks every server on the static list who it is, over and over.
pub(super) async fn ask_the_list(inner: Arc<Inner>) {
    if inner.settings.peers.is_empty() {
        return;
    }
    loop {
        let introduction = inner.introduction(&inner.own());
        let asks = inner.settings.peers.iter().map(|address| {
            let query = PeerQuery { asker: Some(introduction.clone()), ..PeerQuery::default() };
            tokio::time::timeout(ANSWER_PATIENCE, inner.peers.query(address.clone(), query))
        });
        for (address, answer) in inner.settings.peers.iter().zip(futures_util::future::join_all(asks).await) {
            match answer {
                Ok(Ok(answer)) => inner.remember(&answer),
                Ok(Err(error)) => tracing::debug!(address, %error, "a server on the list does not answer"),
                Err(_) => tracing::debug!(address, "a server on the list takes too long"),
            }
        }
        tokio::time::sleep(inner.settings.timings.discovery).await;
    }
}
