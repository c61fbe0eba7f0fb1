//! Which addresses allocations get.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A network: its first address, and how many bits of it are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet<A> {
    pub base: A,
    pub prefix: u8,
}

/// The longest prefix that leaves room for a gateway and an allocation, beside first and last address.
const PREFIX_MAX_V4: u8 = 30;

/// IPv6 has as many hosts as IPv4 at least: addresses go by the same numbers.
const PREFIX_MAX_V6: u8 = 112;

impl Subnet<Ipv4Addr> {
    /// # Errors
    /// Says what is expected.
    pub fn parse(text: &str) -> Result<Subnet<Ipv4Addr>, String> {
        let expected = || format!("expected an IPv4 network like 172.26.64.0/20, not \"{text}\"");
        let (base, prefix) = split::<Ipv4Addr>(text).ok_or_else(expected)?;
        if prefix > PREFIX_MAX_V4 {
            return Err(format!("expected a network with room for allocations, not \"{text}\""));
        }
        let fixed = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Ok(Subnet { base: Ipv4Addr::from(u32::from(base) & fixed), prefix })
    }

    /// Addresses that can be given away: without the first, the gateway and the last.
    fn hosts(self) -> std::ops::Range<u32> {
        2..(u32::MAX >> self.prefix)
    }

    pub fn address(self, host: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base) + host)
    }

    /// The number of an address of this network.
    pub fn host(self, address: Ipv4Addr) -> Option<u32> {
        let host = u32::from(address).checked_sub(u32::from(self.base))?;
        self.hosts().contains(&host).then_some(host)
    }

    pub fn gateway(self) -> Ipv4Addr {
        self.address(1)
    }

    /// The first free one after `last`, so that an address rests before it is given away again.
    pub fn next(self, taken: &BTreeSet<u32>, last: u32) -> Option<u32> {
        let hosts = self.hosts();
        let after = (last.saturating_add(1)).clamp(hosts.start, hosts.end);
        (after..hosts.end).chain(hosts.start..after).find(|host| !taken.contains(host))
    }
}

impl Subnet<Ipv6Addr> {
    /// # Errors
    /// Says what is expected.
    pub fn parse(text: &str) -> Result<Subnet<Ipv6Addr>, String> {
        let expected = || format!("expected an IPv6 network like fd00:a110:c8::/112, not \"{text}\"");
        let (base, prefix) = split::<Ipv6Addr>(text).ok_or_else(expected)?;
        if prefix > PREFIX_MAX_V6 {
            return Err(format!("expected a network of at most {PREFIX_MAX_V6} fixed bits, not \"{text}\""));
        }
        let fixed = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
        Ok(Subnet { base: Ipv6Addr::from(u128::from(base) & fixed), prefix })
    }

    pub fn address(self, host: u32) -> Ipv6Addr {
        Ipv6Addr::from(u128::from(self.base) + u128::from(host))
    }

    pub fn gateway(self) -> Ipv6Addr {
        self.address(1)
    }
}

fn split<A: std::str::FromStr>(text: &str) -> Option<(A, u8)> {
    let (base, prefix) = text.split_once('/')?;
    Some((base.parse().ok()?, prefix.parse().ok()?))
}

/// `prefix` bits of ones in `bytes` bytes.
pub fn mask(prefix: u8, bytes: u8) -> Vec<u8> {
    let ones = |byte: u8| prefix.saturating_sub(byte * 8).min(8);
    (0..bytes).map(|byte| 0xff_u8.checked_shl(8 - u32::from(ones(byte))).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_or_refused_with_what_is_expected() {
        let subnet = Subnet::<Ipv4Addr>::parse("172.26.64.7/20").unwrap();
        assert_eq!((subnet.base, subnet.gateway()), ([172, 26, 64, 0].into(), [172, 26, 64, 1].into()));
        for text in ["", "172.26.64.0", "172.26.64.0/33", "172.26.64.0/31", "fd00::/64"] {
            assert!(Subnet::<Ipv4Addr>::parse(text).unwrap_err().starts_with("expected"), "{text}");
        }
        let v6 = Subnet::<Ipv6Addr>::parse("fd00:a110:c8::/112").unwrap();
        assert_eq!(v6.address(2), "fd00:a110:c8::2".parse::<Ipv6Addr>().unwrap());
        assert!(Subnet::<Ipv6Addr>::parse("fd00::/120").is_err());
    }

    #[test]
    fn addresses_rest_before_they_are_given_away_again() {
        let subnet = Subnet::<Ipv4Addr>::parse("10.0.0.0/29").unwrap();
        let taken = BTreeSet::from([2, 4]);
        assert_eq!(subnet.next(&taken, 0), Some(3));
        assert_eq!(subnet.next(&taken, 3), Some(5));
        assert_eq!(subnet.next(&taken, 6), Some(3), "7 is that of all hosts");
        assert_eq!(subnet.next(&(2..7).collect(), 3), None);
        assert_eq!(subnet.host([10, 0, 0, 7].into()), None);
    }

    #[test]
    fn masks_have_their_ones_first() {
        assert_eq!(mask(20, 4), [255, 255, 240, 0]);
        assert_eq!(mask(0, 4), [0; 4]);
        assert_eq!(mask(128, 16), [255; 16]);
    }
}
