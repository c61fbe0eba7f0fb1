//! Failed attempts to prove who one is, by the address they come from: secrets are not to be guessed at the speed of the line.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use ipnet::IpNet;
use parking_lot::Mutex;
use state::node::secret_hash;

use super::resolve::is_unknown_token;
use super::{Access, Who};
use crate::app_state::AppState;
use crate::error::Failure;

/// Attempts of an address that may fail in one window. Programs with an old secret try again now and then; a guess needs
/// very many.
const FAILURES_MAX: u32 = 50;
/// From the first failed attempt on.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are counted. For one more, the one whose window began first is forgotten.
const ADDRESSES_MAX: usize = 16_384;
/// Secrets that were good, each with the address that has shown it. For one more, all are forgotten: while an address is
/// refused, its secrets have to prove themselves anew, after the window.
const PROVEN_MAX: usize = 65_536;

/// What addresses have tried lately.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<Table>);

#[derive(Default)]
struct Table {
    failed: BTreeMap<IpAddr, Window>,
    proven: HashSet<(IpAddr, [u8; 32])>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Instant,
    failures: u32,
}

impl Window {
    fn is_over(self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= WINDOW
    }
}

impl Attempts {
    /// How long the address has to wait, if it has failed too often.
    fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let table = self.0.lock();
        let window = table.failed.get(&address)?;
        let is_refused = window.failures >= FAILURES_MAX && !window.is_over(now);
        is_refused.then(|| WINDOW - now.saturating_duration_since(window.began))
    }

    fn failed(&self, address: IpAddr, now: Instant) {
        let failed = &mut self.0.lock().failed;
        if let Some(window) = failed.get_mut(&address).filter(|window| !window.is_over(now)) {
            window.failures = window.failures.saturating_add(1);
            return;
        }
        if failed.len() >= ADDRESSES_MAX && !failed.contains_key(&address) {
            failed.retain(|_, window| !window.is_over(now));
            let first = failed.iter().min_by_key(|(_, window)| window.began).map(|(address, _)| *address);
            first.filter(|_| failed.len() >= ADDRESSES_MAX).map(|first| failed.remove(&first));
        }
        failed.insert(address, Window { began: now, failures: 1 });
    }

    fn proved(&self, address: IpAddr, secret: [u8; 32]) {
        let proven = &mut self.0.lock().proven;
        if proven.len() >= PROVEN_MAX && !proven.contains(&(address, secret)) {
            proven.clear();
        }
        proven.insert((address, secret));
    }

    fn has_proved(&self, address: IpAddr, secret: [u8; 32]) -> bool {
        self.0.lock().proven.contains(&(address, secret))
    }
}

/// Which failures of a proof count against the address.
pub(crate) type Counts = fn(&Failure) -> bool;

/// Those that are the caller's: where a server or a provider is at fault, nothing was guessed.
pub(crate) fn of_caller(failure: &Failure) -> bool {
    failure.status.is_client_error() && failure.status != StatusCode::TOO_MANY_REQUESTS
}

impl AppState {
    /// Who presents this secret or signed token, from that address.
    ///
    /// # Errors
    /// 403 if it is worth nothing; 429 if too much from there was worth nothing lately, and this was never good there. What
    /// is signed is not guessed, and not counted.
    pub(crate) async fn access_from(
        &self,
        address: Option<IpAddr>,
        presented: &str,
    ) -> Result<Access, Failure> {
        let is_secret = !presented.is_empty() && !presented.contains('.');
        let counted = self.counted(address).filter(|_| is_secret && self.agent.access.enabled);
        let Some(address) = counted else { return self.access(presented).await };
        let secret = secret_hash(presented);
        // Were a secret looked at that is new there, guessing would go on: the right one has another answer.
        if let Some(wait) = self.attempts.wait(address, Instant::now())
            && !self.attempts.has_proved(address, secret)
        {
            return Err(too_many(wait));
        }
        let access = self.access(presented).await;
        match &access {
            Ok(Access { who: Who::Everybody | Who::Anonymous, .. }) => {}
            Ok(_) => self.attempts.proved(address, secret),
            Err(failure) if is_unknown_token(failure) => self.attempts.failed(address, Instant::now()),
            Err(_) => {}
        }
        access
    }

    /// Has somebody prove who they are, unless too many proofs from that address failed lately.
    ///
    /// # Errors
    /// 429, or the proof's.
    pub(crate) async fn proving<T>(
        &self,
        address: Option<IpAddr>,
        counts: Counts,
        proof: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(address) = self.counted(address) else { return proof.await };
        if let Some(wait) = self.attempts.wait(address, Instant::now()) {
            return Err(too_many(wait));
        }
        let proven = proof.await;
        if proven.as_ref().is_err_and(counts) {
            self.attempts.failed(address, Instant::now());
        }
        proven
    }

    /// An address that stands for many is not counted, as with connections.
    fn counted(&self, address: Option<IpAddr>) -> Option<IpAddr> {
        let is_proxy =
            |address: &IpAddr| self.agent.proxies.iter().any(|network: &IpNet| network.contains(address));
        address.map(|address| address.to_canonical()).filter(|address| !is_proxy(address))
    }
}

fn too_many(wait: Duration) -> Failure {
    let window = WINDOW.as_secs();
    let text = format!(
        "too many failed logins and unknown tokens from this address: {FAILURES_MAX} within {window} s; try again later"
    );
    // A part of a second is waited for as a whole one.
    Failure::too_many(text).after(wait.as_secs() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::from((0x0a00_0000 + number).to_be_bytes())
    }

    #[test]
    fn an_address_is_refused_until_the_window_of_its_failures_is_over() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let at = |secs| start + Duration::from_secs(secs);
        for nth in 0..u64::from(FAILURES_MAX) {
            assert_eq!(attempts.wait(address(1), at(nth)), None, "{nth}");
            attempts.failed(address(1), at(nth));
        }
        assert_eq!(attempts.wait(address(1), at(50)), Some(Duration::from_secs(10)));
        assert_eq!(attempts.wait(address(2), at(50)), None, "others are not meant");
        assert_eq!(attempts.wait(address(1), at(60)), None);
        attempts.failed(address(1), at(60));
        assert_eq!(attempts.wait(address(1), at(61)), None, "counted anew");
    }

    #[test]
    fn what_was_good_from_an_address_stays_good_there_alone() {
        let attempts = Attempts::default();
        attempts.proved(address(1), [7; 32]);
        assert!(attempts.has_proved(address(1), [7; 32]));
        assert!(!attempts.has_proved(address(2), [7; 32]) && !attempts.has_proved(address(1), [8; 32]));
    }

    #[test]
    fn tables_are_bounded_and_forget_what_is_oldest() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let most = ADDRESSES_MAX as u32;
        for number in 0..=most {
            let now = start + Duration::from_micros(u64::from(number));
            (0..FAILURES_MAX).for_each(|_| attempts.failed(address(number), now));
        }
        let now = start + Duration::from_secs(1);
        assert_eq!(attempts.0.lock().failed.len(), ADDRESSES_MAX);
        assert!(attempts.wait(address(0), now).is_none() && attempts.wait(address(most), now).is_some());
        // Windows that are over make room for all.
        attempts.failed(address(most + 1), start + Duration::from_secs(90));
        assert_eq!(attempts.0.lock().failed.len(), 1);
        for number in 0..=PROVEN_MAX as u32 {
            attempts.proved(address(number), [1; 32]);
        }
        assert_eq!(attempts.0.lock().proven.len(), 1);
    }
}
