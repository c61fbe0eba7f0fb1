//! Who takes part changes: on purpose, and because a server has lost its log.
//!
//! A server without its log has forgotten what it promised, so it comes back under a number that nobody has voted
//! with. Until that one has the vote of the old one, no other server may lose anything: what a majority had could be gone.

use std::rc::Rc;
use std::time::Duration as Span;

use base::{Index, Rng};
use raft::{Member, MemberError};
use tokio::time::sleep;

use super::server::address;
use super::world::World;
use crate::planted::Bug;

/// How long a new server may take to catch up before it is asked again.
const CATCH_UP: Span = Span::from_secs(10);

/// Between two attempts of whoever changes the members.
const PAUSE: Span = Span::from_millis(500);

/// How long a server is no member, at most, in milliseconds.
const OUT_MAX: u64 = 5_000;

impl World {
    /// Takes the right to damage one server, until [`World::exchange`] has mended that. Before a majority knows of the
    /// cluster, there is none.
    pub fn may_damage(&self) -> bool {
        let founded = self.scene.borrow().head() > Index::ZERO;
        founded && self.servers.len() > 1 && !self.changing.replace(true)
    }

    /// A server whose log is gone comes back with an empty one.
    pub fn begin_anew(self: &Rc<Self>, place: usize) {
        let server = &self.servers[place];
        let (old, seed) = (server.number.get(), self.next_seed());
        let same = matches!(self.bug, Some(Bug::SameNumber | Bug::FoundsAgain));
        let new = if same { old } else { self.next_number() };
        server.lose_disk(new, seed);
        self.tell(format_args!("server {place} begins anew as number {new}"));
        tokio::task::spawn_local(self.clone().exchange(place, old, new));
    }

    async fn exchange(self: Rc<Self>, place: usize, old: u64, new: u64) {
        if old != new {
            self.until_member(new).await;
            self.until_removed(old).await;
            self.tell(format_args!("number {new} has taken the place of number {old}"));
        } else if self.bug == Some(Bug::FoundsAgain) {
            let (journal, gone) = loop {
                match self.servers[place].journal() {
                    Some(found) => break found,
                    None => sleep(PAUSE).await,
                }
            };
            let members = self.members();
            gone.unless(async move { journal.bootstrap(&members).await }).await;
        }
        self.changing.set(false);
    }

    /// Somebody takes a server out, and a while later in again: as it is, or with nothing and under another number.
    pub async fn change_members(self: &Rc<Self>, place: usize, rng: &mut Rng) {
        if !self.may_damage() {
            return;
        }
        let server = &self.servers[place];
        let number = server.number.get();
        let removed = self.remove(number).await;
        self.tell(format_args!("server {place} was to be removed: {removed:?}"));
        sleep(Span::from_millis(rng.below(OUT_MAX))).await;
        if removed == Some(Ok(())) && rng.below(2) == 0 {
            server.lose_disk(self.next_number(), self.next_seed());
        }
        self.until_member(server.number.get()).await;
        self.tell(format_args!("server {place} is a member again, as number {}", server.number.get()));
        self.changing.set(false);
    }

    /// Whoever leads meanwhile, and however often it takes.
    async fn until_member(&self, number: u64) {
        let member = Member { node: number, address: address(number), voter: true };
        loop {
            sleep(PAUSE).await;
            let Some((journal, gone)) = self.leading() else { continue };
            let member = member.clone();
            let added = gone.unless(async move { journal.add(member, CATCH_UP).await }).await;
            if added == Some(Ok(())) {
                return;
            }
        }
    }

    async fn until_removed(&self, number: u64) {
        loop {
            sleep(PAUSE).await;
            if let Some(Ok(()) | Err(MemberError::Unknown(_))) = self.remove(number).await {
                return;
            }
        }
    }

    /// `None` if nobody leads, or the leader dies over it.
    async fn remove(&self, number: u64) -> Option<Result<(), MemberError>> {
        let (journal, gone) = self.leading()?;
        gone.unless(async move { journal.remove(number).await }).await
    }

    /// All servers as members.
    pub fn members(&self) -> Vec<Member> {
        let numbers = self.servers.iter().map(|server| server.number.get());
        numbers.map(|node| Member { node, address: address(node), voter: true }).collect()
    }
}
