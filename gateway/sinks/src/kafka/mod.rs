//! A record of Kafka for each event: the little of its protocol that a producer needs which waits for each batch of them.
//!
//! Every connection is opened here, those to brokers that only the cluster names too, so that the rules for addresses hold
//! for all of them. The requests are the oldest that brokers of all releases since 1.0 answer, 4.0 included.

mod link;
mod record;
mod sasl;
mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use delivery::AddressRules;
use keyring::Items;
use tokio::time::Instant;

use crate::target::{Outgoing, Undelivered};
use link::{Door, Link};
use wire::{Partition, Refusal};

/// Partitions are counted again after so long: records go to new ones too.
const KNOWN_FOR: Duration = Duration::from_secs(300);
/// Most connections that are kept: one for each broker that leads a partition.
const LINKS_MAX: usize = 64;

pub(crate) struct Kafka {
    /// Brokers that are asked where the others are.
    addresses: Vec<String>,
    topic: String,
    tls: bool,
    /// How long brokers may wait for each other.
    timeout: Duration,
    rules: AddressRules,
    /// What the connections were opened with: they are given up when it changes.
    secret: Items,
    cluster: Option<Cluster>,
    /// By the number of the broker.
    links: BTreeMap<i32, Link>,
}

/// Where the topic is.
struct Cluster {
    brokers: BTreeMap<i32, String>,
    /// In the order of their numbers.
    partitions: Vec<Partition>,
    learned: Instant,
}

impl Kafka {
    pub(crate) fn new(
        addresses: &str,
        topic: &str,
        tls: bool,
        timeout: Duration,
        rules: &AddressRules,
    ) -> Kafka {
        Kafka {
            addresses: addresses.split(',').map(str::to_string).collect(),
            topic: topic.to_string(),
            tls,
            timeout,
            rules: rules.clone(),
            secret: Items::new(),
            cluster: None,
            links: BTreeMap::new(),
        }
    }

    pub(crate) fn disconnect(&mut self) {
        self.cluster = None;
        self.links.clear();
    }

    /// An event has arrived, and is taken out, when all replicas have it that the topic asks for (`acks=all`).
    pub(crate) async fn deliver(
        &mut self,
        waiting: &mut Vec<Outgoing>,
        secret: &Items,
    ) -> Result<(), Undelivered> {
        if self.secret != *secret {
            self.disconnect();
            self.secret = secret.clone();
        }
        let delivered = self.produce(waiting).await;
        // Another broker may lead by now, and what still comes over a connection may belong to what failed.
        if delivered.is_err() {
            self.disconnect();
        }
        delivered
    }

    /// One partition after the other: each takes its events whole or not at all, in their order.
    async fn produce(&mut self, waiting: &mut Vec<Outgoing>) -> Result<(), Undelivered> {
        let mut keys: Vec<String> = waiting.iter().map(record::key).collect();
        while !waiting.is_empty() {
            let places = self.places(&keys).await.map_err(Undelivered::Later)?;
            let first = places[0];
            let records = waiting.iter().zip(&keys).zip(&places).filter(|(_, place)| **place == first);
            let batch = record::batch(records.map(|(record, _)| record))?;
            self.append(first, &batch).await?;
            let mut at = places.iter();
            waiting.retain(|_| at.next() != Some(&first));
            let mut at = places.iter();
            keys.retain(|_| at.next() != Some(&first));
        }
        Ok(())
    }

    /// To the partition with this place in the topic's list.
    async fn append(&mut self, place: usize, batch: &[u8]) -> Result<(), Undelivered> {
        let (partition, leader) = self.leader_of(place).map_err(Undelivered::Later)?;
        let mut link = self.link_to(leader).await.map_err(Undelivered::Later)?;
        let request = wire::produce(&self.topic, partition, self.timeout, batch);
        let answer = link.call(wire::PRODUCE, &request).await.map_err(Undelivered::Later)?;
        let code = wire::produced(&answer, &self.topic, partition).map_err(Undelivered::Later)?;
        self.links.insert(leader, link);
        match wire::refusal(code) {
            None => Ok(()),
            Some(Refusal::Later(why)) => Err(Undelivered::Later(format!("{}: {why}", self.topic))),
            Some(Refusal::Never(why)) => Err(Undelivered::Rejected(format!("{}: {why}", self.topic))),
        }
    }

    /// For each key the place of its partition in the list.
    async fn places(&mut self, keys: &[String]) -> Result<Vec<usize>, String> {
        let known = self.cluster.take().filter(|cluster| cluster.learned.elapsed() < KNOWN_FOR);
        let cluster = match known {
            Some(cluster) => cluster,
            None => self.learn().await?,
        };
        let count = cluster.partitions.len();
        self.cluster = Some(cluster);
        Ok(keys.iter().map(|key| record::partition(key, count)).collect())
    }

    /// The number of the partition, and the broker that leads it.
    fn leader_of(&self, place: usize) -> Result<(i32, i32), String> {
        let partition = self.cluster.as_ref().and_then(|cluster| cluster.partitions.get(place));
        let Partition { number, leader, code } = *partition.ok_or("the topic has lost a partition")?;
        match wire::refusal(code) {
            None => Ok((number, leader)),
            Some(Refusal::Later(why) | Refusal::Never(why)) => {
                Err(format!("partition {number} of {}: {why}", self.topic))
            }
        }
    }

    /// Of the first broker that answers.
    async fn learn(&self) -> Result<Cluster, String> {
        let mut reasons = Vec::new();
        for address in &self.addresses {
            match self.learn_from(address).await {
                Ok(cluster) => return Ok(cluster),
                Err(why) => reasons.push(why),
            }
        }
        Err(reasons.join("; "))
    }

    async fn learn_from(&self, address: &str) -> Result<Cluster, String> {
        let mut link = self.open(address).await?;
        let answer = link.call(wire::METADATA, &wire::metadata(&self.topic)).await?;
        let wire::Metadata { brokers, code, partitions } = wire::described(&answer, &self.topic)?;
        if let Some(Refusal::Later(why) | Refusal::Never(why)) = wire::refusal(code) {
            return Err(format!("{address}: {}: {why}", self.topic));
        }
        if partitions.is_empty() {
            return Err(format!("{address}: {} has no partitions", self.topic));
        }
        Ok(Cluster { brokers, partitions, learned: Instant::now() })
    }

    /// Taken out for a call, so that one that is given up half-way is not used again.
    async fn link_to(&mut self, broker: i32) -> Result<Link, String> {
        if let Some(mut link) = self.links.remove(&broker)
            && !link.is_closed()
        {
            return Ok(link);
        }
        if self.links.len() >= LINKS_MAX {
            self.links.pop_first();
        }
        let address = self.cluster.as_ref().and_then(|cluster| cluster.brokers.get(&broker));
        let address = address.ok_or_else(|| format!("no broker has the number {broker}"))?;
        self.open(address).await
    }

    async fn open(&self, address: &str) -> Result<Link, String> {
        let door = Door { tls: self.tls, rules: &self.rules, secret: &self.secret };
        Link::open(address, &door).await
    }
}

#[cfg(test)]
mod tests;
