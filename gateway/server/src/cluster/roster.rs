//! All servers that this one knows, from gossip or from their answers.

use std::time::Duration;

use base::Uuid;

use super::forming::{Candidate, Forming, forming};
use super::{Inner, PeerInfo, PeerQuery};
use crate::autopilot::ServerInfo;
use crate::gossip::Standing;
use crate::release::Release;

/// Most servers known by what they answered. More are not remembered: a list has a handful.
pub(super) const ANSWERED_MAX: usize = 64;

/// Rounds in which a server on the list may be silent before it counts as failed.
const SILENT_ROUNDS: u32 = 5;

/// A server that was asked, or asked, without gossip.
pub(super) struct ContactedServer {
    pub answer: PeerInfo,
    /// In time since this server began.
    pub first: Duration,
    pub last: Duration,
}

/// A server of this region.
#[derive(Clone, Debug)]
pub(super) struct RegionServer {
    pub id: Uuid,
    pub candidate: Candidate,
    pub datacenter: String,
    /// As [`Release::parse`] reads it.
    pub version: String,
    pub standing: Standing,
    pub for_how_long: Duration,
}

impl RegionServer {
    pub(super) fn release(&self) -> Release<'_> {
        Release::parse(&self.version)
    }

    pub(super) fn server(&self) -> ServerInfo {
        ServerInfo {
            number: self.candidate.number,
            name: self.candidate.name.clone(),
            address: self.candidate.address.clone(),
            standing: self.standing,
            for_how_long: as_span(self.for_how_long),
        }
    }
}

impl Inner {
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// How this server describes itself now.
    pub(super) fn own(&self) -> Candidate {
        let own = &self.settings.own;
        Candidate {
            number: own.number,
            id: own.id,
            name: own.name.clone(),
            address: own.rpc.clone(),
            expect: own.bootstrap_expect,
            has_log: self.consensus.status().has_log,
        }
    }

    /// The other servers of this region. What gossip knows of one takes precedence over what it answered itself.
    pub(super) fn others(&self) -> Vec<RegionServer> {
        let (own, now) = (&self.settings.own, self.now());
        let mut known: Vec<RegionServer> = Vec::new();
        if let Some(gossip) = &self.gossip {
            let running = gossip.running_for();
            let others = gossip.sightings();
            let others = others.iter().filter(|seen| seen.member.region == own.region);
            known.extend(others.filter(|seen| seen.member.id != own.id).map(|seen| RegionServer {
                id: seen.member.id,
                candidate: Candidate {
                    number: seen.member.number,
                    id: seen.member.id,
                    name: seen.member.name.clone(),
                    address: seen.member.rpc.clone(),
                    expect: seen.member.bootstrap_expect,
                    has_log: seen.member.has_log,
                },
                datacenter: seen.member.datacenter.clone(),
                version: seen.member.version.clone(),
                standing: seen.standing,
                for_how_long: running.saturating_sub(seen.since),
            }));
        }
        let silent = self.settings.timings.discovery * SILENT_ROUNDS;
        for (id, answered) in self.answered.lock().iter() {
            if known.iter().any(|known| known.id == *id) {
                continue;
            }
            let is_live = now.saturating_sub(answered.last) <= silent;
            let since = if is_live { answered.first } else { answered.last };
            known.push(RegionServer {
                id: *id,
                candidate: answered.answer.candidate(*id),
                datacenter: answered.answer.datacenter.clone(),
                version: answered.answer.version.clone(),
                standing: if is_live { Standing::Alive } else { Standing::Failed },
                for_how_long: now.saturating_sub(since),
            });
        }
        known
    }

    /// Where the servers of another region are reached that are alive, in the order in which this one asks: another order for
    /// each server here, so that they share the servers there.
    pub(super) fn servers_of(&self, region: &str) -> Vec<String> {
        let Some(gossip) = &self.gossip else { return Vec::new() };
        let (own, sightings) = (self.settings.own.id.as_u128(), gossip.sightings());
        let live = sightings.iter().filter(|seen| seen.member.region == region && seen.standing.is_live());
        let mut servers: Vec<_> =
            live.map(|seen| (seen.member.id.as_u128() ^ own, seen.member.rpc.clone())).collect();
        servers.sort();
        servers.into_iter().map(|(_, address)| address).collect()
    }

    /// What this server would do about founding.
    pub(super) fn forming(&self) -> Forming {
        let live = self.others().into_iter().filter(|known| known.standing == Standing::Alive);
        forming(&self.own(), &live.map(|known| known.candidate).collect::<Vec<_>>())
    }

    pub(super) fn answer(&self, query: &PeerQuery) -> PeerInfo {
        if let Some(asker) = &query.asker {
            self.remember(asker);
        }
        let own = self.own();
        let agrees = query.founder != 0 && !own.has_log && self.agree(query.founder);
        PeerInfo { agrees, ..self.introduction(&own) }
    }

    /// Gives this server's word to a founder, if it is the right one.
    pub(super) fn agree(&self, founder: u64) -> bool {
        let right = match self.forming() {
            Forming::Founds(_) => Some(self.settings.own.number),
            Forming::Follows(founder) => Some(founder),
            Forming::Joins | Forming::Founded(_) | Forming::Unequal(_) | Forming::Waits { .. } => None,
        };
        self.promise.lock().agree(founder, right, self.now())
    }

    pub(super) fn introduction(&self, own: &Candidate) -> PeerInfo {
        let member = &self.settings.own;
        PeerInfo {
            id: member.id.to_string(),
            number: own.number,
            name: own.name.clone(),
            region: member.region.clone(),
            datacenter: member.datacenter.clone(),
            address: own.address.clone(),
            http: member.http.clone(),
            version: member.version.clone(),
            expect: own.expect,
            has_log: own.has_log,
            agrees: false,
            oldest: 0,
        }
    }

    /// Remembers a server that answered or asked. Those of other regions and this one itself are ignored.
    pub(super) fn remember(&self, answer: &PeerInfo) {
        let Ok(id) = answer.id.parse::<Uuid>() else { return };
        if answer.region != self.settings.own.region || id == self.settings.own.id {
            return;
        }
        let now = self.now();
        let silent = self.settings.timings.discovery * SILENT_ROUNDS;
        let mut answered = self.answered.lock();
        if answered.len() >= ANSWERED_MAX && !answered.contains_key(&id) {
            return;
        }
        let first = answered.get(&id).filter(|known| now.saturating_sub(known.last) <= silent);
        let first = first.map_or(now, |known| known.first);
        answered.insert(id, ContactedServer { answer: answer.clone(), first, last: now });
    }
}

impl PeerInfo {
    fn candidate(&self, id: Uuid) -> Candidate {
        Candidate {
            number: self.number,
            id,
            name: self.name.clone(),
            address: self.address.clone(),
            expect: self.expect,
            has_log: self.has_log,
        }
    }
}

pub(super) fn as_span(span: Duration) -> base::Duration {
    base::Duration(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}
