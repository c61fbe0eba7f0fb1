//! Founds a cluster, if it is for this server to do so.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::forming::{Candidate, Forming, PROMISE};
use super::{Inner, PeerInfo, PeerQuery};

/// Longest time the others may take to agree. Then their word holds for long enough to found.
const AGREE_PATIENCE: Duration = Duration::from_secs(5);

/// Until this server has a log: founded here, or sent by the leader that added it.
pub(super) async fn found(inner: Arc<Inner>) {
    let mut logged = None;
    loop {
        if inner.consensus.status().has_log {
            announce_log(&inner).await;
            return;
        }
        let forming = inner.forming();
        if logged.as_ref() != Some(&forming) {
            log_state(&forming);
            logged = Some(forming.clone());
        }
        if let Forming::Founds(members) = forming {
            found_with(&inner, &members).await;
        }
        tokio::time::sleep(inner.settings.timings.discovery).await;
    }
}

/// A server that knows of a log does not found another one.
async fn announce_log(inner: &Inner) {
    if let Some(gossip) = &inner.gossip
        && gossip.announce_log().await.is_err()
    {
        tracing::debug!("gossip has ended before it could announce the log");
    }
}

async fn found_with(inner: &Inner, members: &[Candidate]) {
    let began = inner.now();
    let own = inner.settings.own.number;
    if !inner.agree(own) {
        return;
    }
    let others: Vec<&Candidate> = members.iter().filter(|member| member.number != own).collect();
    let asker = inner.introduction(&inner.own());
    let ask = |member: &Candidate| {
        let query = PeerQuery { asker: Some(asker.clone()), founder: own, history: false };
        tokio::time::timeout(AGREE_PATIENCE, inner.peers.query(member.address.clone(), query))
    };
    let answers = join_all(others.iter().map(|member| ask(member))).await;
    for (member, answer) in others.iter().zip(answers) {
        let answer = match answer {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("it takes too long to answer".to_string()),
        };
        if let Err(why) = agreed(member, answer) {
            tracing::info!(server = member.name, why, "the cluster is not founded yet");
            return;
        }
    }
    // A process may be paused for any time: promises that were given long ago have expired.
    if inner.now().saturating_sub(began) > PROMISE / 2 {
        return;
    }
    let all = members.iter().map(|member| raft::Member {
        node: member.number,
        address: member.address.clone(),
        voter: true,
    });
    match inner.consensus.bootstrap(all.collect()).await {
        Ok(()) => {
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            tracing::info!(servers = names.join(", "), "the cluster is founded");
        }
        Err(error) => tracing::error!(%error, "the cluster cannot be founded"),
    }
}

/// Whether this is the server that was meant, and it agrees.
fn agreed(member: &Candidate, answer: Result<PeerInfo, String>) -> Result<(), String> {
    let answer = answer?;
    if answer.id != member.id.to_string() || answer.number != member.number {
        return Err(format!("at its address {} answers \"{}\"", member.address, answer.name));
    }
    if answer.has_log {
        return Err("it belongs to a cluster already".to_string());
    }
    if answer.agrees { Ok(()) } else { Err("it does not see the same servers yet".to_string()) }
}

fn log_state(forming: &Forming) {
    match forming {
        Forming::Joins => tracing::info!("bootstrap_expect is not set: waiting to be added to a cluster"),
        Forming::Founded(by) => {
            tracing::info!(by, "there is a cluster already: waiting to be added to it");
        }
        Forming::Unequal(servers) => {
            let said = servers.iter().map(|(name, expect)| format!("{name} says {expect}"));
            let said = said.collect::<Vec<_>>().join(", ");
            tracing::error!(said, "no cluster is founded: the servers differ in bootstrap_expect");
        }
        Forming::Waits { here, expect } => {
            tracing::info!(here, expect, "waiting for more servers before a cluster is founded");
        }
        Forming::Follows(founder) => tracing::info!(founder, "all are there: another server founds"),
        Forming::Founds(members) => tracing::info!(servers = members.len(), "all are there: founding"),
    }
}
