//! A node is given up only after it was silent for as long as it was granted, by the clock of the leader that
//! granted it. See `scheduler/DESIGN.md`, time to live.

use std::collections::BTreeMap;

use base::{Duration, Time};
use model::NodeId;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct GrantsAreKept {
    granted: BTreeMap<(usize, NodeId), (Time, Duration)>,
}

impl Check for GrantsAreKept {
    fn sentence(&self) -> &'static str {
        "a node is given up only after the time to live that it was granted"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        match fact {
            Fact::Restarted { server } | Fact::CountsAnew { server, .. } => {
                self.granted.retain(|(other, _), _| other != server);
            }
            // No time passes by that: what was granted before counts as long as ever.
            Fact::ClockMoved { server, by } => {
                let own = self.granted.iter_mut().filter(|((other, _), _)| other == server);
                own.for_each(|(_, (since, _))| *since = since.plus(*by));
            }
            Fact::Heard { server, node, at, ttl } => {
                self.granted.insert((*server, *node), (*at, *ttl));
            }
            Fact::GivenUp { server, node, at } => {
                let granted = self.granted.get(&(*server, *node));
                if let Some((since, ttl)) = granted.filter(|(since, ttl)| *at < since.plus(*ttl)) {
                    let early = since.plus(*ttl).since(*at).as_millis();
                    return Err(format!("server {server} gave {node} up {early} ms early"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
